"""Small kernels in LLVM's IR, in the forms that front ends of GPUs write.

A front end says how a kernel of its own begins, asks for its thread, meets the others of
its block, and gets at memory. What a kernel does is put together from that.
"""


class FrontEnd:
    """Collects the text of a module. A kernel has three arrays: `out`, which nothing has
    written, `numbers`, 0, 1, 2, ... for reading alone, and `flags`, zeros."""

    amd = False
    chip = "sm_90a"
    triple = "nvptx64-nvidia-cuda"
    convention = "ptx_kernel"
    attributes = '"nvvm.reqntid"="{threads}" "target-cpu"="sm_90a"'
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %numbers, ptr addrspace(1) %flags"
    # Whether the emulator gets MLIR of the target stage rather than LLVM's bitcode.
    mlir = False
    # Generic pointers to shared memory, or those of its own space.
    generic = False
    # The name of shared memory, and whether its size is the launch's.
    memory, dynamic = "scratch", False

    def __init__(self):
        self.functions, self.declarations, self.threads = [], {}, set()
        self.lines, self.count, self.label = [], 0, 0

    # Text.

    def line(self, text):
        self.lines.append("  " + text)

    def value(self, text):
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def binary(self, op, a, b, type="i32"):
        return self.value(f"{op} {type} {a}, {b}")

    def intrinsic(self, result, name, *arguments):
        """Calls one; arguments are a type and a value each."""
        types = ", ".join(a.rsplit(" ", 1)[0] for a in arguments)
        plain = types.replace(" immarg", "")
        self.declarations[name] = f"declare {result} @{name}({types})"
        given = [a.replace("immarg ", "") for a in arguments]
        del plain
        call = f"call {result} @{name}({', '.join(given)})"
        return self.line(call) if result == "void" else self.value(call)

    def asm(self, result, text, constraints, *arguments, effects=True):
        text = text.replace("\n", "\\0A\\09")
        call = (f"call {result} asm {'sideeffect ' if effects else ''}\"{text}\", "
                f"\"{constraints}\"({', '.join(arguments)})")
        return self.line(call) if result == "void" else self.value(call)

    def block(self, name):
        self.lines.append(f"{name}:")

    def when(self, condition, body):
        """Does something where a condition holds."""
        self.label += 1
        yes, end = f"then{self.label}", f"end{self.label}"
        self.line(f"br i1 {condition}, label %{yes}, label %{end}")
        self.block(yes)
        body()
        self.line(f"br label %{end}")
        self.block(end)

    def kernel(self, name, threads, body):
        self.lines = []
        self.count = self.label = 0
        self.begin()
        body(self)
        group = f"#{threads}"
        self.threads.add(threads)
        self.functions.append(f"define {self.convention} void @{name}({self.parameters}) "
                              f"{group} {{\nentry:\n" + "\n".join(self.lines)
                              + "\n  ret void\n}\n")

    def module(self):
        size = 0 if self.dynamic else 8192
        linkage = "external" if self.dynamic else "internal unnamed_addr"
        start = "" if self.dynamic else " undef"
        return "\n".join([
            f'target triple = "{self.triple}"',
            f"@{self.memory} = {linkage} addrspace(3) global [{size} x i8]{start}, align 1024",
            *self.declarations.values(), *self.functions,
            *(f"attributes #{n} = {{ {self.attributes.format(threads=n)} }}"
              for n in sorted(self.threads))])

    # What front ends write in ways of their own.

    def begin(self):
        pass

    def thread(self):
        return self.intrinsic("i32", "llvm.nvvm.read.ptx.sreg.tid.x")

    def place(self):
        """The block's number."""
        return self.intrinsic("i32", "llvm.nvvm.read.ptx.sreg.ctaid.x")

    def barrier(self):
        self.intrinsic("void", "llvm.nvvm.barrier.cta.sync.aligned.all", "i32 0")

    def array(self, name):
        return f"ptr addrspace(1) %{name}"

    def address(self, name, byte):
        wide = self.value(f"sext i32 {byte} to i64")
        return "ptr addrspace(1) " + self.value(
            f"getelementptr inbounds i8, {self.array(name)}, i64 {wide}")

    def load(self, name, byte):
        return self.value(f"load i32, {self.address(name, byte)}, align 4")

    def store(self, name, byte, value):
        self.line(f"store i32 {value}, {self.address(name, byte)}, align 4")

    def poll(self, name):
        return self.value(f'load atomic i32, {self.array(name)} syncscope("device") acquire, '
                          "align 4")

    def shared(self, byte):
        if not self.generic:
            return "ptr addrspace(3) " + self.value(
                f"getelementptr inbounds i8, ptr addrspace(3) @{self.memory}, i32 {byte}")
        wide = self.value(f"zext i32 {byte} to i64")
        return "ptr " + self.value(
            f"getelementptr inbounds i8, ptr addrspacecast (ptr addrspace(3) @{self.memory} to "
            f"ptr), i64 {wide}")

    def offset(self, byte=0):
        """An address of shared memory as 32 bits, for assembly."""
        return self.binary("add", f"ptrtoint (ptr addrspace(3) @{self.memory} to i32)", byte)

    def shared_load(self, byte):
        return self.value(f"load i32, {self.shared(byte)}, align 4")

    def shared_store(self, byte, value):
        self.line(f"store i32 {value}, {self.shared(byte)}, align 4")

    def trap(self):
        self.intrinsic("void", "llvm.trap")
        self.line("unreachable")
        self.label += 1
        self.block(f"never{self.label}")

    # NVIDIA's alone: copies in the background, mbarriers, warpgroups.

    def sync_warp(self):
        self.intrinsic("void", "llvm.nvvm.bar.warp.sync", "i32 -1")

    def copy(self, byte, wait):
        """Copies a word of `numbers` to the same place in shared memory."""
        source = self.address("numbers", byte)
        self.asm("void", "cp.async.ca.shared.global [$0], [$1], 0x4;", "r,l",
                 f"i32 {self.offset(byte)}", source)
        self.asm("void", "cp.async.commit_group;", "")
        if wait:
            self.asm("void", "cp.async.wait_group 0x0;", "")

    def named_barrier(self, number, threads):
        self.intrinsic("void", "llvm.nvvm.barrier.cta.sync.aligned.count", f"i32 {number}",
                       f"i32 {threads}")


