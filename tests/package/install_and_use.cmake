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
# Who asks for it quietly can do without it where a library that it needs is not there.
if(NOT SHARED)
  file(WRITE ${SCRATCH}/without/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(without LANGUAGES CXX)
find_package(oocarray QUIET)
if(oocarray_FOUND)
  message(FATAL_ERROR "oocarray is found without its libraries")
endif()
message(STATUS "goes on without")
]])
  run_expecting("goes on without" ${CMAKE_COMMAND} -E env PKG_CONFIG_LIBDIR=${SCRATCH}/without ${CMAKE_COMMAND}
    -S ${SCRATCH}/without -B ${SCRATCH}/without/build -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix)
endif()
# The pages for C and Fortran have a program and its CMakeLists.txt each.
include(${TREE}/cmake/oocarray_document_code.cmake)
foreach(language c fortran)
  set(document docs/start/${language}.md)
  string(REPLACE fortran f90 ending ${language})
  if(language STREQUAL fortran AND NOT FORTRAN)
    continue()
  endif()
  set(PROJECT_SOURCE_DIR ${TREE})
  oocarray_document_code(program ${document} "## A program" 1 ${language})
  oocarray_document_code(recipe ${document} "## A program" 1 cmake)
  file(WRITE ${SCRATCH}/${language}/plate.${ending} "${program}")
  file(WRITE ${SCRATCH}/${language}/CMakeLists.txt "${recipe}")
  run(${CMAKE_COMMAND} -S ${SCRATCH}/${language} -B ${SCRATCH}/${language}/build -G ${GENERATOR}
    -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix)
  run(${CMAKE_COMMAND} --build ${SCRATCH}/${language}/build)
endforeach()
# Programs that were installed find the libraries that were installed with them.
foreach(program ooc ooc-metad ooc-iod)
  if(EXISTS ${SCRATCH}/prefix/bin/${program})
    run(${SCRATCH}/prefix/bin/${program} --version)
  endif()
endforeach()
# An MPI program that knows nothing of oocarray finds the components that were installed.
if(EXISTS "${MPI_IO_PROGRAM}")
  file(GLOB_RECURSE components ${SCRATCH}/prefix/lib*/mca_fs_ooc.so)
  get_filename_component(components "${components}" DIRECTORY)
  file(MAKE_DIRECTORY ${SCRATCH}/files)
  run(${SCRATCH}/prefix/bin/ooc --store local:${SCRATCH}/files/n0 init)
  set(ENV{OMPI_MCA_mca_base_component_path} SYS_DEFAULT:${components})
  run_expecting("strided_views: done" ${MPIRUN} 2 ${MPI_IO_PROGRAM} ooc:local:${SCRATCH}/files/n0/ strided_views
    subarrays_together shared_order)
  unset(ENV{OMPI_MCA_mca_base_component_path})
  run_expecting("strided_views\n" ${SCRATCH}/prefix/bin/ooc --store local:${SCRATCH}/files/n0 ls)
endif()
file(REMOVE_RECURSE ${SCRATCH})
