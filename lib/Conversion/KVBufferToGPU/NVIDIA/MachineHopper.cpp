//===- MachineHopper.cpp - Rings on NVIDIA, sm_90a --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Products and stores of HopperMachine.
///
//===----------------------------------------------------------------------===//

#include "MachineHopper.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::hopper;

/// Contracted bytes of one instruction: 16 elements of 16 bits, 32 of 8.
static constexpr int64_t kStepBytes = 32;
/// Rows and columns of what `stmatrix` takes at a time, of 16 bits.
static constexpr int64_t kStep = 16;
/// Where the four keys that a lane has of 16 in accumulators of scores, the
/// next one of a pair and two 8 further on, stand in a row of turned values:
/// side by side, those of the next lane after them. By the bits of a key.
static constexpr unsigned kKeyBits[] = {0, 2, 3, 1};
/// The widest n of one instruction.
static constexpr int64_t kMaxColumns = 256;
/// Descriptors count 16 bytes.
static constexpr int64_t kDescriptorUnit = 16;

std::unique_ptr<Machine> kvbuf::createBoxMachine(bool registers) {
  return std::make_unique<BoxMachine>(registers);
}

std::unique_ptr<Machine> kvbuf::createHopperMachine() {
  return std::make_unique<HopperMachine>();
}

/// The exact quotient is a call, whose registers consumers do not have; the
/// approximate reciprocal is right to 1 ulp (PTX ISA, "rcp").
Value HopperMachine::emitRatio(Lanes &lower, Value x, Value y) {
  ImplicitLocOpBuilder &b = lower.b;
  Value inverse = NVVM::RcpApproxFtzF32Op::create(b, b.getF32Type(), y);
  return arith::MulFOp::create(b, x, inverse);
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
    b.setInsertionPoint(lower.rings.teamStart);
    Value address = arith::AndIOp::create(b, ldsAddress, lower.i32(0x3ffff));
    origin = arith::OrIOp::create(b, units(address), i64(constant));
  }
  return arith::AddIOp::create(b, origin, units(offset));
}

/// Swizzled as the matrix unit knows it: the 16-byte vectors of a row change
/// places by the bits of its number that repeat every 8 rows, of which rows
/// shorter than 128 bytes fill a part.
std::optional<TransposedTile> HopperMachine::turnedTile(Lanes &lower,
                                                        KVBufferAttr params) {
  if (params.getOrder() != Dimension::Cols)
    return std::nullopt;
  TransposedTile tile;
  tile.keys = params.getBN();
  tile.depth = params.getSmemCols();
  tile.banks = lower.target.banks;
  tile.elementBytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  tile.keyBits.assign(std::begin(kKeyBits), std::end(kKeyBits));
  int64_t row = tile.keys * tile.elementBytes, repeat = 128;
  for (int64_t n = 1; n < kSwizzleRows; n *= 2)
    tile.folds.push_back(n * row < repeat ? 0
                                          : n * row / repeat * kDescriptorUnit);
  return tile;
}

/// Whether what a group multiplies by lies as wgmma reads it; an error if not.
static LogicalResult checkOperandB(MmaStartOp op) {
  StagedType staged = op.getB().getType();
  KVBufferAttr params = staged.getParams();
  Type element = params.getElementType();
  bool isTurned = params.getOrder() == Dimension::Cols;
  if (!isTurned) {
    if (element.getIntOrFloatBitWidth() == 8 && !op.getTransposeB())
      return op.emitOpError()
             << "contracts rows of " << element
             << ", which wgmma reads where they lie side by side alone; "
                "expected a buffer with order = cols, which a team puts into";
    return checkSwizzle(op, params);
  }
  int64_t keys = params.getBN();
  if (keys != 32 && keys != 64 && keys != 128)
    return op.emitOpError()
           << "reads rows of " << keys << " keys; expected 32, 64 or 128";
  if (op.getTransposeB() || staged.getRows() != keys ||
      staged.getCol() % kSwizzleRows)
    return op.emitOpError()
           << "multiplies by a part of keys that lie side by side; expected "
              "all "
           << keys << " of them, and columns from a multiple of "
           << kSwizzleRows << " on";
  auto fragment = dyn_cast<FragmentType>(op.getA().getType());
  auto a = fragment ? dyn_cast_or_null<MmaLayoutAttr>(fragment.getLayout())
                    : MmaLayoutAttr();
  SmallVector<int64_t> order(std::size(kKeyBits));
  for (auto [bit, place] : llvm::enumerate(kKeyBits))
    order[place] = int64_t(1) << bit;
  order.push_back(int64_t(1) << order.size());
  if (a && a.getOrder() == ArrayRef<int64_t>(order))
    return success();
  return op.emitOpError() << "multiplies by keys in the order of accumulators; "
                             "expected an operand a that comes from some";
}

