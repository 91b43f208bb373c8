# Headers, libraries and the CMake package, for the install tree and for use
# straight from the build tree.
include(CMakePackageConfigHelpers)

set(KVBUF_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/kvbuffer")
set(KVBUF_BUILD_CMAKE_DIR "${PROJECT_BINARY_DIR}/lib/cmake/kvbuffer")

install(DIRECTORY include/kvbuffer include/kvbuffer-c
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.def")
if(NOT KVBUF_RUNTIME_ONLY)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/include/kvbuffer"
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
endif()

get_property(libraries GLOBAL PROPERTY KVBUF_LIBRARIES)
foreach(library IN ITEMS KVBufferArtifact KVBufferC kvbuf_runtime)
  if(TARGET ${library})
    list(APPEND libraries ${library})
    target_include_directories(${library} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endif()
endforeach()
install(TARGETS kvbuf_options ${libraries} EXPORT KVBufferTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT KVBufferTargets DESTINATION ${KVBUF_CMAKE_DIR})
export(EXPORT KVBufferTargets
  FILE "${KVBUF_BUILD_CMAKE_DIR}/KVBufferTargets.cmake")

write_basic_package_version_file(
  "${KVBUF_BUILD_CMAKE_DIR}/KVBufferConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
# In the install tree paths are relative to the package, which may be moved.
set(KVBUF_CONFIG_PATHS
"set_and_check(KVBUFFER_INCLUDE_DIRS \"\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_INCLUDEDIR}\")
set_and_check(KVBUFFER_TOOLS_DIR \"\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_BINDIR}\")")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/KVBufferConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/cmake/KVBufferConfig.cmake"
  INSTALL_DESTINATION ${KVBUF_CMAKE_DIR}
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
set(KVBUF_CONFIG_PATHS
"set(KVBUFFER_INCLUDE_DIRS \"${PROJECT_SOURCE_DIR}/include\" \"${PROJECT_BINARY_DIR}/include\")
set(KVBUFFER_TOOLS_DIR \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\")")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/KVBufferConfig.cmake.in"
  "${KVBUF_BUILD_CMAKE_DIR}/KVBufferConfig.cmake"
  INSTALL_DESTINATION ${KVBUF_CMAKE_DIR}
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
install(FILES
  "${PROJECT_BINARY_DIR}/cmake/KVBufferConfig.cmake"
  "${KVBUF_BUILD_CMAKE_DIR}/KVBufferConfigVersion.cmake"
  DESTINATION ${KVBUF_CMAKE_DIR})
