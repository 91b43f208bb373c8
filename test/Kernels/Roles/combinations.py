# Which features of attention have warp roles on sm_90a beside each kind of operands: the
# table of docs/support.md, held to what the compiler chooses; and some of them at once.
# RUN: %python %s %src/docs/support.md --run 1
# It notices a cell that is wrong, and a row that is not there.
# RUN: sed -e '/^| batch_invariant /s/roles/alike/' %src/docs/support.md > %t.cell.md
# RUN: not %python %s %t.cell.md 2>&1 | FileCheck %s --check-prefix=CELL
# CELL: batch_invariant, 16 bits: roles; the table says alike
# RUN: sed -e '/^| batch_invariant /d' %src/docs/support.md > %t.row.md
# RUN: not %python %s %t.row.md 2>&1 | FileCheck %s --check-prefix=ROW
# ROW: batch_invariant: no row of the table
"""    combinations.py PAGE [--run COUNT] [--seed N]

`--run` executes so many problems on the emulator, each of a kind of operands and three
features that have roles beside it, and compares every row with float64."""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "benchmark"))
from problem import problem  # noqa: E402

PLAIN = {"heads": 2, "kv_heads": 1, "head_size": 64}
LATENT = {"latent": True, "kv_heads": 1, "heads": 64, "seq_q": 1}
#: Columns of the table: options of problems.
KINDS = {
    "16 bits": PLAIN,
    "wide heads": PLAIN | {"head_size": 320},
    "8-bit caches": PLAIN | {"kv_dtype": "f8E4M3FN", "granularity": "tensor"},
    "8-bit products": PLAIN | {"dtype": "f8E4M3FN", "o_dtype": "bf16"},
    "latent": LATENT | {"head_size": 320, "v_head_size": 256},
    "8-bit latent": LATENT | {"head_size": 320, "v_head_size": 256,
                              "dtype": "f8E4M3FN", "o_dtype": "bf16"},
    "packed latent": LATENT | {"head_size": 576, "v_head_size": 512, "row": "656",
                               "cache": "paged", "page_size": 64},
}
SCORE = """\
    score {
    ^bb0(%s: f32, %batch: index, %head: index, %row: index, %at: index, %key: index):
      %n = arith.index_cast %key : index to i32
      %f = arith.sitofp %n : i32 to f32
      %t = arith.subf %s, %f : f32
      kvbuffer.yield %t : f32
    }
"""
VISIBLE = """\
    visible {
    ^bb0(%batch: index, %head: index, %row: index, %at: index, %key: index):
      %seen = arith.cmpi ne, %key, %row : index
      kvbuffer.yield %seen : i1
    }
"""
#: Rows: more options; text is a region, or what says that there are lists.
FEATURES = {
    "none": {},
    "causal": {"causal": True},
    "windows": {"window_left": 10, "window_right": 20},
    "soft cap": {"softcap": 20.0},
    "sinks": {"sink": True},
    "log-sum-exp": {"lse": True},
    "negative scale": {"scale": -0.1},
    "batch_invariant": {"batch_invariant": True},
    "O of f32": {"o_dtype": "f32"},
    "f16": {"dtype": "f16"},
    "e5m2": {},
    "V of 128 columns": {"v_head_size": 128},
    "scales of heads": {"granularity": "head"},
    "scales of tokens": {"granularity": "64"},
    "scales of 32 columns": {"granularity": "32"},
    "ragged caches": {"cache": "ragged"},
    "continuous caches": {"cache": "continuous"},
    **{f"pages of {n}": {"cache": "paged", "page_size": n}
       for n in (1, 3, 16, 64, 528)},
    "lengths of all tokens": {"cache": "paged", "page_size": 16, "lengths": "all"},
    "64-bit indices": {"cache": "paged", "page_size": 16, "index": "i64"},
    "ragged queries": {"query": "ragged"},
    "two query rows": {"seq_q": 2},
    "score": SCORE,
    "visible": VISIBLE,
    "block_mask": "lists",
}


