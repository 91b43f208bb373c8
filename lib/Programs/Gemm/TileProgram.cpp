//===- TileProgram.cpp - The tile program of a product --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ProgramBuilder.h"
#include "Gemm.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemFunction.h"

using namespace mlir;
using namespace kvbuf;

namespace {

/// A block computes a tile of C and walks along k in windows of both matrices.
/// What a window has beyond the end of a matrix reads as zero, and is not
/// stored. Buffers leave to the chip what differs by chip.
class GemmProgram : ProgramBuilder {
public:
  GemmProgram(ImplicitLocOpBuilder &b, GemmOp op, ValueRange operands)
      : ProgramBuilder(b), schedule(*op.getSchedule()),
        transposed(op.getTransposeB()), sizes(op.getSizes()), a(operands[0]),
        right(operands[1]), out(operands[2]),
        element(cast<MemRefType>(a.getType()).getElementType()) {}

  void build();

private:
  Value times(Value x, int64_t factor) {
    return arith::MulIOp::create(b, x, constant(factor));
  }
  /// A buffer for slots of `rows` x `cols` elements.
  Value alloc(int64_t rows, int64_t cols);
  Value tile(Value matrix, int64_t rows, int64_t cols, Value row, Value col,
             Value validRows, Value validCols);
  WorkItemOp createItem();
  /// The sum of a step's product and `sum`.
  Value multiply(Value step, Value sum);

  ScheduleAttr schedule;
  bool transposed;
  std::array<int64_t, 3> sizes;
  Value a, right, out;
  Type element;
  /// Where the tile of C begins, rows and columns from there on, and k.
  Value row, col, rows, cols, depth;
  Value aSlots, bSlots;
};

} // namespace

Value GemmProgram::alloc(int64_t rows, int64_t cols) {
  constexpr int64_t open = KVBufferAttr::kOpenBK | KVBufferAttr::kOpenStages |
                           KVBufferAttr::kOpenSwizzle |
                           KVBufferAttr::kOpenPolicy | KVBufferAttr::kOpenOrder;
  int64_t BK = cols & -cols;
  auto params = KVBufferAttr::get(
      b.getContext(), Operand::Any, element, Policy::DoubleBuffered,
      /*mmaShape=*/ArrayRef<int64_t>(), /*swizzle=*/ArrayRef<int64_t>(),
      /*BN=*/rows, /*WN=*/rows, BK, /*numThreads=*/0, /*depth=*/cols,
      /*kvNumHeads=*/1, /*fullKv=*/true, /*cacheDepth=*/cols,
      /*headDimOffset=*/0, /*regChunkDepth=*/cols,
      /*smemDepth=*/int64_t(llvm::alignTo(cols, BK)), /*stages=*/1,
      /*warpSize=*/0, Dimension::Rows, open);
  return AllocOp::create(b, BufferType::get(b.getContext(), params));
}

Value GemmProgram::tile(Value matrix, int64_t rows, int64_t cols, Value row,
                        Value col, Value validRows, Value validCols) {
  auto type = TileType::get(b.getContext(), rows, cols,
                            cast<MemRefType>(matrix.getType()).getElementType(),
                            /*pageSize=*/0);
  return DramTileOp::create(b, type, matrix, ValueRange{row, col}, validRows,
                            validCols);
}

WorkItemOp GemmProgram::createItem() {
  // Tiles above each other read the same part of B, tiles side by side the same
  // part of A.
  constexpr int64_t all = 0;
  auto coordinate = [&](unsigned which, int64_t step) -> Attribute {
    Attribute extent = ShapedType::isDynamic(sizes[which])
                           ? Attribute(b.getStringAttr(gemm::kSizeNames[which]))
                           : b.getI64IntegerAttr(sizes[which]);
    return CoordinateAttr::get(b.getContext(), extent, step,
                               /*sequences=*/nullptr, /*longest=*/nullptr,
                               /*growing=*/false, all);
  };
  return WorkItemOp::create(b,
                            b.getArrayAttr({coordinate(0, schedule.getBM()),
                                            coordinate(1, schedule.getBN())}),
                            /*reads=*/Attribute());
}

Value GemmProgram::multiply(Value step, Value sum) {
  int64_t BM = schedule.getBM(), BN = schedule.getBN(), window = gemm::kStep;
  Value at = times(step, window);
  Value left = arith::SubIOp::create(b, depth, at);
  Value aTile = tile(a, BM, window, row, at, rows, left);
  Value bTile = transposed ? tile(right, BN, window, col, at, cols, left)
                           : tile(right, window, BN, at, col, left, cols);
  auto load = [&](Value tile, Value slots) -> Value {
    return DramLoadOp::create(b, tile, slots, /*slot=*/Value(),
                              /*pred=*/Value(), /*whole=*/false, /*block=*/0);
  };
  Value aToken = load(aTile, aSlots), bToken = load(bTile, bSlots);
  auto staged =
      LdsStageOp::create(b, ValueRange{aToken, bToken}, IntegerAttr());
  auto contracted = [&](bool cols) {
    return DimensionAttr::get(b.getContext(),
                              cols ? Dimension::Cols : Dimension::Rows);
  };
  Value aPart =
      FragmentLoadOp::create(b, fragment(BM, window, element, Role::A),
                             staged.getStaged()[0], 0, 0, contracted(true));
  Value bPart = FragmentLoadOp::create(
      b,
      transposed ? fragment(BN, window, element, Role::B)
                 : fragment(window, BN, element, Role::B),
      staged.getStaged()[1], 0, 0, contracted(transposed));
  return MmaOp::create(b, aPart, bPart, sum, transposed, /*column=*/0);
}

