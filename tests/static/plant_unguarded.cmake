# Makes a small tree with a source for each fault, and looks whether check_thread_safety.cmake finds it;
# one where two headers give different things one name; and one without fault, which it must accept.
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

set(only_in_source "void fault();")
set(not_together "")
set(standard "std::mutex fault_;")

foreach(fault none unguarded twice carried released not_required only_in_source not_together standard)
  set(tree ${SCRATCH}/${fault})
  file(REMOVE_RECURSE ${tree})
  string(REPLACE "FAULT" "${${fault}}" text "${around}")
  file(WRITE ${tree}/src/shelf.hpp "${text}")
  set(source "#include \"shelf.hpp\"\n")
  if(fault STREQUAL "only_in_source")
    string(APPEND source "void ooc::shelf::fault() { ++books_; }\n")
  endif()
  file(WRITE ${tree}/src/shelf.cpp "${source}")
  set(second "")
  if(fault STREQUAL "not_together")
    file(WRITE ${tree}/src/other.hpp "namespace ooc { enum shelf { other }; }\n")
    file(WRITE ${tree}/src/other.cpp "#include \"other.hpp\"\n")
    set(second ", {\"directory\": \"${tree}\", \"file\": \"${tree}/src/other.cpp\",
      \"command\": \"c++ -std=c++20 -I${tree}/src -o other.o -c ${tree}/src/other.cpp\"}")
  endif()
  file(COPY ${TREE}/src/storage/base/mutex.hpp DESTINATION ${tree}/src/storage/base)
  file(WRITE ${tree}/compile_commands.json "[{\"directory\": \"${tree}\",
    \"command\": \"c++ -std=c++20 -I${tree}/src -Wall -o shelf.o -c ${tree}/src/shelf.cpp\",
    \"file\": \"${tree}/src/shelf.cpp\"}${second}]")
  execute_process(COMMAND ${CMAKE_COMMAND} -DCLANG=${CLANG} -DTREE=${tree}
    -DCOMMANDS=${tree}/compile_commands.json -DSCRATCH=${tree}/check
    -P ${CMAKE_CURRENT_LIST_DIR}/check_thread_safety.cmake
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(fault STREQUAL "none")
    if(failed)
      message(FATAL_ERROR "sources without fault were refused: ${said}")
    endif()
  elseif(fault STREQUAL "not_together")
    if(NOT failed OR NOT said MATCHES "cannot be parsed together")
      message(FATAL_ERROR "headers that give two things one name were accepted: ${said}")
    endif()
  elseif(NOT failed OR NOT said MATCHES "shelf\\.[ch]pp:.*(Wthread-safety|std::mutex)")
    message(FATAL_ERROR "the planted fault '${fault}' was not found: ${said}")
  endif()
endforeach()
