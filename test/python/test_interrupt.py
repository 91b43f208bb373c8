# RUN: env KVBUF_LIB_DIR=%lib %python %s %src %bin
"""Ctrl-C ends what runs on the emulator, and nothing else: an endless kernel in
an artifact from elsewhere, then a good one on the same device."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

import numpy as np

import kvbuf

TOOLS = pathlib.Path(sys.argv.pop())
SOURCE = pathlib.Path(sys.argv.pop())

ENDLESS = """
module attributes {kvbuffer.target = "sm_90a"} {
  llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c = llvm.load %x : !llvm.ptr<1> -> i32
    %z = llvm.mlir.constant(0 : i32) : i32
    %more = llvm.icmp "ne" %c, %z : i32
    llvm.br ^bb1
  ^bb1:
    llvm.cond_br %more, ^bb1, ^bb2
  ^bb2:
    llvm.return
  }
}
"""


def artifact(mlir):
    """A well-formed artifact of one kernel for 32 threads, x and y its tensors."""
    mlir = mlir.encode() if isinstance(mlir, str) else mlir
    tensors = [{"name": n, "dtype": "i32", "shape": ["n"], "access": a}
               for n, a in (("x", "read"), ("y", "write"))]
    manifest = json.dumps({
        "kvbuf": 1, "name": "kernel",
        "target": {"vendor": "nvidia", "chip": "sm_90a"}, "tensors": tensors,
        "kernels": [{"entry": "kernel", "block": [32, 1, 1], "grid": [1, 1, 1],
                     "args": [{"kind": "pointer", "tensor": t["name"]}
                              for t in tensors]}]}).encode()
    at = (60 + len(manifest) + 15) // 16 * 16
    tail = struct.pack("<II", len(manifest), 1) + b"mlir".ljust(16, b"\0")
    tail += struct.pack("<QQ", at, len(mlir)) + manifest
    tail += b"\0" * (at - 20 - len(tail)) + mlir
    header = struct.pack("<QI", 20 + len(tail), zlib.crc32(tail))
    return b"KVBUF\0\0\1" + header + tail


def load(mlir):
    with tempfile.NamedTemporaryFile(suffix=".kvbuf") as file:
        file.write(artifact(mlir))
        file.flush()
        return kvbuf.load(file.name)


# What runs in a shell's background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Interrupts(unittest.TestCase):
    def run_kernel(self, kernel, first, **keywords):
        x = np.full(64, first, np.int32)
        return kernel(x=x, y=np.zeros(64, np.int32), **keywords)

    def test_keyboard_interrupt(self):
        kernel = load(ENDLESS)
        device = kvbuf.Device("emulator", max_instructions=1 << 60)
        # It ends by the interrupt alone.
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.run_kernel(kernel, 1, device=device)
        # The device goes on.
        self.run_kernel(kernel, 0, device=device)

    def test_what_a_handler_raises(self):
        class Alarm(Exception):
            pass

        def handler(*_):
            raise Alarm

        kernel = load(ENDLESS)
        device = kvbuf.Device("emulator", max_instructions=1 << 60)
        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with self.assertRaises(Alarm):
                self.run_kernel(kernel, 1, device=device)
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_limit(self):
        device = kvbuf.Device("emulator", max_instructions=1000)
        with self.assertRaisesRegex(
                kvbuf.KernelFault,
                r"kernel:\d+:\d+: error: 'llvm.cond_br' by warp 0 "
                r"\(block 0,0,0\): the warp has executed more than 1000 "
                r"instructions in this block \('max_instructions'\)"):
            self.run_kernel(load(ENDLESS), 1, device=device)

    def test_untrusted_artifact(self):
        text = ENDLESS.replace("llvm.br ^bb1", '"foo.bar"() : () -> ()\n'
                               "    llvm.br ^bb1", 1)
        with self.assertRaisesRegex(
                kvbuf.Error, "the emulator does not execute 'foo.bar'"):
            self.run_kernel(load(text), 0)

    def test_deep_nesting(self):
        text = "module attributes {a = " + "[" * 100000 + "]" * 100000 + "} {}"
        with self.assertRaisesRegex(
                kvbuf.Error, "brackets are nested more than 256 deep"):
            self.run_kernel(load(text), 0)

    def test_damaged_bytecode(self):
        # 2^61 strings, where MLIR's reader ends the process.
        def section(number, content):
            return bytes([number, len(content) << 1 | 1]) + content

        strings = b"\0" + struct.pack("<Q", 1 << 61)
        code = b"ML\xefR\rx\0" + section(0, strings) + b"".join(
            section(*x) for x in ((1, b"\1"), (2, b""), (3, b"\1\1"),
                                  (4, b"\1"), (8, b"\1")))
        with self.assertRaisesRegex(
                kvbuf.Error, "error: the module is damaged: MLIR's reader or "
                "verifier breaks down on it"):
            self.run_kernel(load(code), 0)

    def test_tool(self):
        tool = subprocess.Popen(
            [TOOLS / "kvbuf-run", SOURCE / "examples/prefill.mlir",
             "--device=emulator", "--target=sm_80", "--size", "batch=1",
             "--size", "seq=4096"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        # From the sizes on until the launch has ended.
        for line in tool.stdout:
            if line.lstrip().startswith("sizes"):
                break
        time.sleep(0.5)
        tool.send_signal(signal.SIGINT)
        _, errors = tool.communicate()
        self.assertEqual(tool.returncode, 130, errors)
        self.assertIn("kvbuf-run: error: interrupted in kernel", errors)


if __name__ == "__main__":
    unittest.main()
