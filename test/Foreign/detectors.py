# Each detector finds its fault in what each front end writes, and nothing in the same
# kernel without the fault.
# RUN: %python %s %lib %t
"""Plants a fault for each detector in the IR of each front end.

    detectors.py LIBRARIES FOLDER [--table]

A kernel is built twice, with its fault and without. `--table` prints which detector has
been tried with which front end.
"""

import ctypes
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
from front_ends import FRONT_ENDS  # noqa: E402

libraries, folder, *options = sys.argv[1:]
folder = pathlib.Path(folder)
folder.mkdir(parents=True, exist_ok=True)
lib = ctypes.CDLL(f"{libraries}/libKVBufferC.so")
lib.kvbufEmulatorCreate.restype = ctypes.c_void_p
lib.kvbufEmulatorReport.restype = ctypes.c_void_p
Message = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def by_thread(f):
    t = f.thread()
    return t, f.binary("shl", t, 2)


# What a kernel of 64 threads (or as many as the row says) does: `bad` is its fault.

def race(f, bad):
    t, at = by_thread(f)
    f.shared_store(at, t)
    if not bad:
        f.barrier()
    f.store("out", at, f.shared_load(f.binary("sub", 508, at)))


def lanes(f, bad):
    t, at = by_thread(f)
    f.shared_store(at, t)
    if not bad:
        f.sync_warp()
    f.store("out", at, f.shared_load(f.binary("sub", 124, at)))


def blocks(f, bad):
    t, at = by_thread(f)
    b = f.place()
    value = f.binary("add", t, f.binary("mul", b, 100))
    f.store("out", at if bad else f.binary("add", at, f.binary("mul", b, 256)), value)


def conflict(f, bad):
    t, at = by_thread(f)
    f.store("out", f.binary("and", at, -8) if bad else at, t)


def unwritten(f, bad):
    t, at = by_thread(f)
    if not bad:
        f.shared_store(at, t)
    f.store("out", at, f.shared_load(at))


def in_flight(f, bad):
    _, at = by_thread(f)
    f.copy(at, wait=not bad)
    f.store("out", at, f.shared_load(at))


def bounds(f, bad):
    _, at = by_thread(f)
    f.store("out", at, f.load("numbers", f.binary("add", at, 1 << 20 if bad else 0)))


def shared_bounds(f, bad):
    t, at = by_thread(f)
    f.shared_store(f.binary("add", at, 1 << 17 if bad else 0), t)


def misaligned(f, bad):
    t, at = by_thread(f)
    f.shared_store(f.binary("add", at, 2 if bad else 0), t)


def access(f, bad):
    t, at = by_thread(f)
    f.store("numbers" if bad else "out", at, t)


def barrier(f, bad):
    t, _ = by_thread(f)
    second = f.value(f"icmp ugt i32 {t}, 31")
    f.named_barrier(1, f.value(f"select i1 {second}, i32 {96 if bad else 64}, i32 64"))


def deadlock(f, bad):
    f.line("br label %wait")
    f.block("wait")
    done = f.value(f"icmp eq i32 {f.poll('flags')}, {1 if bad else 0}")
    f.line(f"br i1 {done}, label %met, label %wait")
    f.block("met")


def divergence(f, bad):
    # Those that skip the barrier come to another: to end would be no fault.
    t, _ = by_thread(f)
    f.when(f.value(f"icmp ult i32 {t}, {16 if bad else 1024}"), f.barrier)
    f.barrier()


def trap(f, bad):
    t, _ = by_thread(f)
    f.when(f.value(f"icmp eq i32 {t}, {5 if bad else 1024}"), f.trap)


def limit(f, bad):
    t, _ = by_thread(f)
    f.line("br label %again")
    f.block("again")
    f.line("%turn = phi i32 [ 0, %entry ], [ %next, %again ]")
    f.line("%next = add i32 %turn, 1")
    f.line(f"%on = icmp ult i32 %next, {-1 if bad else 4}")
    f.line("br i1 %on, label %again, label %over")
    f.block("over")


def proxy(f, bad):
    t, at = by_thread(f)
    f.shared_store(at, t)
    if not bad:
        f.asm("void", "fence.proxy.async.shared::cta;", "")
    f.barrier()

    def send():
        f.asm("void", "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r",
              f.array("out"), f"i32 {f.offset()}", "i32 256")
        f.asm("void", "cp.async.bulk.commit_group;", "")
        f.asm("void", "cp.async.bulk.wait_group 0;", "")
    f.when(f.value(f"icmp eq i32 {t}, 0"), send)


