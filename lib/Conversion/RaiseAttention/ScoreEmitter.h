//===- ScoreEmitter.h - Functions of scores out of graphs -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_SCOREEMITTER_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_SCOREEMITTER_H

#include "MatchAttention.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kvbuf::raise {

/// Computes a graph's masks and biases in a region of a `kvbuffer.attention`:
/// which keys are visible, or (`scores`) what their scores are. The regions of
/// an op have the same `captures`.
class ScoreEmitter {
public:
  ScoreEmitter(AttentionMatcher &match, mlir::Location loc, mlir::Block *body,
               llvm::SmallVectorImpl<mlir::Value> &captures, bool scores)
      : match(match), graph(match.graph), b(loc, loc.getContext()), body(body),
        captures(captures) {
    b.setInsertionPointToEnd(body);
    auto index = b.getIndexType();
    if (scores)
      result = body->addArgument(b.getF32Type(), loc);
    // The position of the query is not used: graphs count rows.
    mlir::Value batch = body->addArgument(index, loc),
                head = body->addArgument(index, loc),
                row = body->addArgument(index, loc);
    body->addArgument(index, loc);
    mlir::Value key = body->addArgument(index, loc);
    Coord heads = match.kvHeads;
    llvm::append_range(heads, match.group);
    split(batch, match.batch);
    split(head, heads);
    split(row, match.rows);
    split(key, match.keys);
    firstCapture = body->getNumArguments();
  }

  /// The type of the tensor that a capture is, or a number becomes.
  static mlir::RankedTensorType tensorTypeOf(mlir::Value capture);

  /// Applies what changes scores.
  void emit(const Hiding &hiding);
  /// Leaves those keys visible that `hiding`, a selection, does not hide.
  void emitVisible(const Hiding &hiding);
  /// Yields the result. All captures are known.
  void finish() {
    if (!captures.empty())
      argumentOf(captures.size() - 1);
    YieldOp::create(b, result);
  }

private:
  /// Where the digits of a coordinate come from.
  void split(mlir::Value number, llvm::ArrayRef<Digit> digits) {
    int64_t below = 1;
    Coord coord = graph.resolve(digits);
    for (auto [i, digit] : llvm::enumerate(llvm::reverse(coord))) {
      sources[digit] = {number, below, i + 1 == coord.size()};
      below *= graph.getExtent(digit);
    }
  }
  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value digitValue(Digit digit);
  mlir::Value coordValue(llvm::ArrayRef<Digit> coord);
  mlir::Value compute(Expr *e);
  mlir::Value computeOnce(Expr *e);
  /// The region's argument for a tensor, and for a capture.
  mlir::Value capture(mlir::Value tensor);
  mlir::Value argumentOf(size_t capture);

  struct Source {
    mlir::Value number;
    int64_t below;
    bool isFirst;
  };
  AttentionMatcher &match;
  ElementGraph &graph;
  mlir::ImplicitLocOpBuilder b;
  mlir::Block *body;
  /// The score, or whether the key is visible; null as long as all are.
  mlir::Value result;
  llvm::DenseMap<Digit, Source> sources;
  llvm::DenseMap<Expr *, mlir::Value> computed;
  /// The tensors, and numbers, that the regions read, in the order of their
  /// arguments.
  llvm::SmallVectorImpl<mlir::Value> &captures;
  unsigned firstCapture = 0;
};

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_SCOREEMITTER_H
