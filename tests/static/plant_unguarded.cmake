# Makes a small tree with a source for each fault, and looks whether check_thread_safety.cmake finds it;
# and one without, which it must accept.
cmake_minimum_required(VERSION 3.25)

set(around "#include \"storage/base/mutex.hpp\"
namespace ooc {
class shelf {
 public:
  void put() { const lock_guard lock(mutex_); ++books_; }
  void sort(unique_lock& l) OOC_REQUIRES(mutex_) {
    { const unlocked gap(l, mutex_); carry(); }
    ++books_;
  }
  void carry() OOC_EXCLUDES(mutex_) {}
  FAULT
 private:
  mutex mutex_;
  int books_ OOC_GUARDED_BY(mutex_) = 0;
};
}
")
set(none "")
set(unguarded "void fault() { ++books_; }")
set(twice "void fault() { const lock_guard lock(mutex_); put_twice(); } void put_twice() OOC_EXCLUDES(mutex_);")
set(carried "void fault() { const lock_guard lock(mutex_); carry(); }")
set(released "void fault(unique_lock& l) OOC_REQUIRES(mutex_) { const unlocked gap(l, mutex_); ++books_; }")
set(not_required "void fault(unique_lock& l) { sort(l); }")

foreach(fault none unguarded twice carried released not_required)
  set(tree ${SCRATCH}/${fault})
  file(REMOVE_RECURSE ${tree})
  string(REPLACE "FAULT" "${${fault}}" text "${around}")
  file(WRITE ${tree}/src/shelf.hpp "${text}")
  file(WRITE ${tree}/src/shelf.cpp "#include \"shelf.hpp\"\n")
  file(COPY ${TREE}/src/storage/base/mutex.hpp DESTINATION ${tree}/src/storage/base)
  file(WRITE ${tree}/compile_commands.json "[{\"directory\": \"${tree}\",
    \"command\": \"c++ -std=c++20 -I${tree}/src -Wall -o shelf.o -c ${tree}/src/shelf.cpp\",
    \"file\": \"${tree}/src/shelf.cpp\"}]")
  execute_process(COMMAND ${CMAKE_COMMAND} -DCLANG=${CLANG} -DTREE=${tree}
    -DCOMMANDS=${tree}/compile_commands.json -DSCRATCH=${tree}/check
    -P ${CMAKE_CURRENT_LIST_DIR}/check_thread_safety.cmake
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if("${fault}" STREQUAL "none" AND failed)
    message(FATAL_ERROR "a source without fault was refused: ${said}")
  elseif(NOT "${fault}" STREQUAL "none" AND NOT said MATCHES "shelf.hpp:.*Wthread-safety")
    message(FATAL_ERROR "the planted fault '${fault}' was not found: ${said}")
  endif()
endforeach()
