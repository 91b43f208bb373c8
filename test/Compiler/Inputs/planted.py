"""A kernel and a function that it calls, with machine code planted in both by inline
assembly, which LLVM looks for no hazards in and no pass looks into."""

import subprocess
import tempfile

MODULE = """
module attributes {kvbuffer.target = "CHIP"} {
  gpu.module @kernels {
    llvm.func @called(%o: !llvm.ptr<1>, %n: i32) attributes {passthrough = ["noinline"]} {
      llvm.inline_asm has_side_effects "CALLED", "v,v" %o, %n : (!llvm.ptr<1>, i32) -> ()
      llvm.return
    }
    llvm.func @planted(%o: !llvm.ptr<1>, %n: i32) attributes {
        gpu.kernel, rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 64, 1, 1>,
        kvbuffer.phase = #kvbuffer.phase<target>,
        kvbuffer.kernel = #kvbuffer.launch<
          block = [64, 1, 1], grid = [1, 1, 1], dynamic_shared_bytes = 0,
          args = [<pointer "o">, <size n>]>,
        kvbuffer.tensors = [#kvbuffer.tensor<"o" : i32[n], write>]} {
BODY
      llvm.call @called(%o, %n) : (!llvm.ptr<1>, i32) -> ()
      llvm.return
    }
  }
}
"""


def line_of(function):
    """The line in which a function stands, `planted` or `called`."""
    return 1 + MODULE[:MODULE.index(f"llvm.func @{function}")].count("\n")


def plant(place, value="%n"):
    """An op of the body that `compiled` gives the instructions of a place."""
    return (f'llvm.inline_asm has_side_effects "{place}", "v,v" %o, {value} : '
            '(!llvm.ptr<1>, i32) -> ()')


def compiled(chip, body, plants):
    """Compiles the kernel with a body and lists of instructions at its places."""
    text = MODULE.replace("CHIP", chip).replace("BODY", body)
    for place, lines in plants.items():
        text = text.replace(f'"{place}"', '"%s"' % "\\0A".join(lines))
    with tempfile.NamedTemporaryFile(suffix=".kvbuf") as artifact:
        return subprocess.run(
            ["kvbuf-compile", "-", "-o", artifact.name], input=text, text=True,
            capture_output=True, check=False)
