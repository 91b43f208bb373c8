//===- NarrowFragments.cpp - Fragments by ordinary reads of LDS -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands of 16 bits from LDS that holds 8-bit elements, or any in an order
// that no instruction for fragments reads, by ordinary reads: of the
// elements of a lane that lie side by side, several at once, of others one by
// one. Whatever the layout, and slow where rows are contracted. Fragments that
// are put into LDS get there by such stores.
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

/// Bytes of a word of a lane's, and the register bit of bytes that chooses
/// between the words of a pair of columns.
static constexpr int64_t kBytesOfWord = 4;
static constexpr unsigned kPairBit = 3;

namespace {
/// Where a lane's elements of a fragment lie in a slot, in runs that lie side
/// by side in both.
class SlotPlaces {
public:
  /// The fragment's element [0, 0] is the slot's [row, col]; with `crossed` its
  /// rows run along the slot's columns. With `matrices` a lane's places are
  /// those of rows of matrices that the words of an atom are
  /// (`MatrixStores`), of lanes that exchange pairs.
  SlotPlaces(Lanes &lower, KVBufferAttr params, FragmentType type, Value slot,
             int64_t row, int64_t col, bool crossed, bool matrices = false);

  /// Whether there is a place for each element that is known without a lane's
  /// number but by bits of it.
  bool isKnown() const { return known; }
  /// Elements of a run, a power of two.
  int64_t run() const { return runSize; }
  /// Calls `fn` with the first place of each run, an index of elements of LDS,
  /// run by run as a lane holds them, atom by atom; of matrices once an atom.
  void forEachRun(llvm::function_ref<void(Value place)> fn) const;

private:
  /// Whether rows that are as many further down as a warp has lie as many bytes
  /// further on, whichever of its rows.
  bool repeatsByWarps() const;
  /// An element's place in the slot, by its place in the product.
  std::pair<int64_t, int64_t> inSlot(int64_t row, int64_t col) const {
    return atom.turned != crossed ? std::pair(col, row) : std::pair(row, col);
  }

  /// The place of an element of the slot, bytes.
  int64_t byteOffset(int64_t row, int64_t col) const {
    return turned ? turned->apply({{"row", row}, {"col", col}}, "byte")
                  : tile.byteOffset(row, col);
  }

  Lanes &lower;
  SharedTile tile;
  /// Of a slot whose columns lie side by side.
  std::optional<LinearLayout> turned;
  const FragmentLayout &atom;
  FragmentType type;
  bool crossed, matrices, known = true;
  int64_t firstRow, firstCol, bytes, align, runSize;
  Value first;
  LinearAddress address;
};
} // namespace

