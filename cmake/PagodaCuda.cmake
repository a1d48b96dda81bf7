# GPU code: whether, and for which GPUs. Compiling needs nvcc 13.0 or later, and no GPU. Sets
#   PAGODA_HAS_CUDA             whether there is any
#   PAGODA_ATTENTION_ARCHS      what attention kernels are compiled for, all from 80 on; may be empty: then GPU
#                               code is append_kv and merge_states only, which every GPU since sm_80 runs
#   PAGODA_CUDA_NOTE            AUTO: which GPUs were found
#   PAGODA_NO_CUDA_REASON       where there is none
# and defines
#   pagoda_cuda_sources(ARCH... SOURCES file...)   which architectures a source is compiled for; 80-virtual: PTX
# CMake's own CUDA_ARCHITECTURES knows no lists per file, so it is off.
include_guard(GLOBAL)
include(PagodaCudaArchitectures)

set(PAGODA_CUDA AUTO CACHE STRING "GPU code: AUTO (where nvcc is found, for PAGODA_CUDA_ARCHITECTURES), ON, OFF")
set(PAGODA_CUDA_ARCHITECTURES AUTO CACHE STRING
  "GPUs that attention is compiled for: AUTO (those of this machine), all, or a list of 80, 90a, 100a, 103a ...")
set(PAGODA_HAS_CUDA OFF)
set(PAGODA_ATTENTION_ARCHS "")
set(PAGODA_CUDA_NOTE "")
# nvcc passes neither sanitizers nor clang's coverage on to device code.
if(PAGODA_CUDA STREQUAL "AUTO" AND (PAGODA_SANITIZE OR PAGODA_BUILD_FUZZERS))
  set(PAGODA_NO_CUDA_REASON "off in sanitizer and fuzzer builds")
elseif(PAGODA_CUDA)
  find_program(PAGODA_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda)
  if(PAGODA_NVCC)
    execute_process(COMMAND "${PAGODA_NVCC}" --version OUTPUT_VARIABLE pagoda_nvcc ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" _ "${pagoda_nvcc}")
    set(pagoda_nvcc "${CMAKE_MATCH_1}")
  endif()
  if(NOT PAGODA_NVCC)
    set(PAGODA_NO_CUDA_REASON "no nvcc found")
  elseif(pagoda_nvcc VERSION_LESS 13.0)
    set(PAGODA_NO_CUDA_REASON "nvcc ${pagoda_nvcc} is too old: 13.0 or later")
  else()
    set(pagoda_without_gpu "")
    if(NOT PAGODA_CUDA STREQUAL "AUTO")
      set(pagoda_without_gpu ${PAGODA_CUDA_ALL})
    endif()
    pagoda_cuda_architectures("${PAGODA_CUDA_ARCHITECTURES}" pagoda_code PAGODA_ATTENTION_ARCHS PAGODA_CUDA_NOTE
      ${pagoda_without_gpu})
    if(pagoda_code)
      set(PAGODA_HAS_CUDA ON)
    elseif(PAGODA_CUDA_ARCHITECTURES STREQUAL "AUTO")
      set(PAGODA_NO_CUDA_REASON "${PAGODA_CUDA_NOTE}; -DPAGODA_CUDA_ARCHITECTURES=all, or 90a, compiles it all the same")
    else()
      set(PAGODA_NO_CUDA_REASON "PAGODA_CUDA_ARCHITECTURES names no architecture: AUTO, all, or a list such as 90a")
    endif()
  endif()
  if(NOT PAGODA_HAS_CUDA AND NOT PAGODA_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "PAGODA_CUDA is ${PAGODA_CUDA}: ${PAGODA_NO_CUDA_REASON}")
  endif()
else()
  set(PAGODA_NO_CUDA_REASON "PAGODA_CUDA is ${PAGODA_CUDA}")
endif()

if(PAGODA_HAS_CUDA)
  set(CMAKE_CUDA_COMPILER "${PAGODA_NVCC}")
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(CMAKE_CUDA_STANDARD 17)  # for the compiler's check: CMake 3.25 does not know nvcc's C++20
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  if(PAGODA_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${PAGODA_CCACHE}")
  endif()
  enable_language(CUDA)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  find_package(CUDAToolkit REQUIRED)  # CUDA::cudart_static
endif()

function(pagoda_cuda_sources)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SOURCES")
  set(options "")
  foreach(arch IN LISTS arg_UNPARSED_ARGUMENTS)
    if(arch MATCHES "^(.*)-virtual$")
      list(APPEND options "-gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1}")
    else()
      list(APPEND options "-gencode=arch=compute_${arch},code=sm_${arch}")
    endif()
  endforeach()
  set_source_files_properties(${arg_SOURCES} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()
