# A tree whose page has a sentence that is too long, or whose sources read a variable that is not documented:
# check_prose.py must say so.
#   cmake -DFAULT=none|sentence|variable -DPYTHON3=... -DSCRATCH=... -P plant_prose.cmake
file(REMOVE_RECURSE ${SCRATCH})
string(REPEAT "word " 29 words)
set(text "${words}`code with several words`. ${words}word.\n\n- ${words}\n- ${words}\n\n| ${words} | ${words} |\n\n"
  "```cpp\n${words}${words}\n```\n")
if(FAULT STREQUAL "sentence")
  list(APPEND text "${words}word word.\n")
  set(complaint "docs/start/one.md: 31 words: word")
elseif(FAULT STREQUAL "variable")
  file(WRITE ${SCRATCH}/src/a.cpp "std::getenv(\"OOC_KNOWN\"), std::getenv(\"OOC_OTHER\")")
  set(complaint "docs/environment.md lacks OOC_OTHER, which src/a.cpp reads")
endif()
file(WRITE ${SCRATCH}/docs/index.md "```{toctree}\n:caption: Start\n\nstart/one\n```\n")
file(WRITE ${SCRATCH}/docs/start/one.md ${text})
file(WRITE ${SCRATCH}/docs/environment.md "`OOC_KNOWN`\n")
execute_process(COMMAND ${PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/check_prose.py ${SCRATCH}
  OUTPUT_VARIABLE said RESULT_VARIABLE status)
if(FAULT STREQUAL "none")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "a whole tree was not accepted: ${said}")
  endif()
else()
  string(FIND "${said}" "${complaint}" place)
  if(status EQUAL 0 OR NOT place EQUAL 0)
    message(FATAL_ERROR "the planted fault was not named (${status}): ${said}")
  endif()
endif()