LogicalResult HopperMachine::emitMmaStart(LaneLowering &lower, MmaStartOp op,
                                          ArrayRef<Value> a, Value slot,
                                          ArrayRef<Value> acc,
                                          Values &results) {
  ImplicitLocOpBuilder &b = lower.b;
  StagedType bStaged = op.getB().getType();
  KVBufferAttr bParams = bStaged.getParams();
  auto aStaged = dyn_cast<StagedType>(op.getA().getType());
  Type bElement = bParams.getElementType(),
       aElement =
           aStaged ? aStaged.getParams().getElementType()
                   : cast<FragmentType>(op.getA().getType()).getElementType();
  bool byColumns = bParams.getOrder() == Dimension::Cols;
  bool turned = !op.getTransposeB() && !byColumns;
  int64_t elementBytes = bElement.getIntOrFloatBitWidth() / 8;
  int64_t step = kStepBytes / elementBytes;
  PendingType result = op.getResult().getType();
  int64_t n = result.getCols();
  int64_t contracted =
      op.getTransposeB() ? bStaged.getCols() : bStaged.getRows();
  FragmentType fragment = result.getFragment();
  int64_t warpRows = lower.layouts.of(fragment).warpRows(fragment);
  if (warpRows * lower.target.warpsPerMatrixGroup() != kGroupRows)
    return op.emitOpError()
           << "has " << warpRows << " rows a warp, wgmma multiplies "
           << kGroupRows / lower.target.warpsPerMatrixGroup();
  if (n > kMaxColumns || n % 8)
    return op.emitOpError() << "has " << n
                            << " columns; one wgmma has a multiple of 8, at "
                               "most "
                            << kMaxColumns;
  if (contracted % step)
    return op.emitOpError() << "contracts " << contracted
                            << " elements; expected a multiple of " << step;
  if (failed(checkOperandB(op)) ||
      (aStaged && failed(checkSwizzle(op, aStaged.getParams()))))
    return failure();
  // Where a view may begin: rows repeat every 8, contracted elements are taken
  // by steps, other columns by blocks.
  auto checkView = [&](StagedType view, bool byBlocks) -> LogicalResult {
    int64_t unit = byBlocks ? view.getParams().getBK() : step;
    if (view.getRow() % kSwizzleRows == 0 && view.getCol() % unit == 0)
      return success();
    return op.emitOpError()
           << "multiplies a view at [" << view.getRow() << ", " << view.getCol()
           << "]; expected a row and a column that are multiples of "
           << kSwizzleRows << " and " << unit;
  };
  if ((!byColumns && failed(checkView(bStaged, turned))) ||
      (aStaged && failed(checkView(aStaged, false))))
    return failure();

  // K-major operands: the contracted dimension runs along a row; a step moves
  // along it and then to the next block of columns.
  auto alongRows = [](StagedType view, int64_t element) {
    KVBufferAttr params = view.getParams();
    int64_t bytes = rowBytes(params);
    int64_t linear = (view.getCol() + element) *
                     params.getElementType().getIntOrFloatBitWidth() / 8;
    return (linear / bytes * blockBytes(params) + linear % bytes +
            view.getRow() * bytes) /
           kDescriptorUnit;
  };
  int64_t bRowBytes =
      byColumns ? bParams.getBN() * elementBytes : rowBytes(bParams);
  SmallVector<int64_t> aSteps, bSteps;
  for (int64_t k = 0; k < contracted; k += step) {
    if (aStaged)
      aSteps.push_back(alongRows(aStaged, k));
    if (byColumns) {
      bSteps.push_back((bStaged.getCol() * bRowBytes + k * elementBytes) /
                       kDescriptorUnit);
      continue;
    }
    // MN-major: a step is 16 rows further down.
    bSteps.push_back(alongRows(bStaged, turned ? 0 : k) +
                     (turned ? k * rowBytes(bParams) / kDescriptorUnit : 0));
  }
  // The leading offset is unused for swizzled K-major operands; for MN-major
  // ones it leads to the next block of columns. The stride leads to the next 8
  // rows.
  Value bDesc =
      descriptor(lower, slot, turned ? blockBytes(bParams) : kDescriptorUnit,
                 kSwizzleRows * bRowBytes, bRowBytes);
  Value aDesc;
  if (aStaged) {
    KVBufferAttr params = aStaged.getParams();
    Value rows = arith::MulIOp::create(
        b, lower.rings.group, lower.i32(kGroupRows * rowBytes(params)));
    aDesc = descriptor(lower, arith::AddIOp::create(b, a.front(), rows),
                       kDescriptorUnit, kSwizzleRows * rowBytes(params),
                       rowBytes(params));
  }
  SmallVector<Type> types(n / 8, VectorType::get({4}, b.getF32Type()));
  Values words;
  if (!aStaged)
    llvm::append_range(words, a);
  // LLVM has no 8-bit floats.
  if (elementBytes == 1)
    for (Value &word : words)
      word = arith::BitcastOp::create(
          b, cast<VectorType>(word.getType()).clone(b.getI8Type()), word);
  auto wgmma = WgmmaOp::create(
      b, types, /*c=*/acc, /*a=*/words, aDesc, bDesc, aSteps, bSteps, bElement,
      aElement == bElement ? TypeAttr() : TypeAttr::get(aElement), n,
      /*transpose_b=*/turned);
  llvm::append_range(results, wgmma.getResults());
  return success();
}

