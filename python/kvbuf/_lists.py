# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of keys without the entries that are none, by a kernel."""

from __future__ import annotations

import dataclasses

from . import _kernels

#: Lanes that have a list, lists of a block, and entries of a lane at a time, whose
#: loads are on their way together.
_LANES, _LISTS, _ENTRIES = 32, 4, 4

_SOURCE = """\
!lists = memref<?x?x{index}, strided<[?, 1]>>
!counts = memref<?x{index}>
!pages = memref<?x1x{index}, strided<[?, 1]>>
gpu.module @lists_module {{
  gpu.func @lists(%lists: !lists {{kvbuffer.name = "lists", kvbuffer.shape = ["lists", "most"], kvbuffer.access = "read"}},
                  %counts: !counts {{kvbuffer.name = "counts", kvbuffer.shape = ["lists"], kvbuffer.access = "read"}},
                  %pages: !pages {{kvbuffer.name = "pages", kvbuffer.shape = ["pages", 1], kvbuffer.access = "read"}},
                  %table: !lists {{kvbuffer.name = "table", kvbuffer.shape = ["lists", "most"], kvbuffer.access = "write"}},
                  %lengths: !counts {{kvbuffer.name = "lengths", kvbuffer.shape = ["lists"], kvbuffer.access = "write"}})
      kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>, kvbuffer.phase = #kvbuffer.phase<thread>,
                         kvbuffer.grid = [#kvbuffer.size<ceildiv(lists, {each})>, 1, 1]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %lanes = arith.constant {lanes} : index
    %entries = arith.constant {entries} : index
    %stride = arith.constant {stride} : index
    %each = arith.constant {each} : index
    %size = arith.constant {size} : index
    %step = arith.constant {step} : index
    %width = arith.constant {lanes} : i32
    %zero = arith.constant 0 : i32
    %none = arith.constant -1 : {index}
    %most = memref.dim %lists, %c1 : !lists
    %all = memref.dim %lists, %c0 : !lists
    %count = memref.dim %pages, %c0 : !pages
    %tokens = arith.muli %count, %size : index
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %own = arith.divui %thread, %lanes : index
    %lane = arith.remui %thread, %lanes : index
    %number = arith.index_cast %lane : index to i32
    %own_first = arith.muli %lane, %entries : index
    %first = arith.muli %block, %each : index
    %list = arith.addi %first, %own : index
    %exists = arith.cmpi ult, %list, %all : index
    scf.if %exists {{
      %given = memref.load %counts[%list] : !counts
      %long = arith.index_cast %given : {index} to index
      %positive = arith.maxsi %long, %c0 : index
      %end = arith.minsi %positive, %most : index
      %found = scf.for %from = %c0 to %end step %stride iter_args(%at = %zero) -> (i32) {{
        %own_from = arith.addi %from, %own_first : index
        {loads}
        {scan}
        %behind0 = arith.addi %at, %before{last} : i32
        {stores}
        %next = arith.addi %at, %sum{last} : i32
        scf.yield %next : i32
      }}
      %rest = arith.index_cast %found : i32 to index
      %tail = arith.addi %rest, %lane : index
      scf.for %place = %tail to %most step %lanes {{
        memref.store %none, %table[%list, %place] : !lists
      }}
      %leads = arith.cmpi eq, %lane, %c0 : index
      scf.if %leads {{
        %length = arith.index_cast %rest : index to {index}
        memref.store %length, %lengths[%list] : !counts
      }}
    }}
    gpu.return
  }}
}}
"""

# An entry: its place, what it names, and whether that is a key. (What is below zero
# is large without a sign.)
_LOAD = """\
%c{i}_ = arith.constant {i} : index
        %place{i} = arith.addi %own_from, %c{i}_ : index
        %inside{i} = arith.cmpi ult, %place{i}, %end : index
        %key{i} = scf.if %inside{i} -> ({index}) {{
          %entry = memref.load %lists[%list, %place{i}] : !lists
          scf.yield %entry : {index}
        }} else {{
          scf.yield %none : {index}
        }}
        %id{i} = arith.index_cast %key{i} : {index} to index
        %is{i} = arith.cmpi ult, %id{i}, %tokens : index
        %one{i} = arith.extui %is{i} : i1 to i32
"""

