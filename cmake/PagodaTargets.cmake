# How every target of this project is compiled, and one function to add a test.
include_guard(GLOBAL)

add_library(pagoda_flags INTERFACE)
target_compile_options(pagoda_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wno-sign-conversion)
if(PAGODA_SANITIZE)
  target_compile_options(pagoda_flags INTERFACE
    -fsanitize=${PAGODA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(pagoda_flags INTERFACE -fsanitize=${PAGODA_SANITIZE})
endif()

# pagoda_add_test(NAME source... [LIBS target...]): one GoogleTest executable = one CTest test.
function(pagoda_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE pagoda_internal GTest::gtest_main ${arg_LIBS})
  add_test(NAME ${name} COMMAND ${name})
endfunction()
