//===- FillCounts.h - How often slots have been filled ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_FILLCOUNTS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_FILLCOUNTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include <functional>
#include <optional>

namespace kvbuf {

/// `n` times `each`, the number by which a count grows in an iteration.
mlir::Value timesEach(mlir::OpBuilder &b, mlir::Location loc, mlir::Value n,
                      int64_t each);

/// Iterations of a loop from `lb` to `ub` whose step is 1.
mlir::Value tripsOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lb,
                    mlir::Value ub);

/// How often each of several channels has been filled where a program is being
/// written, by what the ops of the program that it is written from fill.
class FillCounts {
public:
  /// The number of the channel that an op fills, or nothing.
  using ChannelOf = std::function<std::optional<unsigned>(mlir::Operation *)>;

  /// `none`: the count of all `channels` to begin with.
  FillCounts(unsigned channels, ChannelOf channelOf, mlir::Value none)
      : channelOf(std::move(channelOf)), counts(channels, none) {}

  /// The fillings of a channel so far.
  mlir::Value &operator[](unsigned channel) { return counts[channel]; }
  /// Those of some channels.
  llvm::SmallVector<mlir::Value> of(llvm::ArrayRef<unsigned> chosen) const;
  /// Those of all.
  llvm::SmallVector<mlir::Value> all() const { return counts; }
  /// Says all of them.
  void set(llvm::ArrayRef<mlir::Value> values) { counts.assign(values); }

  /// Fillings of each channel by a block's own ops.
  llvm::SmallVector<int64_t> directlyIn(mlir::Block &block) const;
  /// Whether ops inside of `op` fill a channel.
  bool isFilledIn(mlir::Operation *op, unsigned channel) const;
  /// The channels that `op` fills, one for each set of channels that have the
  /// same count before it and after it.
  llvm::SmallVector<unsigned> representatives(mlir::Operation *op) const;
  /// Gives the counts `values` to the representatives of `op` and to those that
  /// they stand for; to the others, as to all before it, those of `before`.
  void assign(mlir::Operation *op, llvm::ArrayRef<unsigned> chosen,
              mlir::ValueRange values, llvm::ArrayRef<mlir::Value> before);

private:
  /// Whether an op fills two channels the same number of times on every path.
  bool fillsAlike(mlir::Operation *op, unsigned a, unsigned b) const;

  ChannelOf channelOf;
  llvm::SmallVector<mlir::Value> counts;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_TRANSFORMS_FILLCOUNTS_H
