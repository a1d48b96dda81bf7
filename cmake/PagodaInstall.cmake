# Install rules: the libraries, public headers, the command, the CMake package and the pkg-config
# file. The emulator, which is for tests, is installed on request:
#   cmake --install BUILD --prefix P --component emulator
# So is what compiles functors, component functors, and at run time, component runtime_functors.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(pagoda_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pagoda)

install(TARGETS pagoda EXPORT pagodaTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT pagodaTargets NAMESPACE pagoda:: DESTINATION ${pagoda_cmake_dir})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/pagoda" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  PATTERN emulator.hpp EXCLUDE PATTERN runtime_functor.hpp EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(TARGET pagoda_c)
  install(TARGETS pagoda_c EXPORT pagodaCTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT pagodaCTargets NAMESPACE pagoda:: DESTINATION ${pagoda_cmake_dir})
  file(RELATIVE_PATH PAGODA_PREFIX_FROM_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/pagoda.pc.in" "${PROJECT_BINARY_DIR}/pagoda.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/pagoda.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET pagoda_cli)
  install(TARGETS pagoda_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(TARGET pagoda_emulator)
  install(TARGETS pagoda_emulator pagoda_emulated_machine EXPORT pagodaEmulatorTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT emulator EXCLUDE_FROM_ALL
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT pagodaEmulatorTargets NAMESPACE pagoda:: DESTINATION ${pagoda_cmake_dir}
    COMPONENT emulator EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_SOURCE_DIR}/include/pagoda/emulator.hpp"
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pagoda COMPONENT emulator EXCLUDE_FROM_ALL)
endif()

if(TARGET pagoda_runtime_functors)
  install(TARGETS pagoda_runtime_functors EXPORT pagodaRuntimeFunctorsTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime_functors EXCLUDE_FROM_ALL
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT pagodaRuntimeFunctorsTargets NAMESPACE pagoda:: DESTINATION ${pagoda_cmake_dir}
    COMPONENT runtime_functors EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_SOURCE_DIR}/include/pagoda/runtime_functor.hpp"
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pagoda COMPONENT runtime_functors EXCLUDE_FROM_ALL)
endif()

# What compiles functors (docs/functors.md), on request: the headers of the kernels, and pagoda_add_functor().
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/" DESTINATION ${CMAKE_INSTALL_DATADIR}/pagoda/src
  COMPONENT functors EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.hpp")
install(FILES "${CMAKE_CURRENT_LIST_DIR}/PagodaFunctor.cmake" DESTINATION ${pagoda_cmake_dir}
  COMPONENT functors EXCLUDE_FROM_ALL)
set(PAGODA_KERNEL_SOURCE_DIR ${CMAKE_INSTALL_DATADIR}/pagoda/src)

# What a static libpagoda.a needs at link time: oneTBB, and with GPU code the CUDA runtime.
set(PAGODA_FIND_DEPENDENCIES "find_dependency(TBB)")
if(PAGODA_HAS_CUDA)
  string(APPEND PAGODA_FIND_DEPENDENCIES "\n  find_dependency(CUDAToolkit)")
endif()
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/pagodaConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/pagodaConfig.cmake" INSTALL_DESTINATION ${pagoda_cmake_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR PAGODA_KERNEL_SOURCE_DIR)
# Before 1.0 a minor version may change the API.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/pagodaConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/pagodaConfig.cmake"
  "${PROJECT_BINARY_DIR}/pagodaConfigVersion.cmake" DESTINATION ${pagoda_cmake_dir})
