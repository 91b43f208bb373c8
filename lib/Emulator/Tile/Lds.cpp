//===- Lds.cpp - Buffers, loads in flight and their rules -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lds.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
using namespace kvbuf::emu::tile;

/// "slot 1 of the k buffer".
static std::string slotName(AllocOp buffer, int64_t slot) {
  StringRef label = labelOf(buffer.getBuffer());
  return "slot " + std::to_string(slot) + " of the " + label.str() +
         (label.empty() ? "buffer" : " buffer");
}

unsigned Lds::allocate(AllocOp op) {
  // It lives as long as the block: in a loop it is the same each time.
  for (auto [id, buffer] : llvm::enumerate(buffers))
    if (buffer.op == op)
      return id;
  KVBufferAttr params = op.getBuffer().getType().getParams();
  Buffer &buffer = buffers.emplace_back();
  buffer.op = op;
  buffer.slots.resize(params.getStages());
  for (Slot &slot : buffer.slots)
    slot.data = Matrix(params.getBN(), params.getSmemCols());
  return buffers.size() - 1;
}

FailureOr<unsigned> Lds::load(DramLoadOp op, unsigned buffer,
                              std::optional<int64_t> named, const Tile *tile,
                              ErrorFn error) {
  int64_t count = buffers[buffer].slots.size();
  int64_t slot = named ? *named : buffers[buffer].fillings++ % count;
  Load &load = loads.emplace_back();
  load.op = op;
  load.buffer = buffer;
  load.slot = slot;
  load.empty = !tile;
  if (load.empty)
    return unsigned(loads.size() - 1);
  load.tile = *tile;
  AllocOp alloc = buffers[buffer].op;
  if (slot < 0 || slot >= count) {
    error() << "loads into " << slotName(alloc, slot) << ", which has "
            << count;
    return failure();
  }
  Slot &target = slotOf(load);
  if (target.newest >= 0 && !loads[target.newest].landed) {
    InFlightDiagnostic diag = error()
                              << "loads into " << slotName(alloc, slot)
                              << " while another load into it is in flight";
    diag.attachNote(loads[target.newest].op.getLoc())
        << "the other load is here";
    return failure();
  }
  if (target.lastRead && first() <= target.readAt) {
    InFlightDiagnostic diag = error() << "overwrites " << slotName(alloc, slot)
                                      << " while threads may still read it: ";
    if (staggered)
      diag << "halves of the block are one meeting apart, and fewer than two "
              "stand behind its last read";
    else
      diag << "no kvbuffer.lds_stage or kvbuffer.meet stands behind its last "
              "read";
    diag.attachNote(target.lastRead->getLoc()) << "the slot is read here";
    return failure();
  }
  target.newest = loads.size() - 1;
  return unsigned(loads.size() - 1);
}

LogicalResult Lds::stage(LdsStageOp op, ArrayRef<unsigned> tokens,
                         ErrorFn error) {
  uint64_t younger = op.getYounger().value_or(0);
  uint64_t landing = loads.size() - std::min<uint64_t>(younger, loads.size());
  for (; firstInFlight < landing; ++firstInFlight) {
    Load &load = loads[firstInFlight];
    load.landed = true;
    if (!load.empty)
      loadInto(load.op.getBuffer().getType().getParams(), load.tile,
               slotOf(load).data, load.op.getBlock());
  }
  for (unsigned token : tokens) {
    Load &load = loads[token];
    if (load.staged) {
      InFlightDiagnostic diag = error()
                                << "stages a token that is staged already";
      if (load.staged != op)
        diag.attachNote(load.staged.getLoc()) << "it was staged here";
      diag.attachNote(load.op.getLoc()) << "the token comes from here";
      return diag;
    }
    if (!load.landed && !load.empty) {
      InFlightDiagnostic diag =
          error() << "awaits a load that it leaves in flight: younger = "
                  << younger << ", but only " << loads.size() - 1 - token
                  << " loads were issued behind it";
      diag.attachNote(load.op.getLoc()) << "the awaited load is here";
      return diag;
    }
    load.staged = op;
  }
  meet();
  for (unsigned token : tokens)
    loads[token].readyAt = last();
  return success();
}

LogicalResult Lds::stagger(StaggerOp op, ErrorFn error) {
  if (op.getEnd() != bool(staggered))
    return error() << (op.getEnd() ? "ends a stagger that has not begun"
                                   : "staggers warps that are staggered");
  ++(op.getEnd() ? lower : upper);
  staggered = op.getEnd() ? StaggerOp() : op;
  return success();
}

FailureOr<const Matrix *> Lds::read(Operation *op, unsigned id, ErrorFn error) {
  Load &load = loads[id];
  if (load.empty) {
    InFlightDiagnostic diag =
        error()
        << "reads a slot that nothing filled: its load was predicated off";
    diag.attachNote(load.op.getLoc()) << "the load is here";
    return failure();
  }
  Slot &slot = slotOf(load);
  if (slot.newest != int64_t(id)) {
    InFlightDiagnostic diag =
        error() << "reads " << slotName(buffers[load.buffer].op, load.slot)
                << " after another load began to overwrite it";
    diag.attachNote(loads[slot.newest].op.getLoc()) << "the other load is here";
    return failure();
  }
  if (first() < load.readyAt) {
    InFlightDiagnostic diag =
        error() << "reads " << slotName(buffers[load.buffer].op, load.slot)
                << " before both halves of the block have awaited their parts "
                   "of it: they are one meeting apart, and none stands behind "
                   "the kvbuffer.lds_stage";
    diag.attachNote(load.staged.getLoc()) << "the load is awaited here";
    return failure();
  }
  slot.lastRead = op;
  slot.readAt = last();
  return &slot.data;
}

FailureOr<Matrix *> Lds::rewrite(Operation *op, unsigned id, ErrorFn error) {
  if (failed(read(op, id, error)))
    return failure();
  return &slotOf(loads[id]).data;
}

LogicalResult Lds::finish(TileContext &context, StringRef owner) {
  for (Load &load : llvm::drop_begin(loads, firstInFlight))
    if (!load.empty)
      return context.errorAt(load.op)
             << "is in flight when the " << owner
             << " ends: no kvbuffer.lds_stage awaits it";
  if (staggered)
    return context.errorAt(staggered)
           << "is without an end when the block ends";
  return success();
}
