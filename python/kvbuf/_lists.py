# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of keys without the entries that are none, by a kernel."""

from __future__ import annotations

import dataclasses

from . import _kernels

#: Lanes that have a list, lists of a block, and entries of a lane at a time, whose
#: loads are on their way together; neighbouring lanes have neighbouring ones.
_LANES, _LISTS, _ENTRIES = 32, 4, 8

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
    %first = arith.muli %block, %each : index
    %list = arith.addi %first, %own : index
    %exists = arith.cmpi ult, %list, %all : index
    scf.if %exists {{
      %given = memref.load %counts[%list] : !counts
      %long = arith.index_cast %given : {index} to index
      %positive = arith.maxsi %long, %c0 : index
      %end = arith.minsi %positive, %most : index
      %last = arith.subi %end, %c1 : index
      %found = scf.for %from = %c0 to %end step %stride iter_args(%at = %zero) -> (i32) {{
        %own_from = arith.addi %from, %lane : index
        {loads}
        // Most lists have no gaps: then entries stay where they are.
        %gaps = kvbuffer.lane_any %no{last}
        %next = scf.if %gaps -> (i32) {{
          %behind0 = arith.addi %at, %zero : i32
          {moves}
          scf.yield %behind{entries} : i32
        }} else {{
          {stays}
          %all_of = arith.constant {stride} : i32
          %after = arith.addi %at, %all_of : i32
          scf.yield %after : i32
        }}
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

# An entry: its place, the row that it names, and whether that is a key. (What is below
# zero is large without a sign.) Behind the last one that one is read again.
_LOAD = """\
%c{i}_ = arith.constant {off} : index
        %place{i} = arith.addi %own_from, %c{i}_ : index
        %inside{i} = arith.cmpi ult, %place{i}, %end : index
        %near{i} = arith.minui %place{i}, %last : index
        %key{i} = memref.load %lists[%list, %near{i}] : !lists
        %id{i} = arith.index_cast %key{i} : {index} to index
        %known{i} = arith.cmpi ult, %id{i}, %tokens : index
        %is{i} = arith.andi %inside{i}, %known{i} : i1
        %not{i} = arith.xori %is{i}, %true : i1
        %no{i} = arith.ori %no{before}, %not{i} : i1
        {row}
        %named{i} = arith.index_cast %row{i} : index to {index}
"""

# Rows of pages that lie without gaps are numbered as keys are.
_ROW = """\
%page{i} = arith.divui %id{i}, %size : index
        %in{i} = arith.remui %id{i}, %size : index
        %start{i} = arith.muli %page{i}, %step : index
        %row{i} = arith.addi %start{i}, %in{i} : index"""
_SAME = "%row{i} = arith.addi %id{i}, %c0 : index"

_STAY = """\
%to{i} = arith.index_cast %at : i32 to index
          %mine{i} = arith.addi %to{i}, %lane : index
          %there{i} = arith.addi %mine{i}, %c{i}_ : index
          memref.store %named{i}, %table[%list, %there{i}] : !lists
"""

# A key's row goes behind those of the entries before it, of this and of other lanes.
_MOVE = """\
%one{i} = arith.extui %is{i} : i1 to i32
          %before{i}_0 = arith.addi %behind{i}, %zero : i32
          %sum{i}_0 = arith.addi %one{i}, %zero : i32
          {scan}
          scf.if %is{i} {{
            %to = arith.index_cast %before{i}_{last} : i32 to index
            memref.store %named{i}, %table[%list, %to] : !lists
          }}
          %behind{j} = arith.addi %behind{i}, %sum{i}_{last} : i32
"""

# Of twice as many lanes each time: how many have a key, and how many of those before
# this one.
_SCAN = """\
%d{i}_{n} = arith.constant {d} : i32
          %other{i}_{n}, %valid{i}_{n} = gpu.shuffle xor %sum{i}_{n}, %d{i}_{n}, %width : i32
          %bit{i}_{n} = arith.andi %number, %d{i}_{n} : i32
          %later{i}_{n} = arith.cmpi ne, %bit{i}_{n}, %zero : i32
          %more{i}_{n} = arith.select %later{i}_{n}, %other{i}_{n}, %zero : i32
          %before{i}_{m} = arith.addi %before{i}_{n}, %more{i}_{n} : i32
          %sum{i}_{m} = arith.addi %sum{i}_{n}, %other{i}_{n} : i32
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

        def joined(parts, indent):
            return (" " * indent).join(parts).rstrip()

        def moved(i):
            scan = joined((_SCAN.format(i=i, n=n, m=n + 1, d=1 << n)
                           for n in range(steps)), 10)
            return _MOVE.format(i=i, j=i + 1, last=steps, scan=scan)

        entries = range(_ENTRIES)
        row = _SAME if self.size == self.step else _ROW
        loads = ["%true = arith.constant true\n", "%no_ = arith.constant false\n"]
        loads += [_LOAD.format(i=i, off=i * _LANES, index=self.index,
                               before=i - 1 if i else "_", row=row.format(i=i))
                  for i in entries]
        return _SOURCE.format(
            index=self.index, size=self.size, step=self.step, lanes=_LANES,
            each=_LISTS, threads=_LANES * _LISTS, last=_ENTRIES - 1,
            entries=_ENTRIES, stride=_LANES * _ENTRIES, loads=joined(loads, 8),
            moves=joined((moved(i) for i in entries), 10),
            stays=joined((_STAY.format(i=i) for i in entries), 10))


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
