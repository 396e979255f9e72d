# Install and export: find_package(oocarray) gives oocarray::oocarray and, where it was built, oocarray::mpi.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/oocarray DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS oocarray oocarray_storage EXPORT oocarray_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(OOCARRAY_BUILD_MPI)
  # A set of its own: programs without MPI do not need MPI to be installed.
  install(TARGETS oocarray_mpi EXPORT oocarray_mpi_targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT oocarray_mpi_targets NAMESPACE oocarray:: FILE oocarrayMpiTargets.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray)
else()
  # The header is of no use without the library.
  install(CODE "file(REMOVE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/oocarray/mpi.hpp\")")
endif()
install(EXPORT oocarray_targets NAMESPACE oocarray:: FILE oocarrayTargets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray)
configure_package_config_file(cmake/oocarrayConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/oocarrayConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/oocarray)
