//===- MachineHopper.cpp - Warp roles on NVIDIA, sm_90a ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tiles move by the tensor copy engine (TMA) or, where its boxes do not fit,
/// by the producers' threads; slots change hands through mbarriers; products
/// are wgmma. PTX ISA: "cp.async.bulk.tensor", "mbarrier", "Asynchronous
/// warpgroup level matrix instructions", "setmaxnreg".
///
//===----------------------------------------------------------------------===//

#include "MachineNVIDIA.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Rows of a that a warpgroup multiplies: m of every wgmma.
static constexpr int64_t kGroupRows = 64;
/// The contracted elements of one instruction, for 16-bit operands.
static constexpr int64_t kStep = 16;
/// The widest n of one instruction.
static constexpr int64_t kMaxColumns = 256;
/// Descriptors count 16 bytes.
static constexpr int64_t kDescriptorUnit = 16;
/// Rows after which a swizzled tile repeats.
static constexpr int64_t kSwizzleRows = 8;

namespace {

class HopperMachine : public NVIDIAMachine {
public:
  bool hasRoles() const override { return true; }
  Value emitRatio(LaneLowering &lower, Value x, Value y) override;
  std::optional<TensorMapRequest> tensorMapFor(LaneLowering &lower,
                                               Operation *op) override;
  Type tensorMapType(MLIRContext *context) override {
    return LLVM::LLVMPointerType::get(context);
  }
  void emitRolesPrologue(LaneLowering &lower) override;
  void emitBarrierInit(LaneLowering &lower,
                       ArrayRef<LdsBarrier> barriers) override;
  Value uniform(LaneLowering &lower, Value value) override;
  Value emitElect(LaneLowering &lower) override;
  void emitBarrierWait(LaneLowering &lower, Value barrier,
                       Value parity) override;
  void emitBarrierArrive(LaneLowering &lower, Value barrier,
                         Value predicate) override;
  void emitSetRegisters(LaneLowering &lower, int64_t count,
                        int64_t before) override;
  void emitNamedBarrier(LaneLowering &lower, Value id, int64_t threads,
                        bool wait) override;
  LogicalResult emitRingLoad(LaneLowering &lower, RingLoadOp op,
                             const TileValues &tile, const TileCoordinates &at,
                             Value slot, Value full, Value empty,
                             Value emptyParity) override;
  LogicalResult emitMmaStart(LaneLowering &lower, MmaStartOp op,
                             ArrayRef<Value> a, Value slot, ArrayRef<Value> acc,
                             Values &results) override;
  void emitMmaWait(LaneLowering &lower, Values &values,
                   int64_t younger) override;
  LogicalResult emitStoreVia(LaneLowering &lower, FragmentStoreOp op,
                             const TileCoordinates &at, ArrayRef<Value> values,
                             Value buffer) override;
  void emitConsumersEnd(LaneLowering &lower) override;

private:
  /// The barriers of a block's role, made at their first use.
  static int64_t once(LaneLowering &lower, int64_t &first, int64_t count) {
    if (!first)
      first = lower.namedBarriers(count);
    return first;
  }
  Value descriptor(LaneLowering &lower, Value offset, int64_t leadingBytes,
                   int64_t strideBytes, int64_t swizzleBytes);
  void emitBoxes(LaneLowering &lower, RingLoadOp op, const TileCoordinates &at,
                 Value slot, Value full);
  void waitForStores(LaneLowering &lower);

  /// Descriptors of byte 0 of LDS, by their constant part.
  llvm::DenseMap<int64_t, Value> origins;
  int64_t copyBarrier = 0, storeBarriers = 0;
  bool storesInFlight = false;
};

} // namespace

std::unique_ptr<Machine> kvbuf::createHopperMachine() {
  return std::make_unique<HopperMachine>();
}

/// The exact quotient is a call, whose registers consumers do not have; the
/// approximate reciprocal is right to 1 ulp (PTX ISA, "rcp").
Value HopperMachine::emitRatio(LaneLowering &lower, Value x, Value y) {
  ImplicitLocOpBuilder &b = lower.b;
  Value inverse = NVVM::RcpApproxFtzF32Op::create(b, b.getF32Type(), y);
  return arith::MulFOp::create(b, x, inverse);
}

