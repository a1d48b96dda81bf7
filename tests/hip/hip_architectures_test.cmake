# pagoda_present_amd_gpus on described machines: a folder as the kernel driver's.
cmake_minimum_required(VERSION 3.25)
list(APPEND CMAKE_MODULE_PATH ${MODULES})
include(PagodaHipArchitectures)

# node(NUMBER VERSION)
function(node number version)
  file(WRITE ${SCRATCH}/topology/nodes/${number}/properties
    "cpu_cores_count 64\nsimd_count 1216\ngfx_target_version ${version}\nvendor_id 4098\n")
endfunction()

function(expect expected)
  pagoda_present_amd_gpus(${SCRATCH} found)
  if(NOT found STREQUAL expected)
    message(FATAL_ERROR "'${found}', not '${expected}'")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
expect("")
node(0 0)  # a CPU
expect("")
node(1 90402)
node(2 90402)
expect("gfx942")
node(3 90010)
expect("gfx942;gfx90a")
node(4 110501)
expect("gfx942;gfx90a;gfx1151")
