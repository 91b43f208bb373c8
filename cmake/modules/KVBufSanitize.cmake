# KVBUF_SANITIZE=address,undefined: everything of this tree is compiled with these
# sanitizers, LLVM's libraries are what they are. For all targets, as the
# precompiled header has to agree with those that use it. tools/sanitize.sh
# builds, and runs tests with it.
if(KVBUF_SANITIZE)
  string(REPLACE "," ";" kvbuf_sanitizers "${KVBUF_SANITIZE}")
  foreach(sanitizer IN LISTS kvbuf_sanitizers)
    if(NOT sanitizer MATCHES "^(address|undefined)$")
      message(FATAL_ERROR "KVBUF_SANITIZE has '${sanitizer}'; expected address, "
        "undefined, or both with a comma")
    endif()
  endforeach()
  # LLVM has no RTTI, which the check of virtual calls needs. What is undefined
  # ends the program, so that a test fails.
  add_compile_options(-fsanitize=${KVBUF_SANITIZE} -fno-sanitize=vptr
    -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${KVBUF_SANITIZE})
endif()
