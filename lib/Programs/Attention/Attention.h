//===- Attention.h - The programs of attention ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_ATTENTION_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_ATTENTION_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/SizeNames.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"

namespace kvbuf {

/// The operands of a problem, and what its kernels call them. A cache's own
/// tensors have its name and theirs: "k.table"
/// (`CacheLayout::getIndexTensors`), "k.scales".
llvm::SmallVector<NamedOperand> namedOperands(AttentionOp op);

/// The append that is a part of an attention problem: a `kvbuffer.cache_append`
/// before it in its block, into its caches. Null where there is none.
CacheAppendOp appendOf(AttentionOp op);

/// The numbers that a kernel of an attention problem has for the sizes that
/// conditions name, where its types fix them: a name that no tensor's shape has
/// any more has no value at a launch.
llvm::StringMap<int64_t> fixedSizesOf(mlir::Operation *kernel);

/// When a launch does better with a kernel that splits keys over blocks.
struct FewQueryRows {
  /// With up to so many query rows of a sequence.
  int64_t most;
  /// Rows of the kernel's tiles (BM): query rows times the heads that share a
  /// head of the cache.
  int64_t tile;
};

/// The same for a problem on memrefs whose types leave the number of rows open;
/// none for others, where no such kernel fits the chip, and where a row's bits
/// must not depend on how many there are.
std::optional<FewQueryRows> fewQueryRows(AttentionOp op,
                                         const TargetInfo &target);

/// The most queries of a sequence that by default split its keys, however many
/// heads share one of the cache.
int64_t mostSplitQueries(AttentionOp op, const TargetInfo &target);

/// Whether the keys of a problem, whose types are memrefs but of latent
/// attention, are split over blocks where nobody asks for a schedule.
bool splitsKeysByDefault(AttentionOp op, const TargetInfo &target);

/// Whether the schedule that is chosen for a problem whose caches are widened
/// ahead can multiply what is there (`canWidenAhead`).
bool multipliesWidened(AttentionOp op, const TargetInfo &target);

/// Whether types fix a number of rows that is few enough for keys to be split
/// over blocks where sequences are few, and more than a kernel of many rows,
/// which a launch of more sequences takes.
bool splitsFewSequences(AttentionOp op, const TargetInfo &target);

/// ProblemInterface's methods of attention.
llvm::LogicalResult chooseSchedule(AttentionOp op, const ScheduleQuery &query);
llvm::LogicalResult buildTile(AttentionOp op, mlir::func::FuncOp function,
                              const TargetInfo &target);

/// See ProblemInterface::getVariants.
KernelVariants attentionVariants(AttentionOp problem,
                                 const VariantQuery &query);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_ATTENTION_H
