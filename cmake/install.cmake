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

set(man_dir ${CMAKE_BINARY_DIR}/man)
set(completion_dir ${CMAKE_BINARY_DIR}/completions)
install(DIRECTORY ${man_dir}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
  FILES_MATCHING PATTERN *.1)
install(DIRECTORY ${man_dir}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man5
  FILES_MATCHING PATTERN *.5)
install(DIRECTORY ${man_dir}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
  FILES_MATCHING PATTERN *.3)
install(FILES ${completion_dir}/dibs.bash RENAME dibs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completion_dir}/_dibs
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${completion_dir}/dibs.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
