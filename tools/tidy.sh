#!/bin/sh
# Runs clang-tidy (.clang-tidy) on the files that are compiled without MLIR's headers,
# half a second each, or on those given. Status 0: no finding.
#   tools/tidy.sh BUILD_DIR [JOBS [FILES...]]
set -eu
build=$1; jobs=${2:-2}; shift; [ $# -eq 0 ] || shift
cd "$(dirname "$0")/.."
tidy=$(command -v clang-tidy-22 || command -v clang-tidy) || {
  echo "clang-tidy is not here: apt-get install clang-tidy-22" >&2; exit 1; }
[ $# -gt 0 ] || set -- lib/Runtime/*.cpp lib/Runtime/Problems/*.cpp lib/Runtime/Problems/*/*.cpp
printf '%s\n' "$@" | xargs -P "$jobs" -n 4 "$tidy" -p "$build" --quiet
