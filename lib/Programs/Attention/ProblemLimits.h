//===- ProblemLimits.h - What a chip has for a problem ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Whether a schedule suits a problem of attention and the chip has room for
/// it. What it takes of a chip, `ScheduleLimits` computes; which lists of
/// parameters are a schedule is in ScheduleRules.cpp.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_PROBLEMLIMITS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_PROBLEMLIMITS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"

namespace kvbuf {

/// What the tiles of a problem are of.
TileOperands operandsOf(AttentionOp op);

/// The rows of latent attention that lanes of a team widen: as the cache's type
/// describes them, or elements of 8 bits beside wider queries, which are one
/// part, with the scale beside. Null: products read them as they are.
RowAttr rowOfTeams(AttentionOp op);

/// What a schedule of the problem takes of a chip.
ScheduleLimits limitsOf(AttentionOp op, const Schedule &schedule,
                        const TargetInfo &target);

/// Checks that a schedule splits the keys of latent attention: no other program
/// reads values out of the slots of keys.
llvm::LogicalResult checkLatent(AttentionOp op, ScheduleAttr schedule);

/// Parts into which tiles of `rows` rows cut the query heads that share a head
/// of the cache: of equal numbers of heads, as few as there can be. Rows of
/// latent attention have many heads; those of other problems stay together.
int64_t headPartsOf(AttentionOp op, int64_t rows);

/// Query tokens of a sequence, of a number that types fix, up to which tiles
/// have the rows of several heads, and launches of few sequences split keys:
/// those of a tree that speculative decoding verifies.
inline constexpr int64_t kMostTreeQueries = 64;

/// Query tokens that are few whatever the heads that share a head of the cache:
/// those of a step of speculative decoding.
inline constexpr int64_t kFewQueries = 8;

/// The heads that tiles of queries have side by side where a team moves tiles:
/// all that share a head of the cache, of sequences whose number of rows types
/// fix and which are so few that tiles of a head of its own would read keys
/// once more for each; else 1. `rows`: those of a tile.
int64_t foldedHeadsOf(AttentionOp op, int64_t rows);

/// The most keys that a row sees, where the mask has two ends and no list of
/// blocks shows keys in spite of it.
std::optional<int64_t> mostKeysOfRows(AttentionOp op);

/// The head sizes for messages: "192, 128 of values,"; "128" if there is one.
std::string headSizesText(AttentionOp op);

/// Why the blocks of a cluster could not load tiles of K and V for each other;
/// empty if they can.
llvm::StringRef whyNotShared(AttentionOp op, const TargetInfo &target);

/// What of a problem's quantized caches no team widens for the others ("scales
/// for ..."); empty if there is nothing.
llvm::StringRef whyNotWidened(AttentionOp op);

/// Checks that a schedule can be built on a chip; says at the op what does not
/// fit and what the limit is. `isDefault`: nobody asked for any of it; then it
/// may need more registers than a lane has, which the assembler keeps in
/// memory.
llvm::LogicalResult checkFits(AttentionOp op, ScheduleAttr schedule,
                              const TargetInfo &target, bool isDefault);

/// Why teams do not move the rows of a latent attention's cache, whose packing
/// their warps would undo; empty where they do, or nothing is packed.
llvm::StringRef whyNotPackedByTeams(AttentionOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_PROBLEMLIMITS_H
