# pagoda_present_amd_gpus(KFD OUT): the targets of this machine's AMD GPUs, "gfx942;gfx90a", as the kernel driver lists
# them below KFD (/sys/class/kfd/kfd); empty: none. Works in `cmake -P`, for the test.
include_guard(GLOBAL)

function(pagoda_present_amd_gpus kfd out)
  set(found "")
  file(GLOB nodes "${kfd}/topology/nodes/*/properties")
  foreach(node IN LISTS nodes)
    file(STRINGS "${node}" version REGEX "^gfx_target_version [1-9]")  # 90402; a CPU has 0
    if(NOT version MATCHES " ([0-9]+)$")
      continue()
    endif()
    math(EXPR major "${CMAKE_MATCH_1} / 10000")
    math(EXPR minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR stepping "${CMAKE_MATCH_1} % 100" OUTPUT_FORMAT HEXADECIMAL)
    string(REPLACE "0x" "" stepping "${stepping}")
    list(APPEND found "gfx${major}${minor}${stepping}")
  endforeach()
  list(REMOVE_DUPLICATES found)
  set(${out} "${found}" PARENT_SCOPE)
endfunction()
