//===- ScheduleRepair.h - What gives way to what is asked -*- C++ -* ------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A chip proposes a schedule for a problem; users ask for some parameters of
/// another one. Here is which of the chip's other parameters give way to those,
/// and to what the problem has. What users ask for never gives way: a schedule
/// that cannot be is refused (ScheduleRules.cpp, ScheduleLimits.cpp,
/// ProblemLimits.cpp).
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULEREPAIR_H
#define KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULEREPAIR_H

#include "Schedules/ScheduleRequest.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/AskedSchedule.h"

namespace kvbuf {

/// Lets the parameters of a chip's choice give way that do not go with what is
/// asked for or with the problem.
void repairSchedule(AttentionOp op, const AskedSchedule &asked,
                    const TargetInfo &target, ScheduleChoice &choice);

/// How many words of 32 bits the problem's functions read for each key, where
/// all that they need to know where is the row and the key; nothing where they
/// read something else by the key.
std::optional<int64_t> wordsReadByKeys(AttentionOp op);

/// Whether what the problem's functions read by the key alone is only compared,
/// as documents' numbers are, so that a warp's lanes may share it out.
bool comparesTogether(AttentionOp op);

} // namespace kvbuf

#endif // KVBUFFER_LIB_PROGRAMS_ATTENTION_SCHEDULEREPAIR_H
