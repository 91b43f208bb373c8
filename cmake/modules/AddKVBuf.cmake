# Helpers shared by every library and tool of this project.

# The tree builds without warnings; KVBUF_WERROR, which tests and CI take, holds it
# to that.
add_library(kvbuf_options INTERFACE)
# The headers are C++20, whatever a project that links the libraries has.
target_compile_features(kvbuf_options INTERFACE cxx_std_20)
# They are this tree's own: users of the installed libraries get none of them.
target_compile_options(kvbuf_options INTERFACE
  $<BUILD_INTERFACE:-Wall>
  $<BUILD_INTERFACE:-Wextra>
  $<BUILD_INTERFACE:-Wno-unused-parameter>
  $<$<BOOL:${KVBUF_WERROR}>:$<BUILD_INTERFACE:-Werror>>)
target_compile_definitions(kvbuf_options INTERFACE
  $<BUILD_INTERFACE:KVBUF_VERSION="${PROJECT_VERSION}">)

# MLIR's headers cost about 25 s per file; one precompiled set brings that
# down to about 3 s.
function(kvbuf_use_mlir target)
  target_include_directories(${target} SYSTEM PUBLIC
    ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${LLVM_DEFINITIONS_LIST})
  if(NOT LLVM_ENABLE_RTTI)
    target_compile_options(${target} PRIVATE -fno-rtti)
  endif()
  target_link_libraries(${target} PUBLIC kvbuf_options)
  # The precompiled header is built with -fPIC, which CMake would make -fPIE
  # for programs.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM KVBufferPCH)
endfunction()

if(NOT KVBUF_RUNTIME_ONLY)
  separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  add_library(KVBufferPCH OBJECT "${PROJECT_SOURCE_DIR}/cmake/Pch.cpp")
  target_include_directories(KVBufferPCH SYSTEM PRIVATE
    ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(KVBufferPCH PRIVATE ${LLVM_DEFINITIONS_LIST})
  target_link_libraries(KVBufferPCH PUBLIC kvbuf_options)
  target_precompile_headers(KVBufferPCH PRIVATE
    "${PROJECT_SOURCE_DIR}/cmake/Pch.h")
  # Without a time stamp inside, so that ccache can reuse what was built with it
  # (it also needs its option sloppiness=pch_defines,time_macros).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(KVBufferPCH PRIVATE
      "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# Like kvbuf_use_mlir for code that needs LLVM's support library alone.
function(kvbuf_use_llvm target)
  target_include_directories(${target} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ${LLVM_DEFINITIONS_LIST})
  if(NOT LLVM_ENABLE_RTTI)
    target_compile_options(${target} PRIVATE -fno-rtti)
  endif()
  target_link_libraries(${target} PUBLIC kvbuf_options LLVM)
endfunction()

# kvbuf_add_library(NAME sources... [LLVM_ONLY] [DEPENDS targets...]
#                   [LINK_LIBS libs...])
# A static library on MLIR (on LLVM's support library alone with LLVM_ONLY)
# that is installed and exported.
function(kvbuf_add_library name)
  cmake_parse_arguments(ARG "LLVM_ONLY" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_LLVM_ONLY)
    kvbuf_use_llvm(${name})
    target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  else()
    kvbuf_use_mlir(${name})
    target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS} MLIR LLVM)
  endif()
  # Nearly all the time of a file goes to MLIR's headers and templates: a quarter
  # of it is left where eight are compiled as one.
  set_target_properties(${name} PROPERTIES
    UNITY_BUILD ${KVBUF_UNITY} UNITY_BUILD_BATCH_SIZE 8
    UNITY_BUILD_CODE_BEFORE_INCLUDE "#undef DEBUG_TYPE")
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY KVBUF_LIBRARIES ${name})
endfunction()

# kvbuf_add_tool(NAME sources... [LINK_LIBS libs...])
function(kvbuf_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  kvbuf_use_mlir(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR LLVM)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
