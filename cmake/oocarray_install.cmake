# Install and export: find_package(oocarray) gives oocarray::oocarray and, where it was built, oocarray::mpi
# (component mpi); pkg-config knows the same as oocarray and oocarray-mpi.
# The components of install() are the packages of packaging/CMakeLists.txt.
include(CMakePackageConfigHelpers)

set(libraries oocarray oocarray_storage)
install(DIRECTORY include/oocarray DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  PATTERN mpi.hpp EXCLUDE PATTERN oocarray_mpi.* EXCLUDE)  # of no use without the library
install(TARGETS oocarray oocarray_storage EXPORT oocarray_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(FILES .gdbinit RENAME gdbinit DESTINATION ${CMAKE_INSTALL_DATADIR}/oocarray COMPONENT development)
if(OOCARRAY_BUILD_MPI)
  # A set of its own: programs without MPI do not need MPI to be installed.
  list(APPEND libraries oocarray_mpi)
  install(TARGETS oocarray_mpi EXPORT oocarray_mpi_targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
  install(EXPORT oocarray_mpi_targets NAMESPACE oocarray:: FILE oocarrayMpiTargets.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray COMPONENT mpi)
  install(FILES include/oocarray/mpi.hpp include/oocarray/oocarray_mpi.h include/oocarray/oocarray_mpi.f90
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/oocarray COMPONENT mpi)
endif()
# Before 1.0 a new minor version may change the binary interface.  The libraries find each other, and
# ooc, ooc-metad and ooc-iod the libraries, wherever the prefix is.
set_target_properties(${libraries} PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH "$ORIGIN")
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  foreach(program ooc ooc-metad ooc-iod)
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
    endif()
  endforeach()
endif()

install(EXPORT oocarray_targets NAMESPACE oocarray:: FILE oocarrayTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray COMPONENT development)
configure_package_config_file(cmake/oocarrayConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/oocarray_codecs.cmake ${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray COMPONENT development)

# What the library links with is in Requires.private: pkg-config names it for --static alone, which is
# how programs link with the static libraries.  Shared ones bring it along, and its development files, which pkg-config
# would look for even then, need not be there.  ${pcfiledir} keeps the prefix right wherever it is moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
set(pc_requires "")
set(pc_codecs "")
if(NOT BUILD_SHARED_LIBS)
  set(pc_requires "sqlite3, spdlog, liburing, libisal, protobuf-lite")
  foreach(codec ${OOCARRAY_CODECS})
    list(GET oocarray_codec_${codec} 1 library)
    string(APPEND pc_codecs "-l${library} ")
  endforeach()
  if(OOCARRAY_BUILD_REMOTE)
    string(APPEND pc_requires ", libsodium, openssl")
  endif()
endif()
configure_file(cmake/oocarray.pc.in ${CMAKE_CURRENT_BINARY_DIR}/oocarray.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oocarray.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
if(OOCARRAY_BUILD_MPI)
  configure_file(cmake/oocarray-mpi.pc.in ${CMAKE_CURRENT_BINARY_DIR}/oocarray-mpi.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oocarray-mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT mpi)
endif()
if(PROJECT_IS_TOP_LEVEL)
  add_subdirectory(packaging)
endif()
