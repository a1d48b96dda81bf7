# pagoda_kernel_family(NAME ARCHS arch...): compiles the instances of src/kernels/NAME, one object library for each line
# of kShapes in its instances.hpp, from the one file instance.cpp: by nvcc for those of the architectures that
# PAGODA_ATTENTION_ARCHS has, and (pagoda_emulated_families) by the host compiler for the emulator. AMD architectures
# (gfx942): by clang, a code object for each that PAGODA_HIP_ARCHS has, and by the host compiler what launches it.
#
# Global properties: PAGODA_FAMILIES; for each family PAGODA_INSTANCES_<family>, names, and PAGODA_GPU_ARCHS_<family>,
# those of the architectures that it is compiled for; PAGODA_GPU_OBJECTS and PAGODA_GPU_OBJECTS_<family>, generator
# expressions; PAGODA_HIP_CODE_<family>, the files of its code objects.
include_guard(GLOBAL)

function(pagoda_kernel_family family)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARCHS")
  set(folder ${PROJECT_SOURCE_DIR}/src/kernels/${family})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/instances.hpp)
  file(READ ${folder}/instances.hpp text)
  string(REGEX MATCHALL "{\"[a-z0-9_.]+\", " shapes "${text}")
  list(TRANSFORM shapes REPLACE "^{\"([a-z0-9_.]+)\".*$" "\\1" OUTPUT_VARIABLE instances)
  if(NOT instances)
    message(FATAL_ERROR "${folder}/instances.hpp has no lines of kShapes: {\"name\", ...},")
  endif()
  set_property(GLOBAL APPEND PROPERTY PAGODA_FAMILIES ${family})
  set_property(GLOBAL PROPERTY PAGODA_INSTANCES_${family} ${instances})

  set(amd ${arg_ARCHS})
  list(FILTER amd INCLUDE REGEX "^gfx")
  list(TRANSFORM amd REPLACE "^gfx" "")
  set(held "")
  foreach(arch IN LISTS amd)
    if(arch IN_LIST PAGODA_HIP_ARCHS)
      list(APPEND held ${arch})
    endif()
  endforeach()
  if(held)
    pagoda_hip_family(${family} ${held})
  endif()

  string(REPLACE ";" "|" pattern "${arg_ARCHS}")
  set(archs ${PAGODA_ATTENTION_ARCHS})
  list(FILTER archs INCLUDE REGEX "^(${pattern})$")
  set_property(GLOBAL PROPERTY PAGODA_GPU_ARCHS_${family} ${archs})
  if(NOT archs)
    return()
  endif()
  list(TRANSFORM archs REPLACE "(.+)" "-gencode=arch=compute_\\1,code=sm_\\1" OUTPUT_VARIABLE code)
  if("80" IN_LIST archs)
    list(APPEND code "-gencode=arch=compute_80,code=compute_80")  # PTX, for every later GPU
  endif()
  set_source_files_properties(${folder}/instance.cpp PROPERTIES LANGUAGE CUDA)
  foreach(instance IN LISTS instances)
    set(target pagoda_gpu_${instance})
    add_library(${target} OBJECT ${folder}/instance.cpp)
    target_compile_definitions(${target} PRIVATE PAGODA_INSTANCE="${instance}")
    target_link_libraries(${target} PRIVATE pagoda_cuda_flags)
    target_compile_options(${target} PRIVATE ${code} $<$<BOOL:${PAGODA_KEEPS_PTXAS_REPORTS}>:-Xptxas=-v>)
    if(PAGODA_KEEPS_PTXAS_REPORTS)  # tests/cuda/ptxas_report_test.py reads them
      set_target_properties(${target} PROPERTIES CUDA_COMPILER_LAUNCHER
        "${Python3_EXECUTABLE};${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report.py;${CMAKE_CUDA_COMPILER_LAUNCHER}")
    endif()
    set_property(GLOBAL APPEND PROPERTY PAGODA_GPU_OBJECTS $<TARGET_OBJECTS:${target}>)
    set_property(GLOBAL APPEND PROPERTY PAGODA_GPU_OBJECTS_${family} $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()

# The part of pagoda_kernel_family for AMD GPUs.
function(pagoda_hip_family family)
  set(source ${PROJECT_SOURCE_DIR}/src/kernels/${family}/hip_instance.cpp)
  if(NOT EXISTS ${source})  # for AMD GPUs alone: a file has one language, CUDA or C++
    set(source ${PROJECT_SOURCE_DIR}/src/kernels/${family}/instance.cpp)
  endif()
  get_property(instances GLOBAL PROPERTY PAGODA_INSTANCES_${family})
  foreach(instance IN LISTS instances)
    pagoda_hip_code(${instance} SOURCE ${source} ARCHS ${ARGN} DEFINITIONS PAGODA_INSTANCE="${instance}")
    foreach(arch IN LISTS ARGN)
      set_property(GLOBAL APPEND PROPERTY PAGODA_HIP_CODE_${family} ${CMAKE_BINARY_DIR}/hip/${instance}.gfx${arch}.co)
    endforeach()
    set(target pagoda_hip_${instance})
    add_library(${target} OBJECT ${source})
    target_compile_definitions(${target} PRIVATE PAGODA_INSTANCE="${instance}" PAGODA_HOST_OF_HIP)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE pagoda_flags)
    pagoda_compiles_quickly(${target})
    set_property(GLOBAL APPEND PROPERTY PAGODA_GPU_OBJECTS $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()

# pagoda_emulated_families(OBJECTS): the instances of every family for the emulator. In a folder of its own: a source
# file has one language in each.
function(pagoda_emulated_families objects)
  get_property(families GLOBAL PROPERTY PAGODA_FAMILIES)
  set(all "")
  foreach(family IN LISTS families)
    get_property(instances GLOBAL PROPERTY PAGODA_INSTANCES_${family})
    foreach(instance IN LISTS instances)
      set(target pagoda_emulated_${instance})
      add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/src/kernels/${family}/instance.cpp)
      target_compile_definitions(${target} PRIVATE PAGODA_INSTANCE="${instance}")
      target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
      target_link_libraries(${target} PRIVATE pagoda_flags)
      # An emulated step takes its time in the emulator, not in the kernel: src/backends/emulator/README.md.
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
      list(APPEND all $<TARGET_OBJECTS:${target}>)
    endforeach()
  endforeach()
  set(${objects} ${all} PARENT_SCOPE)
endfunction()