/// Moves conversions to words of operand a after a wait, if the product that
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

void HopperMachine::emitMmaWait(Lanes &lower, Values &values, int64_t younger) {
  auto wait = WgmmaWaitOp::create(lower.b, ValueRange(values).getTypes(),
                                  values, younger);
  values.assign(wait.getResults().begin(), wait.getResults().end());
  if (younger == 0)
    roundBehind(wait);
}

LogicalResult HopperMachine::emitScale(LaneLowering &lower, RingWaitOp op,
                                       Value slot, float by) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  if (int64_t rows = lower.rings.groups * kGroupRows; params.getBN() != rows)
    return op.emitOpError()
           << "multiplies a slot of " << params.getBN()
           << " rows, of which each of the team's " << lower.rings.groups
           << " groups of warps multiplies " << kGroupRows << "; expected "
           << rows << " rows";
  constexpr int64_t elements = 8, elementBytes = 2;
  int64_t groupBytes = kGroupRows * rowBytes(params);
  int64_t step = lower.rings.groupThreads * elements * elementBytes;
  // A lane's vectors of the group's rows, wherever in them.
  Value rows =
      arith::MulIOp::create(b, lower.rings.group, lower.i32(groupBytes));
  Value own = arith::MulIOp::create(
      b,
      arith::RemUIOp::create(b, lower.thread,
                             lower.i32(lower.rings.groupThreads)),
      lower.i32(elements * elementBytes));
  Value first = arith::AddIOp::create(
      b, slot, arith::AddIOp::create(b, rows, own).getResult());
  first = arith::DivUIOp::create(b, first, lower.i32(elementBytes));
  auto narrow = VectorType::get({elements}, b.getBF16Type());
  auto wide = narrow.clone(b.getF32Type());
  Value factor =
      arith::ConstantOp::create(b, wide, DenseElementsAttr::get(wide, by));
  Value memory = lower.shared(b.getBF16Type());
  llvm::Align align(elements * elementBytes);
  int64_t blocks = params.getSmemCols() / params.getBK();
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t byte = 0; byte < groupBytes; byte += step) {
      int64_t behind = (block * blockBytes(params) + byte) / elementBytes;
      Value at = lower.toIndex(
          arith::AddIOp::create(b, first, lower.i32(behind)).getResult());
      Value x = vector::LoadOp::create(b, narrow, memory, ValueRange{at},
                                       /*nontemporal=*/false, align);
      x = arith::MulFOp::create(b, arith::ExtFOp::create(b, wide, x), factor);
      vector::StoreOp::create(b, arith::TruncFOp::create(b, narrow, x), memory,
                              ValueRange{at}, /*nontemporal=*/false, align);
    }
  // The matrix unit reads by another proxy what all of the group have stored.
  fenceWrites(lower);
  Value id = arith::AddIOp::create(
      b, lower.rings.group,
      lower.i32(once(lower, scaleBarriers, lower.rings.groups)));
  emitNamedBarrier(lower, id, lower.rings.groupThreads, /*wait=*/true);
  return success();
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

