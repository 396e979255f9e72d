# Fails where a test sleeps other than by the helpers of soon.hpp and pauses.hpp.
#   cmake -DTESTS=<folder of the tests> -P no_bare_sleeps.cmake
file(GLOB_RECURSE sources ${TESTS}/*.cpp ${TESTS}/*.hpp)
list(REMOVE_ITEM sources ${TESTS}/support/soon.hpp ${TESTS}/support/pauses.hpp)
set(found "")
foreach(source ${sources})
  file(STRINGS ${source} lines REGEX "sleep_for|sleep_until|[^a-z_.]u?sleep\\(|nanosleep")
  foreach(line ${lines})
    string(APPEND found "  ${source}: ${line}\n")
  endforeach()
endforeach()
if(found)
  message(FATAL_ERROR "Tests that sleep.  Wait for the event (support/soon.hpp), or say what the time is for "
    "(support/pauses.hpp):\n${found}")
endif()