class ClangCuda(FrontEnd):
    """clang's CUDA: generic pointers throughout."""

    generic = True
    parameters = "ptr noundef %out, ptr noundef readonly %numbers, ptr noundef %flags"

    def array(self, name):
        return f"ptr %{name}"

    def address(self, name, byte):
        wide = self.value(f"sext i32 {byte} to i64")
        return "ptr " + self.value(f"getelementptr inbounds i8, ptr %{name}, i64 {wide}")


class Mlir(FrontEnd):
    """What MLIR's lowering to NVVM makes of memrefs: descriptors."""

    parameters = ", ".join(f"ptr %{n}_base, ptr %{n}, i64 %{n}_at, i64 %{n}_size, i64 %{n}_step"
                           for n in ("out", "numbers", "flags"))

    def array(self, name):
        return f"ptr %{name}"

    def address(self, name, byte):
        pair = "{ ptr, ptr, i64, [1 x i64], [1 x i64] }"
        whole = self.value(f"insertvalue {pair} poison, ptr %{name}_base, 0")
        whole = self.value(f"insertvalue {pair} {whole}, ptr %{name}, 1")
        whole = self.value(f"insertvalue {pair} {whole}, i64 %{name}_at, 2")
        pointer = self.value(f"extractvalue {pair} {whole}, 1")
        wide = self.value(f"sext i32 {byte} to i64")
        return "ptr " + self.value(f"getelementptr i8, ptr {pointer}, i64 {wide}")


