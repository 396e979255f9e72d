# Fails, with the compiler's words, where a public header, or a template of one in users_program.cpp, is warned of.
# Headers are included as users' own are, with -I: programs that do not use CMake get them so, and some
# warnings come at the user's line in any case.
#
#   cmake -DCOMPILERS=g++;clang++ -DTREE=<checkout> -DOTHERS=<include folders of Eigen, MPI and HDF5> -DWITH_MPI=ON
#         -DWITH_HDF5=ON -DSCRATCH=<folder> -P check_warnings.cmake
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE headers RELATIVE ${TREE}/include ${TREE}/include/*.hpp)
if(NOT WITH_MPI)
  list(FILTER headers EXCLUDE REGEX "mpi")
endif()
if(NOT WITH_HDF5)
  list(FILTER headers EXCLUDE REGEX "hdf5")
endif()
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
list(JOIN includes "" includes)
file(WRITE ${SCRATCH}/program.cpp "${includes}#include \"${TREE}/tests/static/users_program.cpp\"\n")

set(flags -I ${TREE}/include -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror)
foreach(folder IN LISTS OTHERS)
  list(APPEND flags -isystem ${folder})
endforeach()
set(how -std=c++20 -O2 -DNDEBUG)  # of the first compiler; with others as while a program is written
foreach(compiler IN LISTS COMPILERS)
  execute_process(COMMAND ${compiler} ${flags} ${how} -c ${SCRATCH}/program.cpp -o ${SCRATCH}/program.o
    RESULT_VARIABLE failed OUTPUT_VARIABLE words ERROR_VARIABLE words)
  if(failed)
    message(SEND_ERROR "${compiler} warns of what programs use:\n${words}")
  endif()
  set(how -std=c++2b -O0)
endforeach()
