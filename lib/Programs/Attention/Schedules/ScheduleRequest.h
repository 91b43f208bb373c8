//===- ScheduleRequest.h - What a schedule is chosen by ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_SCHEDULEREQUEST_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_SCHEDULEREQUEST_H

#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.h"
#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// What a schedule is chosen by.
struct ScheduleRequest {
  /// Elements of a head of Q and K, before padding.
  int64_t headSize = 0;
  /// Those of a head of V and O.
  int64_t valueHeadSize = 0;
  /// Bytes of an element of O.
  int64_t outBytes = 2;
  /// Tokens of a page of a paged cache; 0 for other caches.
  int64_t pageSize = 0;
  /// Whether tiles may be cut where a copy engine does not know of it: by the
  /// end of a sequence in a cache of many, or of a window.
  bool cutTiles = false;
  /// Whether a mask or the tail hides keys that other rows see (causal or
  /// window).
  bool masked = false;
  /// Whether scores have a soft cap, by which a tile's softmax takes longer.
  bool capped = false;
  /// Whether functions of the problem's own make scores or hide keys, by which
  /// a tile's softmax takes longer; false where they leave tiles out.
  bool ownScores = false;
  /// Whether functions hide keys, and none makes scores: what they read holds
  /// a lane's registers.
  bool hides = false;
  /// Whether functions only compare what they read by the key alone, which the
  /// lanes of a warp share out.
  bool sharesWords = false;
  /// What functions read for each key of a row that lanes can ask for before
  /// they have a tile's scores, in words.
  int64_t readWords = 0;
  /// Whether rows' log-sum-exps are stored, too.
  bool lse = false;
  /// Whether a window hides keys on the left of those that a row sees.
  bool window = false;
  /// The most keys that a row sees, where a window with two ends alone says so;
  /// 0: all.
  int64_t windowKeys = 0;
  /// Heads of K and V, and heads of queries that share one of them.
  int64_t kvHeads = 1, sharing = 1;
  /// Query rows of a sequence; -1 where the types leave them open.
  int64_t queries = -1;
  /// Where the types leave it open: whether launches of rows that the schedule
  /// does not suit (`TargetInfo::clusterGain`) have another kernel.
  bool otherByLaunch = false;
  /// Whether a team may do nothing but move tiles (`producers`).
  bool movingTeam = true;
  /// Whether keys are split over blocks (`split_keys`), and the rows of a tile
  /// then: query rows times the heads that share a head of the cache.
  bool splitKeys = false;
  int64_t foldedRows = 0;
  /// Whether launches have no more than `foldedRows` of a sequence, or tiles of
  /// those side by side: types say so, or who asks for such tiles.
  bool knowsRows = false;
  /// Whether `queries` counts the rows of all heads that share a head of the
  /// cache, whose tiles blocks of a cluster may read for each other.
  bool sharesTiles = false;
  /// Whether sequences may be of different lengths, which the device alone
  /// knows.
  bool lengthsDiffer = false;
  /// Whether blocks of a cluster can load tiles of keys for each other.
  bool sharesLoads = false;
  /// Bytes of an element of the cache: 1 of a quantized one, and of one that is
  /// multiplied as it is.
  int64_t cacheBytes = 2;
  /// Whether tokens of the cache have scales of their own, which are looked up
  /// for each tile.
  bool tokenScales = false;
  /// Bytes of an element of Q.
  int64_t queryBytes = 2;
  /// Whether products are of 8-bit floats.
  bool multipliesBytes() const { return queryBytes == 1; }
  /// Whether values are the first columns of keys, in one slot with them.
  bool latent = false;
  /// Whether a row of the cache is packed of parts of several types, which are
  /// widened on their way into slots.
  bool packed = false;
  /// Of such a row, as `TileOperands` has them.
  int64_t widenedBytes = 0;
  bool widensAhead = false;
  /// Where lists say which blocks of keys a block of queries sees: the rows of
  /// the latter, which tiles of queries divide; else 0.
  int64_t blockRows = 0;
};

/// What a chip proposes for a problem.
struct ScheduleChoice : ScheduleParameters {
  /// Why the problem keeps the chip's general schedule, where it has a faster
  /// kind; else empty.
  std::string note;
};

/// The default schedule for a problem on a chip. The page size bounds BN only
/// through the choice between whole-tile and per-page look-ups.
ScheduleChoice chooseSchedule(const TargetInfo &target,
                              const ScheduleRequest &request);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_SCHEDULEREQUEST_H
