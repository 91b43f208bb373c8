# The combine of the decode kernels that kvbuffer.attention becomes, broken on purpose.
# RUN: %python %s sm_80 %t
# RUN: %python %s gfx950 %t
"""Each arrival of blocks that split a sequence's keys releases what its block has
stored, acquires what the others have, and is set back by the last one. Each of these
is taken out of the compiled kernel once; the emulator finds it, whatever the order of
the blocks. (The same for a program by hand: decode.py; arrivals that come too early:
Kernels/decode-faults.test.)

    decode-combine.py CHIP FILE
"""

import pathlib
import re
import subprocess
import sys

FILE, CHIP = sys.argv.pop(), sys.argv.pop()
SOURCE = pathlib.Path(__file__).parents[3]
SCOPE, NARROW = (("agent", "workgroup") if CHIP.startswith("gfx")
                 else ("device", "block"))
# The order is that of fences around the addition. (On AMD's chips the backend wants a
# wait behind the first one, too: AMD/decode-releases.test.)
ARRIVAL = re.compile(
    rf' *llvm\.fence syncscope\("{SCOPE}"\) release\n'
    rf'(?: *rocdl\.s\.waitcnt 3952\n)?'
    rf'.*llvm\.atomicrmw add .* syncscope\("{SCOPE}"\) monotonic.*\n'
    rf' *llvm\.fence syncscope\("{SCOPE}"\) acquire\n')
RACE = "global-memory race"


def run(text, *, good=False):
    """What the emulator says of a launch, in each order of the blocks."""
    artifact, said = f"{FILE}.kvbuf", []
    subprocess.run(["kvbuf-compile", "-", f"--target={CHIP}", "--code=none", "-o",
                    artifact], input=text, text=True, check=True, capture_output=True)
    for seed in 1, 2:
        # A sequence of more than eight pieces, which two levels of blocks join.
        done = subprocess.run(
            ["kvbuf-run", artifact, "--device=emulator", "--emulator", f"seed={seed}",
             "--check", "--cache-lengths", "40,1900,0"], text=True,
            capture_output=True)
        said.append(done.stdout + done.stderr)
        assert (done.returncode == 0) == good, said[-1]
    return said


problem = subprocess.run(
    [sys.executable, SOURCE / "benchmark" / "problem.py", "seq_q=1", "heads=4",
     "kv_heads=1", "cache=paged", "page_size=16", "head_size=16"],
    capture_output=True, text=True, check=True).stdout
target = subprocess.run(
    ["kvbuf-compile", "-", f"--target={CHIP}", "--emit=target"], input=problem,
    capture_output=True, text=True, check=True).stdout
run(target, good=True)
arrivals = list(ARRIVAL.finditer(target))
assert len(arrivals) == 2, len(arrivals)
for found in arrivals:
    def edited(change):
        text = (target[:found.start()] + change(found.group())
                + target[found.end():])
        assert text != target
        return text

    def without(order):
        return lambda text: re.sub(rf".*llvm.fence .* {order}\n", "", text)

    def narrowed(text):
        return re.sub(rf'(atomicrmw add .*)"{SCOPE}"', rf'\1"{NARROW}"', text)

    for change in without("release"), without("acquire"), narrowed:
        for said in run(edited(change)):
            assert RACE in said or "of too narrow a scope" in said, said
    rest = target[found.end():]
    store = re.search(r" *llvm\.store .*\n", rest)
    assert rest[:store.start()].count("\n") < 6, rest[:400]
    for said in run(target[:found.end()] + rest[:store.start()] + rest[store.end():]):
        assert re.search("leaves element .* of the counters", said), said
