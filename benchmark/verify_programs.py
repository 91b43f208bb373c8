#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The test programs of test/Kernels that need Python, on a GPU.

    benchmark/verify_programs.py --compile DIR --target=sm_90a   # with a compiler
    benchmark/verify_programs.py --run DIR                       # with a GPU

The programs are the emulator's tests: kernels that they compile are called with numpy
arrays, and what comes out is compared with float64. With --compile launches do
nothing and comparisons pass; each artifact, or message of the compiler, is kept in
DIR. With --run kvbuf.compile takes what is in DIR, and a call moves the arrays to the
GPU and back: to addresses that have the same last 8 bits, with 4096 bytes of NaN on
both sides that may not change. Tests of what only an emulator or a host finds are left
out. The second command needs this tree's Python files, the runtime library (found by
KVBUF_LIB_DIR) and PyTorch.

Targets without warp roles run what the programs have for sm_80.

Exit status: 0 all passed; 1 some did not; 2 bad usage.
"""

import argparse
import concurrent.futures
import ctypes
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402

HERE = pathlib.Path(__file__).resolve()
SOURCE = HERE.parent.parent

#: Tests of what a GPU does not find.
FAULTS = "fault|one_arrival|instructions|host_knows|refuse"
#: (row of the table, program, its arguments, tests to leave out). `{src}`: the
#: source tree; `{chip}`: the chip that the program is told; `{target}`: that of the
#: artifacts.
PROGRAMS = [
    ("lengths that do not fit", "python/test_lengths.py", "{chip}", ""),
    ("infinite V", "Kernels/Programs/infinite-values.py", "{chip}", ""),
    ("batch_invariant", "Kernels/Programs/batch-invariant.py", "{chip}", "shares"),
    ("programs", "Kernels/Programs/attention.py", "{src} {chip}", ""),
    ("scores", "Kernels/Programs/scores.py",
     "{src} {chip} bias alibi relative documents", ""),
    ("scores, few rows", "Kernels/Programs/decode-scores.py", "{src} {chip}", ""),
    ("teams", "Kernels/Teams/attention.py", "{chip}", ""),
    ("teams, queue", "Kernels/Teams/three_teams.py", "{src} {chip}", ""),
    ("teams, rings", "Kernels/Teams/rings.py", "", "kept_slots|generation|counters"),
    ("teams, rings", "Kernels/Teams/rings-pages.py", "", ""),
    ("products", "Kernels/Programs/gemm.py", "{src} {chip}", ""),
    ("shared rows by hand", "Kernels/Programs/rows.py", "none {chip}", "barriers"),
    ("few rows by hand", "Kernels/Programs/decode.py", "{src} {chip}", FAULTS),
    ("wide queries", "Kernels/Programs/wide-queries.py", "{chip}", ""),
    ("appends", "Kernels/Programs/cache-append.py", "{src} {chip}", FAULTS),
    ("appends by hand", "Kernels/Programs/append.py", "{src} {chip}", ""),
    ("appends before attention", "Kernels/Programs/decode-append.py", "{src} {chip}",
     FAULTS + "|tiles"),
    ("functions", "Kernels/Programs/functions.py", "{src} {chip}", ""),
    ("ops of a plugin", "Plugin/foreign-op.py",
     "{src}/build/test/Plugin/Foreign/KVBufferForeign.so {target}", "tiles|refused"),
]
#: Programs whose launches choose among kernels; others have one.
CHOOSE = "batch-invariant", "decode-scores", "functions", "gemm"


class OnDevice:
    """A numpy array's memory on the GPU, in the place that it has in its buffer."""

    def __init__(self, array, address):
        own = array.__array_interface__
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3, "shape": own["shape"], "typestr": own["typestr"],
            "strides": array.strides, "data": (address, not array.flags.writeable)}