def text_of(options, feature):
    """The problem's module; of both one may be text."""
    said = FEATURES[feature]
    if feature == "e5m2":
        bytes_ = {n: "f8E5M2" for n, o in options.items() if o == "f8E4M3FN"}
        if not bytes_:
            raise ValueError("no elements of 8 bits")
        options = options | bytes_
    if not isinstance(said, str):
        if "dtype" in said and "f8" in options.get("dtype", ""):
            raise ValueError("elements are of 8 bits")
        options = options | said
        return problem(**options)
    text = problem(**options)
    if said != "lists":
        return text.replace("  return\n", said + "  return\n")
    numbers, blocks = "memref<?x?x?xi32>", "memref<?x?x?x?xi32>"
    text = re.sub(r"(func.func .*)\) \{", rf'\1, %n: {numbers} '
                  r'{kvbuffer.name = "kv_num_blocks"}, %i: ' + blocks +
                  r' {kvbuffer.name = "kv_indices"}) {', text)
    text = text.replace(" {}", " {block_mask = #kvbuffer.block_mask<rows = 128, "
                        "keys = 128, lists = [0, 1]>}")
    return text.replace("  return\n", f"    captures(%n, %i : {numbers}, {blocks})\n"
                        "  return\n")


def chosen():
    """{(feature, kind): roles, alike or – (refused)} by the compiler."""
    cells, texts = {}, []
    for feature in FEATURES:
        for kind, options in KINDS.items():
            cells[feature, kind] = "–"
            try:
                text = text_of(options, feature)
            except ValueError:
                continue
            texts.append(text.replace("@kernel", f"@kernel{len(cells) - 1}"))
    done = subprocess.run(
        ["kvbuf-opt", "--split-input-file", "--kvbuf-choose-schedule=chip=sm_90a"],
        input="\n// -----\n".join(texts), capture_output=True, text=True)
    for module in done.stdout.split("// -----"):
        if found := re.search(r"@kernel(\d+)", module):
            cell = list(cells)[int(found[1])]
            cells[cell] = "roles" if "teams = moving" in module else "alike"
    return cells


def table(page):
    """The same by the page."""
    cells, kinds = {}, None
    for line in pathlib.Path(page).read_text().splitlines():
        row = [cell.strip() for cell in line.strip("| ").split("|")]
        if row[1:] == list(KINDS):
            kinds = row[1:]
        elif kinds and len(row) == len(kinds) + 1 and row[0] in FEATURES:
            cells |= {(row[0], kind): cell for kind, cell in zip(kinds, row[1:])}
    return cells


def run(rng, cells, folder):
    """Executes a problem; status 0 if it is right."""
    kind = rng.choice(list(KINDS))
    names = [f for f in FEATURES if cells[f, kind] == "roles"
             and isinstance(FEATURES[f], dict)]
    options = dict(KINDS[kind])
    for name in rng.sample(names, 3):
        options |= FEATURES[name]
    if options.get("cache") != "paged":
        options.pop("page_size", None)
    if options.get("lengths") and options["cache"] not in ("paged", "continuous"):
        del options["lengths"]
    path = pathlib.Path(folder, "problem.mlir")
    path.write_text(problem(**options))
    queries = options.get("seq_q", 70)
    sizes = {"dense": ["--size", "batch=2", "--size", f"seq_k={queries + 80}"],
             "ragged": ["--lengths-k", f"{queries + 80},{queries}"]}.get(
                 options.get("cache", "dense"), ["--cache-lengths", "80,0"])
    sizes += (["--lengths-q", "70,1"] if options.get("query") == "ragged" else
              ["--size", f"seq_q={queries}"])
    print(kind, options)
    return subprocess.run(
        ["kvbuf-run", path, "--device=emulator", "--target=sm_90a", "--check",
         "--check-rows=all", *sizes]).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--run", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    cells, said = chosen(), table(arguments.page)
    failed = False
    for (feature, kind), cell in cells.items():
        if (feature, kind) not in said:
            sys.exit(f"{feature}: no row of the table")
        if said[feature, kind] != cell:
            print(f"{feature}, {kind}: {cell}; the table says {said[feature, kind]}")
            failed = True
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.run):
            failed |= run(rng, cells, folder) != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
