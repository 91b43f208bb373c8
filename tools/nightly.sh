#!/bin/sh
# Looks for what the tests have no case of, for an hour: modules and kernels that are
# damaged at random (tools/fuzz.sh), random schedules of random problems, and random
# problems of few query rows, a quarter of the time each.
#   tools/nightly.sh BUILD_DIR [MINUTES [SEED]]
# SEED is the day's date unless given; each part prints how to repeat what it finds.
# Status 0: nothing was found. With 0 minutes there is one schedule and one problem.
set -eu
build=$(cd "$1" && pwd); minutes=${2:-60}; seed=${3:-$(date +%Y%m%d)}
cd "$(dirname "$0")/.."
export PATH="$build/bin:$PATH" PYTHONPATH="$PWD/python" KVBUF_LIB_DIR="$build/lib"
export KVBUF_CACHE_DIR="$build/nightly"
# The Python of the tests has numpy.
python=$(sed -n 's/^KVBUF_PYTHON:[^=]*=//p' "$build/CMakeCache.txt")
quarter=$((minutes * 15))
status=0
count=1
if [ "$minutes" -gt 0 ]; then
  count=20
  tools/fuzz.sh "$build" "$seed" "$quarter" || status=1
fi

# rounds WORDS COMMAND...: the command with one seed after the other.
rounds() {
  what=$1; shift
  echo "$what, seeds from $seed on, $quarter s"
  end=$(($(date +%s) + quarter)); next=$seed
  while :; do
    "$@" --seed "$next" || { echo "FAILED: $* --seed $next"; status=1; }
    next=$((next + 1))
    [ "$(date +%s)" -lt "$end" ] || break
  done
}
rounds "schedules" "$python" test/Kernels/random-schedules.py --count "$count"
rounds "few rows" "$python" test/Kernels/Programs/decode-sweep.py --apart --cases "$count"
exit $status