SlotPlaces::SlotPlaces(Lanes &lower, KVBufferAttr params, FragmentType type,
                       Value slot, int64_t row, int64_t col, bool crossed,
                       bool matrices)
    : lower(lower), tile(sharedTile(params)), atom(lower.layouts.of(type)),
      type(type), crossed(crossed), matrices(matrices), firstRow(row),
      firstCol(col), bytes(tile.elementBytes),
      align(slotAlignment(params) / bytes), first(slot) {
  ImplicitLocOpBuilder &b = lower.b;
  if (params.getOrder() == Dimension::Cols)
    turned = lower.machine.turnedTile(lower, params)->layout();
  LinearLayout block = tile.block();
  // Places of elements of the fragment, in the product's coordinates. Where a
  // block begins is no bit of an address if its rows are no power of two.
  auto image = [&](int64_t row, int64_t col) -> int64_t {
    auto [r, c] = inSlot(row, col);
    if (turned)
      return byteOffset(r, c);
    if (c < tile.blockCols)
      return block.apply({{"row", r}, {"col", c}}, "byte");
    known &= llvm::isPowerOf2_64(tile.rows);
    return tile.byteOffset(r, c);
  };
  auto imageOf = [&](StringRef in, unsigned bit) {
    return image(atom.layout.basis(in, bit, "row"),
                 atom.layout.basis(in, bit, "col"));
  };
  SmallVector<int64_t> lanes, warps;
  for (unsigned bit = 0; bit < atom.layout.inLog2("lane"); ++bit)
    lanes.push_back(imageOf("lane", bit));
  if (matrices) {
    // Four lanes have the words of a row.
    known &= lanes[0] == kBytesOfWord && lanes[1] == 2 * kBytesOfWord;
    lanes.erase(lanes.begin(), lanes.begin() + 2);
    lanes.back() ^= imageOf("register", kPairBit);
    for (unsigned bit = 2; bit < atom.layout.inLog2("register"); ++bit)
      lanes.push_back(imageOf("register", bit));
  }
  address.terms.push_back({lower.lane, lanes});
  int64_t warpRows = atom.warpRows(type);
  if (type.getRole() != Role::B && atom.rowWarps > 1 &&
      !llvm::isPowerOf2_64(warpRows)) {
    // Rows of warps are told apart by a sum.
    int64_t part = warpRows * tile.blockCols * bytes;
    known &= !crossed && repeatsByWarps();
    Value rows = arith::MulIOp::create(b, lower.rowPart(atom), lower.i32(part));
    first = arith::AddIOp::create(b, first, rows);
    align = std::min(align, (part & -part) / bytes);
  } else if (type.getRole() != Role::B) {
    for (int64_t bit = 1; bit < atom.rowWarps; bit *= 2)
      warps.push_back(image(warpRows * bit, 0));
    address.terms.push_back({lower.rowPart(atom), warps});
  }
  // Each of the warps that share columns of a product has columns of b of its
  // own, which are rows of the slot where those are not contracted. What of its
  // place is within a block is a term; blocks are added up.
  Value blocks;
  if (atom.sharesCols() && type.getRole() != Role::A) {
    int64_t own = atom.turned ? atom.warpRows(type) : atom.warpCols(type);
    unsigned bits = llvm::Log2_64(atom.gridCols), inside = 0;
    SmallVector<int64_t> parts;
    for (; inside < bits &&
           (atom.turned || turned || own << inside < tile.blockCols);
         ++inside)
      parts.push_back(image(0, own << inside));
    Value part = lower.gridCol(atom);
    if (inside)
      address.terms.push_back({part, parts});
    if (inside < bits)
      blocks = arith::MulIOp::create(
          b, arith::ShRUIOp::create(b, part, lower.i32(inside)),
          lower.i32((own << inside) / tile.blockCols * tile.blockBytes() /
                    bytes));
  }
  // Registers that lie side by side, in what the swizzle keeps together.
  unsigned runBits = 0;
  while (runBits < atom.layout.inLog2("register") &&
         imageOf("register", runBits) == bytes << runBits &&
         bytes << runBits < tile.swizzle.unit)
    ++runBits;
  runSize = int64_t(1) << runBits;
  if (bytes > 1)
    first = arith::DivUIOp::create(b, first, lower.i32(bytes));
  if (blocks)
    first = arith::AddIOp::create(b, first, blocks);
  for (auto &[value, images] : address.terms)
    for (int64_t &image : images)
      image /= bytes;
}

bool SlotPlaces::repeatsByWarps() const {
  int64_t rows = atom.warpRows(type);
  for (int64_t row = rows; row < type.getRows(); ++row)
    for (int64_t col = 0; col < tile.blockCols; ++col)
      if (tile.byteOffset(row, col) !=
          tile.byteOffset(row % rows, col) +
              row / rows * rows * tile.blockCols * bytes)
        return false;
  return true;
}

void SlotPlaces::forEachRun(llvm::function_ref<void(Value)> fn) const {
  ImplicitLocOpBuilder &b = lower.b;
  int64_t rows = atom.warpRows(type), cols = atom.warpCols(type);
  if (atom.turned)
    std::swap(rows, cols);
  for (int64_t r = 0; r < rows; r += atom.rows)
    for (int64_t c = 0; c < cols; c += atom.cols)
      for (int64_t reg = 0; reg < atom.registers();
           reg += matrices ? atom.registers() : runSize) {
        auto at = atom.layout.apply({{"register", reg}});
        auto [row, col] = inSlot(r + at[0], c + at[1]);
        row += firstRow;
        col += firstCol;
        // Where a block begins is no XOR of bits if its rows are no power of
        // two.
        int64_t before = turned || llvm::isPowerOf2_64(tile.rows)
                             ? 0
                             : col / tile.blockCols * tile.blockBytes();
        before /= bytes;
        Value place = address.emit(b, first, align,
                                   byteOffset(row, col) / bytes - before);
        if (before)
          place = arith::AddIOp::create(b, place, lower.index(before));
        fn(place);
      }
}

