# oocarray_room(NAME LIBRARY [[PACKAGES] packages...] [EXCEPT sources...]): the sources of the current
# folder as the object library `oocarray_NAME`, whose objects become part of LIBRARY.  docs/architecture.md has the table of rooms and
# of what each may include; tests/rooms checks it.
function(oocarray_room name library)
  cmake_parse_arguments(arg "" "" "PACKAGES;EXCEPT" ${ARGN})
  file(GLOB sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cpp)
  if(arg_EXCEPT)
    list(REMOVE_ITEM sources ${arg_EXCEPT})
  endif()
  add_library(oocarray_${name} OBJECT ${sources})
  set_target_properties(oocarray_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_features(oocarray_${name} PRIVATE cxx_std_20)
  target_include_directories(oocarray_${name}
    PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(oocarray_${name} PRIVATE oocarray_options Threads::Threads
    ${arg_UNPARSED_ARGUMENTS} ${arg_PACKAGES})
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:oocarray_${name}>)
endfunction()
