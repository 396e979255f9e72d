# Run with cmake -P; see CMakeLists.txt.  Installs to a scratch prefix, and builds and runs programs
# that use find_package(oocarray).
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix --config ${CONFIG})
run(${CMAKE_COMMAND} -S ${CONSUMER}/consumer -B ${SCRATCH}/build -G ${GENERATOR}
  -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS}
  -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix -D WITH_MPI=${WITH_MPI})
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
run_expecting("sum 4950" ${SCRATCH}/build/consumer ${SCRATCH}/store)
if(WITH_MPI)
  run_expecting("2 ranks, sum 4950" ${MPIRUN} 2 ${SCRATCH}/build/consumer_mpi ${SCRATCH}/store)
elseif(EXISTS ${SCRATCH}/prefix/include/oocarray/mpi.hpp)
  message(FATAL_ERROR "oocarray/mpi.hpp is installed without oocarray::mpi")
endif()
# Programs that were installed find the libraries that were installed with them.
foreach(program ooc ooc-metad ooc-iod)
  if(EXISTS ${SCRATCH}/prefix/bin/${program})
    run(${SCRATCH}/prefix/bin/${program} --version)
  endif()
endforeach()
file(REMOVE_RECURSE ${SCRATCH})
