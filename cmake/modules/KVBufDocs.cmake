# `kvbuf-docs`: the reference of the dialect and of the passes, generated from
# their TableGen descriptions into the build directory.
set(KVBUF_DOCS_DIR "${PROJECT_BINARY_DIR}/docs")
set(KVBUF_DOCS "")

# kvbuf_add_doc(OUTPUT FILE.td generator options...)
function(kvbuf_add_doc output description)
  set(file "${KVBUF_DOCS_DIR}/${output}")
  set(source "${PROJECT_SOURCE_DIR}/include/kvbuffer/${description}")
  file(GLOB_RECURSE dependencies "${PROJECT_SOURCE_DIR}/include/kvbuffer/*.td")
  add_custom_command(OUTPUT "${file}"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${KVBUF_DOCS_DIR}"
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} "${source}" -o "${file}"
      -I "${PROJECT_SOURCE_DIR}/include" -I "${MLIR_INCLUDE_DIRS}"
    DEPENDS ${dependencies} "${source}" VERBATIM)
  set(KVBUF_DOCS ${KVBUF_DOCS} "${file}" PARENT_SCOPE)
endfunction()

kvbuf_add_doc(Dialect.md Dialect/KVBuffer/IR/KVBuffer.td
  -gen-dialect-doc -dialect=kvbuffer)
# What `Arg` and `Res` say of operands, which mlir-tblgen's tables leave out.
find_program(KVBUF_LLVM_TBLGEN NAMES llvm-tblgen llvm-tblgen-22
  HINTS "${LLVM_TOOLS_BINARY_DIR}")
find_package(Python3 COMPONENTS Interpreter)
if(KVBUF_LLVM_TBLGEN AND Python3_FOUND)
  set(source "${PROJECT_SOURCE_DIR}/include/kvbuffer/Dialect/KVBuffer/IR/KVBuffer.td")
  add_custom_command(OUTPUT "${KVBUF_DOCS_DIR}/Dialect.md" APPEND
    COMMAND "${KVBUF_LLVM_TBLGEN}" --dump-json "${source}"
      -o "${KVBUF_DOCS_DIR}/Dialect.json"
      -I "${PROJECT_SOURCE_DIR}/include" -I "${MLIR_INCLUDE_DIRS}"
    COMMAND "${Python3_EXECUTABLE}"
      "${PROJECT_SOURCE_DIR}/tools/describe-operands.py"
      "${KVBUF_DOCS_DIR}/Dialect.json" --into "${KVBUF_DOCS_DIR}/Dialect.md")
endif()
kvbuf_add_doc(Passes.md Dialect/KVBuffer/Transforms/Passes.td -gen-pass-doc)
kvbuf_add_doc(Conversions.md Conversion/Passes.td -gen-pass-doc)
kvbuf_add_doc(AMDPasses.md Transforms/AMD/Passes.td -gen-pass-doc)
kvbuf_add_doc(ProgramPasses.md Programs/Passes.td -gen-pass-doc)
kvbuf_add_doc(Pipelines.md Pipelines/Passes.td -gen-pass-doc)
# Problems with ops of their own, a page each.
file(GLOB descriptions RELATIVE "${PROJECT_SOURCE_DIR}/include/kvbuffer"
  "${PROJECT_SOURCE_DIR}/lib/Programs/*/*.td")
foreach(description ${descriptions})
  get_filename_component(name ${description} NAME_WE)
  kvbuf_add_doc(${name}.md ${description} -gen-op-doc)
endforeach()
add_custom_target(kvbuf-docs DEPENDS ${KVBUF_DOCS})
