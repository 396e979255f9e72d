# Run with cmake -P; see CMakeLists.txt.  Configures the tree with parts switched off, and without the
# packages that only those parts need; nothing is built.
cmake_minimum_required(VERSION 3.25)

set(all_off -DOOCARRAY_BUILD_SERVERS=OFF -DOOCARRAY_BUILD_TOOLS=OFF -DOOCARRAY_BUILD_EXAMPLES=OFF
  -DOOCARRAY_BUILD_BENCH=OFF -DOOCARRAY_BUILD_TESTS=OFF -DOOCARRAY_BUILD_MPI=OFF
  -DOOCARRAY_BUILD_PYTHON=OFF)
function(without result)
  list(TRANSFORM ARGN REPLACE "(.+)" "-DCMAKE_DISABLE_FIND_PACKAGE_\\1=ON")
  set(${result} ${ARGN} PARENT_SCOPE)
endfunction()

function(configure name)
  set(build ${SCRATCH}/${name})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${TREE} -B ${build} -G ${GENERATOR}
    -D CMAKE_CXX_COMPILER=${COMPILER} ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  set(status ${status} PARENT_SCOPE)
  set(said "${said}" PARENT_SCOPE)
endfunction()
function(check_configures name)
  configure(${name} ${ARGN})
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${name} does not configure:\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
without(missing Catch2 PNG Eigen3 nlohmann_json MPI)
check_configures(library_only ${all_off} ${missing})
without(missing PNG nlohmann_json MPI)
check_configures(tests_without_servers_and_tools ${all_off} -DOOCARRAY_BUILD_TESTS=ON ${missing})
check_configures(tests_and_servers_without_tools ${all_off} -DOOCARRAY_BUILD_TESTS=ON
  -DOOCARRAY_BUILD_SERVERS=ON ${missing})
without(missing Catch2 PNG Eigen3 pybind11 HDF5)
check_configures(tools_without_servers ${all_off} -DOOCARRAY_BUILD_TOOLS=ON
  -DOOCARRAY_BUILD_PYTHON=AUTO ${missing})
if(NOT said MATCHES "The Python package is left out: pybind11")
  message(SEND_ERROR "what keeps the Python package out should be named:\n${said}")
endif()
if(NOT said MATCHES "HDF5 files in `ooc import` and `ooc export` are left out: libhdf5")
  message(SEND_ERROR "what keeps HDF5 out should be named:\n${said}")
endif()
without(missing Boost PNG nlohmann_json MPI)
check_configures(no_remote_stores ${all_off} -DOOCARRAY_BUILD_REMOTE=OFF -DOOCARRAY_BUILD_TESTS=ON
  ${missing})
configure(servers_without_remote ${all_off} -DOOCARRAY_BUILD_REMOTE=OFF -DOOCARRAY_BUILD_SERVERS=ON)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(status EQUAL 0 OR NOT said MATCHES
   "OOCARRAY_BUILD_SERVERS needs OOCARRAY_BUILD_REMOTE=ON")
  message(SEND_ERROR "servers without remote stores should be refused with a remedy:\n${said}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
