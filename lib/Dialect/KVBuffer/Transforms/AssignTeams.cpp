//===- AssignTeams.cpp - Split a kernel between movers and multipliers ----===//
//
// TeamPart of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TeamWriter.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"

namespace kvbuf {
#define GEN_PASS_DEF_ASSIGNTEAMS
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-assign-teams"

namespace {

/// The loads of fragments from slots of a buffer.
static SmallVector<FragmentLoadOp> loadsFrom(AllocOp buffer) {
  SmallVector<FragmentLoadOp> loads;
  for (Operation *user : buffer->getUsers()) {
    auto load = dyn_cast<DramLoadOp>(user);
    if (!load)
      continue;
    for (OpOperand &use : load.getToken().getUses())
      if (auto stage = dyn_cast<LdsStageOp>(use.getOwner()))
        for (Operation *read :
             stage.getStaged()[use.getOperandNumber()].getUsers())
          if (auto fragment = dyn_cast<FragmentLoadOp>(read))
            loads.push_back(fragment);
  }
  return loads;
}

/// The elements that products take of a buffer's, if they are wider; else null.
static Type widerElement(AllocOp buffer) {
  Type element = buffer.getBuffer().getType().getParams().getElementType();
  for (FragmentLoadOp load : loadsFrom(buffer))
    if (Type wide = load.getFragment().getType().getElementType();
        wide != element)
      return wide;
  return nullptr;
}

/// Whether products contract rows of a buffer whose elements are bytes, which a
/// group of warps reads turned.
static bool isTurnedForProducts(AllocOp buffer, const TargetInfo &target) {
  Type element = buffer.getBuffer().getType().getParams().getElementType();
  return target.turnsBytesForGroups() && element.getIntOrFloatBitWidth() == 8 &&
         llvm::any_of(loadsFrom(buffer), [](FragmentLoadOp load) {
           return llvm::any_of(load->getUsers(), [&](Operation *user) {
             auto product = dyn_cast<MmaOp>(user);
             return product && product.getB() == load.getFragment() &&
                    !product.getTransposeB();
           });
         });
}

/// Whether products contract rows of a buffer, and nothing else of it.
static bool contractsRows(AllocOp buffer) {
  SmallVector<FragmentLoadOp> loads = loadsFrom(buffer);
  return !loads.empty() && llvm::all_of(loads, [](FragmentLoadOp load) {
    return load.contractsRows();
  });
}

/// The parameters of a buffer that so many warps read, perhaps with other
/// elements, in so many slots; they lie as a chip's matrix unit reads them,
/// whose product contracts rows (`byRows`) or columns.
static KVBufferAttr readBy(KVBufferAttr params, bool byRows, int64_t warps,
                           Type element, int64_t slots, ScheduleAttr schedule,
                           const TargetInfo &target,
                           Dimension order = Dimension::Rows) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Swizzle swizzle = target.swizzle(
      *target.instructionFor(schedule.getMmaShape(byRows ? ProductKind::Values
                                                         : ProductKind::Scores),
                             elementName(element)),
      params.getBK() * bytes, bytes, /*transposed=*/!byRows,
      /*direct=*/true);
  return KVBufferAttr::get(params.getContext(), params.getOperand(), element,
                           params.getPolicy(), params.getMmaShape(),
                           swizzle.movesVectors() && order == Dimension::Rows
                               ? swizzleList(swizzle)
                               : SmallVector<int64_t>(),
                           params.getBN(), params.getWN(), params.getBK(),
                           params.getNumThreads() ? warps * target.waveSize : 0,
                           params.getDepth(), params.getKvNumHeads(),
                           params.getFullKv(), params.getCacheDepth(),
                           params.getHeadDimOffset(), params.getRegChunkDepth(),
                           params.getSmemDepth(), slots, params.getWarpSize(),
                           order, params.getOpen());
}

/// Makes the ring of a channel's buffer: from the producers to the consumers,
/// or two, where the wideners stand between them.
static void makeRings(ImplicitLocOpBuilder &b, TeamChannel &channel,
                      ScheduleAttr schedule, const TargetInfo &target,
                      StringRef producers, StringRef wideners,
                      StringRef consumers) {
  b.setLoc(channel.buffer.getLoc());
  auto named = [&](StringRef name) {
    return b.getArrayAttr(FlatSymbolRefAttr::get(b.getContext(), name));
  };
  int64_t widens = schedule.getMovingTeam()->widens.warps;
  TypedValue<BufferType> buffer = channel.buffer.getBuffer();
  KVBufferAttr params = buffer.getType().getParams();
  Type wide = widens ? widerElement(channel.buffer) : Type();
  Dimension order = Dimension::Rows;
  if (widens && !wide && isTurnedForProducts(channel.buffer, target)) {
    wide = params.getElementType();
    order = Dimension::Cols;
  }
  if (!wide) {
    channel.value = RingOp::create(b, buffer, producers, named(consumers),
                                   /*shared=*/false);
    return;
  }
  bool byRows = contractsRows(channel.buffer);
  buffer.setType(BufferType::get(
      b.getContext(), readBy(params, byRows, widens, params.getElementType(),
                             params.getStages(), schedule, target)));
  channel.narrow =
      RingOp::create(b, buffer, producers, named(wideners), /*shared=*/false);
  auto alloc = AllocOp::create(
      b,
      BufferType::get(b.getContext(),
                      readBy(params, byRows, schedule.getWarps(), wide,
                             std::max(params.getStages(), schedule.getStages()),
                             schedule, target, order)),
      channel.buffer.getLabel().value_or(""));
  channel.value = RingOp::create(b, alloc.getBuffer(), wideners,
                                 named(consumers), /*shared=*/false);
}

/// The ring of an operand that is one value: rows enough for the warps that put
/// it, of which products read as many as it has.
static Value constantRing(ImplicitLocOpBuilder &b, FragmentFillOp fill,
                          int64_t warps, StringRef from, ArrayAttr to,
                          const TargetInfo &target) {
  FragmentType type = fill.getFragment().getType();
  Type element = type.getElementType();
  const MatrixInstruction &mma =
      target.matrixInstructionsFor(elementName(element)).front();
  int64_t rows = mma.m * warps, cols = type.getCols(),
          bytes = element.getIntOrFloatBitWidth() / 8;
  Swizzle swizzle = target.swizzle(mma, cols * bytes, bytes,
                                   /*transposed=*/true, /*direct=*/true);
  auto params = KVBufferAttr::get(
      b.getContext(), Operand::Any, element, Policy::DoubleBuffered,
      ArrayRef<int64_t>(),
      swizzle.movesVectors() ? swizzleList(swizzle) : SmallVector<int64_t>(),
      rows, /*WN=*/rows, /*BK=*/cols, /*num_threads=*/0, /*depth=*/cols,
      /*kv_num_heads=*/1, /*full_kv=*/true, /*cache_depth=*/cols,
      /*head_dim_offset=*/0, /*reg_chunk_depth=*/cols, /*smem_depth=*/cols,
      /*stages=*/1, /*warp_size=*/0, Dimension::Rows, /*open=*/0);
  auto alloc = AllocOp::create(b, BufferType::get(b.getContext(), params));
  return RingOp::create(b, alloc.getBuffer(), from, to, /*shared=*/false);
}

/// The teams' names.
constexpr StringLiteral kProducers = "producers", kConsumers = "consumers",
                        kWideners = "wideners";

ArrayAttr named(Builder &b, ArrayRef<StringRef> names) {
  SmallVector<Attribute> symbols;
  for (StringRef name : names)
    symbols.push_back(FlatSymbolRefAttr::get(b.getContext(), name));
  return b.getArrayAttr(symbols);
}

/// Whether tiles whose blocks of columns have slots of their own fill them from
/// the first to the last, one after the other, by which teams count fillings.
LogicalResult checkBlocks(gpu::GPUFuncOp kernel) {
  llvm::DenseMap<Value, DramLoadOp> before;
  WalkResult result = kernel.walk([&](DramLoadOp load) {
    auto buffer = load.getBuffer().getDefiningOp<AllocOp>();
    if (!buffer || fillsOfTile(buffer) == 1)
      return WalkResult::advance();
    DramLoadOp &last = before[load.getBuffer()];
    int64_t blocks = fillsOfTile(buffer);
    int64_t next = last ? (int64_t(last.getBlock()) + 1) % blocks : 0;
    bool goesOn = next == 0 || (last->getBlock() == load->getBlock() &&
                                last.getTile() == load.getTile());
    if (int64_t(load.getBlock()) != next || !goesOn) {
      load.emitOpError() << "loads block " << int64_t(load.getBlock())
                         << " of a tile; expected the blocks from 0 to "
                         << blocks - 1 << " of each, one after the other";
      return WalkResult::interrupt();
    }
    last = load;
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// What teams hand to each other.
struct Channels {
  SmallVector<TeamChannel> channels;
  SmallVector<TeamConstant> constants;
};

/// Makes the channels of a kernel at the beginning of its body: rings of the
/// buffers that are loaded, and a mailbox for numbers of tiles. Buffers and
/// channels live as long as the block.
Channels makeChannels(ImplicitLocOpBuilder &b, gpu::GPUFuncOp kernel,
                      ScheduleAttr schedule, const TargetInfo &target) {
  Block &body = kernel.getBody().front();
  SmallVector<AllocOp> buffers;
  bool counts = false;
  kernel.walk([&](Operation *op) {
    if (auto buffer = dyn_cast<AllocOp>(op))
      buffers.push_back(buffer);
    counts |= isa<NextTileOp>(op);
  });
  const WideningTeam &widens = schedule.getMovingTeam()->widens;
  ArrayAttr to = named(b, StringRef(kConsumers));
  Channels made;
  b.setInsertionPointToStart(&body);
  for (AllocOp op : buffers) {
    op->moveBefore(&body, b.getInsertionPoint());
    b.setInsertionPointAfter(op);
    if (llvm::any_of(op->getUsers(), llvm::IsaPred<DramLoadOp>))
      made.channels.push_back({op, Value(), Value()});
  }
  for (TeamChannel &channel : made.channels)
    makeRings(b, channel, schedule, target, kProducers, kWideners, kConsumers);
  b.setLoc(kernel.getLoc());
  if (widens.warps && target.turnsBytesForGroups())
    kernel.walk([&](FragmentFillOp fill) {
      if (llvm::any_of(fill->getUsers(), [&](Operation *user) {
            auto product = dyn_cast<MmaOp>(user);
            return product && product.getB() == fill.getFragment();
          }))
        made.constants.push_back(
            {fill, constantRing(b, fill, widens.warps, kWideners, to, target)});
    });
  // Two numbers in the box: the producers look one tile ahead.
  if (counts)
    made.channels.push_back(
        {AllocOp(),
         MailboxOp::create(b, MailboxType::get(b.getContext()), kProducers,
                           widens.warps ? named(b, {kConsumers, kWideners})
                                        : to,
                           /*slots=*/2,
                           /*shared=*/bool(kernel.getKnownClusterSize())),
         Value()});
  return made;
}

/// Moves what the block does together to where `b` inserts, with what it needs.
void moveShared(ImplicitLocOpBuilder &b, Block &body) {
  for (auto op : llvm::to_vector(body.getOps<NumberTilesOp>())) {
    llvm::SetVector<Operation *> needed;
    BackwardSliceOptions inBody;
    inBody.filter = [&](Operation *inner) {
      return inner->getBlock() == &body;
    };
    (void)getBackwardSlice(op.getOperation(), &needed, inBody);
    needed.insert(op);
    for (Operation *inner : needed) {
      Operation *here = &*b.getInsertionPoint();
      if (inner == here)
        b.setInsertionPointAfter(inner);
      else if (here->isBeforeInBlock(inner))
        inner->moveBefore(here);
    }
  }
}

struct AssignTeamsPass : kvbuf::impl::AssignTeamsBase<AssignTeamsPass> {
  using Base::Base;

  /// Writes each team's part of what stands after the channels, in place of it.
  static LogicalResult writeTeams(ImplicitLocOpBuilder &b, Block &body,
                                  Channels &made, ScheduleAttr schedule,
                                  int64_t groups, int64_t waveSize) {
    Location loc = b.getLoc();
    const MovingTeam *mover = schedule.getMovingTeam();
    const WideningTeam &widens = mover->widens;
    // Warps that multiply in groups begin with one.
    auto teams = TeamsOp::create(b);
    Block *members = b.createBlock(&teams.getBody());
    struct Member {
      TeamPart part;
      StringRef name;
      int64_t warps, registers;
    };
    for (const Member &member :
         {Member{TeamPart::Multiplies, kConsumers, schedule.getWarps(),
                 mover->otherRegisters},
          Member{TeamPart::Widens, kWideners, widens.warps, widens.registers},
          Member{TeamPart::Moves, kProducers, mover->warps,
                 mover->registers}}) {
      if (!member.warps)
        continue;
      b.setInsertionPointToEnd(members);
      auto team = TeamOp::create(b, member.name, member.warps, /*copies=*/1,
                                 /*BM=*/0, member.registers);
      b.createBlock(&team.getBody());
      TeamWriter writer(b, made.channels, made.constants, member.part, schedule,
                        groups, waveSize);
      writer.putConstants();
      // What stands before the teams, buffers and channels, stays.
      for (Operation *op = teams->getNextNode(), *end = body.getTerminator();
           op != end; op = op->getNextNode())
        if (failed(writer.writeOp(op)))
          return failure();
      if (member.part == TeamPart::Multiplies)
        writer.release();
      b.setLoc(loc);
    }
    while (teams->getNextNode() != body.getTerminator())
      body.getTerminator()->getPrevNode()->erase();
    IRRewriter rewriter(b.getContext());
    (void)runRegionDCE(rewriter, teams->getRegions());
    return success();
  }

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    const MovingTeam *mover = schedule ? schedule.getMovingTeam() : nullptr;
    if (!mover)
      return;
    // That of latent rows has divided itself.
    if (schedule.getStructure().dividesColumns())
      return;
    std::optional<TargetInfo> target = targetOf(kernel);
    if (!target || !target->hasMovingTeams()) {
      kernel.emitError() << "has producers; expected '"
                         << KVBufferDialect::kTargetAttr
                         << "' to be a chip that has rings, as "
                            "kvbuf-choose-schedule checks";
      return signalPassFailure();
    }
    // Where each warp multiplies by itself, all walk over the same keys.
    int64_t groups = target->warpsPerMatrixGroup()
                         ? schedule.getWarps() / target->warpsPerMatrixGroup()
                         : 1;
    Block &body = kernel.getBody().front();
    if (failed(checkBlocks(kernel)))
      return signalPassFailure();
    ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
    Channels made = makeChannels(b, kernel, schedule, *target);
    moveShared(b, body);
    if (failed(writeTeams(b, body, made, schedule, groups, target->waveSize)))
      return signalPassFailure();

    SmallVector<int32_t> size{
        int32_t(schedule.getStructure().blockWarps() * target->waveSize), 1, 1};
    kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(size));
    remark::passed(kernel.getLoc(),
                   remark::RemarkOpts::name("teams").category(DEBUG_TYPE))
        << std::to_string(mover->warps) << " warps move tiles, "
        << std::to_string(schedule.getWarps()) << " multiply in "
        << std::to_string(groups) << " group(s)";
  }
};
} // namespace