def mbarrier(f, bad):
    t, _ = by_thread(f)
    place = f.offset(1024)

    def init():
        f.asm("void", "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r", f"i32 {place}",
              f"i32 {32 if bad else 64}")
    f.when(f.value(f"icmp eq i32 {t}, 0"), init)
    f.barrier()
    f.asm("void", "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", f"i32 {place}")
    f.asm("void", "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, "
          "[$0], $1;\n@!done bra.uni again;\n}", "r,r", f"i32 {place}", "i32 0")


def product(f, bad, reserved=0):
    """A product of warpgroups of zeros, 64 x 8 x 16."""
    _, at = by_thread(f)
    for k in range(0, 4096, 512):
        f.shared_store(f.binary("add", at, k), 0)
    f.asm("void", "fence.proxy.async.shared::cta;", "")
    f.barrier()
    # No swizzle; blocks of 8 rows of 16 bytes lie 128 bytes apart.
    start = f.value(f"zext i32 {f.binary('lshr', f.offset(), 4)} to i64")
    d = f.binary("or", start, reserved | 8 << 16 | 16 << 32, "i64")
    f.asm("void", "wgmma.fence.sync.aligned;", "")
    four = "{ float, float, float, float }"
    sums = f.asm(four, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0,$1,$2,$3}, $4, $5, "
                 "0, 1, 1, 0, 0;", "=f,=f,=f,=f,l,l", f"i64 {d}", f"i64 {d}")
    f.asm("void", "wgmma.commit_group.sync.aligned;", "")
    parts = [f.value(f"extractvalue {four} {sums}, {k}") for k in range(4)]
    if not bad:
        sums = f.asm(four, "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3",
                     *(f"float {p}" for p in parts))
        parts[0] = f.value(f"extractvalue {four} {sums}, 0")
    f.store("out", at, f.value(f"bitcast float {parts[0]} to i32"))


def descriptor(f, bad):
    product(f, False, reserved=1 << 15 if bad else 0)


def registers(f, bad):
    # 65536 registers for 128 threads are more than the 255 that a thread may have: 248.
    f.intrinsic("void", "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32",
                f"i32 immarg {256 if bad else 40}")


def banks(f, bad):
    t, _ = by_thread(f)
    f.shared_store(f.binary("shl", t, 7 if bad else 2), t)


# The kind that the report names, and: threads, blocks, of NVIDIA's machines alone.
DETECTORS = [
    ("race", race, 128, 1, False), ("race", lanes, 32, 1, True), ("race", blocks, 64, 2, False),
    ("store-conflict", conflict, 64, 1, False), ("unwritten", unwritten, 64, 1, False),
    ("in-flight", in_flight, 64, 1, False), ("bounds", bounds, 64, 1, False),
    ("bounds", shared_bounds, 64, 1, False), ("misaligned", misaligned, 64, 1, False),
    ("access", access, 64, 1, False), ("barrier", barrier, 64, 1, True),
    ("deadlock", deadlock, 64, 1, False), ("divergence", divergence, 64, 1, False),
    ("trap", trap, 64, 1, False), ("limit", limit, 64, 1, False), ("proxy", proxy, 64, 1, True),
    ("mbarrier", mbarrier, 64, 1, True), ("accumulator", product, 128, 1, True),
    ("descriptor", descriptor, 128, 1, True), ("registers", registers, 128, 1, True),
    ("bank conflicts", banks, 64, 1, False)]


# None of the kinds that reports know is left out.
known = json.loads(subprocess.run(["kvbuf-emulate", "--list-ops=json"], stdout=subprocess.PIPE,
                                  check=True).stdout)["detectors"]
missing = set(known) ^ {kind for kind, *_ in DETECTORS} - {"bank conflicts"}
assert not missing, missing


