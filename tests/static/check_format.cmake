# Fails, with the places, where a C++ source of the tree is not as clang-format writes it (.clang-format).
#
#   cmake -DCLANG_FORMAT=clang-format -DTREE=<checkout> -P check_format.cmake
#
# To mend: clang-format -i FILE
cmake_minimum_required(VERSION 3.25)
set(patterns "")
foreach(folder include src servers tools bench examples python tests)
  list(APPEND patterns ${TREE}/${folder}/*.cpp ${TREE}/${folder}/*.hpp)
endforeach()
file(GLOB_RECURSE sources ${patterns})
list(LENGTH sources number)
if(number EQUAL 0)
  message(FATAL_ERROR "${TREE} has no sources")
endif()
list(JOIN sources "\n" list)
string(RANDOM LENGTH 8 suffix)
set(names $ENV{TMPDIR})
if(NOT names)
  set(names /tmp)
endif()
set(names ${names}/check_format_${suffix})
file(WRITE ${names} "${list}\n")
execute_process(COMMAND ${CLANG_FORMAT} --style=file --dry-run --Werror --files=${names}
  OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE status)
file(REMOVE ${names})
if(NOT status EQUAL 0)
  string(REGEX MATCHALL "[^\n]*error:[^\n]*" places "${said}")
  list(LENGTH places count)
  list(SUBLIST places 0 40 places)
  list(JOIN places "\n" places)
  message(FATAL_ERROR "${count} lines are not as clang-format writes them (clang-format -i FILE):\n${places}\n")
endif()
message(STATUS "${number} sources are as clang-format writes them")