void GemmProgram::build() {
  int64_t BM = schedule.getBM(), BN = schedule.getBN();
  WorkItemOp item = createItem();
  row = times(item.getResult(0), BM);
  col = times(item.getResult(1), BN);
  Value m = memref::DimOp::create(b, out, 0);
  Value n = memref::DimOp::create(b, out, 1);
  depth = memref::DimOp::create(b, a, 1);
  rows = arith::SubIOp::create(b, m, row);
  cols = arith::SubIOp::create(b, n, col);
  aSlots = alloc(BM, gemm::kStep);
  bSlots = transposed ? alloc(BN, gemm::kStep) : alloc(gemm::kStep, BN);
  Value sum = fill(fragment(BM, BN, b.getF32Type(), Role::Acc), 0);
  Value steps = arith::CeilDivUIOp::create(b, depth, constant(gemm::kStep));
  auto loop =
      scf::ForOp::create(b, constant(0), steps, constant(1), ValueRange{sum});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value next = multiply(loop.getInductionVar(), loop.getRegionIterArg(0));
    scf::YieldOp::create(b, ValueRange{next});
  }
  Value product = loop.getResult(0);
  Type stored = cast<MemRefType>(out.getType()).getElementType();
  if (!stored.isF32())
    product = FragmentConvertOp::create(b, fragment(BM, BN, stored, Role::Acc),
                                        product);
  FragmentStoreOp::create(b, product, tile(out, BM, BN, row, col, rows, cols),
                          /*via=*/Value());
}

/// The problem, as the manifest states it.
static DictionaryAttr describe(GemmOp op, Builder &b) {
  return b.getDictionaryAttr(
      {b.getNamedAttr("op", b.getStringAttr("gemm")),
       b.getNamedAttr("transpose_b", b.getBoolAttr(op.getTransposeB()))});
}

LogicalResult gemm::buildTile(GemmOp op, func::FuncOp func,
                              const TargetInfo &target) {
  if (!op.getSchedule())
    return op.emitOpError()
           << "has no schedule; run kvbuf-choose-schedule first";
  SmallVector<NamedOperand> operands =
      cast<ProblemInterface>(op.getOperation()).getNamedOperands();
  if (failed(verifyAlone(func, op)) ||
      failed(verifyProblemFunction(func, op,
                                   [](unsigned, StringRef) { return false; })))
    return failure();
  FailureOr<SmallVector<StringRef>> names = nameArguments(func, op, operands);
  if (failed(names))
    return failure();

  ImplicitLocOpBuilder b(op.getLoc(), func);
  gpu::GPUFuncOp kernel = createKernel(b, func);
  kernel->setAttr(KVBufferDialect::kScheduleAttr, *op.getSchedule());
  kernel->setAttr(KVBufferDialect::kProblemAttr,
                  ProblemAttr::get(b.getContext(), describe(op, b)));
  std::array<int64_t, 3> sizes = op.getSizes();
  auto size = [&](unsigned which) -> Attribute {
    return ShapedType::isDynamic(sizes[which])
               ? Attribute(b.getStringAttr(kSizeNames[which]))
               : b.getI64IntegerAttr(sizes[which]);
  };
  for (auto [i, name] : llvm::enumerate(*names)) {
    bool isB = name == "b", transposed = op.getTransposeB();
    unsigned rows = !isB ? 0 : transposed ? 1 : 2;
    unsigned cols = name == "a" ? 2 : !isB ? 1 : transposed ? 2 : 1;
    kernel.setArgAttr(i, KVBufferDialect::kNameAttr, b.getStringAttr(name));
    kernel.setArgAttr(i, KVBufferDialect::kAccessAttr,
                      b.getStringAttr(name == "c" ? "write" : "read"));
    kernel.setArgAttr(i, KVBufferDialect::kShapeAttr,
                      b.getArrayAttr({size(rows), size(cols)}));
  }
  b.setInsertionPointToStart(&kernel.getBody().front());
  IRMapping args;
  args.map(func.getArguments(), kernel.getArguments());
  SmallVector<Value> inside =
      llvm::map_to_vector(operands, [&](const NamedOperand &operand) {
        return args.lookup(operand.value);
      });
  GemmProgram(b, op, inside).build();
  endKernel(b, kernel, Phase::Tile, func);
  return success();
}
