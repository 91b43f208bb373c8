# Writes the commit of a source tree into a header, if it differs from what the
# header says: cmake -DSOURCE=folder -DOUTPUT=file -P Commit.cmake
execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit "")
else()
  execute_process(COMMAND git -C "${SOURCE}" diff --quiet HEAD
    RESULT_VARIABLE changed ERROR_QUIET)
  if(NOT changed EQUAL 0)
    string(APPEND commit "-changed")
  endif()
endif()
set(text "#define KVBUF_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
# What depends on it is built anew only where it differs.
if(NOT text STREQUAL before)
  file(WRITE "${OUTPUT}" "${text}")
endif()
