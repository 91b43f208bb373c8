"""A wave of 64 lanes on the emulator: what the AMD tests share.

A test writes the body of a kernel whose buffers hold, for each register r and
lane l, the word 64 r + l; %t is the lane, %sh the start of LDS.
"""
import subprocess


def load_words(pointer, count):
    """%w<pointer>_<r> = register r of a buffer."""
    return "".join(f"""
    %c{pointer}_{r} = llvm.mlir.constant({64 * r} : i32) : i32
    %i{pointer}_{r} = llvm.add %t, %c{pointer}_{r} : i32
    %a{pointer}_{r} = llvm.getelementptr %p{pointer}[%i{pointer}_{r}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %w{pointer}_{r} = llvm.load %a{pointer}_{r} : !llvm.ptr<1> -> i32""" for r in range(count))


def store_words(pointer, values, type="i32"):
    """Register r of a buffer = values[r]."""
    return "".join(f"""
    %sc{r} = llvm.mlir.constant({64 * r} : i32) : i32
    %si{r} = llvm.add %t, %sc{r} : i32
    %sa{r} = llvm.getelementptr %p{pointer}[%si{r}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store {v}, %sa{r} : {type}, !llvm.ptr<1>""" for r, v in enumerate(values))


def join(name, words, type):
    """%<name> = the words as one vector of `type`."""
    n = len(words)
    vector, text = f"vector<{n}xi32>", ""
    text += f"\n    %{name}_0 = llvm.mlir.undef : {vector}"
    for i, w in enumerate(words):
        text += f"""
    %{name}_k{i} = llvm.mlir.constant({i} : i32) : i32
    %{name}_{i + 1} = llvm.insertelement {w}, %{name}_{i}[%{name}_k{i} : i32] : {vector}"""
    return text + f"\n    %{name} = llvm.bitcast %{name}_{n} : {vector} to {type}"


def split(name, value, count, type, element="i32"):
    """%<name>_<i> = element i of a value, seen as `count` of `element`."""
    vector = f"vector<{count}x{element}>"
    text = f"\n    %{name} = llvm.bitcast {value} : {type} to {vector}"
    for i in range(count):
        text += f"""
    %{name}_k{i} = llvm.mlir.constant({i} : i32) : i32
    %{name}_{i} = llvm.extractelement %{name}[%{name}_k{i} : i32] : {vector}"""
    return text, [f"%{name}_{i}" for i in range(count)]


class Wave:
    def __init__(self, tool, path, options):
        self.tool, self.path, self.options = tool, path, options

    def module(self, body, pointers, chip, lds):
        params = ", ".join(f"%p{i}: !llvm.ptr<1>" for i in range(pointers))
        return f"""module attributes {{kvbuffer.target = "{chip}"}} {{
  llvm.mlir.global internal @lds() {{addr_space = 3 : i32, alignment = 1024 : i64}} : !llvm.array<{lds} x i8>
  llvm.func @kernel({params}) attributes {{rocdl.kernel}} {{
    %t = rocdl.workitem.id.x : i32
    %sh = llvm.mlir.addressof @lds : !llvm.ptr<3>{body}
    llvm.return
  }}
}}
"""

    def start(self, body, args, chip="gfx950", more=(), lds=8192, waves=1):
        """Runs a kernel; the process, with its output as text."""
        with open(self.path, "w") as f:
            f.write(self.module(body, len(args), chip, lds))
        command = [self.tool, self.path, *self.options, f"--block={64 * waves}", *more]
        command += [f"--arg={a}" for a in args] + [f"--print={len(args) - 1}"]
        return subprocess.run(command, capture_output=True, text=True)

    def run(self, body, args, chip="gfx950"):
        """The numbers of the last buffer."""
        done = self.start(body, args, chip)
        assert done.returncode == 0, done.stderr
        return [float(x) for x in done.stdout.split(":")[1].split()]


def listed(type, numbers):
    numbers = list(numbers)
    return f"buf:{type}:{len(numbers)}:list=" + "/".join(map(str, numbers))
