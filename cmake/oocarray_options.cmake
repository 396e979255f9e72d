# Compiler settings shared by every target of the project: link `oocarray_options` privately.
add_library(oocarray_options INTERFACE)
target_compile_options(oocarray_options INTERFACE -Wall -Wextra -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(oocarray_options INTERFACE -O1)
endif()
option(OOCARRAY_TEST_FAST "Tests of fewer element types, boxes, processors and numbers of servers, as .ci/run has time for" OFF)
if(OOCARRAY_SANITIZE)
  target_compile_options(oocarray_options INTERFACE -fsanitize=${OOCARRAY_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)  # line numbers, and builds in half the time
  target_link_options(oocarray_options INTERFACE -fsanitize=${OOCARRAY_SANITIZE})
  if(OOCARRAY_TEST_FAST AND OOCARRAY_SANITIZE MATCHES "address")
    # A check at each access, of what ASan stops at for the most part: more than a third of the time of the compiler.
    target_compile_options(oocarray_options INTERFACE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
endif()
if(CMAKE_UNITY_BUILD)
  # Sources of a target are compiled as one, which includes them.  gcc then warns of their unnamed namespaces as of those
  # of headers, of its own std::string, and, in tests, of locals that are named as something in another source.
  target_compile_options(oocarray_options INTERFACE -Wno-subobject-linkage -Wno-restrict
    $<$<BOOL:$<TARGET_PROPERTY:OOCARRAY_TEST_CODE>>:-Wno-shadow>)
endif()
# The code of tests is compiled with less effort than what they test: tests/CMakeLists.txt sets OOCARRAY_TEST_CODE for
# all of its targets.  `scripts/test --fast` also leaves UBSan out of it, which halves that part of the build.
set(OOCARRAY_TEST_CODE_OPTIONS -O1 CACHE STRING "Compiler options for the code of tests")
define_property(TARGET PROPERTY OOCARRAY_TEST_CODE INITIALIZE_FROM_VARIABLE OOCARRAY_TEST_CODE)
target_compile_options(oocarray_options INTERFACE
  "$<$<BOOL:$<TARGET_PROPERTY:OOCARRAY_TEST_CODE>>:${OOCARRAY_TEST_CODE_OPTIONS}>")
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# oocarray_reuse_headers(TARGET FROM): what FROM has precompiled, for TARGET too.
function(oocarray_reuse_headers target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  oocarray_precompiled(${target})
endfunction()
function(oocarray_precompiled target)
  # gcc 12 forgets that precompiled headers are the system's, and warns of its own std::string.
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-maybe-uninitialized
    -Wno-stringop-overflow)
endfunction()
