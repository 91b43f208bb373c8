# RUN: %python %s
# REQUIRES: mlir-runner
"""Rows that masks hide from all keys by numbers, or from all but few: the raised graph
computes what the graph does, the mean of the hidden keys' values where it is that.

Each case edits the graph of Inputs/causal_graph.py; raise_and_run.py runs it as it is
and raised. Lengths are drawn from numbers around 0.
"""

import pathlib
import subprocess
import sys
import tempfile

INPUTS = pathlib.Path(__file__).parent / "Inputs"
sys.path.append(str(INPUTS))
from causal_graph import GRAPH, MAPS, edit  # noqa: E402

SELECT = "%masked = arith.select %seen, %scaled, %hidden : f32"
LOW = ("%hidden = arith.constant 0xFF800000", "%hidden = arith.constant -1.0e30")
LENGTH = ("%v: tensor<2x12x16xbf16>)", "%v: tensor<2x12x16xbf16>, %n: tensor<2xi32>)")
SHORT = ("    %h = linalg.index 0 : index\n    %n0 = tensor.extract %n[%h] : tensor<2xi32>\n"
         "    %j32 = arith.index_cast %j : index to i32\n    %short = arith.cmpi slt, %j32, %n0 : i32\n    ")
CASES = {
    # The first rows see no key.
    "causal_without_keys": [LOW, ("%c4 = arith.constant 4", "%c4 = arith.constant -3")],
    # Lengths of 0 and less.
    "length": [LOW, LENGTH, (SELECT, SHORT + "%masked = arith.select %short, %scaled, %hidden : f32")],
    # Left padding by a bias: the first rows see keys that it hides more than the mask does
    # those that come later.
    "bias_and_causal": [LOW, (SELECT, "%c6 = arith.constant 6 : index\n    %lower = arith.constant -2.0e8 : f32\n"
                              "    %pad = arith.cmpi slt, %j, %c6 : index\n    %bias = arith.select %pad, %lower, %zero : f32\n"
                              "    %one = arith.addf %scaled, %bias : f32\n"
                              "    %masked = arith.select %seen, %one, %hidden : f32")],
    # No row is without a key: they are hidden as by -inf.
    "length_of_one_or_more": [LOW, LENGTH, ("arith.constant -1.0e30", "arith.constant -3.0e38"),
                              (SELECT, SHORT.replace("%j32, %n0", "%j32, %n1").replace(
                                  "    %j32", "    %c1 = arith.constant 1 : i32\n    %n1 = arith.maxsi %n0, %c1 : i32\n    %j32") +
                               "%masked = arith.select %short, %scaled, %hidden : f32")],
    # After a mask, scores of 0 show keys again.
    "shown_again": [LENGTH, (SELECT, SHORT + "%one = arith.select %seen, %scaled, %hidden : f32\n"
                             "    %masked = arith.select %short, %one, %zero : f32")],
}

for name, edits in CASES.items():
    graph = edit(GRAPH, edits).replace("EXTRA_TYPE", "").replace("EXTRA_VALUE", "").replace("NAME", "main")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.mlir"
        path.write_text(MAPS + "module {" + graph + "}\n")
        done = subprocess.run([sys.executable, INPUTS / "raise_and_run.py", path,
                               "--range=3=-2:3"],
                              capture_output=True, text=True)
    print(name, done.stdout, done.stderr)
    if done.returncode:
        sys.exit(f"{name} failed")
