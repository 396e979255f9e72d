# oocarray_protobuf(TARGET files.proto...): compiles schemas of src/ (protobuf lite) into a static or
# object part of TARGET; `#include "storage/wire/x.pb.h"` finds the generated header.
find_package(Protobuf 3.21 REQUIRED)

function(oocarray_protobuf target)
  set(generated_root ${CMAKE_BINARY_DIR}/generated)
  foreach(proto ${ARGN})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${proto})
    string(REGEX REPLACE "\\.proto$" ".pb" base ${generated_root}/${name})
    add_custom_command(OUTPUT ${base}.cc ${base}.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${generated_root}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/src --cpp_out=${generated_root} ${proto}
      DEPENDS ${proto} VERBATIM)
    # Generated code is not ours to warn about.
    set_source_files_properties(${base}.cc PROPERTIES COMPILE_OPTIONS -w)
    target_sources(${target} PRIVATE ${base}.cc ${base}.h)
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE $<BUILD_INTERFACE:${generated_root}>)
  target_link_libraries(${target} PRIVATE protobuf::libprotobuf-lite)
endfunction()
