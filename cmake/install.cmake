# What `make install` puts where: the command, the library, headers, pkg-config
# file, CMake package, man pages and completions.
include(CMakePackageConfigHelpers)

install(TARGETS dibs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS dibs_shared dibs_static EXPORT dibsTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/dibs DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_file(cmake/dibs.pc.in dibs.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/dibs.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dibs)
install(EXPORT dibsTargets NAMESPACE dibs:: DESTINATION ${package_dir})
configure_package_config_file(cmake/dibsConfig.cmake.in dibsConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(dibsConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dibsConfig.cmake
  ${CMAKE_BINARY_DIR}/dibsConfigVersion.cmake DESTINATION ${package_dir})