/// Accumulators from rows of a slot that lie as they are, of any width: where
/// that is 8 words more than a multiple of 16, the rows that lanes read
/// together begin in banks of their own.
static void emitPlainRows(Lanes &lower, FragmentLoadOp op, Value slot,
                          Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  FragmentType type = op.getFragment().getType();
  Type element = type.getElementType();
  const FragmentLayout &atom = lower.layouts.of(type);
  int64_t bytes = element.getIntOrFloatBitWidth() / 8,
          pitch = op.getStaged().getType().getParams().getBK();
  int64_t run = std::min(atom.columnRun(), kTensorAlignment / 2 / bytes);
  Value row = arith::MulIOp::create(b, lower.laneRow(type), lower.i32(pitch));
  Value first = arith::AddIOp::create(b, row, lower.laneCol(type));
  first = arith::AddIOp::create(
      b, first, arith::DivUIOp::create(b, slot, lower.i32(bytes)).getResult());
  first = lower.toIndex(first);
  Value shared = lower.shared(element);
  auto runType = VectorType::get({run}, element);
  int64_t cols = atom.atomCols(type), registers = atom.registers();
  for (int64_t index = 0, e = atom.atoms(type); index < e; ++index) {
    SmallVector<Value> elements;
    for (int64_t reg = 0; reg < registers; reg += run) {
      int64_t place =
          (op.getSlotRow() + atom.rowOffset(index / cols, atom.rowPart(reg))) *
              pitch +
          op.getSlotCol() + index % cols * atom.cols + atom.colOffset(reg);
      Value at = arith::AddIOp::create(b, first, lower.index(place));
      Value loaded = vector::LoadOp::create(b, runType, shared, ValueRange{at},
                                            /*nontemporal=*/false,
                                            llvm::Align(run * bytes));
      for (int64_t i = 0; i < run; ++i)
        elements.push_back(
            vector::ExtractOp::create(b, loaded, ArrayRef<int64_t>{i}));
    }
    words.push_back(vector::FromElementsOp::create(
        b, VectorType::get({registers}, element), elements));
  }
}

LogicalResult kvbuf::emitNarrowFragment(Lanes &lower, FragmentLoadOp op,
                                        Value slot, Values &words) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getStaged().getType().getParams();
  FragmentType type = op.getFragment().getType();
  Type narrow = params.getElementType(), wide = type.getElementType();
  bool widens = narrow != wide;
  if (isTurnedInLds(lower.target, params))
    return op.emitOpError() << (widens ? "widens " : "reads ") << narrow
                            << " of a slot whose columns lie side by side; "
                               "expected a buffer with order = rows";
  if (!llvm::isPowerOf2_64(params.getBK())) {
    emitPlainRows(lower, op, slot, words);
    return success();
  }
  const FragmentLayout &atom = lower.layouts.of(type);
  int64_t own = atom.turned ? atom.warpRows(type) : atom.warpCols(type);
  if (atom.sharesCols() && type.getRole() != Role::A &&
      !llvm::isPowerOf2_64(own) &&
      (atom.turned || own % sharedTile(params).blockCols))
    return op.emitOpError()
           << "has " << own << " columns of the product for each of "
           << atom.gridCols << " warps; expected a power of two";
  SlotPlaces places(lower, params, type, slot, op.getSlotRow(), op.getSlotCol(),
                    op.isCrossed());
  if (!places.isKnown())
    return op.emitOpError()
           << "cannot deal " << type.getRows() << "x" << type.getCols()
           << " elements of a slot of " << params.getBN() << " rows to "
           << atom.rowWarps << " warps";
  // LLVM has no 8-bit floats.
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  Type stored = bytes == 1 ? Type(b.getI8Type()) : narrow;
  int64_t run = places.run();
  Value shared = lower.shared(stored);
  auto runType = VectorType::get({run}, stored);
  Values elements;
  places.forEachRun([&](Value place) {
    Value loaded =
        vector::LoadOp::create(b, runType, shared, ValueRange{place},
                               /*nontemporal=*/false, llvm::Align(run * bytes));
    for (int64_t i = 0; i < run; ++i)
      elements.push_back(
          vector::ExtractOp::create(b, loaded, ArrayRef<int64_t>{i}));
    if (int64_t(elements.size()) < atom.registers())
      return;
    auto all = VectorType::get({atom.registers()}, stored);
    Value widened = vector::FromElementsOp::create(b, all, elements);
    elements.clear();
    if (widens)
      widened = arith::ExtFOp::create(
          b, all.clone(wide),
          arith::BitcastOp::create(b, all.clone(narrow), widened).getResult());
    else if (stored != wide)
      widened = arith::BitcastOp::create(b, all.clone(wide), widened);
    if (atom.words == atom.registers() || type.getRole() == Role::Acc) {
      words.push_back(widened);
      return;
    }
    for (int64_t reg = 0; reg < atom.registers(); reg += atom.words)
      words.push_back(vector::ShuffleOp::create(
          b, widened, widened,
          llvm::to_vector(llvm::seq(reg, reg + atom.words))));
  });
  return success();
}