class Buffers:
    """The buffers of a call's arrays on the GPU, each once."""
    BESIDE, SAME = 4096, 256

    def __init__(self, torch):
        self.torch, self.buffers = torch, {}

    def move(self, array):
        """The array's memory, of which others may be parts."""
        import numpy as np
        root = array
        while root.base is not None:
            # as_strided has an object between two arrays.
            below = (root.base if isinstance(root.base, np.ndarray)
                     else getattr(root.base, "base", None))
            if not isinstance(below, np.ndarray):
                break
            root = below
        low, high = np.byte_bounds(root) if hasattr(np, "byte_bounds") else (
            np.lib.array_utils.byte_bounds(root))
        if root.size == 0:
            high = low
        if low not in self.buffers:
            size = high - low + 2 * self.BESIDE + self.SAME
            memory = self.torch.full((size,), 0xFF, dtype=self.torch.uint8,
                                     device="cuda")
            begin = self.BESIDE + (low - memory.data_ptr() - self.BESIDE) % self.SAME
            if high > low:
                data = np.frombuffer(ctypes.string_at(low, high - low), np.uint8)
                memory[begin:begin + high - low] = self.torch.from_numpy(data.copy())
            self.buffers[low] = memory, begin, high - low
        memory, begin, _ = self.buffers[low]
        here = array.__array_interface__["data"][0]
        return OnDevice(array, memory.data_ptr() + begin + here - low)

    def fetch(self):
        """Brings everything back. Raises where something beside has changed."""
        self.torch.cuda.synchronize()
        for low, (memory, begin, size) in self.buffers.items():
            host = memory.cpu().numpy()
            if (host[:begin] != 0xFF).any() or (host[begin + size:] != 0xFF).any():
                raise AssertionError("the kernel writes beside an array")
            part = host[begin:begin + size].tobytes()
            if part != ctypes.string_at(low, size):
                ctypes.memmove(low, part, size)


def on_gpu(kvbuf):
    """Makes calls of kernels with numpy arrays run on the GPU."""
    import numpy as np
    import torch
    from kvbuf import _artifact, _tensors
    launch, allocate = _artifact.Artifact.__call__, _tensors.allocate
    current = []

    def call(self, *, device=None, stream=None, **arguments):
        current.append(Buffers(torch))
        try:
            given = {name: current[-1].move(value) if isinstance(value, np.ndarray)
                     else value for name, value in arguments.items()}
            result = launch(self, **given)
            current[-1].fetch()
        finally:
            current.pop()
        if isinstance(result, OnDevice):
            return result.array
        return type(result)(*(getattr(r, "array", r) for r in result))

    def make(name, like, dtype, shape):
        return current[-1].move(allocate(name, like.array, dtype, shape))

    class Device:
        """Takes what the emulator's would."""

        def __init__(self, name="auto", **options):
            del name, options
    _artifact.Artifact.__call__, _tensors.allocate = call, make
    kvbuf.Device = Device


def only_compile():
    """Makes launches do nothing, and comparisons pass."""
    import numpy as np
    from kvbuf import _artifact

    def nothing(*arguments, **named):
        del arguments, named
    _artifact._Plan._emulate = nothing
    for where in unittest.TestCase, np.testing:
        for name in dir(where):
            if name.startswith("assert") and "Raises" not in name:
                setattr(where, name, nothing)
    sys.exit = nothing
    np.seterr(all="ignore")


def keep_compiled(kvbuf, folder, chip, from_disk, choose):
    """Makes kvbuf.compile write to a folder, or read from it."""
    from kvbuf import _artifact

    def compile(source, target=None, schedule=None, machine_code=True):
        del machine_code  # The GPU needs it.
        target = chip if target == "sm_80" else target
        text = source if "\n" in str(source) else pathlib.Path(source).read_text()
        options = {"target": target, "alternatives": choose}
        if schedule:
            options["schedule"] = schedule
        key = hashlib.sha256(json.dumps([text, options]).encode()).hexdigest()[:16]
        path, said = folder / f"{key}.kvbuf", folder / f"{key}.txt"
        if not from_disk and not path.exists() and not said.exists():
            try:
                _artifact._compile(text.encode(), "<string>", options).save(path)
            except kvbuf.Error as error:
                said.write_text(str(error))
        if said.exists():
            raise kvbuf.Error(said.read_text())
        if not path.exists():
            raise AssertionError(f"{path.name} has not been compiled")
        return kvbuf.load(path)
    kvbuf.compile = compile


