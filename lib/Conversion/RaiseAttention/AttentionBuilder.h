//===- AttentionBuilder.h - Ops in the place of graphs -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_ATTENTIONBUILDER_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_ATTENTIONBUILDER_H

#include "ScoreEmitter.h"

namespace kvbuf::raise {

/// Builds the op in place of a graph, or of an op that is attention by its
/// name. Whatever order the dimensions are in, each operand is reshaped to one
/// dimension a digit, transposed, and reshaped to [batch, rows, heads,
/// head_size]; steps that change nothing are left out.
class AttentionBuilder {
public:
  /// Builds before `at`.
  AttentionBuilder(AttentionMatcher &match, mlir::Operation *at)
      : match(match), graph(match.graph), b(at->getLoc(), at) {}

  /// What takes the place of the results.
  struct Results {
    mlir::Value out;
    /// The log-sum-exp of the scores, if the matcher has coordinates for it.
    mlir::Value lse;
  };
  Results build();

private:
  mlir::RankedTensorType typeOf(mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  mlir::OpFoldResult sizeOf(mlir::Value value, int64_t dim) {
    if (!typeOf(value).isDynamicDim(dim))
      return b.getIndexAttr(typeOf(value).getDimSize(dim));
    return mlir::tensor::DimOp::create(b, value, dim).getResult();
  }
  /// An empty tensor of these sizes.
  mlir::Value empty(llvm::ArrayRef<mlir::OpFoldResult> sizes,
                    mlir::Type element) {
    return mlir::tensor::EmptyOp::create(b, sizes, element);
  }
  /// `tensor`, whose dimensions have the digits `from`, with the digits `to`.
  mlir::Value arrange(mlir::Value tensor, llvm::ArrayRef<Coord> from,
                      llvm::ArrayRef<Coord> to);
  /// One dimension a digit; those without a digit go.
  mlir::Value expandToDigits(mlir::Value tensor, llvm::ArrayRef<Coord> coords);
  /// The reverse.
  mlir::Value collapseToCoords(mlir::Value tensor,
                               llvm::ArrayRef<Coord> coords);
  mlir::Value convert(mlir::Value tensor, mlir::Type element);
  /// The lengths of the sequences, [batch].
  mlir::Value buildLengths(mlir::OpFoldResult batch);
  /// A cache of the pages that keys or values lie in.
  mlir::Value buildPaged(const Pages &pages, mlir::Value lengths);
  /// A cache of a tensor of a sequence's rows each, of which lengths count.
  mlir::Value buildContinuous(mlir::Value tensor, mlir::Value lengths);
  mlir::Value makeCache(mlir::Value data, CacheKind kind, mlir::Value table,
                        mlir::Value lengths);
  /// A tensor of integers of these sizes whose elements `body` computes of
  /// those of `inputs`, which maps read.
  mlir::Value buildIntegers(
      llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type element,
      mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                     mlir::ValueRange)>
          body);
  /// Fills the op's regions; the tensors that they read.
  llvm::SmallVector<mlir::Value> buildRegions(mlir::Region &scores,
                                              mlir::Region &visible);
  /// Lets a region read words of `type` where it reads fewer bits.
  void readWords(mlir::BlockArgument arg, mlir::Type type);

  AttentionMatcher &match;
  ElementGraph &graph;
  mlir::ImplicitLocOpBuilder b;
};

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_ATTENTIONBUILDER_H
