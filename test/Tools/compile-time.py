# What compiling the first example takes, to PTX, as a whole artifact without the
# assembler, and as a linked code object for an AMD chip, is at most about twice what it
# took when the limit was set, in runs of a fixed job on the same machine in the same
# minute: seconds would say more of the machine than of the compiler. (An artifact holds
# the kernels for few query rows and for tensors that no tensor map describes, too.)
# RUN: %python %s 2.5 kvbuf-compile %src/examples/prefill.mlir --emit=asm -o %t.ptx
# RUN: %python %s 9 kvbuf-compile %src/examples/prefill.mlir --ptxas=none -o %t.kvbuf
# RUN: %python %s 11 kvbuf-compile %src/examples/prefill.mlir --target=sm_90a --ptxas=none -o %t.kvbuf
# RUN: %if ld.lld %{ %python %s 6 kvbuf-compile %src/examples/prefill.mlir --target=gfx950 -o %t.kvbuf %}
# RUN: %if ld.lld %{ %python %s 10 kvbuf-compile %src/examples/prefill.mlir --target=gfx942 -o %t.kvbuf %}
"""Usage: compile-time.py LIMIT COMMAND...

The fixed job and the command take turns until the least that the command has taken is
at most LIMIT times the least that the job has, or for twelve turns: other work on the
machine makes either one slower now and then, and neither one faster.
"""

import resource
import subprocess
import sys

LIMIT, COMMAND = float(sys.argv[1]), sys.argv[2:]

#: Small objects, tables and text, as in a compiler.
JOB = [sys.executable, "-I", "-S", "-c", """
names = {}
for i in range(360000):
    key = i * 2654435761 % 65521
    names.setdefault(key, []).append((i, str(key)))
sum(len(sorted(found, key=lambda x: x[1])) for found in names.values())
"""]


def cpu_seconds(command):
    def now():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    before = now()
    subprocess.run(command, check=True)
    return now() - before


job = best = float("inf")
for _ in range(12):
    job = min(job, cpu_seconds(JOB))
    best = min(best, cpu_seconds(COMMAND))
    if best <= LIMIT * job:
        break
print(f"{best / job:.1f} times a job of {job:.3f} s, limit {LIMIT}")
sys.exit(best > LIMIT * job)