class TritonNvidia(FrontEnd):
    """Triton for NVIDIA: assembly behind predicates, one array of shared memory whose size
    is the launch's, two arrays more than the program has."""

    memory, dynamic = "global_smem", True
    parameters = (FrontEnd.parameters + ", ptr addrspace(1) readnone captures(none) %scratch"
                  ", ptr addrspace(1) readnone captures(none) %profile")

    def load(self, name, byte):
        return self.asm("i32", "mov.u32 $0, 0x0;\n@$2 ld.global.b32 { $0 }, [ $1 + 0 ];",
                        "=r,l,b", self.address(name, byte), "i1 true")

    def store(self, name, byte, value):
        self.asm("void", "@$2 st.global.b32 [ $1 + 0 ], { $0 };", "r,l,b", f"i32 {value}",
                 self.address(name, byte), "i1 true")

    def poll(self, name):
        return self.asm("i32", "ld.global.gpu.acquire.b32 $0, [ $1 + 0 ];".replace(
            "global.gpu.acquire", "acquire.gpu.global"), "=r,l", self.array(name))

    def shared_store(self, byte, value):
        self.asm("void", "@$2 st.shared.b32 [ $0 + 0 ], $1;", "r,r,b",
                 f"i32 {self.offset(byte)}", f"i32 {value}", "i1 true")

    def shared_load(self, byte):
        return self.asm("i32", "@$2 ld.shared.b32 $0, [ $1 + 0 ];", "=r,r,b",
                        f"i32 {self.offset(byte)}", "i1 true")

    def copy(self, byte, wait):
        source = self.address("numbers", byte)
        self.asm("void", "@$2 cp.async.ca.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x4;", "r,l,b",
                 f"i32 {self.offset(byte)}", source, "i1 true")
        self.intrinsic("void", "llvm.nvvm.cp.async.commit.group")
        if wait:
            self.intrinsic("void", "llvm.nvvm.cp.async.wait.group", "i32 immarg 0")

    def named_barrier(self, number, threads):
        self.asm("void", "barrier.sync $0, $1;", "r,r", f"i32 {number}", f"i32 {threads}")


class Amd(FrontEnd):
    """What AMD's front ends have in common."""

    amd = True
    chip = "gfx942"
    triple = "amdgcn-amd-amdhsa"
    convention = "amdgpu_kernel"
    attributes = '"amdgpu-flat-work-group-size"="{threads},{threads}" "target-cpu"="gfx942"'

    def thread(self):
        return self.intrinsic("i32", "llvm.amdgcn.workitem.id.x")

    def place(self):
        return self.intrinsic("i32", "llvm.amdgcn.workgroup.id.x")

    def barrier(self):
        self.line('fence syncscope("workgroup") release')
        self.intrinsic("void", "llvm.amdgcn.s.barrier")
        self.line('fence syncscope("workgroup") acquire')

    def poll(self, name):
        return self.value(f'load atomic i32, {self.array(name)} syncscope("agent") acquire, '
                          "align 4")

    def copy(self, byte, wait):
        # The wave's lanes land behind each other.
        self.intrinsic("void", "llvm.amdgcn.global.load.lds", self.address("numbers", byte),
                       f"ptr addrspace(3) @{self.memory}", "i32 immarg 4", "i32 immarg 0",
                       "i32 immarg 0")
        if wait:
            # vmcnt(0) alone.
            self.intrinsic("void", "llvm.amdgcn.s.waitcnt", "i32 immarg 3952")


class ClangHip(Amd):
    """clang's HIP: arguments as pointers to global memory, its own name for each."""

    parameters = ", ".join(f"ptr addrspace(1) noundef %{n}.coerce"
                           for n in ("out", "numbers", "flags"))

    def array(self, name):
        return f"ptr addrspace(1) %{name}.coerce"


class MlirAmd(Mlir, Amd):
    """What MLIR's lowering to ROCDL makes of memrefs."""

    thread, place, barrier, poll = Amd.thread, Amd.place, Amd.barrier, Amd.poll

    def address(self, name, byte):
        pointer = Mlir.address(self, name, byte)
        return "ptr addrspace(1) " + self.value(f"addrspacecast {pointer} to ptr addrspace(1)")


