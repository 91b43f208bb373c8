"""Small kernels for the emulator's tests of Hopper, put together from pieces.

A kernel is text in the LLVM and NVVM dialects. Each piece can be left out or
changed, which is how the tests plant faults.
"""
import re
import subprocess


class Kernel:
    """Collects operations; values are named %v0, %v1, ..."""

    def __init__(self, threads=128, shared=65536, attributes=""):
        self.threads, self.shared, self.attributes = threads, shared, attributes
        self.lines, self.params, self.count, self.labels = [], [], 0, 0
        self.mbarriers = 0
        self.base = self.op("llvm.mlir.addressof @smem : !llvm.ptr<3>")
        self.tid = self.op("nvvm.read.ptx.sreg.tid.x : i32")
        self.lane = self.bin("and", self.tid, 31)
        self.warp = self.bin("lshr", self.tid, 5)

    def emit(self, text):
        self.lines.append("    " + text)

    def op(self, text):
        self.count += 1
        self.emit(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def const(self, value, type="i32"):
        return value if isinstance(value, str) else self.op(
            f"llvm.mlir.constant({value} : {type}) : {type}")

    def bin(self, name, a, b, type="i32"):
        return self.op(f"llvm.{name} {self.const(a, type)}, {self.const(b, type)} : {type}")

    def cmp(self, predicate, a, b):
        return self.op(f'llvm.icmp "{predicate}" {self.const(a)}, {self.const(b)} : i32')

    def block(self, name):
        self.lines.append(f"  ^{name}:")

    def branch(self, condition, then, other=None):
        """Runs `then` where the condition holds, `other` elsewhere."""
        self.labels += 1
        n = self.labels
        self.emit(f"llvm.cond_br {condition}, ^then{n}, ^else{n}")
        self.block(f"then{n}")
        then()
        self.emit(f"llvm.br ^end{n}")
        self.block(f"else{n}")
        if other:
            other()
        self.emit(f"llvm.br ^end{n}")
        self.block(f"end{n}")

    def loop(self, count, body):
        """body(i) for i from 0."""
        self.labels += 1
        n = self.labels
        zero, one, count = self.const(0), self.const(1), self.const(count)
        self.emit(f"llvm.br ^loop{n}({zero} : i32)")
        self.lines.append(f"  ^loop{n}(%i{n}: i32):")
        body(f"%i{n}")
        following = self.bin("add", f"%i{n}", one)
        more = self.cmp("slt", following, count)
        self.emit(f"llvm.cond_br {more}, ^loop{n}({following} : i32), ^end{n}")
        self.block(f"end{n}")

    def once(self, then):
        """By thread 0 alone."""
        self.branch(self.cmp("eq", self.tid, 0), then)

    def param(self, type, attributes=""):
        self.params.append(f"%p{len(self.params)}: {type} {attributes}")
        return f"%p{len(self.params) - 1}"

    def buffer(self):
        return self.param("!llvm.ptr<1>")

    def map(self):
        return self.param("!llvm.ptr", "{llvm.byval = !llvm.array<128 x i8>, "
                          "llvm.align = 64 : i64, nvvm.grid_constant}")

    # Shared memory by byte offset; mbarriers are at its end.
    def at(self, offset):
        if isinstance(offset, int):
            return self.op(f"llvm.getelementptr {self.base}[{offset}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
        return self.op(f"llvm.getelementptr {self.base}[{offset}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8")

    def mbarrier(self):
        self.mbarriers += 1
        return self.at(self.shared - 8 * self.mbarriers)

    def init(self, mbarrier, count):
        self.emit(f"nvvm.mbarrier.init {mbarrier}, {self.const(count)} : !llvm.ptr<3>, i32")

    def fence_init(self):
        self.emit("nvvm.fence.mbarrier.init")

    def fence_proxy(self):
        self.emit("nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}")

    def sync(self):
        self.emit("nvvm.barrier0")

    def setup(self, *counted):
        """Initialises (mbarrier, count) pairs by thread 0."""
        def body():
            for mbarrier, count in counted:
                self.init(mbarrier, count)
            self.fence_init()
        self.once(body)
        self.sync()

    def expect(self, mbarrier, bytes):
        self.emit(f"nvvm.mbarrier.arrive.expect_tx {mbarrier}, {self.const(bytes)} : !llvm.ptr<3>, i32")

    def arrive(self, mbarrier):
        return self.op(f"nvvm.mbarrier.arrive {mbarrier} : !llvm.ptr<3> -> i64")

    def wait(self, mbarrier, parity):
        self.emit(f"nvvm.mbarrier.try_wait.parity {mbarrier}, {self.const(parity)}, "
                  f"{self.const(1000)} : !llvm.ptr<3>, i32, i32")

    def load_box(self, to, map, mbarrier, at):
        box = ", ".join(self.const(x) for x in at)
        self.emit(f"nvvm.cp.async.bulk.tensor.shared.cluster.global {to}, {map}, {mbarrier}, "
                  f"box[{box}] {{isCTAOnly = true}} : !llvm.ptr<3>, !llvm.ptr")

    def store_box(self, map, source, at):
        box = ", ".join(self.const(x) for x in at)
        self.emit(f"nvvm.cp.async.bulk.tensor.global.shared.cta {map}, {source}, "
                  f"box[{box}] : !llvm.ptr, !llvm.ptr<3>")

    def commit(self):
        self.emit("nvvm.cp.async.bulk.commit.group")

    def wait_stores(self, pending=0, read=True):
        self.emit(f"nvvm.cp.async.bulk.wait_group {pending}" + (" {read}" if read else ""))

    def load(self, pointer, type="i32", index=None, space=1):
        if index is not None:
            pointer = self.element(pointer, index, type, space)
        return self.op(f"llvm.load {pointer} : !llvm.ptr<{space}> -> {type}")

    def store(self, value, pointer, type="i32", index=None, space=1):
        if index is not None:
            pointer = self.element(pointer, index, type, space)
        self.emit(f"llvm.store {value}, {pointer} : {type}, !llvm.ptr<{space}>")

    def element(self, pointer, index, type, space=1):
        p = f"!llvm.ptr<{space}>"
        return self.op(f"llvm.getelementptr {pointer}[{self.const(index)}] : ({p}, i32) -> {p}, {type}")

    # wgmma.
    def descriptor(self, address, leading, stride, span, base=0):
        """PTX ISA, "Matrix Descriptor Format"; `span` of the swizzle in bytes,
        `base` the base offset."""
        mode = {0: 0, 128: 1, 64: 2, 32: 3}[span]
        bits = mode << 62 | base << 49 | (stride >> 4) << 32 | (leading >> 4) << 16
        bits -= (bits >> 63) << 64
        low = self.op(f"llvm.ptrtoint {address} : !llvm.ptr<3> to i32")
        low = self.bin("lshr", self.bin("and", low, 0x3FFFF), 4)
        low = self.op(f"llvm.zext {low} : i32 to i64")
        return self.bin("or", low, bits, "i64")

    def wgmma(self, n, b, b_steps, a=None, a_steps=None, registers=None, c=None,
              element="bf16", transpose_b=False, a_element=None):
        """Returns the n / 8 result vectors."""
        types = ", ".join(["vector<4xf32>"] * (n // 8))
        text = ""
        if c:
            text += f"c({', '.join(c)} : {types}) "
        if registers:
            words = ", ".join(["vector<1xi32>"] * len(registers))
            text += f"a({', '.join(registers)} : {words}) "
        if a:
            text += f"a_desc({a}) "
        steps = lambda x: f"array<i64: {', '.join(map(str, x))}>" if x else "array<i64>"
        text += (f"b({b}) {{a_steps = {steps(a_steps)}, b_steps = {steps(b_steps)}, "
                 f"element = {element}, n = {n} : i64{', transpose_b' if transpose_b else ''}"
                 f"{', a_element = ' + a_element if a_element else ''}}} : {types}")
        return self.many("kvbuffer.wgmma " + text, n // 8)

    def many(self, text, n):
        self.count += 1
        self.emit(f"%v{self.count}:{n} = {text}")
        return [f"%v{self.count}#{i}" for i in range(n)]

    def wgmma_wait(self, values, pending=0):
        types = ", ".join(["vector<4xf32>"] * len(values))
        return self.many(f"kvbuffer.wgmma_wait {', '.join(values)} {{pending = {pending} : i64}} : {types}",
                         len(values))

    def store_product(self, values, out, n):
        """Row-major, PTX ISA "Register Fragments for wgmma.mma_async.m64nNk16"."""
        warp = self.bin("and", self.warp, 3)
        row = self.bin("add", self.bin("lshr", self.lane, 2), self.bin("mul", warp, 16))
        col = self.bin("mul", self.bin("and", self.lane, 3), 2)
        first = self.bin("add", self.bin("mul", row, n), col)
        for i in range(n // 2):
            offset = 8 * n * (i // 2 % 2) + 8 * (i // 4) + i % 2
            x = self.op(f"llvm.extractelement {values[i // 4]}[{self.const(i % 4)} : i32] : vector<4xf32>")
            self.store(x, out, "f32", self.bin("add", first, offset))

    def text(self):
        return (f"""module {{
  llvm.mlir.global external @smem() {{addr_space = 3 : i32, alignment = 1024 : i64}} : !llvm.array<0 x i8>
  llvm.func @kernel({', '.join(self.params)}) attributes {{nvvm.kernel{self.attributes}}} {{
""" + "\n".join(self.lines) + "\n    llvm.return\n  }\n}\n")


class Runner:
    """Runs kernels with the test tool."""

    def __init__(self, argv):
        self.tool, self.path, *self.options = argv

    def run(self, kernel, args, print_arg=None, options=(), grid=1):
        """(exit code, numbers of the printed argument, messages)."""
        with open(self.path, "w") as f:
            f.write(kernel.text())
        command = [self.tool, self.path, *self.options, *options, f"--block={kernel.threads}",
                   f"--grid={grid}", f"--shared={kernel.shared}"] + [f"--arg={a}" for a in args]
        if print_arg is not None:
            command.append(f"--print={print_arg}")
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 1), (done.returncode, done.stderr)
        numbers = []
        if print_arg is not None:
            numbers = [float(x) for x in done.stdout.split(":", 1)[1].split()]
        return done.returncode, numbers, done.stderr

    def good(self, kernel, args, print_arg, options=()):
        code, numbers, messages = self.run(kernel, args, print_arg, options)
        assert code == 0, messages
        return numbers

    def bad(self, kernel, args, *patterns, options=()):
        """The run fails, and each pattern is found in its messages, in order."""
        code, _, messages = self.run(kernel, args, options=options)
        assert code == 1, f"no fault; expected {patterns}"
        rest = messages
        for pattern in patterns:
            found = re.search(pattern, rest)
            assert found, f"no '{pattern}' in\n{messages}"
            rest = rest[found.end():]
        return messages