/// A pointer into shared memory.
static Value pointer(LaneLowering &lower, Value offset) {
  ImplicitLocOpBuilder &b = lower.b;
  Value address = arith::AddIOp::create(b, lower.ldsAddress, offset);
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::Shared));
  return LLVM::IntToPtrOp::create(b, type, address);
}

/// Bytes of a row of one LDS block: what the swizzle spans.
static int64_t rowBytes(KVBufferAttr params) {
  return params.getBK() * params.getElementType().getIntOrFloatBitWidth() / 8;
}

/// Bytes of one LDS block of BN x BK elements.
static int64_t blockBytes(KVBufferAttr params) {
  return params.getBN() * rowBytes(params);
}

/// Whether a buffer's swizzle is the one that the copy engine and the matrix
/// unit know for rows of this width: 16-byte vectors XOR the row's number in
/// what repeats every 8 rows, of which rows shorter than 128 bytes fill a part.
static LogicalResult checkSwizzle(Operation *op, KVBufferAttr params) {
  int64_t bytes = rowBytes(params);
  if (bytes != 32 && bytes != 64 && bytes != 128)
    return op->emitOpError()
           << "cannot move or multiply LDS blocks with rows of " << bytes
           << " bytes; expected BK to give 32, 64 or 128";
  // 128 bytes hold 8 vectors, whose index has 3 bits; bank conflicts of shorter
  // rows are solved by bits of later rows.
  int64_t bits = llvm::Log2_64(bytes / 16);
  SmallVector<int64_t> expected{bits, 0, 3};
  if (params.getSwizzle() == ArrayRef<int64_t>(expected))
    return success();
  InFlightDiagnostic diag =
      op->emitOpError() << "expected a buffer with swizzle = [" << bits
                        << ", 0, 3], which the copy engine uses for rows of "
                        << bytes << " bytes, got [";
  llvm::interleaveComma(params.getSwizzle(), diag);
  diag << "]";
  return diag;
}

//===----------------------------------------------------------------------===//
// Kernel parameters and barriers
//===----------------------------------------------------------------------===//

/// The tensor that a tile is a part of; null if no op says so.
static Value tensorOf(Value tile) {
  if (auto op = tile.getDefiningOp<DramTileOp>())
    return op.getTensor();
  if (auto op = tile.getDefiningOp<CacheTileOp>())
    return op.getCache();
  return nullptr;
}

std::optional<TensorMapRequest> HopperMachine::tensorMapFor(LaneLowering &,
                                                            Operation *op) {
  if (auto load = dyn_cast<RingLoadOp>(op)) {
    // Tiles over small pages are copied.
    if (load.getTile().getType().getPageSize())
      return std::nullopt;
    KVBufferAttr params = load.getRing().getType().getParams();
    if (Value tensor = tensorOf(load.getTile()))
      return TensorMapRequest{tensor, params.getBN(), params.getBK()};
  }
  if (auto store = dyn_cast<FragmentStoreOp>(op))
    if (store.getVia())
      if (Value tensor = tensorOf(store.getTile()))
        return TensorMapRequest{tensor, kGroupRows,
                                store.getVia().getType().getParams().getBK()};
  return std::nullopt;
}

void HopperMachine::emitRolesPrologue(LaneLowering &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(
      b, lower.shared(b.getI8Type()));
  lower.ldsAddress = lower.toI32(address);
}

void HopperMachine::emitBarrierInit(LaneLowering &lower,
                                    ArrayRef<LdsBarrier> barriers) {
  ImplicitLocOpBuilder &b = lower.b;
  for (const LdsBarrier &barrier : barriers)
    NVVM::MBarrierInitOp::create(b, pointer(lower, lower.i32(barrier.offset)),
                                 lower.i32(barrier.arrivals), Value());
  NVVM::FenceMbarrierInitOp::create(b);
}

