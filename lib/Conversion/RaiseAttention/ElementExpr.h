//===- ElementExpr.h - What an element of a tensor is computed by -*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads graphs of `linalg` on tensors element by element: an element at some
/// coordinates is an expression of elements of other tensors. Named ops and
/// generics, transposes, broadcasts and reshapes all become the same
/// expressions, so that what a graph computes can be compared without looking
/// at how it is written. Nothing is rewritten.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_ELEMENTEXPR_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_ELEMENTEXPR_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include <deque>
#include <optional>

namespace kvbuf::raise {

/// A variable that runs from 0 to below an extent.
using Digit = unsigned;

/// A coordinate in a dimension: a number of mixed radix, the most significant
/// digit first. The extents of the digits multiply to that of the dimension; no
/// digit is 0, in a dimension of extent 1.
using Coord = llvm::SmallVector<Digit, 2>;

/// How a reduction combines elements.
enum class Combiner { Add, Max, Or, And };

/// A scalar of the graph.
struct Expr {
  enum class Kind {
    /// The element of `value` at `coords`.
    Element,
    /// The number `constant`.
    Constant,
    /// The number that `coords[0]` is.
    Index,
    /// `value`, which no coordinate changes.
    Scalar,
    /// The op `name` of `operands`.
    Op,
    /// All elements over the reduction loops of `op`, combined.
    Reduction,
    /// Something else, equal to nothing but itself, that `op` makes at
    /// `coords`: of an op `tensor.extract`, the element of `value` at the
    /// indices `operands`.
    Unknown
  };
  Kind kind;
  mlir::Type type;
  mlir::Value value;
  llvm::SmallVector<Coord, 4> coords;
  mlir::TypedAttr constant;
  std::optional<mlir::OperationName> name;
  /// The attributes of an op, without those of fast math.
  mlir::DictionaryAttr attrs;
  llvm::SmallVector<Expr *, 3> operands;
  mlir::Operation *op = nullptr;
  Combiner combiner = Combiner::Add;
  /// Reductions: which result of `op`; the loops that are reduced, in a
  /// dimension of more than one element.
  unsigned result = 0;
  llvm::SmallVector<unsigned, 1> reduced;
  /// What an element is computed by, once asked for.
  Expr *definition = nullptr;
  bool asked = false;

  bool isOp(llvm::StringRef opName) const {
    return kind == Kind::Op && name->getStringRef() == opName;
  }
};

/// The expressions of a graph, made as they are asked for.
class ElementGraph {
public:
  /// With `sizesAgree` no dimension of unknown size is broadcast.
  explicit ElementGraph(mlir::MLIRContext *context, bool sizesAgree = false)
      : context(context), sizesAgree(sizesAgree) {}

  /// A new variable.
  Digit makeDigit(int64_t extent);
  /// The extent of a digit; dynamic if the types do not tell it.
  int64_t getExtent(Digit digit) const { return digits[digit].extent; }
  /// The product of the extents.
  int64_t getExtent(llvm::ArrayRef<Digit> coord) const;
  /// A coordinate that runs through a dimension.
  Coord makeCoord(int64_t extent);
  /// The coordinate in digits that reshapes have not split.
  Coord resolve(llvm::ArrayRef<Digit> coord) const;

  /// The coordinate, in a dimension of which this one is a part, `distance`
  /// further; of one digit, else empty.
  Coord shifted(llvm::ArrayRef<Digit> coord, int64_t distance);
  /// The coordinate that is always `number`.
  Coord makeFixed(int64_t number);
  /// Whether a coordinate does not begin at 0, and whether it runs through all
  /// of a dimension.
  bool isShifted(llvm::ArrayRef<Digit> coord) const;
  bool fills(llvm::ArrayRef<Digit> coord, int64_t size) const;

  /// The element of a tensor.
  Expr *element(mlir::Value tensor, llvm::ArrayRef<Coord> coords);
  /// The number that a coordinate is, of the type `index`.
  Expr *index(llvm::ArrayRef<Digit> coord);
  /// A value that is no tensor, as far as its ops are pure and of scalars.
  Expr *scalar(mlir::Value value);
  /// A value that stands for itself, whatever computes it.
  Expr *opaque(mlir::Value value);
  Expr *makeConstant(mlir::TypedAttr value);
  Expr *makeOp(llvm::StringRef name, mlir::Type type,
               llvm::ArrayRef<Expr *> operands);
  /// What `op` computes, of these operands.
  Expr *makeOpLike(mlir::Operation *op, llvm::ArrayRef<Expr *> operands);
  /// Whether two numbers compare so.
  Expr *compare(mlir::arith::CmpIPredicate predicate, Expr *a, Expr *b);

