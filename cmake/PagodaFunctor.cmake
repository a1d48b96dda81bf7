# pagoda_add_functor(TARGET SOURCE file SHAPES name... [EMULATOR] [CUDA_ARCHITECTURES arch...])
#
# Compiles a functor (docs/functors.md) into TARGET, an executable or a shared library: SOURCE for the CPU, and for
# each of SHAPES, names of kernels such as sm90.d128.bf16, by nvcc for those of CUDA_ARCHITECTURES that its family has
# instructions for (default: those that pagoda's own kernels are compiled for). EMULATOR: also for the emulated
# back ends, for tests.
#
# Needs pagoda::pagoda, with EMULATOR pagoda::emulator, and for GPUs the language CUDA. PAGODA_KERNEL_INCLUDES: the
# folders of pagoda's headers and of those of its kernels.
include_guard(GLOBAL)

# The architectures of a family's kernels, as src/CMakeLists.txt has them.
set(PAGODA_FUNCTOR_ARCHS_90 90a)
set(PAGODA_FUNCTOR_ARCHS_100 100a 103a)
set(PAGODA_FUNCTOR_ARCHS_512 100a 103a)  # mha_sm100_d512
set(PAGODA_FUNCTOR_ARCHS_80 80 86 87 88 89 90a 110 120 121)

function(pagoda_add_functor target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EMULATOR" "SOURCE" "SHAPES;CUDA_ARCHITECTURES")
  if(NOT arg_SOURCE OR NOT arg_SHAPES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "pagoda_add_functor(TARGET SOURCE file SHAPES name... [EMULATOR] [CUDA_ARCHITECTURES arch...])")
  endif()
  get_filename_component(source ${arg_SOURCE} ABSOLUTE)
  get_filename_component(name ${arg_SOURCE} NAME_WE)
  set(objects ${target}_${name})
  if(NOT DEFINED arg_CUDA_ARCHITECTURES)
    set(arg_CUDA_ARCHITECTURES ${PAGODA_ATTENTION_ARCHS})
  endif()

  pagoda_functor_objects(${objects}_cpu ${source} FAMILY 0)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}_cpu>)
  target_link_libraries(${target} PRIVATE pagoda::pagoda)
  if(arg_EMULATOR)
    target_link_libraries(${target} PRIVATE pagoda::emulator)
  endif()
  foreach(shape IN LISTS arg_SHAPES)
    if(NOT shape MATCHES "^sm(80|90|100)\\.")
      message(FATAL_ERROR "pagoda_add_functor: ${shape} is no kernel of the families sm80, sm90 and sm100")
    endif()
    set(family ${CMAKE_MATCH_1})
    if(shape MATCHES "^sm100\\.d(256|512)\\.")
      set(family 512)
    endif()
    if(arg_EMULATOR)
      pagoda_functor_objects(${objects}_emulated_${shape} ${source} FAMILY ${family} SHAPE ${shape})
      # An emulated step takes its time in the emulator.
      target_compile_options(${objects}_emulated_${shape} PRIVATE $<$<CONFIG:Release>:-Og>)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}_emulated_${shape}>)
    endif()
    set(held "")
    foreach(arch IN LISTS arg_CUDA_ARCHITECTURES)
      if(arch IN_LIST PAGODA_FUNCTOR_ARCHS_${family})
        list(APPEND held ${arch})
      endif()
    endforeach()
    if(held AND NOT CMAKE_CUDA_COMPILER)
      message(FATAL_ERROR "pagoda_add_functor: kernels for ${held} need enable_language(CUDA); CUDA_ARCHITECTURES none "
        "compiles none")
    endif()
    if(held)
      pagoda_functor_gpu_objects(${objects}_gpu_${shape} ${source} FAMILY ${family} SHAPE ${shape} ARCHS ${held})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}_gpu_${shape}>)
    endif()
  endforeach()
endfunction()

function(pagoda_functor_objects objects source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FAMILY;SHAPE" "")
  add_library(${objects} OBJECT ${source})
  target_compile_features(${objects} PRIVATE cxx_std_20)
  target_compile_definitions(${objects} PRIVATE PAGODA_FUNCTOR_FAMILY=${arg_FAMILY} PAGODA_FUNCTOR_SHAPE="${arg_SHAPE}")
  target_include_directories(${objects} PRIVATE ${PAGODA_KERNEL_INCLUDES})
  if(TARGET pagoda_flags)
    target_link_libraries(${objects} PRIVATE pagoda_flags)
  endif()
endfunction()

# A file of its own: CMake has one language for each source file of a folder.
function(pagoda_functor_gpu_objects objects source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FAMILY;SHAPE" "ARCHS")
  set(file ${CMAKE_CURRENT_BINARY_DIR}/functors/${objects}.cu)
  file(CONFIGURE OUTPUT ${file} CONTENT "#include \"${source}\"\n" @ONLY)
  list(TRANSFORM arg_ARCHS REPLACE "(.+)" "-gencode=arch=compute_\\1,code=sm_\\1" OUTPUT_VARIABLE code)
  if("80" IN_LIST arg_ARCHS)
    list(APPEND code "-gencode=arch=compute_80,code=compute_80")  # PTX, for every later GPU
  endif()
  list(TRANSFORM arg_ARCHS REPLACE "a$" "" OUTPUT_VARIABLE held)
  list(JOIN held "." held)
  add_library(${objects} OBJECT ${file})
  set_target_properties(${objects} PROPERTIES CUDA_ARCHITECTURES OFF)
  target_compile_definitions(${objects} PRIVATE PAGODA_FUNCTOR_FAMILY=${arg_FAMILY} PAGODA_FUNCTOR_SHAPE="${arg_SHAPE}"
    PAGODA_FUNCTOR_ARCHS="${held}")
  target_include_directories(${objects} PRIVATE ${PAGODA_KERNEL_INCLUDES})
  # 554: a tensor's conversion to itself, which never happens. A spill makes a slow kernel.
  target_compile_options(${objects} PRIVATE ${code} -std=c++20 -diag-suppress=554 -Xptxas=-warn-spills
    --compress-mode=size)
endfunction()
