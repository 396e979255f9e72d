# Run with cmake -P; see CMakeLists.txt.  A project that adds the tree with add_subdirectory() gets the
# library and nothing else, and compiles.  With OOC_TEST_LONG set the library is built for it, without
# the client of servers, and the program runs: that is a build of half the tree.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} -S ${CONSUMER}/subdirectory -B ${SCRATCH}/build -G ${GENERATOR}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D OOCARRAY=${TREE} -D OOCARRAY_BUILD_MPI=OFF
  -D OOCARRAY_BUILD_REMOTE=OFF -D CMAKE_DISABLE_FIND_PACKAGE_Boost=ON
  -D CMAKE_DISABLE_FIND_PACKAGE_Catch2=ON)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build --target consumer_objects)
if(DEFINED ENV{OOC_TEST_LONG})
  run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
  run_expecting("sum 4950" ${SCRATCH}/build/consumer ${SCRATCH}/store)
  # The project installs its own program, and not our headers.
  run(${CMAKE_COMMAND} --install ${SCRATCH}/build --prefix ${SCRATCH}/prefix)
  if(EXISTS ${SCRATCH}/prefix/include/oocarray)
    message(FATAL_ERROR "a project that adds oocarray installs its headers")
  endif()
endif()
file(REMOVE_RECURSE ${SCRATCH})
