# RUN: %python %s %src %t %build
"""Options of kvbuf-run that a problem has no use for are refused, and so is what says the
same lengths twice: each would be ignored."""

import os
import pathlib
import subprocess
import sys

import numpy as np

SOURCE, WORK, BUILD = (pathlib.Path(x) for x in sys.argv[1:])
WORK.mkdir(parents=True, exist_ok=True)
sys.path.insert(0, str(SOURCE / "benchmark"))
from problem import problem  # noqa: E402

faults = []


def compiled(name, text):
    file = WORK / f"{name}.kvbuf"
    subprocess.run(["kvbuf-compile", "-", "--target=sm_80", "--code=none", "--no-alternatives",
                    "-o", file], input=text, text=True, check=True)
    return file


def refused(file, said, *options, device="emulator", **more):
    done = subprocess.run(["kvbuf-run", file, f"--device={device}", *options],
                          capture_output=True, text=True, env={**os.environ, **more})
    if done.returncode != 2 or f"error: {said}" not in done.stderr:
        faults.append(f"{file.stem} {' '.join(options)}: expected 2 and '{said}', got "
                      f"{done.returncode} and\n{done.stderr}")


def saved(name, numbers):
    np.save(WORK / f"{name}.npy", np.array(numbers, np.int32))
    return f"{name}={WORK / name}.npy"


gemm = compiled("gemm", (SOURCE / "test/Programs/Gemm/Inputs/product.mlir").read_text())
for options, said in (
        (["--lengths-q", "1,2"], "--lengths-q: a product of matrices has no sequences"),
        (["--lengths-k", "1,2"], "--lengths-k: a product of matrices has no sequences"),
        (["--cache-lengths", "1,2"], "--cache-lengths: a product of matrices has no sequences"),
        (["--share-pages"], "--share-pages: a product of matrices has no cache with pages"),
        (["--separate-tables"],
         "--separate-tables: a product of matrices has no cache with a page table"),
        (["--init=ramp"], "--init: a product of matrices has normal inputs"),
        (["--row-pad=8"], "--row-pad: no tensor of the kernel has rows of heads of 16 bits"),
        (["--layout=heads-major"],
         "--layout: no tensor of the kernel has rows of heads of 16 bits")):
    refused(gemm, said, *options)


def append(name, *options):
    text = subprocess.run([sys.executable, SOURCE / "test/Kernels/Inputs/append.py", *options],
                          capture_output=True, text=True, check=True).stdout
    return compiled(name, text)


paged = append("append")
lengths = "--lengths-q", "5,0", "--cache-lengths", "0,3"
refused(paged, "--share-pages: an append writes the pages of a sequence", *lengths,
        "--share-pages")
refused(paged, "--init: an append's tokens are normal", *lengths, "--init=ramp")
refused(paged, "--size cache: --cache-lengths says the lengths", *lengths, "--size", "cache=9")
refused(paged, "--size seq_new: --lengths-q says the lengths", *lengths, "--size", "seq_new=9")
refused(append("append-dense", "kind=dense", "at=true"),
        "--separate-tables: the cache has no tables of K and of V", *lengths,
        "--separate-tables")

ragged = compiled("ragged", problem(query="ragged", cache="ragged"))
offsets = saved("q_offsets", [0, 3, 5]), saved("k.offsets", [0, 4, 9])
refused(ragged, "--lengths-q: --input q_offsets says the lengths", "--input", offsets[0],
        "--lengths-q", "3,2", "--lengths-k", "4,5")
refused(ragged, "--lengths-k: --input k.offsets says the lengths", "--input", offsets[1],
        "--lengths-q", "3,2", "--lengths-k", "4,5")
refused(ragged, "--size seq_k: the lengths of the sequences are given", "--lengths-q", "3,2",
        "--lengths-k", "4,5", "--size", "seq_k=9")

pages = compiled("pages", problem(query="ragged", cache="paged", page_size=16))
lengths = "--lengths-q", "3,2", "--cache-lengths", "20,3"
refused(pages, "--cache-lengths: --input k.lengths says the lengths", *lengths, "--input",
        saved("k.lengths", [20, 3]))
pages_of = {of: saved(f"{of}.table", [[0, 1], [2, 3]]) for of in "kv"}
refused(pages, "--share-pages: --input k.table says the pages", *lengths, "--size",
        "num_blocks=4", "--input", pages_of["k"], "--share-pages")
refused(pages, "--separate-tables: --input v.table says the pages", *lengths, "--size",
        "num_blocks=4", "--input", pages_of["v"], "--separate-tables")
of_all = compiled("all", problem(cache="paged", page_size=16, lengths="all"))
refused(of_all, "--cache-lengths: --lengths-k says the lengths", "--size", "seq_q=2",
        "--lengths-k", "22,5", "--cache-lengths", "20,3")

latent = compiled("latent", problem(latent=True, kv_heads=1, cache="paged", page_size=16,
                                    head_size=128, v_head_size=64))
refused(latent, "--separate-tables: K and V are one cache, with one table", "--size",
        "seq_q=1", "--cache-lengths", "9", "--separate-tables")

dense = compiled("dense", problem())
for name in "qkv":
    np.save(WORK / f"{name}.npy", np.zeros((1, 3, 2, 64), np.uint16))
refused(dense, "--init: q, k and v come from files", "--init=ramp",
        *(x for name in "qkv" for x in ("--input", f"{name}={WORK / name}.npy")))
refused(dense, "--emulator is for the emulator; give --device=emulator (the device is Mock",
        "--emulator", "seed=3", device="cuda", LD_LIBRARY_PATH=str(BUILD / "test/mock-cuda"))

if faults:
    sys.exit("\n".join(faults))