def keep_said(folder, from_disk):
    """Makes subprocess.run write what the tools say to a folder, or read it there."""
    run = subprocess.run

    def said(command, input="", **options):
        text = json.dumps([command, input]).replace(str(SOURCE), "")
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        if not from_disk:
            done = run(command, input=input, **options)
            path.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
        return subprocess.CompletedProcess(command, *json.loads(path.read_text()))
    subprocess.run = said


def run_program(number, folder, target, gpu):
    """Runs a program in this process; returns its exit status."""
    _, name, arguments, without = PROGRAMS[number]
    sys.path.insert(0, str(SOURCE / "python"))
    import numpy as np
    import kvbuf
    generator = np.random.default_rng
    # The same problems in both commands.
    np.random.default_rng = lambda seed=1: generator(seed)
    choose = any(program in name for program in CHOOSE)
    keep_compiled(kvbuf, folder, target, gpu, choose)
    keep_said(folder, gpu)
    if gpu:
        on_gpu(kvbuf)
    else:
        only_compile()
    path = SOURCE / "test" / name
    chip = target if target == "sm_90a" else "sm_80"
    sys.argv = [str(path), *arguments.format(
        src=SOURCE, chip=chip, target=target).split()]
    sys.path.insert(0, str(path.parent))
    if "unittest.TestCase" not in path.read_text():
        runpy.run_path(str(path), run_name="__main__")
        return 0
    spec = importlib.util.spec_from_file_location("program", path)
    module = sys.modules["program"] = importlib.util.module_from_spec(spec)
    unittest.main = lambda *arguments, **named: None
    spec.loader.exec_module(module)
    cases = [c for c in vars(module).values()
             if isinstance(c, type) and issubclass(c, unittest.TestCase)]
    suite = unittest.TestSuite()
    for case in cases:
        if hasattr(case, "ON_GPU"):
            case.ON_GPU = True
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
            if not (without and re.search(without, test.id())):
                suite.addTest(test)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun else 1


def main():
    parser = common.steps_parser(__doc__, target_help="chip [sm_90; with --run that of DIR]")
    parser.add_argument("--only", metavar="REGEX",
                        help="programs whose row and name match")
    parser.add_argument("--jobs", type=int, default=1,
                        help="programs at a time [1]")
    parser.add_argument("--program", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = (args.compile or args.run).resolve()
    if args.compile:
        folder.mkdir(parents=True, exist_ok=True)
        args.target = args.target or "sm_90"
        (folder / "target.txt").write_text(args.target)
    elif (folder / "target.txt").exists():
        args.target = (folder / "target.txt").read_text()
    else:
        parser.error(f"{folder}/target.txt: no such file; --compile makes it")
    if args.program is not None:
        status = run_program(args.program, folder, args.target, bool(args.run))
        raise SystemExit(status)
    failed = passed = 0
    chosen = [(number, p) for number, p in enumerate(PROGRAMS)
              if not args.only or re.search(args.only, f"{p[0]} {p[1]}")]

    def run(number):
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, HERE, "--compile" if args.compile else "--run", folder,
             f"--target={args.target}", f"--program={number}"],
            capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        return done, time.monotonic() - begin
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        # Without a chip, a program is for sm_90a alone.
        jobs = [(p, pool.submit(run, number)) for number, p in chosen
                if "{chip}" in p[2] or "{target}" in p[2] or args.target == "sm_90a"]
        for (row, name, *_), job in jobs:
            done, seconds = job.result()
            ok = done.returncode == 0
            passed, failed = passed + ok, failed + (not ok)
            count = re.search(r"^Ran (\d+ tests?)", done.stderr, re.M)
            print(f"{row:<26} {name:<38} {'pass' if ok else 'FAILED':6} "
                  f"{count[1] if count else '':>8} {seconds:6.1f} s", flush=True)
            if not ok:
                print(done.stdout[-3000:], done.stderr[-6000:], flush=True)
    print(f"{passed} programs passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