SmallVector<TensorMapRequest> HopperMachine::tensorMapsFor(Lanes &lower,
                                                           Operation *op) {
  auto store = dyn_cast<FragmentStoreOp>(op);
  if (!store)
    return BoxMachine::tensorMapsFor(lower, op);
  Value tensor = tensorOf(store.getTile());
  auto team = op->getParentOfType<TeamOp>();
  if (!store.getVia() || !tensor ||
      (team && !team.isWholeGroups(lower.target.warpsPerMatrixGroup())))
    return {};
  KVBufferAttr params = store.getVia().getType().getParams();
  return {TensorMapRequest{tensor,
                           TileView::edgesOf(store.getTile()).rowDimension,
                           kGroupRows, params.getBK(), 0, params.getDepth()}};
}

void HopperMachine::waitForStores(LaneLowering &lower) {
  ImplicitLocOpBuilder &b = lower.b;
  auto leader =
      scf::IfOp::create(b, lower.rings.firstOfGroup, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(leader.thenBlock());
  NVVM::CpAsyncBulkWaitGroupOp::create(b, 0, /*read=*/b.getUnitAttr());
}

void HopperMachine::emitStagger(Lanes &lower, Value group) {
  // A third of what three groups take for a tile of 128 keys is 700 to 950
  // cycles; 1200 were as good (docs/caches.md).
  constexpr int64_t cycles = 700;
  ImplicitLocOpBuilder &b = lower.b;
  Type i32 = b.getI32Type();
  Value wanted = arith::MulIOp::create(b, group, lower.i32(cycles));
  Value start = NVVM::ClockOp::create(b, i32);
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&loop.getBefore());
  Value now = NVVM::ClockOp::create(b, i32);
  Value waits =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                            arith::SubIOp::create(b, now, start), wanted);
  scf::ConditionOp::create(b, waits, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
}

/// Stores matrices whose rows begin where lanes say.
static void storeMatrices(ImplicitLocOpBuilder &b, Value row,
                          ArrayRef<Value> words) {
  NVVM::StMatrixOp::create(b, row, words, NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
                           NVVM::LdStMatrixEltType::B16);
}

void HopperMachine::emitMatrixStores(Lanes &lower, ArrayRef<Value> words,
                                     Value row) {
  ImplicitLocOpBuilder &b = lower.b;
  // Sums of 64 bits, whose constant parts LLVM leaves to the instruction.
  Type i64 = b.getI64Type();
  Value address = arith::AddIOp::create(
      b, arith::ExtUIOp::create(b, i64, ldsAddress).getResult(),
      arith::IndexCastOp::create(b, i64, row).getResult());
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::Shared));
  storeMatrices(b, LLVM::IntToPtrOp::create(b, type, address), words);
}

LogicalResult HopperMachine::emitStoreVia(LaneLowering &lower,
                                          FragmentStoreOp op,
                                          const TileView &tile,
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
      b, lower.rings.group,
      lower.i32(once(lower, storeBarriers, lower.rings.groups)));
  auto meetGroup = [&] {
    emitNamedBarrier(lower, id, lower.rings.groupThreads, /*wait=*/true);
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
  SharedTile layout = sharedTile(params);
  LinearAddress address;
  SmallVector<int64_t> basis = imagesOf(layout, "row", 0, 4);
  llvm::append_range(basis, imagesOf(layout, "col", 3, 1));
  address.terms.push_back({lower.lane, basis});
  address.terms.push_back(
      {lower.warp,
       imagesOf(layout, "row", llvm::Log2_64(kStep),
                llvm::Log2_64_Ceil(lower.layouts.of(type).rowWarps))});
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
    storeMatrices(b, pointer(lower, byte), words);
  }
  NVVM::FenceProxyOp::create(
      b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  meetGroup();

  auto leader =
      scf::IfOp::create(b, lower.rings.firstOfGroup, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(leader.thenBlock());
  Value map = lower.signature.tensorMap({tile.box.tensor,
                                         tile.edges.rowDimension, kGroupRows,
                                         params.getBK(), 0, params.getDepth()});
  Value rows =
      arith::MulIOp::create(b, lower.rings.group, lower.i32(kGroupRows));
  Value from = arith::AddIOp::create(
      b, buffer, arith::MulIOp::create(b, rows, lower.i32(rowBytes(params))));
  Values rest = tile.box.position;
  rest.front() = arith::AddIOp::create(b, rest.front(), rows);
  for (int64_t block = 0; block < layout.repeats; ++block) {
    Value column = lower.i32(block * params.getBK());
    if (tile.box.column)
      column = arith::AddIOp::create(b, tile.box.column, column);
    Values position{column};
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

void HopperMachine::emitTeamEnd(LaneLowering &lower) {
  // LDS must outlive what is read from it.
  if (storesInFlight)
    waitForStores(lower);
  storesInFlight = false;
  storeBarriers = scaleBarriers = 0;
  origins.clear();
}
