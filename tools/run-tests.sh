#!/bin/sh
# Runs every test of a build directory and closes with 'N passed, N failed'.
#   tools/run-tests.sh BUILD_DIR [JOBS]
set -eu
build=$1; jobs=${2:-2}
lit=$(sed -n 's/^LLVM_EXTERNAL_LIT:[^=]*=//p' "$build/CMakeCache.txt")
log=$build/test.log
status=0
# A limit for all: lit's own, for each test, needs a Python package.
timeout 1200 "$lit" -j "$jobs" "$build/test" -v >"$log" 2>&1 || status=$?
grep -vE '^(PASS|UNSUPPORTED): ' "$log" || true
passed=$(sed -n 's/^ *Passed *: *\([0-9]*\).*/\1/p' "$log")
failed=$(sed -n 's/^ *\(Failed\|Timed Out\|Unresolved\|Unexpectedly Passed\) *: *\([0-9]*\).*/\2/p' "$log" | awk "{s+=\$1} END {print s}")
[ -n "$failed" ] || failed=0
[ $status -eq 0 ] || [ "$failed" -ne 0 ] || failed=1
echo "${passed:-0} passed, $failed failed"
exit $status
