# Install rules: the library, the emulator beside it, public headers, the command and the CMake package.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS pagoda EXPORT pagodaTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET pagoda_cli)
  install(TARGETS pagoda_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
set(pagoda_left_out "")
if(TARGET pagoda_emulator)
  install(TARGETS pagoda_emulator pagoda_emulated_machine EXPORT pagodaEmulatorTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(pagoda_left_out PATTERN emulator.hpp EXCLUDE)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/pagoda" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${pagoda_left_out})
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(pagoda_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pagoda)
install(EXPORT pagodaTargets NAMESPACE pagoda:: DESTINATION ${pagoda_cmake_dir})
if(TARGET pagoda_emulator)
  install(EXPORT pagodaEmulatorTargets NAMESPACE pagoda:: DESTINATION ${pagoda_cmake_dir})
endif()
# A static libpagoda.a needs oneTBB, and with GPU code the CUDA runtime, at link time; a shared one
# has already linked them.
get_target_property(pagoda_type pagoda TYPE)
set(PAGODA_FIND_DEPENDENCIES "")
if(pagoda_type STREQUAL "STATIC_LIBRARY")
  set(PAGODA_FIND_DEPENDENCIES "include(CMakeFindDependencyMacro)\nfind_dependency(TBB)")
  if(PAGODA_HAS_CUDA)
    string(APPEND PAGODA_FIND_DEPENDENCIES "\nfind_dependency(CUDAToolkit)")
  endif()
endif()
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/pagodaConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/pagodaConfig.cmake" INSTALL_DESTINATION ${pagoda_cmake_dir})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/pagodaConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/pagodaConfig.cmake"
  "${PROJECT_BINARY_DIR}/pagodaConfigVersion.cmake" DESTINATION ${pagoda_cmake_dir})
