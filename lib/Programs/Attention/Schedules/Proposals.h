//===- Proposals.h - The parts of a default schedule ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_PROPOSALS_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_PROPOSALS_H

#include "ScheduleRequest.h"
#include "llvm/Support/MathExtras.h"
#include <utility>

namespace kvbuf::detail {

/// The head sizes of Q and K, and of V and O, padded to whole LDS blocks of
/// `BK` columns.
inline std::pair<int64_t, int64_t>
paddedHeadSizes(const ScheduleRequest &request, int64_t BK) {
  return {llvm::alignTo(request.headSize, BK),
          llvm::alignTo(request.valueHeadSize, BK)};
}

/// A vendor's default schedule.
ScheduleChoice scheduleNVIDIA(const TargetInfo &target,
                              const ScheduleRequest &request);
/// Fills in a schedule with a team that moves, where the chip and the problem
/// allow one; else returns false and, where only the problem is in the way,
/// says why in `choice.note`. Expects `choice.mma` and `choice.BK`.
bool chooseMovingTeam(const TargetInfo &target, const ScheduleRequest &request,
                      ScheduleChoice &choice);
/// The same for quantized caches, whose elements one more team widens.
bool chooseWideningTeam(const TargetInfo &target,
                        const ScheduleRequest &request, ScheduleChoice &choice);
/// The same for products of bytes, whose values one more team turns.
bool chooseTurningTeam(const TargetInfo &target, const ScheduleRequest &request,
                       ScheduleChoice &choice);
ScheduleChoice scheduleAMD(const TargetInfo &target,
                           const ScheduleRequest &request);
/// The same for waves of 32 lanes, as those of gfx1250.
ScheduleChoice scheduleGFX1250(const TargetInfo &target,
                               const ScheduleRequest &request);

/// The default schedule of latent attention on any chip.
ScheduleChoice scheduleLatent(const TargetInfo &target,
                              const ScheduleRequest &request);

} // namespace kvbuf::detail

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULES_PROPOSALS_H
