# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partial results of attention merged by their log-sum-exps, by a kernel."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from . import _kernels, _ops
from ._attention import Tensor, require_rank, require_shape, require_type, shape_of

#: Threads of a block.
_THREADS = 256

_SOURCE = """\
!in = memref<?x?x?x?x{size}x{dtype}, strided<[?, ?, ?, ?, 1]>>
!lses = memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>
!out = memref<?x?x?x{size}x{out}, strided<[?, ?, ?, 1]>>
!lse = memref<?x?x?xf32, strided<[?, ?, 1]>>
!row = vector<{width}xf32>
gpu.module @merge_module {{
  gpu.func @merge(%outs: !in {{kvbuffer.name = "outs", kvbuffer.shape = ["parts", "batch", "rows", "heads", {size}], kvbuffer.access = "read"}},
                  %lses: !lses {{kvbuffer.name = "lses", kvbuffer.shape = ["parts", "batch", "heads", "rows"], kvbuffer.access = "read"}},
                  %o: !out {{kvbuffer.name = "o", kvbuffer.shape = ["batch", "rows", "heads", {size}], kvbuffer.access = "write"}},
                  %lse: !lse {{kvbuffer.name = "lse", kvbuffer.shape = ["batch", "heads", "rows"], kvbuffer.access = "write"}})
      kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>, kvbuffer.phase = #kvbuffer.phase<thread>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(product(batch, rows, heads), {rows})>, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %lanes = arith.constant {lanes} : index
    %each = arith.constant {rows} : index
    %width = arith.constant {width} : index
    %log2e = arith.constant 1.44269504 : f32
    %ln2 = arith.constant 0.693147182 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %none = arith.constant dense<0.0> : !row
    %parts = memref.dim %outs, %c0 : !in
    %batch = memref.dim %outs, %c1 : !in
    %rows = memref.dim %outs, %c2 : !in
    %heads = memref.dim %outs, %c3 : !in
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %own = arith.divui %thread, %lanes : index
    %lane = arith.remui %thread, %lanes : index
    %col = arith.muli %lane, %width : index
    %first = arith.muli %block, %each : index
    %line = arith.addi %first, %own : index
    %per = arith.muli %rows, %heads : index
    %all = arith.muli %batch, %per : index
    %exists = arith.cmpi ult, %line, %all : index
    %fits = arith.cmpi ult, %own, %each : index
    %active = arith.andi %exists, %fits : i1
    scf.if %active {{
      // Heads are next to each other, so lines are, too.
      %head = arith.remui %line, %heads : index
      %token = arith.divui %line, %heads : index
      %row = arith.remui %token, %rows : index
      %b = arith.divui %token, %rows : index
      %max = scf.for %p = %c0 to %parts step %c1 iter_args(%m = %lowest) -> (f32) {{
        %s = memref.load %lses[%p, %b, %head, %row] : !lses
        %more = arith.maximumf %m, %s : f32
        scf.yield %more : f32
      }}
      // A row without a key has no largest one to be measured by.
      %empty = arith.cmpf oeq, %max, %lowest : f32
      %base = arith.select %empty, %zero, %max : f32
      %sum, %acc = scf.for %p = %c0 to %parts step %c1
          iter_args(%l = %zero, %a = %none) -> (f32, !row) {{
        %s = memref.load %lses[%p, %b, %head, %row] : !lses
        // Of an infinite one, as sinks make it, nothing is left by a difference.
        %largest = arith.cmpf oeq, %s, %base : f32
        %apart = arith.subf %s, %base : f32
        %from = arith.select %largest, %zero, %apart : f32
        %power = arith.mulf %from, %log2e : f32
        %weight = math.exp2 %power : f32
        // What has no key counts nothing, whatever is there.
        %nothing = arith.cmpf oeq, %s, %lowest : f32
        %x = scf.if %nothing -> (!row) {{
          scf.yield %none : !row
        }} else {{
          %stored = vector.load %outs[%p, %b, %row, %head, %col] {{alignment = {in_bytes} : i64}} : !in, vector<{width}x{dtype}>
          {widen}
          scf.yield %wide : !row
        }}
        %weights = vector.broadcast %weight : f32 to !row
        %a1 = math.fma %x, %weights, %a : !row
        %l1 = arith.addf %l, %weight : f32
        scf.yield %l1, %a1 : f32, !row
      }}
      %some = arith.select %empty, %one, %sum : f32
      %share = arith.divf %one, %some : f32
      %shares = vector.broadcast %share : f32 to !row
      %result = arith.mulf %acc, %shares : !row
      {narrow}
      vector.store %rounded, %o[%b, %row, %head, %col] {{alignment = {out_bytes} : i64}} : !out, vector<{width}x{out}>
      %leads = arith.cmpi eq, %lane, %c0 : index
      scf.if %leads {{
        %log2 = math.log2 %some : f32
        %log = arith.mulf %log2, %ln2 : f32
        %total = arith.addf %max, %log : f32
        memref.store %total, %lse[%b, %head, %row] : !lse
      }}
    }}
    gpu.return
  }}
}}
"""