class TritonAmd(Amd):
    """Triton for AMD: buffers, and one array of LDS whose size is the launch's."""

    memory, dynamic = "global_smem", True
    parameters = ("ptr addrspace(1) inreg %out, ptr addrspace(1) inreg %numbers, "
                  "ptr addrspace(1) inreg %flags, ptr addrspace(1) inreg readnone %scratch, "
                  "ptr addrspace(1) inreg readnone %profile")

    def buffer(self, name):
        return "ptr addrspace(8) " + self.intrinsic(
            "ptr addrspace(8)", "llvm.amdgcn.make.buffer.rsrc.p8.p1", self.array(name), "i16 0",
            "i64 2147483646", "i32 159744")

    def load(self, name, byte):
        return self.intrinsic("i32", "llvm.amdgcn.raw.ptr.buffer.load.i32", self.buffer(name),
                              f"i32 {byte}", "i32 0", "i32 immarg 0")

    def store(self, name, byte, value):
        self.intrinsic("void", "llvm.amdgcn.raw.ptr.buffer.store.i32", f"i32 {value}",
                       self.buffer(name), f"i32 {byte}", "i32 0", "i32 immarg 0")


class Single:
    """Words go to memory and come back as vectors of one element."""

    def one_load(self, pointer):
        v = self.value(f"load <1 x i32>, {pointer}, align 4")
        return self.value(f"extractelement <1 x i32> {v}, i64 0")

    def one_store(self, pointer, value):
        v = self.value(f"insertelement <1 x i32> poison, i32 {value}, i64 0")
        self.line(f"store <1 x i32> {v}, {pointer}, align 4")

    def shared(self, byte):
        wide = self.value(f"zext i32 {byte} to i64")
        return "ptr addrspace(3) " + self.value(
            f"getelementptr i8, ptr addrspace(3) @{self.memory}, i64 {wide}")

    def shared_load(self, byte):
        return self.one_load(self.shared(byte))

    def shared_store(self, byte, value):
        self.one_store(self.shared(byte), value)


class IreeNvidia(Single, FrontEnd):
    """IREE for NVIDIA: one array of shared memory whose size is the launch's."""

    memory, dynamic = "__dynamic_shared_memory__", True
    parameters = ", ".join(f"ptr addrspace(1) noalias noundef nonnull align 16 %{n}"
                           for n in ("out", "numbers", "flags"))

    def load(self, name, byte):
        return self.one_load(self.address(name, byte))

    def store(self, name, byte, value):
        self.one_store(self.address(name, byte), value)


class IreeAmd(Single, Amd):
    """IREE for AMD: pointers into buffers, and a triple of a later LLVM."""

    triple = "amdgpu9.42-amd-amdhsa"
    memory = "__shared_memory__"
    parameters = ", ".join(f"ptr addrspace(1) inreg noalias noundef nonnull align 16 %{n}"
                           for n in ("out", "numbers", "flags"))

    def pointer(self, name, byte):
        buffer = self.intrinsic(
            "ptr addrspace(7)", "llvm.amdgcn.make.buffer.rsrc.p7.p1", self.array(name), "i16 0",
            "i64 2147483646", "i32 159744")
        return "ptr addrspace(7) " + self.value(
            f"getelementptr i8, ptr addrspace(7) {buffer}, i32 {byte}")

    def load(self, name, byte):
        return self.one_load(self.pointer(name, byte))

    def store(self, name, byte, value):
        self.one_store(self.pointer(name, byte), value)


class KvbufNvidia(FrontEnd):
    """The project's own kernels: MLIR of the target stage, and nothing is forgiven."""

    mlir, kernel_attribute = True, "nvvm.kernel"


class KvbufAmd(Amd):
    """The same for AMD."""

    mlir, kernel_attribute = True, "rocdl.kernel"


FRONT_ENDS = {"clang CUDA": ClangCuda, "Triton NVIDIA": TritonNvidia, "MLIR NVVM": Mlir,
              "IREE NVIDIA": IreeNvidia, "kvbuf NVVM": KvbufNvidia, "clang HIP": ClangHip,
              "Triton AMD": TritonAmd, "MLIR ROCDL": MlirAmd, "IREE AMD": IreeAmd,
              "kvbuf ROCDL": KvbufAmd}