# A key's row, behind those of the entries before it.
_STORE = """\
scf.if %is{i} {{
          %page = arith.divui %id{i}, %size : index
          %in = arith.remui %id{i}, %size : index
          %start = arith.muli %page, %step : index
          %row = arith.addi %start, %in : index
          %named = arith.index_cast %row : index to {index}
          %to = arith.index_cast %behind{i} : i32 to index
          memref.store %named, %table[%list, %to] : !lists
        }}
        %behind{j} = arith.addi %behind{i}, %one{i} : i32
"""

# Of twice as many lanes each time: how many have a key, and how many of those before
# this one.
_SCAN = """\
%d{i} = arith.constant {d} : i32
        %other{i}, %there{i} = gpu.shuffle xor %sum{i}, %d{i}, %width : i32
        %bit{i} = arith.andi %number, %d{i} : i32
        %later{i} = arith.cmpi ne, %bit{i}, %zero : i32
        %more{i} = arith.select %later{i}, %other{i}, %zero : i32
        %before{j} = arith.addi %before{i}, %more{i} : i32
        %sum{j} = arith.addi %sum{i}, %other{i} : i32
"""


@dataclasses.dataclass(frozen=True)
class ListsProblem:
    """Such a kernel: key k of a list is row k // ``size`` * ``step`` + k % ``size``."""

    index: str
    size: int
    step: int

    def source(self) -> str:
        """The program in MLIR: of threads, as its only products are by numbers."""
        steps = _LANES.bit_length() - 1

        def joined(parts):
            return "        ".join(parts).rstrip()

        sums = ["%before0 = arith.constant 0 : i32\n",
                "%of0 = arith.addi %zero, %one0 : i32\n"]
        sums += [f"%of{i} = arith.addi %of{i - 1}, %one{i} : i32\n"
                 for i in range(1, _ENTRIES)]
        sums += [f"%sum0 = arith.addi %zero, %of{_ENTRIES - 1} : i32\n"]
        sums += [_SCAN.format(i=i, j=i + 1, d=1 << i) for i in range(steps)]
        return _SOURCE.format(
            index=self.index, size=self.size, step=self.step, lanes=_LANES,
            each=_LISTS, threads=_LANES * _LISTS, last=steps, entries=_ENTRIES,
            stride=_LANES * _ENTRIES, scan=joined(sums),
            loads=joined(_LOAD.format(i=i, index=self.index)
                         for i in range(_ENTRIES)),
            stores=joined(_STORE.format(i=i, j=i + 1, index=self.index)
                          for i in range(_ENTRIES)))


def without_gaps(ops, lists, counts, pages, size, step):
    """(table, lengths) of lists [lists, most]: of each the rows of its first ``counts``
    entries that are keys of ``pages`` pages of ``size`` tokens, in order; behind them
    -1, and their number. Pages begin ``step`` rows apart."""
    table, lengths = lists.new_empty(lists.shape), lists.new_empty(lists.shape[:1])
    if not table.numel():
        return table, lengths.zero_()
    problem = ListsProblem(ops.dtype(lists), size, step)
    name = ops.device_name(lists)
    emulated = name == "emulator"
    kernel = _kernels.find(problem, _kernels.chip_on(name), None, emulated)
    # Nothing is asked of pages but how many there are.
    many = lists.as_strided((pages, 1), (0, 1))
    tensors = {"lists": lists, "counts": counts, "pages": many, "table": table,
               "lengths": lengths}
    ops.launch(kernel, tensors, {}, [table, lengths], name)
    return table, lengths