  /// What an element is computed by; null where the graph begins for us.
  Expr *define(Expr *element);
  /// The expression that `e` is after reshapes, transposes, broadcasts and
  /// conversions between floats: an op, a reduction, a number, or an element of
  /// which there is no definition.
  Expr *view(Expr *e);
  /// What a reduction combines, at the given coordinates of `reduced`.
  Expr *body(Expr *reduction, llvm::ArrayRef<Coord> coords);
  /// New coordinates for the loops of a reduction.
  llvm::SmallVector<Coord> makeReducedCoords(Expr *reduction);
  /// The extents of the loops of a reduction.
  llvm::SmallVector<int64_t> getReducedExtents(Expr *reduction);

  /// Whether two expressions compute the same, but for the rounding of floats.
  bool equal(Expr *a, Expr *b);
  /// The number that an expression always is.
  std::optional<double> constantOf(Expr *e);
  /// The digits that an expression depends on.
  void collectDigits(Expr *e, llvm::SmallSetVector<Digit, 8> &result);

  /// Ops that define anything that was asked for.
  const llvm::SetVector<mlir::Operation *> &getVisited() const {
    return visited;
  }

private:
  struct DigitInfo {
    int64_t extent;
    /// Once split: the digits that it is made of.
    Coord parts;
    /// What it begins at: of a digit that runs like `base`, or of one number.
    int64_t begin = 0;
    std::optional<Digit> base = std::nullopt;
  };
  Expr *make(Expr::Kind kind, mlir::Type type);
  /// What `op` makes where the loops around it have these coordinates.
  Expr *makeUnknown(mlir::Type type, mlir::Operation *op,
                    llvm::ArrayRef<std::optional<Coord>> loops);
  Expr *defineOnce(Expr *element);
  Expr *defineLinalg(Expr *element, mlir::linalg::LinalgOp op, unsigned result);
  Expr *defineSoftmax(Expr *element, mlir::linalg::SoftmaxOp op);
  Expr *defineReshape(Expr *element, mlir::Operation *op);
  /// The same of sizes that are numbers at run time, where each dimension is
  /// one of the source's.
  Expr *defineReshape(Expr *element, mlir::tensor::ReshapeOp op);
  /// The element at indices that are no coordinates.
  Expr *gathered(mlir::tensor::ExtractOp extract, mlir::linalg::LinalgOp op,
                 llvm::ArrayRef<std::optional<Coord>> loops,
                 llvm::DenseMap<mlir::Value, Expr *> &memo);
  /// Gives dimensions of a shape from `begin` to before `end` the digits of
  /// given coordinates, as far as these are of as many elements.
  bool regroup(llvm::ArrayRef<Coord> given, int64_t givenBegin,
               int64_t givenEnd, llvm::ArrayRef<int64_t> shape, int64_t begin,
               int64_t end, llvm::SmallVectorImpl<Coord> &coords);
  /// The coordinate that an index of an element is, in a dimension of a tensor;
  /// nothing for others.
  std::optional<Coord> followIndex(mlir::Value index, mlir::Value tensor,
                                   unsigned dim, mlir::linalg::LinalgOp op,
                                   llvm::ArrayRef<std::optional<Coord>> loops,
                                   llvm::DenseMap<mlir::Value, Expr *> &memo);
  Expr *defineSlice(Expr *element, mlir::tensor::ExtractSliceOp op);
  Expr *defineInsertion(Expr *element, mlir::tensor::InsertSliceOp op);
  Expr *defineConcat(Expr *element, mlir::tensor::ConcatOp op);
  /// The coordinate in a part of a dimension, if it stays in it; `isOutside`:
  /// it never is there.
  std::optional<Coord> inPart(llvm::ArrayRef<Digit> coord, int64_t offset,
                              int64_t size, bool &isOutside);
  /// A value of the region of `op` where its loops have these coordinates.
  Expr *inRegion(mlir::Value value, mlir::linalg::LinalgOp op,
                 llvm::ArrayRef<std::optional<Coord>> loops,
                 llvm::DenseMap<mlir::Value, Expr *> &memo);
  /// The operand of `op` that a block argument stands for.
  Expr *operandAt(mlir::OpOperand &operand, mlir::linalg::LinalgOp op,
                  llvm::ArrayRef<std::optional<Coord>> loops);
  /// Coordinates in a tensor of `shape`, of which `coord` is one in the
  /// collapsed dimension. Splits digits where it has to.
  std::optional<llvm::SmallVector<Coord>>
  splitCoord(Coord coord, llvm::ArrayRef<int64_t> shape);

  mlir::MLIRContext *context;
  bool sizesAgree;
  std::deque<Expr> exprs;
  mutable std::vector<DigitInfo> digits;
  llvm::DenseMap<std::pair<Digit, int64_t>, Digit> shiftedDigits;
  llvm::DenseMap<int64_t, Digit> fixedDigits;
  llvm::SetVector<mlir::Operation *> visited;
};

/// An op's attributes, without what allows it to round otherwise.
mlir::DictionaryAttr getMeaning(mlir::Operation *op);

/// Whether a constant is at or below every score of its type that is not
/// hidden: -inf, or about the lowest of the type.
bool isLowest(std::optional<double> value, mlir::Type type);

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_ELEMENTEXPR_H