/// Moves what makes values of what was loaded to where they are stored, if
/// nothing else needs it: until then a lane holds the elements as they were
/// loaded, of which more fit a register, and their conversions stand beside the
/// stores. With `reads` what reads them from LDS comes along, and is listed:
/// the slot is still theirs.
static void sinkConversions(ImplicitLocOpBuilder &b, ArrayRef<Value> values,
                            SmallVectorImpl<Operation *> *reads) {
  SmallVector<Operation *> chain;
  SmallVector<Value> work(values);
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    bool moves =
        op &&
        ((isPure(op) && isa<vector::ShuffleOp, arith::ExtFOp, arith::BitcastOp,
                            vector::FromElementsOp>(op)) ||
         (reads && isa<vector::BitCastOp, vector::ExtractOp, NVVM::PermuteOp,
                       nvgpu::LdMatrixOp, vector::LoadOp>(op)));
    if (!moves || op->getBlock() != b.getInsertionBlock() ||
        !llvm::all_of(op->getUsers(),
                      [&](Operation *user) { return seen.contains(user); }) ||
        !seen.insert(op).second)
      continue;
    chain.push_back(op);
    if (isa<nvgpu::LdMatrixOp, vector::LoadOp>(op))
      reads->push_back(op);
    llvm::append_range(work, op->getOperands());
  }
  // From what is stored back: each op stands before its users.
  Operation *before = nullptr;
  for (Operation *op : chain) {
    if (before)
      op->moveBefore(before);
    else
      op->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
    before = op;
  }
}

/// Lets each of the reads stand before what becomes of the one that is so many
/// before it, so that a lane does not wait for what it has just asked for.
static void readAhead(ArrayRef<Operation *> reads, size_t distance) {
  SmallVector<Operation *> users;
  for (Operation *read : reads)
    users.push_back(read->getNextNode());
  for (size_t i = 1; i < reads.size(); ++i)
    reads[i]->moveBefore(users[i < distance ? 0 : i - distance]);
}

/// How many reads a lane of a team that turns has on their way beside the one
/// that it stores. Where other teams do nothing but wait for it, as those of
/// latent attention, as many as it has registers for.
static size_t readsAhead(Lanes &lower) {
  constexpr int64_t ofOne = 4, beside = 28;
  if (!lower.blockSchedule.getStructure().dividesColumns() || !lower.team)
    return 1;
  int64_t registers = TeamOp(lower.team->op).getRegisters();
  return std::max<int64_t>(1, (registers - beside) / ofOne);
}

/// Whether what is put is read from a slot that is given back after the put
/// alone, in the same block.
static bool isReadLate(RingPutOp put) {
  auto load = put.getFragment().getDefiningOp<FragmentLoadOp>();
  return load && load->getNextNode() == put && load.getFragment().hasOneUse();
}

/// Whether warps share the columns of a product's operand b, which they put as
/// they lie turned; an error if each has others or all of them.
static LogicalResult checkTurnedPut(Lanes &lower, RingPutOp op,
                                    const FragmentLayout &atom) {
  int64_t warps = lower.schedule.getWarps();
  FragmentType type = op.getFragment().getType();
  if (type.getRole() == Role::B && atom.gridCols == warps && !atom.turned)
    return success();
  return op.emitOpError()
         << "turns " << type.getRows() << "x" << type.getCols()
         << " elements of " << type.getElementType() << " by " << warps
         << " warps; expected operand b of a product of bytes, whose columns "
            "they share";
}

bool kvbuf::exchangesPairs(Lanes &lower, FragmentLoadOp load) {
  if (!lower.machine.matrixStores() || !load || !load.getFragment().hasOneUse())
    return false;
  auto put = dyn_cast<RingPutOp>(*load.getFragment().user_begin());
  if (!put || put.getTranspose() ||
      put.getRing().getType().getParams().getOrder() != Dimension::Cols)
    return false;
  // Four words of bytes: of each column of a pair two of the contracted rows.
  const FragmentLayout &atom = lower.layouts.of(load.getFragment().getType());
  const LinearLayout &layout = atom.layout;
  auto isColumn = [&](StringRef in, unsigned bit, int64_t col) {
    return layout.basis(in, bit, "row") == 0 &&
           layout.basis(in, bit, "col") == col;
  };
  return !atom.turned && atom.words == kBytesOfWord && atom.registers() == 16 &&
         layout.inLog2("lane") == 5 && isColumn("register", kPairBit, 1) &&
         isColumn("lane", 4, 8);
}

