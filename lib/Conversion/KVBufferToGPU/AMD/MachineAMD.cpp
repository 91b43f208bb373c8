//===- MachineAMD.cpp - Movement on AMD's CDNA ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineAMD.h"
#include "KVBufferToGPU/PackedRows.h"
#include "RowSource.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// The most loads in flight that a wait can name: vmcnt has 6 bits, and all of
/// them say that nothing is waited for.
static constexpr int64_t kMaxInFlight = 62;

std::unique_ptr<Machine> kvbuf::createAMDMachine() {
  return std::make_unique<AMDMachine>();
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

LogicalResult AMDMachine::prepare(Lanes &lower, gpu::GPUFuncOp kernel) {
  // What goes through registers is stored in the order in which it is read.
  WalkResult result = kernel.walk([&](FragmentLoadOp op) -> WalkResult {
    FragmentType type = op.getFragment().getType();
    auto [known, isNew] =
        readers.try_emplace(op.getStaged().getType().getParams(), type);
    if (isNew || !isTurnedInLds(lower.target, known->first) ||
        layoutInSlot(lower, known->second) == layoutInSlot(lower, type))
      return WalkResult::advance();
    return op.emitOpError()
           << "reads a slot that is transposed on its way into LDS in another "
              "order than other reads; expected one layout, got "
           << type.getLayout() << " beside " << known->second.getLayout();
  });
  if (result.wasInterrupted())
    return failure();
  // Counts of loads become counts of instructions: a younger load is at least
  // the smallest of the kernel's. Loads that not every wave issues count as
  // none, and so do those whose pages each lane looks up.
  instructionsPerLoad = kMaxInFlight;
  llvm::DenseMap<KVBufferAttr, Type> loadedElements;
  result = kernel.walk([&](DramLoadOp op) -> WalkResult {
    KVBufferAttr params = op.getBuffer().getType().getParams();
    // A team's loads are by its own warps.
    ScheduleAttr schedule = scheduleOf(op, lower.schedule);
    Type element = op.getTile().getType().getElementType();
    auto [known, isNew] = loadedElements.try_emplace(params, element);
    if (!isNew && known->second != element)
      return op.emitOpError()
             << "loads elements " << element
             << " into a buffer of parameters that another load fills with "
             << known->second << "; expected one type";
    if (element != params.getElementType())
      narrowElements[params] = element;
    int64_t count = 0;
    if (packedRowOf(op.getTile())) {
      // Lanes widen them: what they store is there at once.
    } else if (lower.takesAnyTensor()) {
      // So is what lanes copy; LLVM counts their loads.
    } else if (lower.target.has(CopyEngine::WaveBoxes)) {
      // What no engine copies is there at once, and what goes through registers
      // the engine's counter does not count.
      if (!goesThroughRegisters(lower.target, params) && copiesBoxes(op))
        count = BoxPlan(params, schedule.getWarps()).steps;
    } else if (!goesThroughRegisters(lower.target, params)) {
      SmallVector<CopyPlan> plans = copyPlans(lower, params, schedule);
      if (plans.empty())
        return refuseRows(op, lower.target, params);
      // A wave's rows come from one page, or group.
      if (int64_t page = op.getTile().getType().getPageSize(),
          rows = plans.front().rows;
          page % rows != 0 &&
          !(schedule.getWarps() > 1 &&
            PagesOfTile(lower.target, op, schedule.getWarps()).byLane))
        return op.emitOpError()
               << "copies " << rows
               << " rows at a time, of a tile that has no more than " << page
               << " one stride apart; expected a buffer with policy = "
                  "register_staged";
      if (llvm::all_of(plans, [](const CopyPlan &plan) { return plan.even; }))
        for (const CopyPlan &plan : plans)
          count += plan.steps * plan.unitInstructions;
    } else if (PagesOfTile pages(lower.target, op, schedule.getWarps());
               pages.together || pages.byLane || !pages.page) {
      StagingPlan plan = stagingPlan(lower, params, schedule);
      count = plan.steps * plan.vectors();
    }
    if (failed(layOutTurned(lower, op, params, schedule)))
      return WalkResult::interrupt();
    instructionsPerLoad = std::min(instructionsPerLoad, count);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult AMDMachine::refuseRows(Operation *load, const TargetInfo &target,
                                     KVBufferAttr params) {
  return load->emitOpError()
         << "copies " << params.getBN() << " rows of " << params.getBK()
         << " elements of " << params.getElementType()
         << ", which the rows of no instruction of " << target.chip
         << " divide; expected a buffer with policy = register_staged";
}

LogicalResult AMDMachine::layOutTurned(Lanes &lower, Operation *load,
                                       KVBufferAttr params,
                                       ScheduleAttr schedule) {
  if (!isTurnedInLds(lower.target, params))
    return success();
  if (!llvm::isPowerOf2_64(params.getBN()))
    return load->emitOpError()
           << "turns " << params.getBN() << " rows on their way into LDS, as "
           << lower.target.chip
           << " reads none that lie turned; expected a power of two";
  if (!turnedTiles.contains(params))
    turnedTiles[params] = foldedTile(lower, params, schedule);
  return success();
}

void AMDMachine::emitStage(Lanes &lower, LdsStageOp op,
                           ArrayRef<Values> tokens) {
  ImplicitLocOpBuilder &b = lower.b;
  bool direct = false;
  for (auto [operand, values] : llvm::zip_equal(op.getTokens(), tokens)) {
    KVBufferAttr params = cast<TokenType>(operand.getType()).getParams();
    if (goesThroughRegisters(lower.target, params)) {
      // Where no wave waits for another, nothing keeps LLVM's scheduler from
      // having the registers read much earlier, and their loads awaited there.
      if (lower.team || lower.blockWarps == 1) {
        using Allow = amdgpu::sched_barrier_opt_enum;
        amdgpu::SchedBarrierOp::create(
            b, Allow::salu | Allow::mfma_wmma | Allow::all_vmem |
                   Allow::vmem_read | Allow::vmem_write | Allow::ds_read);
      }
      emitStagedStores(lower, params, values.front(),
                       ArrayRef<Value>(values).drop_front());
    } else {
      direct = true;
    }
  }
  // Reads of LDS must have their data before others may overwrite the slot, and
  // writes must have happened before others may read it.
  int64_t inFlight = std::min<int64_t>(
      kMaxInFlight, op.getYounger().value_or(0) * instructionsPerLoad);
  IntegerAttr awaited = direct ? b.getI32IntegerAttr(inFlight) : IntegerAttr();
  bool boxes = lower.target.has(CopyEngine::WaveBoxes);
  amdgpu::MemoryCounterWaitOp::create(
      b, boxes ? IntegerAttr() : awaited, IntegerAttr(), b.getI32IntegerAttr(0),
      IntegerAttr(), boxes ? awaited : IntegerAttr());
  emitBarrier(lower);
}

void AMDMachine::emitBarrier(Lanes &lower) {
  // What a wave has waited for, all its lanes may read. A team of more waves
  // has no barrier, and is refused.
  if (!lower.team)
    WaveBarrierOp::create(lower.b);
}

void AMDMachine::emitLoopEnd(Lanes &lower, scf::ForOp loop) {
  // Pages that lanes have looked up for the next iteration may want to be moved
  // to the registers of this one's, for which they are awaited, and with them
  // all loads before them. LLVM's scheduler would have that done anywhere: at
  // the end it is where the next iteration waits for those loads, too.
  auto looksUp = [&](Value value) {
    auto type = dyn_cast<TileType>(value.getType());
    return type && type.getPageSize() &&
           lower.target.lanesLookUp(type.getRows(), type.getPageSize(),
                                    lower.schedule.getWarps());
  };
  if (llvm::any_of(loop.getRegionIterArgs(), looksUp))
    amdgpu::SchedBarrierOp::create(lower.b,
                                   amdgpu::sched_barrier_opt_enum::none);
}

void AMDMachine::emitMeet(Lanes &lower) {
  // The backend keeps products after a barrier that they need not wait for,
  // and with them the waits for their operands: a slot that is read would be
  // free.
  ImplicitLocOpBuilder &b = lower.b;
  amdgpu::MemoryCounterWaitOp::create(b, IntegerAttr(), IntegerAttr(),
                                      b.getI32IntegerAttr(0), IntegerAttr(),
                                      IntegerAttr());
  emitBarrier(lower);
}

void AMDMachine::emitEnd(Lanes &lower) {
  // LDS must not be given away while copies may still write it.
  emitLanding(lower);
}

void AMDMachine::emitLanding(Lanes &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  bool boxes = lower.target.has(CopyEngine::WaveBoxes);
  amdgpu::MemoryCounterWaitOp::create(
      b, b.getI32IntegerAttr(0), IntegerAttr(), IntegerAttr(), IntegerAttr(),
      boxes ? b.getI32IntegerAttr(0) : IntegerAttr());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Attribute AMDMachine::dramSpace(MLIRContext *context) {
  return gpu::AddressSpaceAttr::get(context, gpu::AddressSpace::Global);
}

Value AMDMachine::uniform(Lanes &lower, Value value) {
  return gpu::SubgroupBroadcastOp::create(
      lower.b, value.getType(), value, Value(),
      gpu::BroadcastType::first_active_lane);
}

Value AMDMachine::roundOperand(Lanes &lower, Value value, VectorType type,
                               bool isProbability) {
  if (!isProbability || !type.getElementType().isBF16() ||
      lower.target.roundsToBf16)
    return Machine::roundOperand(lower, value, type, isProbability);
  // Half a unit more and the upper halves: right for numbers that are finite
  // and not negative but for exact ties, which go up. Two at once: the sum of
  // the lower one does not carry into the other.
  ImplicitLocOpBuilder &b = lower.b;
  int64_t n = type.getNumElements();
  // As much at once as fills words of two registers: the next ones need not be
  // there.
  constexpr int64_t part = 4;
  if (n > part && n % part == 0) {
    auto some = VectorType::get({part}, b.getF32Type());
    auto narrow = VectorType::get({part}, type.getElementType());
    Value result;
    for (int64_t first = 0; first < n; first += part) {
      Values elements;
      for (int64_t i = first; i < first + part; ++i)
        elements.push_back(vector::ExtractOp::create(b, value, i));
      Value next =
          roundOperand(lower, vector::FromElementsOp::create(b, some, elements),
                       narrow, isProbability);
      SmallVector<int64_t> all =
          llvm::to_vector(llvm::seq<int64_t>(0, first + part));
      result =
          first == 0
              ? next
              : vector::ShuffleOp::create(b, result, next, all).getResult();
    }
    return result;
  }
  Value sum =
      arith::BitcastOp::create(b, VectorType::get({n}, b.getI32Type()), value);
  if (n % 2 == 0) {
    auto pairs = VectorType::get({n / 2}, b.getI64Type());
    Value halves = arith::ConstantOp::create(
        b, DenseElementsAttr::get(
               pairs, b.getI64IntegerAttr(int64_t(0x0000800000008000))));
    sum = arith::AddIOp::create(b, vector::BitCastOp::create(b, pairs, sum),
                                halves);
  } else {
    Value half = arith::ConstantOp::create(
        b, DenseElementsAttr::get(cast<VectorType>(sum.getType()),
                                  b.getI32IntegerAttr(0x8000)));
    sum = arith::AddIOp::create(b, sum, half);
  }
  Value halves = vector::BitCastOp::create(
      b, VectorType::get({2 * n}, b.getI16Type()), sum);
  SmallVector<int64_t> upper;
  for (int64_t i = 0; i < n; ++i)
    upper.push_back(2 * i + 1);
  Value packed = vector::ShuffleOp::create(b, halves, halves, upper);
  return arith::BitcastOp::create(b, type, packed);
}

Value AMDMachine::addElements(Lanes &lower, Value sum, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  Type element = type.getElementType();
  if (type.getNumElements() % 2 ||
      !llvm::is_contained(lower.target.pairSums, elementName(element)))
    return Machine::addElements(lower, sum, vector);
  ImplicitLocOpBuilder &b = lower.b;
  auto pair = VectorType::get({2}, element);
  for (int64_t i = 0; i < type.getNumElements(); i += 2) {
    Value two = type == pair
                    ? vector
                    : vector::ShuffleOp::create(b, vector, vector,
                                                ArrayRef<int64_t>{i, i + 1})
                          .getResult();
    sum = PairSumOp::create(b, sum, two);
  }
  return sum;
}

Value AMDMachine::ldsBytes(Lanes &lower) {
  return lower.shared(lower.b.getI8Type());
}

TransposedTile AMDMachine::unfoldedTile(Lanes &lower, KVBufferAttr params) {
  TransposedTile tile;
  tile.keys = params.getBN();
  tile.depth = params.getSmemCols();
  tile.banks = lower.target.banks;
  tile.elementBytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  // A lane's keys first, then those of the lanes beside it, as those who read
  // the tile want them; nobody may.
  auto reader = readers.find(params);
  if (reader == readers.end()) {
    tile.keyBits = {0, 1, 2};
    return tile;
  }
  LinearLayout layout = layoutInSlot(lower, reader->second);
  tile.keyBits.assign(layout.outLog2("row"), 0);
  unsigned next = 0;
  for (StringRef in : {"register", "lane"})
    for (unsigned bit = 0; bit < layout.inLog2(in); ++bit)
      if (int64_t key = layout.basis(in, bit, "row"))
        tile.keyBits[llvm::Log2_64(key)] = next++;
  return tile;
}

TransposedTile AMDMachine::foldedTile(Lanes &lower, KVBufferAttr params,
                                      ScheduleAttr schedule) {
  TransposedTile tile = unfoldedTile(lower, params);
  SmallVector<LaneAccess> accesses;
  if (auto reader = readers.find(params); reader != readers.end()) {
    const FragmentLayout &atom = lower.layouts.of(reader->second);
    LaneAccess &reads = accesses.emplace_back();
    reads.width = turnedReadBytes(atom.registers() * tile.elementBytes);
    LinearLayout layout = layoutInSlot(lower, reader->second);
    for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
      reads.lanes.push_back(
          {layout.basis("lane", bit, "row"), layout.basis("lane", bit, "col")});
  }
  accesses.push_back(stagingPlan(lower, params, schedule).stores(params));
  (void)tile.avoidConflicts(accesses);
  return tile;
}

TransposedTile AMDMachine::transposedTile(Lanes &lower, KVBufferAttr params) {
  auto known = turnedTiles.find(params);
  return known != turnedTiles.end() ? known->second
                                    : foldedTile(lower, params, {});
}

std::optional<TransposedTile> AMDMachine::turnedTile(Lanes &lower,
                                                     KVBufferAttr params) {
  if (!isTurnedInLds(lower.target, params))
    return std::nullopt;
  return transposedTile(lower, params);
}

/// Threads of the warps of `schedule`, or of the one that is being lowered.
static int64_t threadsOf(Lanes &lower, ScheduleAttr schedule) {
  return schedule ? schedule.getWarps() * int64_t(lower.target.waveSize)
                  : lower.threads();
}

SmallVector<CopyPlan> AMDMachine::copyPlans(Lanes &lower, KVBufferAttr params,
                                            ScheduleAttr schedule) {
  return planCopies(lower.target, params, threadsOf(lower, schedule));
}

StagingPlan AMDMachine::stagingPlan(Lanes &lower, KVBufferAttr params,
                                    ScheduleAttr schedule) {
  // A lane's word is 16 bytes; its halves differ in one bit of the rows.
  unsigned halfBit = 0;
  if (isTurnedInLds(lower.target, params)) {
    TransposedTile tile = unfoldedTile(lower, params);
    const auto *bit = llvm::find(tile.keyBits, 2u);
    if (bit != tile.keyBits.end())
      halfBit = std::max<int64_t>(bit - tile.keyBits.begin() - 2, 0);
  }
  Type loaded = narrowElements.lookup(params);
  if (!loaded)
    loaded = params.getElementType();
  return StagingPlan(lower.target, params, threadsOf(lower, schedule), halfBit,
                     loaded.getIntOrFloatBitWidth());
}
