//===- GivenAttention.h - Ops that are attention by their names --*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Other compilers have ops for attention. They are read by their names,
/// operands and attributes, registered or not, so that nothing here depends on
/// their dialects. What a reader understands of an op is what the raising pass
/// finds in a graph (RaiseAttention/MatchAttention.h): tensors and the digits
/// of their dimensions, and expressions of masks and scores. The rest is
/// shared.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_CONVERTATTENTIONOPS_GIVENATTENTION_H
#define KVBUFFER_LIB_CONVERSION_CONVERTATTENTIONOPS_GIVENATTENTION_H

#include "RaiseAttention/MatchAttention.h"

namespace kvbuf::named {

using raise::Coord;
using raise::Digit;
using raise::Expr;
using raise::Hiding;

/// The order of dimensions of Q, K and V.
enum class Layout {
  /// [..., heads, tokens, head_size], or [..., tokens, head_size].
  HeadsTokens,
  /// [batch, tokens, heads, head_size].
  TokensHeads,
  /// [batch, tokens, heads * head_size].
  Packed
};

/// An op that is attention by its name, as its reader understands it.
class GivenAttention {
public:
  GivenAttention(mlir::Operation *op, mlir::Type roundTo, bool rowsSeeKeys)
      : op(op), match(op->getResult(0), roundTo, rowsSeeKeys),
        graph(match.graph) {
    match.anchor = op;
  }

  /// Says why the op stays.
  llvm::LogicalResult refuse(const llvm::Twine &reason) {
    match.why = reason.str();
    return llvm::failure();
  }

  /// The attribute of this name, inherent or not; null without it.
  template <typename Attr> Attr get(llvm::StringRef name) {
    return llvm::dyn_cast_or_null<Attr>(op->getAttr(name));
  }

  /// Takes Q, K and V, which are builtin tensors of one rank. Heads that share
  /// keys are those that follow each other. `Packed` operands have these
  /// numbers of heads.
  llvm::LogicalResult setOperands(mlir::Value q, mlir::Value k, mlir::Value v,
                                  Layout layout, int64_t packedHeads = 0,
                                  int64_t packedKVHeads = 0);
  /// The result is a tensor of this type, in this layout.
  llvm::LogicalResult setResult(mlir::RankedTensorType type, Layout layout);
  /// Scores are multiplied with a number, by default 1 / sqrt(head_size).
  void setScale(std::optional<double> scale);
  /// The coordinates that a mask's dimensions have, from the last to the first:
  /// those of the sequences, the heads, the rows and the keys.
  llvm::SmallVector<Coord> maskCoords();
  /// Hides keys where a tensor of truth values is false, or adds its numbers.
  /// Dimensions of 1 stand for all.
  llvm::LogicalResult addMask(mlir::Value mask, llvm::ArrayRef<Coord> coords);
  /// Hides the keys after the query's own row, both counted from the first.
  void addCausal();
  /// Hides keys where a truth value is false.
  void hideUnless(Expr *visible) {
    match.score.hidings.push_back({Hiding::Form::WhereFalse, visible,
                                   -std::numeric_limits<double>::infinity()});
  }
  /// Hides keys, or rows, from the number on that a tensor [batch] has.
  llvm::LogicalResult addLengths(mlir::Value lengths,
                                 llvm::ArrayRef<Digit> tokens);
  /// An op of numbers of the type `index`.
  Expr *subtract(Expr *a, int64_t number);

  mlir::Operation *op;
  raise::AttentionMatcher match;
  raise::ElementGraph &graph;
  /// The coordinates of dimensions of sequences, from the first, of heads, and
  /// of the values' last dimension.
  llvm::SmallVector<Coord> sequences;
  Coord heads, columns;
  /// Which result is O, and which the log-sum-exp.
  unsigned out = 0;
  std::optional<unsigned> lse;
  /// What takes the place of other results. Those without may have no users.
  llvm::SmallVector<
      std::pair<unsigned, std::function<mlir::Value(mlir::OpBuilder &)>>>
      others;
};

/// Reads an op of a name; fails, and says why, where it cannot be taken.
using Reader = llvm::LogicalResult (*)(GivenAttention &);

llvm::LogicalResult readTorchSDPA(GivenAttention &given);
llvm::LogicalResult readTMTensor(GivenAttention &given);
llvm::LogicalResult readIREEAttention(GivenAttention &given);
llvm::LogicalResult readIREEOnlineAttention(GivenAttention &given);
llvm::LogicalResult readCudnnCall(GivenAttention &given);
llvm::LogicalResult readComposite(GivenAttention &given);
llvm::LogicalResult readONNX(GivenAttention &given);

/// A value of torch's dialect as a builtin tensor: what it was cast from, or a
/// cast before `op`. Null where it is no tensor with a type of elements.
mlir::Value asBuiltinTensor(mlir::Operation *op, mlir::Value value);
/// The type that a tensor of torch's dialect has as a builtin tensor; null for
/// other types.
mlir::RankedTensorType getBuiltinType(mlir::Type type);
/// Whether a value is `none` of torch's, or ONNX's, or MLIR's.
bool isNone(mlir::Value value);

} // namespace kvbuf::named

#endif // KVBUFFER_LIB_CONVERSION_CONVERTATTENTIONOPS_GIVENATTENTION_H
