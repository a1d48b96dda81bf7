# How every target of this project is compiled, and one function each to add a test and a fuzzer.
include_guard(GLOBAL)

add_library(pagoda_flags INTERFACE)
target_compile_options(pagoda_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wno-sign-conversion
  # GCC 12 sees overlaps in std::string's operator+ that are not there (GCC bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(PAGODA_SANITIZE)
  target_compile_options(pagoda_flags INTERFACE
    -fsanitize=${PAGODA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(pagoda_flags INTERFACE -fsanitize=${PAGODA_SANITIZE})
endif()
if(PAGODA_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PAGODA_BUILD_FUZZERS needs clang; use the preset 'fuzz'")
  endif()
  # Coverage counters everywhere; only a fuzzer links libFuzzer's main.
  target_compile_options(pagoda_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(pagoda_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# pagoda_compiles_quickly(TARGET...): -Og where the time to compile is all that matters. The
# command line's and GoogleTest's templates take nearly twice as long at -O3 (GCC 12), and at -O1
# a tenth to a quarter longer.
function(pagoda_compiles_quickly)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  endforeach()
endfunction()

# pagoda_compiles_unoptimised(TEST): -O0 for hundreds of instances that run for a millisecond each.
# What GoogleTest's header was precompiled with does not fit then.
function(pagoda_compiles_unoptimised test)
  target_compile_options(${test} PRIVATE $<$<CONFIG:Release>:-O0>)
  set_target_properties(${test} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endfunction()

# pagoda_precompile_gtest(TARGET): uses <gtest/gtest.h> precompiled, which halves the time to compile
# a test (GCC 12: 2 of 3.8 s). The header is compiled with the options of pagoda_precompiled_gtest;
# a target with others must not call. Only GCC: clang-tidy could not read what clang precompiles.
function(pagoda_precompile_gtest target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  if(NOT TARGET pagoda_precompiled_gtest)
    set(source ${PROJECT_BINARY_DIR}/precompiled_gtest.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing: its target precompiles a header.\n")
    add_executable(pagoda_precompiled_gtest EXCLUDE_FROM_ALL ${source})
    target_link_libraries(pagoda_precompiled_gtest PRIVATE pagoda_internal GTest::gtest_main)
    pagoda_compiles_quickly(pagoda_precompiled_gtest)
    target_precompile_headers(pagoda_precompiled_gtest PRIVATE <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM pagoda_precompiled_gtest)
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
endfunction()

# pagoda_add_test(NAME source... [LIBS target...]): one GoogleTest executable = one CTest test.
function(pagoda_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})  # testing/
  target_link_libraries(${name} PRIVATE pagoda_internal GTest::gtest_main ${arg_LIBS})
  pagoda_compiles_quickly(${name})
  pagoda_precompile_gtest(${name})
  add_test(NAME ${name} COMMAND ${name})
endfunction()

# pagoda_add_fuzzer(NAME source... [LIBS target...]): one libFuzzer executable, in preset 'fuzz'
# only. The sources define LLVMFuzzerTestOneInput.
function(pagoda_add_fuzzer name)
  if(NOT PAGODA_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE pagoda_internal ${arg_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