/// The bits of a word of a lane's.
static Value wordOf(ImplicitLocOpBuilder &b, Value elements) {
  Value bytes = arith::BitcastOp::create(
      b, VectorType::get({kBytesOfWord}, b.getI8Type()), elements);
  return vector::ExtractOp::create(
      b,
      vector::BitCastOp::create(b, VectorType::get({1}, b.getI32Type()), bytes)
          .getResult(),
      ArrayRef<int64_t>{0});
}

LogicalResult kvbuf::emitFragmentPut(Lanes &lower, RingPutOp op,
                                     ArrayRef<Value> words, Value slot) {
  ImplicitLocOpBuilder &b = lower.b;
  KVBufferAttr params = op.getRing().getType().getParams();
  FragmentType type = op.getFragment().getType();
  const FragmentLayout &atom = lower.layouts.of(type);
  bool isTurned = params.getOrder() == Dimension::Cols;
  if (isTurned && !lower.target.turnsBytesForGroups())
    return op.emitOpError() << "puts into a slot whose columns lie side by "
                               "side; expected a buffer with order = rows";
  if (isTurned && failed(checkTurnedPut(lower, op, atom)))
    return failure();
  if (!isTurned && (atom.colWarps > 1 || atom.sharesCols()))
    return op.emitOpError() << "puts a fragment whose columns several warps "
                               "share; expected warp_cols = 1";
  bool matrices =
      exchangesPairs(lower, op.getFragment().getDefiningOp<FragmentLoadOp>());
  SlotPlaces places(lower, params, type, slot, 0, 0, op.getTranspose(),
                    matrices);
  if (!places.isKnown())
    return op.emitOpError()
           << "cannot put " << type.getRows() << "x" << type.getCols()
           << " elements of " << atom.rowWarps << " warps into a slot of "
           << params.getBN() << " rows in blocks of " << params.getBK()
           << " columns";
  int64_t run = places.run(), element = 0;
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  // LLVM has no 8-bit floats.
  Type own = params.getElementType(),
       stored = bytes == 1 ? Type(b.getI8Type()) : own;
  Value shared = lower.shared(stored);
  auto runType = VectorType::get({run}, stored);
  // One read of a slot feeds all words of an atom.
  bool late = isReadLate(op);
  SmallVector<Operation *> reads;
  int64_t together = late ? std::max<int64_t>(atom.registers(), run) : run;
  int64_t width = cast<VectorType>(words.front().getType()).getNumElements();
  places.forEachRun([&](Value place) {
    Values elements;
    int64_t firstWord = element / width;
    if (element % together == 0)
      sinkConversions(
          b,
          words.slice(firstWord,
                      llvm::divideCeil(element + together, width) - firstWord),
          late ? &reads : nullptr);
    if (matrices) {
      SmallVector<Value> stored;
      for (Value word : words.slice(firstWord, atom.registers() / width))
        stored.push_back(wordOf(b, word));
      element += atom.registers();
      lower.machine.matrixStores()->emitMatrixStores(lower, stored, place);
      return;
    }
    Value vector;
    if (run == width) {
      vector = words[firstWord];
      element += run;
    } else {
      for (int64_t i = 0; i < run; ++i, ++element)
        elements.push_back(
            lower.element(words[element / width], element % width));
      vector = vector::FromElementsOp::create(b, VectorType::get({run}, own),
                                              elements);
    }
    if (stored != own)
      vector = arith::BitcastOp::create(b, runType, vector);
    vector::StoreOp::create(b, vector, shared, ValueRange{place},
                            /*nontemporal=*/false, llvm::Align(run * bytes));
  });
  // Of vectors of a slot that is widened a lane has many. A team that asks for
  // more at once is done no earlier than it is needed, and in the way of
  // products: 864, 862, 842 and 834 thousandths of 16-bit tiles' rate with 2,
  // 3, 4 and 8 of 16 on an H200.
  constexpr size_t parts = 8, least = 2;
  if (late && !matrices && !isTurned)
    readAhead(reads, std::max(least, reads.size() / parts));
  // Beside products that overlap with a softmax a team that turns and is done
  // earlier costs more than it wins: 4 % at 128 columns on an H200, where it
  // wins 3 % at 256, whose products do not.
  else if (!std::holds_alternative<SoftmaxAhead>(lower.schedule.getAhead()))
    readAhead(reads, readsAhead(lower));
  return success();
}
