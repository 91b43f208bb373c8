"""Tools end with 2 on bad usage: no option is unknown to one and ignored, and no
number means another one.

RUN: %python %s %src
"""

import subprocess
import sys

problem = f"{sys.argv[1]}/examples/prefill.mlir"


def refused(expected, *command):
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 2, (command, done.returncode, done.stderr)
    assert expected in done.stderr, (command, done.stderr)
    assert not done.stdout, (command, done.stdout)


# kvbuf-opt and kvbuf-lsp-server parse their options by MLIR, which ends with 1.
for tool in ["compile", "emulate", "inspect", "run", "tile-run", "tune"]:
    refused("--nosuch", f"kvbuf-{tool}", problem, "--nosuch")
refused("--nosuch", "kvbuf-compare", problem, problem, "--nosuch")

# A seed has 64 bits and no sign.
for tool in ["run", "tune"]:
    for seed in ["-1", " -1"]:
        refused("--seed: expected a number from 0 on", f"kvbuf-{tool}", problem,
                f"--seed={seed}")
    refused("--seed", f"kvbuf-{tool}", problem, "--seed=1.5")
refused("--seed", "kvbuf-tile-run", problem, "--seed=-1")
done = subprocess.run(["kvbuf-run", problem, "--device=emulator", "--size", "batch=1",
                       "--size", "seq=16", f"--seed={2**64 - 1}"], text=True, capture_output=True)
assert done.returncode == 0, done.stderr