Value HopperMachine::emitElect(LaneLowering &lower) {
  // Behind it the assembler knows that one lane runs, and keeps the coordinates
  // of boxes in uniform registers without asking whether lanes agree.
  return NVVM::ElectSyncOp::create(lower.b, lower.b.getI1Type(), Value());
}

void HopperMachine::emitBarrierWait(LaneLowering &lower, Value barrier,
                                    Value parity) {
  // How long one try may sleep, ns; the op tries again.
  constexpr int64_t ticks = 10'000'000;
  NVVM::MBarrierTryWaitParityOp::create(lower.b, pointer(lower, barrier),
                                        parity, lower.i32(ticks));
}

Value HopperMachine::uniform(LaneLowering &lower, Value value) {
  // The first lane's: ptxas then knows that the lanes agree.
  return gpu::ShuffleOp::create(lower.b, value, lower.i32(0),
                                lower.i32(lower.target.waveSize),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

void HopperMachine::emitBarrierArrive(LaneLowering &lower, Value barrier,
                                      Value predicate) {
  ImplicitLocOpBuilder &b = lower.b;
  // An arrival that expects no bytes: the form that takes a predicate, where a
  // branch would part the code that the assembler schedules.
  NVVM::MBarrierArriveExpectTxOp::create(
      b, TypeRange(), pointer(lower, barrier), lower.i32(0),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, predicate);
}

void HopperMachine::emitSetRegisters(LaneLowering &lower, int64_t count,
                                     int64_t before) {
  NVVM::SetMaxRegisterOp::create(lower.b, count,
                                 count > before
                                     ? NVVM::SetMaxRegisterAction::increase
                                     : NVVM::SetMaxRegisterAction::decrease);
}

void HopperMachine::emitNamedBarrier(LaneLowering &lower, Value id,
                                     int64_t threads, bool wait) {
  ImplicitLocOpBuilder &b = lower.b;
  Value count = lower.i32(threads);
  if (wait)
    NVVM::BarrierOp::create(b, TypeRange(), id, count,
                            NVVM::BarrierReductionAttr(), Value());
  else
    NVVM::BarrierArriveOp::create(b, id, count);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

void HopperMachine::emitBoxes(LaneLowering &lower, RingLoadOp op,
                              const TileCoordinates &at, Value slot,
                              Value full) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  Value barrier = pointer(lower, full);
  // Bytes outside of the tensor are filled in and count.
  NVVM::MBarrierArriveExpectTxOp::create(
      b, TypeRange(), barrier, lower.i32(params.getStageBytes()),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
  Value map = lower.tensorMap({at.tensor, params.getBN(), params.getBK()});
  int64_t blocks = params.getSmemCols() / params.getBK();
  for (int64_t block = 0; block < blocks; ++block) {
    Value to =
        arith::AddIOp::create(b, slot, lower.i32(block * blockBytes(params)));
    Values position{lower.i32(block * params.getBK())};
    llvm::append_range(position, at.position);
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, pointer(lower, to), map, position, barrier,
        /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
        /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true,
        /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
  }
}

LogicalResult HopperMachine::emitRingLoad(LaneLowering &lower, RingLoadOp op,
                                          const TileValues &tile,
                                          const TileCoordinates &at, Value slot,
                                          Value full, Value empty,
                                          Value emptyParity) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  TileType type = op.getTile().getType();
  if (failed(checkSwizzle(op, params)))
    return failure();
  if (params.getBN() > 256)
    return op.emitOpError() << "loads " << params.getBN()
                            << " rows, the copy engine at most 256";

  // One thread waits for slots, whoever fills them: the others may be many
  // fillings behind, where a parity no longer tells which phase it means.
  auto byFirst = [&](function_ref<void()> emit) {
    OpBuilder::InsertionGuard guard(b);
    if (!lower.singleProducer)
      b.setInsertionPointToStart(
          scf::IfOp::create(b, lower.firstOfProducers, /*withElseRegion=*/false)
              .thenBlock());
    emitBarrierWait(lower, empty, emptyParity);
    emit();
  };
  auto boxes = [&] { byFirst([&] { emitBoxes(lower, op, at, slot, full); }); };
  auto copies = [&] {
    int64_t threads = lower.schedule.getProducers() * lower.target.waveSize;
    auto meetProducers = [&] {
      emitNamedBarrier(lower, lower.i32(once(lower, copyBarrier, 1)), threads,
                       /*wait=*/true);
    };
    byFirst([] {});
    meetProducers();
    emitCopies(lower, {type, params, threads}, tile, slot,
               /*checkRows=*/!op.getWhole());
    NVVM::CpAsyncCommitGroupOp::create(b);
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
    // Each thread makes its own writes visible to the matrix unit; then all of
    // them have.
    NVVM::FenceProxyOp::create(
        b, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(b.getContext(),
                                   NVVM::SharedSpace::shared_cta));
    meetProducers();
    emitBarrierArrive(lower, full, lower.firstOfProducers);
  };

  if (type.getPageSize()) {
    copies();
    return success();
  }
  if (!lower.needsCopies(op)) {
    boxes();
    return success();
  }
  Value whole;
  auto require = [&](Value condition) {
    whole = whole ? arith::AndIOp::create(b, whole, condition) : condition;
  };
  if (at.rowsBefore)
    require(arith::CmpIOp::create(b, arith::CmpIPredicate::sle, tile.lo,
                                  lower.i32(0)));
  if (at.rowsBehind)
    require(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, tile.hi,
                                  lower.i32(type.getRows())));
  auto ifWhole = scf::IfOp::create(b, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifWhole.thenBlock());
  boxes();
  b.setInsertionPointToStart(ifWhole.elseBlock());
  copies();
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// PTX ISA, "Matrix descriptor": bits 0-13 the address, 16-29 the leading and
/// 32-45 the stride byte offset, all in 16 bytes; 62-63 the swizzle.
Value HopperMachine::descriptor(LaneLowering &lower, Value offset,
                                int64_t leadingBytes, int64_t strideBytes,
                                int64_t swizzleBytes) {
  ImplicitLocOpBuilder &b = lower.b;
  auto i64 = [&](int64_t value) {
    return arith::ConstantIntOp::create(b, value, 64);
  };
  auto units = [&](Value bytes) {
    Value count = arith::ShRUIOp::create(
        b, bytes, lower.i32(llvm::Log2_64(kDescriptorUnit)));
    return arith::ExtUIOp::create(b, b.getI64Type(), count);
  };
  int64_t mode = swizzleBytes == 128 ? 1 : swizzleBytes == 64 ? 2 : 3;
  int64_t constant = int64_t(uint64_t(mode) << 62) |
                     (strideBytes / kDescriptorUnit) << 32 |
                     (leadingBytes / kDescriptorUnit) << 16;
  Value &origin = origins[constant];
  if (!origin) {
    OpBuilder::InsertionGuard guard(b);
    lower.setInsertionPointToConsumersStart();
    Value address =
        arith::AndIOp::create(b, lower.ldsAddress, lower.i32(0x3ffff));
    origin = arith::OrIOp::create(b, units(address), i64(constant));
  }
  return arith::AddIOp::create(b, origin, units(offset));
}

LogicalResult HopperMachine::emitMmaStart(LaneLowering &lower, MmaStartOp op,
                                          ArrayRef<Value> a, Value slot,
                                          ArrayRef<Value> acc,
                                          Values &results) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr bParams = op.getB().getType().getParams();
  auto aStaged = dyn_cast<StagedType>(op.getA().getType());
  bool turned = !op.getTransposeB();
  PendingType result = op.getResult().getType();
  int64_t n = result.getCols();
  int64_t contracted = turned ? bParams.getBN() : bParams.getSmemCols();
  if (lower.schedule.getWM() * lower.target.warpsPerMatrixGroup != kGroupRows)
    return op.emitOpError() << "has " << lower.schedule.getWM()
                            << " rows a warp, wgmma multiplies "
                            << kGroupRows / lower.target.warpsPerMatrixGroup;
  if (n > kMaxColumns || n % 8)
    return op.emitOpError() << "has " << n
                            << " columns; one wgmma has a multiple of 8, at "
                               "most "
                            << kMaxColumns;
  if (contracted % kStep)
    return op.emitOpError() << "contracts " << contracted
                            << " elements; expected a multiple of " << kStep;
  if (failed(checkSwizzle(op, bParams)) ||
      (aStaged && failed(checkSwizzle(op, aStaged.getParams()))))
    return failure();

  // K-major operands: the contracted dimension runs along a row; a step moves
  // along it and then to the next block of columns.
  auto alongRows = [](KVBufferAttr params, int64_t element) {
    int64_t bytes = rowBytes(params);
    int64_t linear =
        element * params.getElementType().getIntOrFloatBitWidth() / 8;
    return (linear / bytes * blockBytes(params) + linear % bytes) /
           kDescriptorUnit;
  };
  SmallVector<int64_t> aSteps, bSteps;
  for (int64_t k = 0; k < contracted; k += kStep) {
    if (aStaged)
      aSteps.push_back(alongRows(aStaged.getParams(), k));
    // MN-major: a step is 16 rows further down.
    bSteps.push_back(turned ? k * rowBytes(bParams) / kDescriptorUnit
                            : alongRows(bParams, k));
  }
  // The leading offset is unused for swizzled K-major operands; for MN-major
  // ones it leads to the next block of columns. The stride leads to the next 8
  // rows.
  Value bDesc =
      descriptor(lower, slot, turned ? blockBytes(bParams) : kDescriptorUnit,
                 kSwizzleRows * rowBytes(bParams), rowBytes(bParams));
  Value aDesc;
  if (aStaged) {
    KVBufferAttr params = aStaged.getParams();
    Value rows = arith::MulIOp::create(
        b, lower.group, lower.i32(kGroupRows * rowBytes(params)));
    aDesc = descriptor(lower, arith::AddIOp::create(b, a.front(), rows),
                       kDescriptorUnit, kSwizzleRows * rowBytes(params),
                       rowBytes(params));
  }
  SmallVector<Type> types(n / 8, VectorType::get({4}, b.getF32Type()));
  auto wgmma = WgmmaOp::create(
      b, types, /*c=*/acc, /*a=*/aStaged ? ArrayRef<Value>() : a, aDesc, bDesc,
      aSteps, bSteps, bParams.getElementType(), n, /*transpose_b=*/turned);
  llvm::append_range(results, wgmma.getResults());
  return success();
}

/// Moves conversions to words of operand a behind a wait, if the product that
/// it ends reads such words: in a loop both are the same registers, and ones
/// that a product in flight reads must not be written (ptxas then serializes
/// the products: C7513).
static void roundBehind(WgmmaWaitOp wait) {
  SmallVector<Operation *> conversions;
  Operation *op = wait->getPrevNode();
  for (; op; op = op->getPrevNode()) {
    auto product = dyn_cast<WgmmaOp>(op);
    if (product && !product.getA().empty())
      break;
    if (isa<arith::TruncFOp>(op) &&
        llvm::all_of(op->getUsers(), [&](Operation *user) {
          return user->getBlock() != wait->getBlock() ||
                 wait->isBeforeInBlock(user);
        }))
      conversions.push_back(op);
  }
  if (!op)
    return;
  for (Operation *conversion : conversions)
    conversion->moveAfter(wait);
}

void HopperMachine::emitMmaWait(LaneLowering &lower, Values &values,
                                int64_t younger) {
  auto wait = WgmmaWaitOp::create(lower.b, ValueRange(values).getTypes(),
                                  values, younger);
  values.assign(wait.getResults().begin(), wait.getResults().end());
  if (younger == 0)
    roundBehind(wait);
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void HopperMachine::waitForStores(LaneLowering &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  auto leader =
      scf::IfOp::create(b, lower.firstOfGroup, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(leader.thenBlock());
  NVVM::CpAsyncBulkWaitGroupOp::create(b, 0, /*read=*/b.getUnitAttr());
}

LogicalResult HopperMachine::emitStoreVia(LaneLowering &lower,
                                          FragmentStoreOp op,
                                          const TileCoordinates &at,
                                          ArrayRef<Value> values,
                                          Value buffer) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getVia().getType().getParams();
  FragmentType type = op.getFragment().getType();
  if (failed(checkSwizzle(op, params)))
    return failure();
  if (params.getBN() != type.getRows() ||
      params.getSmemCols() != type.getCols() || params.getStages() != 1)
    return op.emitOpError()
           << "goes through a buffer of " << params.getStages() << " x "
           << params.getBN() << " x " << params.getSmemCols()
           << ", expected 1 x " << type.getRows() << " x " << type.getCols();
  Value id = arith::AddIOp::create(
      b, lower.group, lower.i32(once(lower, storeBarriers, lower.groups())));
  auto meetGroup = [&] {
    emitNamedBarrier(lower, id, lower.groupThreads(), /*wait=*/true);
  };
  bool first = !std::exchange(storesInFlight, true);
  if (!first || op->getParentOfType<scf::ForOp>() ||
      op->getParentOfType<scf::WhileOp>()) {
    // The tile before may still be read from the buffer.
    waitForStores(lower);
    meetGroup();
  }

  // Four 8x8 matrices, 16 rows by 16 columns, an instruction: lane l gives the
  // address of row l % 16, of the left half if l < 16.
  SharedTile layout = lower.sharedTile(params);
  LinearAddress address;
  SmallVector<int64_t> basis = imagesOf(layout, "row", 0, 4);
  llvm::append_range(basis, imagesOf(layout, "col", 3, 1));
  address.terms.push_back({lower.lane, basis});
  address.terms.push_back(
      {lower.warp, imagesOf(layout, "row", llvm::Log2_64(kStep),
                            llvm::Log2_64_Ceil(lower.schedule.getWarps()))});
  Value origin =
      arith::DivUIOp::create(b, buffer, lower.i32(layout.elementBytes));
  auto word = VectorType::get({1}, b.getI32Type());
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    Values words;
    for (Value half : {values[i], values[i + 1]})
      for (int64_t row : {0, 1}) {
        Value pair = vector::ShuffleOp::create(
            b, half, half, ArrayRef<int64_t>{2 * row, 2 * row + 1});
        words.push_back(vector::ExtractOp::create(
            b, vector::BitCastOp::create(b, word, pair), ArrayRef<int64_t>{0}));
      }
    Value element =
        emitAddress(lower, address, origin, params, 0, int64_t(i) * 8);
    Value byte = arith::MulIOp::create(b, lower.toI32(element),
                                       lower.i32(layout.elementBytes));
    NVVM::StMatrixOp::create(
        b, pointer(lower, byte), words, NVVM::MMALayout::row,
        NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
        NVVM::LdStMatrixEltType::B16);
  }
  NVVM::FenceProxyOp::create(
      b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  meetGroup();

  auto leader =
      scf::IfOp::create(b, lower.firstOfGroup, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(leader.thenBlock());
  Value map = lower.tensorMap({at.tensor, kGroupRows, params.getBK()});
  Value rows = arith::MulIOp::create(b, lower.group, lower.i32(kGroupRows));
  Value from = arith::AddIOp::create(
      b, buffer, arith::MulIOp::create(b, rows, lower.i32(rowBytes(params))));
  Values rest = at.position;
  rest.front() = arith::AddIOp::create(b, rest.front(), rows);
  for (int64_t block = 0; block < layout.repeats; ++block) {
    Values position{lower.i32(block * params.getBK())};
    llvm::append_range(position, rest);
    Value source =
        arith::AddIOp::create(b, from, lower.i32(block * blockBytes(params)));
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
        b, map, pointer(lower, source), position, /*l2CacheHint=*/Value(),
        NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
  }
  NVVM::CpAsyncBulkCommitGroupOp::create(b);
  return success();
}

void HopperMachine::emitConsumersEnd(LaneLowering &lower) {
  // LDS must outlive what is read from it.
  if (storesInFlight)
    waitForStores(lower);
}