@dataclasses.dataclass(frozen=True)
class MergeProblem:
    """Such a kernel: a thread has ``width`` elements of a row of ``size``."""

    size: int
    dtype: str
    out: str
    width: int

    def source(self) -> str:
        """The program in MLIR: of threads, as its only products are by numbers. Its
        tensors are outs, lses, o and lse."""
        lanes = self.size // self.width
        bits = {"f32": 32, "f16": 16, "bf16": 16}

        small = f"vector<{self.width}x{{}}>".format
        widen = (f"%wide = arith.extf %stored : {small(self.dtype)} to !row"
                 if self.dtype != "f32" else
                 "%wide = arith.addf %stored, %none : !row")
        narrow = (f"%rounded = arith.truncf %result : !row to {small(self.out)}"
                  if self.out != "f32" else
                  "%rounded = arith.addf %result, %none : !row")
        return _SOURCE.format(
            size=self.size, dtype=self.dtype, out=self.out, width=self.width,
            lanes=lanes, rows=_THREADS // lanes, threads=_THREADS, widen=widen,
            narrow=narrow, in_bytes=self.width * bits[self.dtype] // 8,
            out_bytes=self.width * bits[self.out] // 8)


def _width(ops, size, tensors):
    """The most elements, up to 16 bytes of the wider type, that a lane loads at
    once; all rows begin at multiples of them."""
    most = max({"f32": 4}.get(ops.dtype(x), 2) for x in tensors)
    width = 16 // most
    while size % width or any(
            not ops.is_aligned(x, width * {"f32": 4}.get(ops.dtype(x), 2))
            or any(n % width for n in ops.strides(x)[:-1]) for x in tensors):
        width //= 2
    return width


def _stacked(name, x):
    """A sequence of tensors as one."""
    if not isinstance(x, (list, tuple)):
        return x
    torch = sys.modules.get("torch")
    if not x:
        raise ValueError(f"{name} is empty; expected a tensor with no part, whose "
                         "other dimensions say what the result is")
    if torch is not None and isinstance(x[0], torch.Tensor):
        return torch.stack(list(x))
    return _ops.of(x[0]).np.stack(list(x))


def merge_states(outs: Tensor | Sequence[Tensor], lses: Tensor | Sequence[Tensor],
                 *, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Attention over all keys, of results over parts of them.

    ``outs`` [parts, batch, rows, H, D] or [parts, rows, H, D] (float32, bfloat16 or
    float16) and ``lses`` [parts, batch, H, rows] or [parts, H, rows] (float32), as
    attention functions return them, stacked or as lists, which are stacked. Any
    number of parts, none too; one whose lse is -inf counts nothing, whatever its
    result holds, and beside one whose lse is inf no other does. Returns (out, in the
    type of outs or written to ``out``, of any of these types; lse, float32): lse =
    log sum exp(lse_i), out = sum exp(lse_i - lse) out_i, in float32. Where no part
    has a key: 0 and -inf.

    One kernel, which the host does not wait for."""
    outs, lses = _stacked("outs", outs), _stacked("lses", lses)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(outs, torch.Tensor):
        from . import _torch_state
        lost = _torch_state.wants_derivatives(outs, lses, out)
        if lost:
            raise NotImplementedError(f"kvbuf.merge_states {lost}")
        if _torch_state.is_operator("kvbuf.merge_states", outs, lses, out):
            from . import _merge_operator
            return _merge_operator.call(outs, lses, out)
    ops = _ops.of(outs, lses)
    ragged = len(shape_of(outs)) == 4
    require_rank("outs", outs, 4 if ragged else 5,
                 "(parts, batch, rows, heads, head size) or these without batch")
    kind = require_type(ops, "outs", outs, "f32", "bf16", "f16")
    require_type(ops, "lses", lses, "f32")
    parts, *lead, rows, heads, size = shape_of(outs)
    require_shape("lses", lses, (parts, *lead, heads, rows),
                  "those of outs, heads before rows")
    if out is None:
        out = ops.empty((*lead, rows, heads, size), kind, outs)
    else:
        ops.require_writable("out", out)
        require_shape("out", out, (*lead, rows, heads, size), "that of a part")
        require_type(ops, "out", out, "f32", "bf16", "f16")
        if ops.strides(out)[-1] != 1:
            raise ValueError("out has columns that do not lie side by side")
    lse = ops.empty((*lead, heads, rows), "f32", outs)
    result = out, lse
    if 0 in shape_of(out):
        return result
    made = result
    if ragged:
        outs, lses = outs[:, None], lses[:, None]
        made = ops.with_batch(out), ops.with_batch(lse)
    outs, lses = ops.rows_contiguous(outs), ops.rows_contiguous(lses)
    if parts == 0:  # no memory to point to
        outs, lses = (ops.full((1, *shape_of(x)[1:]), value, ops.dtype(x), out)
                      for x, value in ((outs, 0), (lses, float("-inf"))))
    width = _width(ops, size, (outs, made[0]))
    if size // width > _THREADS:
        raise NotImplementedError(
            f"outs has a head size of {size}; expected {_THREADS * width} or less")
    problem = MergeProblem(size, kind, ops.dtype(out), width)
    name = ops.device_name(outs)
    emulated = name == "emulator"
    kernel = _kernels.find(problem, _kernels.chip_on(name), None, emulated)
    tensors = {"outs": outs, "lses": lses, "o": made[0], "lse": made[1]}
    tensors = {n: ops.detach(x) for n, x in tensors.items()}
    written = ops.launch(kernel, tensors, {}, list(made), name)
    if not ops.frozen:
        return result
    # What was made of the outputs are copies of JAX's, or arrays to come.
    return tuple(x[0] if ragged else x for x in written)


def flash_attn_combine(out_partial: Tensor, lse_partial: Tensor,
                       out: Tensor | None = None, out_dtype=None
                       ) -> tuple[Tensor, Tensor]:
    """flash-attn 3's: out_partial (splits, batch, rows, heads, head size) and
    lse_partial (splits, batch, rows, heads), float32. Returns (out, of ``out_dtype``
    or as out_partial, or ``out`` itself; softmax_lse (batch, rows, heads))."""
    require_rank("lse_partial", lse_partial, 4, "(splits, batch, rows, heads)")
    require_rank("out_partial", out_partial, 5,
                 "(splits, batch, rows, heads, head size)")
    if out is None and out_dtype is not None:
        torch = sys.modules["torch"]
        out = torch.empty(tuple(out_partial.shape[1:]), dtype=out_dtype,
                          device=out_partial.device)
    elif out_dtype is not None and out.dtype != out_dtype:
        raise ValueError(f"out has type {out.dtype}, and out_dtype is {out_dtype}; "
                         "expected one of the two")
    out, lse = merge_states(out_partial, lse_partial.swapaxes(-1, -2), out=out)
    return out, lse.swapaxes(-1, -2)
