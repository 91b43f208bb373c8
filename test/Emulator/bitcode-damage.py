# LLVM bitcode that is damaged at random, as the runtime library may get it, is refused
# with a message, or its kernels run to an end within limits; the process does not die.
# A long run: bitcode-damage.py LIBRARIES FILE ROUNDS SEED.
#
# REQUIRES: mlir-runner
# RUN: %python %s %lib %S/../MlirRuntime/nvidia.mlir 150 | FileCheck %s
# CHECK: {{[1-9][0-9]*}} refused, {{[1-9][0-9]*}} decoded, {{[1-9][0-9]*}} launched
"""Bytes and lengths of bitcode changed at random, on the emulator in this process."""

import ctypes
import random
import re
import resource
import secrets
import subprocess
import sys

libraries, file, rounds, *rest = sys.argv[1:]
seed = int(rest[0]) if rest else secrets.randbits(32)
print("seed", seed, flush=True)
rng = random.Random(seed)
# LLVM's reader believes a damaged count, and asks for that much memory: what it does not
# get is an error, too.
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
lib = ctypes.CDLL(f"{libraries}/libKVBufferC.so")
lib.kvbufEmulatorCreate.restype = ctypes.c_void_p
lib.kvbufEmulatorKernelName.restype = ctypes.c_char_p
Message = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def unescape(text):
    """The bytes of a string of MLIR."""
    return re.sub(rb'\\([0-9A-F]{2}|.)', lambda m: bytes.fromhex(m[1].decode())
                  if len(m[1]) == 2 else {b"n": b"\n", b"t": b"\t"}.get(m[1], m[1]), text)


def bitcodes():
    programs = open(file, encoding="utf-8").read().split("//--- ")
    for name in ("reduce", "dynamic", "atomics", "types"):
        program = next(p.split("\n", 1)[1] for p in programs if p.startswith(name + ".mlir"))
        lowered = subprocess.run(
            ["mlir-opt", "--convert-linalg-to-loops", "--gpu-lower-to-nvvm-pipeline="
             "cubin-format=offloading cubin-chip=sm_90a cubin-features=+ptx80"],
            input=program.encode(), stdout=subprocess.PIPE, check=True).stdout
        yield unescape(re.search(rb'"(BC\\C0(?:[^"\\]|\\.)*)"', lowered)[1])


def damaged(code):
    code = bytearray(code)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(4, len(code))
        how = rng.randrange(4)
        if how == 0:
            code[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            code[at] = rng.randrange(256)
        elif how == 2:
            n = rng.randrange(1, 9)
            code[at:at + n] = rng.choice((b"\0", b"\xff")) * n
        else:
            other = rng.randrange(4, len(code))
            n = rng.randrange(1, 33)
            code[at:at + n] = code[other:other + n]
    if rng.randrange(8) == 0:
        del code[rng.randrange(4, len(code)):]
    return bytes(code)


def run(code):
    """0: refused; 1: decoded; 2: and launched."""
    messages = []
    report = Message(lambda severity, text, user: messages.append(text))
    limits = b'{"max_instructions": 20000, "max_memory": 67108864, "max_errors": 1}'
    emulator = ctypes.c_void_p(lib.kvbufEmulatorCreate(
        code, ctypes.c_size_t(len(code)), b"damaged", limits, report, None))
    if not emulator:
        if not messages:
            sys.exit("refused without a message")
        return 0
    entry = lib.kvbufEmulatorKernelName(emulator, 0)
    state = 1
    sizes, count = ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_uint()
    if entry and not lib.kvbufEmulatorParameters(emulator, entry, ctypes.byref(sizes), ctypes.byref(count)):
        memory = ctypes.create_string_buffer(4096)
        lib.kvbufEmulatorRegisterBuffer(emulator, b"memory", memory, ctypes.c_size_t(4096), 1, 1, 1)
        n = count.value
        words = [ctypes.create_string_buffer(bytes(ctypes.c_uint64(ctypes.addressof(memory))).ljust(sizes[i], b"\1"),
                                             max(sizes[i], 8)) for i in range(n)]
        args = (ctypes.c_void_p * n)(*(ctypes.addressof(w) for w in words))
        lengths = (ctypes.c_size_t * n)(*(sizes[i] for i in range(n)))
        three = ctypes.c_uint * 3
        code = lib.kvbufEmulatorLaunch(emulator, entry, three(2, 1, 1), three(64, 1, 1), 1024, args, lengths, n,
                                       None, None)
        if code and not messages:
            sys.exit(f"a launch ended with {code} and no message")
        state = 2
    lib.kvbufEmulatorDestroy(emulator)
    return state


sources = list(bitcodes())
for source in sources:
    if run(source) != 2:
        sys.exit("undamaged bitcode was not launched")
states = [run(damaged(rng.choice(sources))) for _ in range(int(rounds))]
print(f"{states.count(0)} refused, {len(states) - states.count(0)} decoded, {states.count(2)} launched")