class Machine:
    """The emulator with a front end's kernels."""

    def __init__(self, name, bad):
        self.front, self.text = FRONT_ENDS[name](), []
        for _, body, threads, _, nvidia in DETECTORS:
            if not (nvidia and self.front.amd):
                self.front.kernel(body.__name__, threads, lambda f, b=body: b(f, bad))
        source = folder / f"{name.replace(' ', '-')}-{'bad' if bad else 'good'}.ll"
        source.write_text(self.front.module())
        code = subprocess.run(["mlir-translate", "--import-llvm", source] if self.front.mlir
                              else ["llvm-as", source, "-o", "-"], stdout=subprocess.PIPE,
                              check=True).stdout
        if self.front.mlir:
            code = self.marked(code.decode()).encode()
        self.message = Message(lambda _, text, __: self.text.append(text.decode()))
        settings = {"strict": self.front.mlir, "chip": self.front.chip, "max_instructions": 100000}
        self.machine = ctypes.c_void_p(lib.kvbufEmulatorCreate(
            code, len(code), name.encode(), json.dumps(settings).encode(), self.message, None))
        assert self.machine, self.text

    def marked(self, text):
        """Kernels marked as the target stage marks them."""
        text = re.sub(r"(llvm.func )(?:ptx_kernelcc|amdgpu_kernelcc)( .*?attributes \{)",
                      rf"\1\2{self.front.kernel_attribute}, ", text)
        return re.sub(r'(\{nvvm.kernel, )(.*?"nvvm.reqntid", "(\d+)")',
                      r"\1nvvm.reqntid = array<i32: \3>, \2", text)

    def run(self, kernel, threads, blocks):
        """What the detectors of one launch found, by kind."""
        out, numbers, flags = ((ctypes.c_int * 256)() for _ in range(3))
        numbers[:] = range(256)
        lib.kvbufEmulatorClearBuffers(self.machine)
        for what, array, writes, written in (("out", out, 1, 0), ("numbers", numbers, 0, 1),
                                             ("flags", flags, 1, 1)):
            assert lib.kvbufEmulatorRegisterBuffer(
                self.machine, what.encode(), array, ctypes.c_size_t(1024), 1, writes,
                written) == 0, self.text
        sizes, count = ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_uint()
        assert lib.kvbufEmulatorParameters(self.machine, kernel.encode(), ctypes.byref(sizes),
                                           ctypes.byref(count)) == 0, (kernel, self.text)
        words = []
        for array in (out, numbers, flags):
            at = ctypes.addressof(array)
            words += [at, at, 0, 256, 1] if count.value == 15 else [at]
        words += [0] * (count.value - len(words))
        values = (ctypes.c_uint64 * len(words))(*words)
        places = (ctypes.c_void_p * len(words))(
            *(ctypes.addressof(values) + 8 * k for k in range(len(words))))
        lengths = (ctypes.c_size_t * len(words))(*[8] * len(words))
        three = ctypes.c_uint * 3
        self.text.clear()
        status = lib.kvbufEmulatorLaunch(
            self.machine, kernel.encode(), three(blocks, 1, 1), three(threads, 1, 1),
            8192 if self.front.dynamic else 0, places, lengths, len(words), None, None)
        report = ctypes.c_void_p(lib.kvbufEmulatorReport(self.machine))
        entry = next((k for k in json.loads(ctypes.string_at(report.value))["kernels"]
                      if k["entry"] == kernel), None)
        lib.kvbufFree(report)
        if entry is None:
            return status, {"refused"}
        found = {e["kind"] for e in entry["errors"]}
        if entry["bank_conflicts"]:
            found.add("bank conflicts")
        return status, found


wrong, rows = [], {}
for name in FRONT_ENDS:
    good, bad = Machine(name, False), Machine(name, True)
    for kind, body, threads, blocks_of, nvidia in DETECTORS:
        row = rows.setdefault((kind, body.__name__), [])
        if nvidia and good.front.amd:
            row.append("-")
            continue
        row.append("yes")
        status, found = good.run(body.__name__, threads, blocks_of)
        if status or found:
            wrong.append((name, body.__name__, "a false alarm", status, good.text[:2]))
        status, found = bad.run(body.__name__, threads, blocks_of)
        # One fault may bring others: who misses a barrier waits forever.
        if kind not in found or status != (kind != "bank conflicts"):
            wrong.append((name, body.__name__, "not " + kind, status, found, bad.text[:2]))
if "--table" in options:
    print("| detector | fault |", " | ".join(FRONT_ENDS), "|")
    print("|---" * (2 + len(FRONT_ENDS)) + "|")
    for (kind, fault), row in rows.items():
        print("|", kind, "|", fault, "|", " | ".join(row), "|")
for line in wrong:
    print(*line)
sys.exit(1 if wrong else 0)
