#!/bin/sh
# Runs every test of a build directory and closes with 'N passed, N failed',
# with ', N skipped' where tests lack what they need (ptxas, a GPU, torch).
#   tools/run-tests.sh BUILD_DIR [JOBS]
# Each test may take KVBUF_TEST_TIMEOUT seconds (default: 600); all together
# take what they take. The output of every test is in BUILD_DIR/test.log.
set -eu
build=$1; jobs=${2:-2}
limit=${KVBUF_TEST_TIMEOUT:-600}
here=$(cd "$(dirname "$0")" && pwd)
lit=$(sed -n 's/^LLVM_EXTERNAL_LIT:[^=]*=//p' "$build/CMakeCache.txt")
# lit measures the time of a test with psutil, in the Python that it runs in.
python=$(sed -n '1s/^#! *//p' "$lit")
if ! $python -c 'import psutil' 2>/dev/null; then
  echo "No limit for the time of a test: $python has no psutil"
  limit=0
fi
exec python3 "$here/show-tests.py" --log "$build/test.log" --limit "$limit" -- \
  "$lit" -j "$jobs" "--timeout=$limit" -v "$build/test"
