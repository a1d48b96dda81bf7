# AMD GPU code: whether, and for which GPUs. Compiling needs clang 18 or later with its AMDGPU target and
# lld, no ROCm and no GPU. Sets
#   PAGODA_HAS_HIP          whether there is any
#   PAGODA_HIP_ARCHS        what code is for: "942"
#   PAGODA_HIP_NOTE         AUTO: which GPUs were found
#   PAGODA_NO_HIP_REASON    where there is none
# and defines
#   pagoda_hip_code(NAME SOURCE file [ARCHS arch...] [DEFINITIONS definition...] [OPTIONS option...])
#     the code objects NAME, one for each of the architectures (all of PAGODA_HIP_ARCHS), from a source
#   pagoda_hip_code_objects(OUT)
#     the generated source that embeds all of them; in the folder that called pagoda_hip_code
# Global properties: PAGODA_HIP_OBJECTS, of all code objects "NAME|942|path".
include_guard(GLOBAL)
include(PagodaHipArchitectures)

set(PAGODA_HIP AUTO CACHE STRING "AMD GPU code: AUTO (where this machine has an AMD GPU and clang), ON, OFF")
set(PAGODA_HIP_ARCHITECTURES gfx942 CACHE STRING "AMD GPUs that code is compiled for: gfx942, gfx950")
set(PAGODA_HAS_HIP OFF)
set(PAGODA_HIP_ARCHS "")
set(PAGODA_HIP_NOTE "")

# Compiles a kernel for each of the architectures; what is missing, or nothing.
function(pagoda_try_hip_compiler out)
  set(source ${CMAKE_BINARY_DIR}/hip/probe.hip)
  file(WRITE ${source} "__attribute__((global)) void probe(int* p) { *p = 1; }\n")
  foreach(arch IN LISTS PAGODA_HIP_ARCHS)
    execute_process(
      COMMAND "${PAGODA_HIP_COMPILER}" ${PAGODA_HIP_FLAGS} --offload-arch=gfx${arch} -o ${source}.co -c ${source}
      RESULT_VARIABLE failed ERROR_VARIABLE error OUTPUT_QUIET)
    if(NOT failed EQUAL 0)
      string(STRIP "${error}" error)
      set(${out} "${PAGODA_HIP_COMPILER} makes no code for gfx${arch}: ${error}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# No headers and no libraries of ROCm, one ELF file for one target. The id that clang derives from the
# path would make builds differ.
set(PAGODA_HIP_FLAGS -x hip --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -fuse-cuid=none
  -std=c++20 -O3)

if(PAGODA_HIP)
  foreach(name IN LISTS PAGODA_HIP_ARCHITECTURES)
    if(NOT name MATCHES "^gfx([0-9]+)$")
      message(FATAL_ERROR "PAGODA_HIP_ARCHITECTURES: '${name}' is no architecture; a list such as gfx942")
    endif()
    list(APPEND PAGODA_HIP_ARCHS ${CMAKE_MATCH_1})
  endforeach()
  set(pagoda_wants_hip ON)
  if(PAGODA_HIP STREQUAL "AUTO")
    pagoda_present_amd_gpus(/sys/class/kfd/kfd pagoda_amd_gpus)
    if(pagoda_amd_gpus)
      list(JOIN pagoda_amd_gpus ", " PAGODA_HIP_NOTE)
      set(PAGODA_HIP_NOTE "this machine's GPUs: ${PAGODA_HIP_NOTE}")
    else()
      set(pagoda_wants_hip OFF)
      set(PAGODA_NO_HIP_REASON "no AMD GPU found; -DPAGODA_HIP=ON compiles it all the same")
    endif()
  endif()
  if(pagoda_wants_hip)
    find_program(PAGODA_HIP_COMPILER
      NAMES clang++-22 clang++-21 clang++-20 clang++-19 clang++-18 amdclang++ clang++ PATHS /opt/rocm/bin)
    if(NOT PAGODA_HIP_COMPILER)
      set(PAGODA_NO_HIP_REASON "no clang++ found")
    elseif(NOT PAGODA_HIP_ARCHS)
      set(PAGODA_NO_HIP_REASON "PAGODA_HIP_ARCHITECTURES names no architecture: a list such as gfx942")
    else()
      pagoda_try_hip_compiler(PAGODA_NO_HIP_REASON)
    endif()
    if(NOT PAGODA_NO_HIP_REASON)
      set(PAGODA_HAS_HIP ON)
    elseif(NOT PAGODA_HIP STREQUAL "AUTO")
      message(FATAL_ERROR "PAGODA_HIP is ${PAGODA_HIP}: ${PAGODA_NO_HIP_REASON}")
    endif()
  endif()
else()
  set(PAGODA_NO_HIP_REASON "PAGODA_HIP is ${PAGODA_HIP}")
endif()
if(NOT PAGODA_HAS_HIP)
  set(PAGODA_HIP_ARCHS "")
endif()

function(pagoda_hip_code name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE" "ARCHS;DEFINITIONS;OPTIONS")
  if(NOT arg_ARCHS)
    set(arg_ARCHS ${PAGODA_HIP_ARCHS})
  endif()
  list(TRANSFORM arg_DEFINITIONS PREPEND "-D")
  foreach(arch IN LISTS arg_ARCHS)
    set(object ${CMAKE_BINARY_DIR}/hip/${name}.gfx${arch}.co)
    add_custom_command(OUTPUT ${object}
      COMMAND ${PAGODA_CCACHE} ${PAGODA_HIP_COMPILER} ${PAGODA_HIP_FLAGS} --offload-arch=gfx${arch}
        -Wall -Wextra -Wshadow -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
        ${arg_DEFINITIONS} ${arg_OPTIONS} -MD -MT ${object} -MF ${object}.d -o ${object} -c ${arg_SOURCE}
      DEPENDS ${arg_SOURCE} DEPFILE ${object}.d
      COMMENT "Building code object ${name} for gfx${arch}" VERBATIM)
    set_property(GLOBAL APPEND PROPERTY PAGODA_HIP_OBJECTS "${name}|${arch}|${object}")
  endforeach()
endfunction()

function(pagoda_hip_code_objects out)
  get_property(objects GLOBAL PROPERTY PAGODA_HIP_OBJECTS)
  set(symbols "")
  set(rows "")
  set(files "")
  set(i 0)
  foreach(object IN LISTS objects)
    string(REGEX MATCH "^(.*)\\|(.*)\\|(.*)$" _ "${object}")
    set(symbol pagoda_code_object_${i})
    string(APPEND symbols "PAGODA_EMBED(${symbol}, \"${CMAKE_MATCH_3}\")\n")
    string(APPEND rows "    {\"${CMAKE_MATCH_1}\", ${CMAKE_MATCH_2}, ${symbol}, ${symbol}_end},\n")
    list(APPEND files "${CMAKE_MATCH_3}")
    math(EXPR i "${i} + 1")
  endforeach()
  set(source ${CMAKE_BINARY_DIR}/hip/code_objects.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/code_objects.cpp.in ${source} @ONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${files}")
  set(${out} ${source} PARENT_SCOPE)
endfunction()
