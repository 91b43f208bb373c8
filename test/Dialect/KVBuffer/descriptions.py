# Each TableGen description parses by itself, in any order of includes, and
# KVBuffer.td, on which generators are run, has all of the dialect's.
#
# RUN: %python %s %src/include %mlir_include %t
# It notices a description that needs another one, and one that is left out.
# RUN: not %python %s %S/Inputs/descriptions %mlir_include %t | FileCheck %s
# CHECK: Needs.td does not parse by itself:
# CHECK: Couldn't find class 'Missing'
# CHECK: Needs.td is not part of KVBuffer.td
# CHECK: 2 descriptions, 2 faults
import pathlib
import subprocess
import sys

root, mlir, records = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
files = sorted(root.rglob("*.td"))
faults = 0


def tblgen(file):
    return subprocess.run(["mlir-tblgen", "-print-records", "-I", str(root), "-I", mlir,
                           "-o", records, "-d", f"{records}.d", str(file)],
                          capture_output=True, text=True, check=False)


for file in files:
    result = tblgen(file)
    if result.returncode:
        print(f"{file.name} does not parse by itself:\n{result.stderr}")
        faults += 1

dialect = root / "kvbuffer/Dialect/KVBuffer/IR"
tblgen(dialect / "KVBuffer.td")
included = pathlib.Path(f"{records}.d").read_text().split()
for file in sorted(dialect.glob("*.td")):
    if file.name != "KVBuffer.td" and str(file) not in included:
        print(f"{file.name} is not part of KVBuffer.td")
        faults += 1

print(f"{len(files)} descriptions, {faults} faults")
sys.exit(faults != 0 or not files)
