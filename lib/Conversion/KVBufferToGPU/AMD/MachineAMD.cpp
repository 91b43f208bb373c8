//===- MachineAMD.cpp - Movement on AMD's CDNA ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineAMD.h"
#include "RowSource.h"
#include "kvbuffer/Target/ReadGroups.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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

/// How a fragment lies in a slot whose rows are contracted: operand a's columns
/// are rows there.
static LinearLayout layoutInSlot(Lanes &lower, FragmentType type) {
  const LinearLayout &layout = lower.layouts.of(type).layout;
  return type.getRole() == Role::A ? transposed(layout) : layout;
}

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
    if (!goesThroughRegisters(lower.target, params) &&
        lower.target.has(CopyEngine::WaveBoxes)) {
      // What no engine copies is there at once.
      if (copiesBoxes(op))
        count = BoxPlan(params, schedule.getWarps()).steps;
    } else if (!goesThroughRegisters(lower.target, params)) {
      SmallVector<CopyPlan> plans = copyPlans(lower, params, schedule);
      // A wave's rows come from one page, or group.
      if (int64_t page = op.getTile().getType().getPageSize(),
          rows = plans.front().rows;
          page % rows != 0)
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
    layOutTurned(lower, params, schedule);
    instructionsPerLoad = std::min(instructionsPerLoad, count);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void AMDMachine::layOutTurned(Lanes &lower, KVBufferAttr params,
                              ScheduleAttr schedule) {
  if (isTurnedInLds(lower.target, params) && !turnedTiles.contains(params))
    turnedTiles[params] = foldedTile(lower, params, schedule);
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

/// Bytes that a lane reads at once of the `bytes` that it has of a turned tile,
/// whose words of 8 bytes move: as many as an instruction takes, or, of more,
/// such words.
static int64_t turnedReadBytes(int64_t bytes) {
  return bytes > kWidestRead ? 8 : bytes;
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
  return StagingPlan(lower.target, params, threadsOf(lower, schedule), halfBit);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Vectors of one length, one after the other.
static Value joinVectors(ImplicitLocOpBuilder &b, ArrayRef<Value> parts) {
  Value joined = parts.front();
  int64_t size = cast<VectorType>(joined.getType()).getNumElements();
  for (size_t i = 1; i < parts.size(); ++i)
    joined = vector::ShuffleOp::create(
        b, joined, parts[i],
        llvm::to_vector(llvm::seq<int64_t>(0, size * (i + 1))));
  return joined;
}

/// Whether a read of a staged slot contracts columns.
static bool readsColumns(Value staged) {
  return llvm::any_of(staged.getUsers(), [](Operation *user) {
    if (auto view = dyn_cast<StagedViewOp>(user))
      return readsColumns(view.getResult());
    auto load = dyn_cast<FragmentLoadOp>(user);
    return load && !load.contractsRows();
  });
}

/// Whether another read of the same slot, of another team's, too, contracts
/// columns.
static bool readsColumnsToo(FragmentLoadOp op) {
  Value staged = op.getStaged();
  while (auto view = staged.getDefiningOp<StagedViewOp>())
    staged = view.getSource();
  auto wait = staged.getDefiningOp<RingWaitOp>();
  if (!wait)
    return readsColumns(staged);
  return llvm::any_of(wait.getRing().getUsers(), [](Operation *user) {
    auto other = dyn_cast<RingWaitOp>(user);
    return other && readsColumns(other.getStaged());
  });
}

LogicalResult AMDMachine::emitFragmentLoad(Lanes &lower, FragmentLoadOp op,
                                           Value slot, Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  FragmentType type = op.getFragment().getType();
  Type element = type.getElementType();
  Type stored = params.getElementType();
  bool widens = element != stored;
  // Whether the slot's rows are contracted.
  bool isA = type.getRole() == Role::A, byRows = op.contractsRows();
  bool turned = isTurnedInLds(lower.target, params);
  if (stored.getIntOrFloatBitWidth() == 8 && byRows && !turned)
    return emitNarrowFragment(lower, op, slot, words);
  if (turned && !byRows)
    return op.emitOpError()
           << "contracts columns of a slot whose columns lie side by side; "
              "expected a buffer with order = rows";
  // A slot that is both operands (latent attention) lies as the one does that
  // is read most; a buffer of values alone is turned on its way into LDS.
  if (byRows && !turned && !lower.target.readsTransposed) {
    if (op.getContracted() == Dimension::Rows && readsColumnsToo(op))
      return emitNarrowFragment(lower, op, slot, words);
    return op.emitOpError()
           << "contracts rows of a slot whose rows lie side by side, which "
           << lower.target.chip
           << " cannot read; expected a buffer with policy = register_staged, "
              "order = cols";
  }
  const FragmentLayout &atom = lower.layouts.of(type);

  // Where an element of the fragment, at (row, col) in its own coordinates,
  // lies in the slot: rows that are not contracted are the columns of operand
  // b, and rows that are contracted the columns of operand a.
  SharedTile tile = sharedTile(params);
  std::optional<LinearLayout> transposed;
  if (turned)
    transposed = transposedTile(lower, params).layout();
  int64_t row0 = op.getSlotRow(), col0 = op.getSlotCol();
  auto byteOf = [&](int64_t row, int64_t col) {
    if (isA == byRows)
      std::swap(row, col);
    row += row0;
    col += col0;
    return turned ? transposed->apply({{"row", row}, {"col", col}}, "byte")
                  : tile.byteOffset(row, col);
  };
  // The image of a coordinate's bit; layouts of LDS are linear in an atom.
  auto image = [&](int64_t row, int64_t col) {
    int64_t r = row0, c = col0;
    row0 = col0 = 0;
    int64_t byte = byteOf(row, col);
    row0 = r;
    col0 = c;
    return byte;
  };
  auto imageOf = [&](StringRef in, unsigned bit) {
    return image(atom.layout.basis(in, bit, "row"),
                 atom.layout.basis(in, bit, "col"));
  };

  int64_t elementBytes = stored.getIntOrFloatBitWidth() / 8;
  // Elements that a transposed read gives a lane.
  bool wide = lower.target.matrixUnit() == MatrixUnit::Wmma;
  const unsigned readBits = wide ? 3 : 2;
  std::optional<LinearLayout> reads;
  if (byRows && !turned && atom.layout.inLog2("register") >= readBits) {
    LinearLayout layout = layoutInSlot(lower, type);
    SmallVector<LinearLayout::Coord> registers, lanes;
    for (unsigned bit = 0; bit < readBits; ++bit)
      registers.push_back(layout.basis("register", bit));
    for (unsigned bit = 0; bit < layout.inLog2("lane"); ++bit)
      lanes.push_back(layout.basis("lane", bit));
    LinearLayout piece({"register", "lane"}, {registers, lanes},
                       layout.outDims());
    reads = wide ? transposedRead128(piece) : transposedRead16(piece);
  }
  // A lane's word is read in pieces: those of a transposed read, else what the
  // slot's layout keeps together.
  int64_t together = turned ? turnedReadBytes(atom.registers() * elementBytes)
                            : std::min<int64_t>(tile.swizzle.unit, kWidestRead);
  int64_t piece =
      std::min<int64_t>(atom.registers(), reads ? int64_t(1) << readBits
                                                : together / elementBytes);
  bool fits = byRows && !turned ? reads.has_value() : true;
  for (unsigned bit = 0; !reads && fits && int64_t(1) << bit < piece; ++bit)
    fits = imageOf("register", bit) == elementBytes << bit;
  // Columns of a in an order of their own, as beside accumulators, too.
  if ((widens || isA) && !fits && !turned)
    return emitNarrowFragment(lower, op, slot, words);
  if (!fits || atom.words != atom.registers()) {
    InFlightDiagnostic diag =
        op.emitOpError() << "no read of LDS loads this operand's layout on "
                         << lower.target.chip << ", " << type.getLayout();
    // Words of a row are read whole; only columns can be read in any order.
    if (auto mma = dyn_cast<MmaLayoutAttr>(type.getLayout());
        mma && !isA && !byRows && !mma.getOrder().empty())
      diag << "; expected contracted(rows), as its product's other operand "
              "comes from accumulators";
    return diag;
  }

  LinearAddress address;
  SmallVector<int64_t> lanes;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit)
    lanes.push_back(!reads ? imageOf("lane", bit)
                    : isA  ? image(reads->basis("lane", bit, "col"),
                                   reads->basis("lane", bit, "row"))
                           : image(reads->basis("lane", bit, "row"),
                                   reads->basis("lane", bit, "col")));
  address.terms.push_back({lower.lane, lanes});
  Value blocks;
  bool crossed = op.isCrossed();
  int64_t parted = isA ? atom.rowWarps : atom.gridCols;
  if (crossed ? atom.rowWarps > 1 : atom.sharesCols() && !isA) {
    // Each warp has columns of the product of its own, which rows that are not
    // contracted are; of operand a that lies turned, rows, which are columns of
    // the slot.
    int64_t cols = byRows && !isA ? atom.warpCols(type) : atom.warpRows(type);
    if (!llvm::isPowerOf2_64(cols) && (turned || !byRows))
      return op.emitOpError()
             << "has " << cols << " columns of the product for "
             << "each of " << parted << " warps; expected a power of two";
    unsigned bits = llvm::Log2_64(parted), inside = 0;
    SmallVector<int64_t> parts;
    for (; inside < bits &&
           (turned || !byRows || cols << inside < tile.blockCols);
         ++inside)
      parts.push_back(isA ? image(cols << inside, 0)
                          : image(0, cols << inside));
    Value part = isA ? lower.rowPart(atom) : lower.gridCol(atom);
    if (inside)
      address.terms.push_back({part, parts});
    if (inside < bits)
      blocks = arith::MulIOp::create(
          b, arith::ShRUIOp::create(b, part, lower.i32(inside)),
          lower.i32((cols << inside) / tile.blockCols * tile.blockBytes()));
  }
  auto emitAddress = [&](int64_t byte, int64_t align) -> Value {
    Value at = address.emit(b, slot, align, byte);
    if (blocks)
      at = arith::AddIOp::create(b, at, lower.toIndex(blocks));
    return at;
  };
  if (isA && !crossed) {
    SmallVector<int64_t> warps;
    unsigned bits = llvm::Log2_64_Ceil(atom.rowWarps);
    for (unsigned bit = 0; bit < bits; ++bit)
      warps.push_back(image(atom.warpRows(type) << bit, 0));
    address.terms.push_back({lower.rowPart(atom), warps});
  }

  // No more of the operand than a chunk is in registers: its reads wait for the
  // products of the chunk before.
  if (params.getRegChunkDepth() < params.getDepth() && col0 > 0) {
    using Allow = amdgpu::sched_barrier_opt_enum;
    amdgpu::SchedBarrierOp::create(
        b, Allow::non_mem_non_sideffect | Allow::valu | Allow::salu |
               Allow::all_vmem | Allow::vmem_read | Allow::vmem_write |
               Allow::ds_write | Allow::transcendental);
  }

  Value lds = ldsBytes(lower);
  int64_t align = slotAlignment(params);
  auto word = VectorType::get({atom.registers()}, element);
  // Words are listed [m][k] for a and [k][n] for b.
  int64_t rows = atom.warpRows(type), cols = atom.warpCols(type);
  if (!isA && !byRows)
    std::swap(rows, cols);
  for (int64_t r = 0; r < rows; r += atom.rows)
    for (int64_t c = 0; c < cols; c += atom.cols) {
      // The registers of a piece differ in their low bits.
      SmallVector<Value> parts;
      for (int64_t part = 0; part < atom.registers(); part += piece) {
        auto offset = atom.layout.apply({{"register", part}});
        Value at = emitAddress(byteOf(r + offset[0], c + offset[1]), align);
        if (reads && wide)
          parts.push_back(TurnedReadOp::create(
              b, VectorType::get({piece}, element), lds, at));
        else if (reads)
          parts.push_back(amdgpu::TransposeLoadOp::create(
              b, VectorType::get({piece}, element), lds, ValueRange{at}));
        else
          parts.push_back(vector::LoadOp::create(
              b, VectorType::get({piece * elementBytes}, b.getI8Type()), lds,
              ValueRange{at}, /*nontemporal=*/false,
              llvm::Align(piece * elementBytes)));
      }
      Value joined = joinVectors(b, parts);
      if (widens)
        joined = arith::ExtFOp::create(
            b, word,
            arith::BitcastOp::create(b, word.clone(stored), joined)
                .getResult());
      else if (!reads && elementBytes == 1)
        joined = arith::BitcastOp::create(b, word, joined);
      else if (!reads)
        joined = vector::BitCastOp::create(b, word, joined);
      words.push_back(joined);
    }
  return success();
}

LogicalResult AMDMachine::emitTileFragment(Lanes &lower, TileFragmentOp op,
                                           const TileView &tile,
                                           Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  FragmentType type = op.getFragment().getType();
  Type element = type.getElementType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t columns = op.getTile().getType().getCols();
  const FragmentLayout &atom = lower.layouts.of(type);
  // A word in pieces that a lane loads at once, beside each other in a row.
  int64_t width = std::min<int64_t>(atom.registers(), kWidestRead / bytes);
  for (unsigned bit = 0; int64_t(1) << bit < width; ++bit)
    if (atom.layout.basis("register", bit, "col") != 1 << bit)
      return op.emitOpError()
             << "a lane's words are no pieces of rows on " << lower.target.chip;
  Value stride =
      arith::MulIOp::create(b, lower.toI32(tile.rowStride), lower.i32(bytes));
  // The valid rows are [0, hi): the range ends after the last of them.
  Value zero = lower.i32(0);
  Value some =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, tile.hi, zero);
  int64_t group = op.getTile().getType().getPageSize();
  Value groupStride;
  // Bytes from row 0 to row `row`.
  auto lineOf = [&](Value row) -> Value {
    if (!group)
      return arith::MulIOp::create(b, row, stride);
    if (!groupStride)
      groupStride = arith::MulIOp::create(b, lower.toI32(tile.pageStride),
                                          lower.i32(bytes));
    Value of = arith::MulIOp::create(
        b, arith::DivUIOp::create(b, row, lower.i32(group)).getResult(),
        groupStride);
    Value inside = arith::MulIOp::create(
        b, arith::RemUIOp::create(b, row, lower.i32(group)).getResult(),
        stride);
    return arith::AddIOp::create(b, of, inside);
  };
  Value last = lineOf(arith::SubIOp::create(b, tile.hi, lower.i32(1)));
  Value length = arith::SelectOp::create(
      b, some, arith::AddIOp::create(b, last, lower.i32(columns * bytes)),
      zero);
  Value range = DramRangeOp::create(b, tile.data, tile.base, length);

  SmallVector<int64_t> rowBits, colBits;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit) {
    rowBits.push_back(atom.layout.basis("lane", bit, "row"));
    colBits.push_back(atom.layout.basis("lane", bit, "col") * bytes);
  }
  Value row = arith::AddIOp::create(
      b, emitLinear(b, lower.lane, rowBits),
      arith::MulIOp::create(b, lower.rowPart(atom),
                            lower.i32(atom.warpRows(type))));
  Value col = emitLinear(b, lower.lane, colBits);
  for (int64_t r = 0; r < atom.warpRows(type); r += atom.rows) {
    Value at = arith::AddIOp::create(b, row, lower.i32(r));
    Value line = arith::AddIOp::create(b, lineOf(at), col);
    // Of two strides the larger may be the inner one: where a row lies does not
    // say whether it is valid.
    if (group)
      line = arith::SelectOp::create(
          b, arith::CmpIOp::create(b, arith::CmpIPredicate::slt, at, tile.hi),
          line, lower.i32(INT32_MIN));
    for (int64_t c = 0; c < type.getCols(); c += atom.cols) {
      SmallVector<Value> parts;
      for (int64_t reg = 0; reg < atom.registers(); reg += width) {
        int64_t first = c + atom.layout.apply({{"register", reg}}, "col");
        Value at = arith::AddIOp::create(b, line, lower.i32(first * bytes));
        if (c + atom.cols > columns) {
          // Columns past the tile's: out of the range.
          Value inside = arith::CmpIOp::create(
              b, arith::CmpIPredicate::slt, col,
              lower.i32(std::max<int64_t>(0, columns - first) * bytes));
          at = arith::SelectOp::create(b, inside, at, lower.i32(INT32_MIN));
        }
        parts.push_back(RangeLoadOp::create(
            b, VectorType::get({width}, element), range, at));
      }
      words.push_back(joinVectors(b, parts));
    }
  }
  return success();
}
