# Fails, with clang's words, where a source under src/ or servers/ touches what a mutex guards without
# holding it, or calls a function with the wrong mutexes held; and where it has a mutex, lock or condition
# variable of the standard library, which clang would not follow (src/storage/base/mutex.hpp is for that).
#
#   cmake -DCLANG=clang++ -DTREE=<checkout> -DCOMMANDS=<compile_commands.json> -DSCRATCH=<folder>
#         -P check_thread_safety.cmake
#
# Parsing headers is most of the work, so they are parsed once: all that the sources include from the
# tree, precompiled, with every definition and folder that any of them is compiled with.  Where they cannot be
# parsed together two of them give different things one name, and the linker may take one for the other: that
# fails, too.  A source that is not accepted behind them (they may bring a name that it does not expect) is
# parsed by itself, and what is said then counts.
cmake_minimum_required(VERSION 3.25)

# What the compiler needs to parse the sources; not gcc's warnings, optimisations and outputs.  Without
# NDEBUG, so that asserts are looked at too.
file(READ ${COMMANDS} commands)
string(JSON count LENGTH "${commands}")
math(EXPR last "${count} - 1")
set(flags "")
set(sources "")
set(parsed "")
foreach(i RANGE ${last})
  string(JSON entry GET "${commands}" ${i})
  string(JSON file GET "${entry}" file)
  set(files ${file})
  if(file MATCHES "/Unity/unity_[0-9]+_cxx\\.cxx$")  # several sources compiled as one: it includes them
    file(STRINGS ${file} files REGEX "^#include \"")
    list(TRANSFORM files REPLACE "^#include \"(.*)\"$" "\\1")
  endif()
  list(FILTER files INCLUDE REGEX "^${TREE}/(src|servers)/.*\\.cpp$")
  list(REMOVE_ITEM files ${sources})
  if(NOT files)
    continue()
  endif()
  list(APPEND sources ${files})
  # Several that are compiled as one are parsed as one: each time costs the precompiled header, and the same templates.
  file(RELATIVE_PATH inside ${TREE} ${file})
  if(inside MATCHES "^(src|servers)/")
    list(APPEND parsed ${files})
  else()
    list(APPEND parsed ${file})
  endif()
  string(JSON command GET "${entry}" command)
  separate_arguments(words UNIX_COMMAND "${command}")
  set(before "")
  foreach(word IN LISTS words)
    if(before)
      list(APPEND flags ${before}${word})
      set(before "")
    elseif(word MATCHES "^-([DIU]|isystem)$")
      set(before ${word})
    elseif(word MATCHES "^-([DIU].+|isystem.+|std=.*)$" AND NOT word STREQUAL "-DNDEBUG")
      list(APPEND flags ${word})
    endif()
  endforeach()
endforeach()
list(LENGTH sources number)
if(number EQUAL 0)
  message(FATAL_ERROR "${COMMANDS} has no source under ${TREE}/src or ${TREE}/servers")
endif()
list(REMOVE_DUPLICATES flags)
list(TRANSFORM flags REPLACE "([\"\\\\ ])" "\\\\\\1")
list(APPEND flags -Wno-everything -Wthread-safety -Werror=thread-safety -fno-caret-diagnostics)
list(JOIN flags "\n" flags)
file(WRITE ${SCRATCH}/flags "${flags}\n")
list(JOIN parsed "\n" list)
file(WRITE ${SCRATCH}/list "${list}\n")

# What clang does not follow
file(GLOB_RECURSE headers ${TREE}/src/*.hpp ${TREE}/servers/*.hpp ${TREE}/include/*.hpp)
list(FILTER headers EXCLUDE REGEX "/storage/base/mutex\\.hpp$")
set(strangers "")
foreach(file IN LISTS sources headers)
  file(STRINGS ${file} lines REGEX
    "std::(lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable|[a-z_]*mutex)")
  foreach(line IN LISTS lines)
    string(REPLACE ${TREE}/ "" name ${file})
    string(APPEND strangers "\n${name}: ${line}")
  endforeach()
endforeach()
if(strangers)
  message(FATAL_ERROR "clang follows only the mutexes, locks and condition variables of "
    "src/storage/base/mutex.hpp; these are the standard library's:${strangers}")
endif()

set(shared "")
foreach(file IN LISTS sources)
  file(STRINGS ${file} includes REGEX "^#include (\"|<boost/|<spdlog/)")
  list(APPEND shared ${includes})
endforeach()
list(REMOVE_DUPLICATES shared)
list(SORT shared)
list(JOIN shared "\n" shared)
file(WRITE ${SCRATCH}/shared.hpp "${shared}\n")
file(REMOVE ${SCRATCH}/shared.pch)
execute_process(COMMAND ${CLANG} @${SCRATCH}/flags -x c++-header ${SCRATCH}/shared.hpp
  -fpch-instantiate-templates -o ${SCRATCH}/shared.pch
  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "thread safety: the headers of the sources cannot be parsed together:\n${said}")
endif()

# xargs gives each shell one of them, $2; $0 is the compiler and $1 the folder.
set(check [[
if "$0" "@$1/flags" -include-pch "$1/shared.pch" -fsyntax-only "$2" >/dev/null 2>&1
then exit 0
fi
exec "$0" "@$1/flags" -fsyntax-only "$2"]])
cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
execute_process(COMMAND xargs -a ${SCRATCH}/list -P ${processors} -n 1
  sh -c ${check} ${CLANG} ${SCRATCH}
  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "thread safety:\n${said}")
endif()
message(STATUS "thread safety: ${number} sources")
