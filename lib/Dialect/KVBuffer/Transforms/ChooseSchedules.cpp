//===- ChooseSchedules.cpp - Choose a schedule for each problem -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/Transforms/AskedSchedule.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"

namespace kvbuf {
#define GEN_PASS_DEF_CHOOSESCHEDULE
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

FailureOr<AskedSchedule> AskedSchedule::parse(StringRef text, Location loc) {
  AskedSchedule asked;
  SmallVector<StringRef> items;
  text.split(items, ',', -1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [name, value] = item.split('=');
    name = name.trim();
    if (std::optional<std::string> expected =
            setParameter(asked.parameters, name, value.trim()))
      return emitError(loc) << "schedule parameter '" << item.trim()
                            << "': expected " << *expected;
    asked.named.insert(name);
  }
  return asked;
}

void AskedSchedule::applyTo(ScheduleParameters &choice) const {
  // An instruction that somebody names takes the place of those that it is
  // proposed beside, of which `mma_shape` is one for all.
  if (names("mma_shape"))
    choice.scores = choice.values = {};
  if (names("scores") || names("values"))
    choice.mma = {};
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  if (names(NAME))                                                             \
    choice.FIELD = parameters.FIELD;
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
}

StringRef AskedSchedule::nameBeside(ArrayRef<llvm::StringLiteral> known) const {
  StringRef first;
  for (StringRef name : named.keys())
    if (!llvm::is_contained(known, name) && (first.empty() || name < first))
      first = name;
  return first;
}

namespace {
struct ChooseSchedulePass
    : kvbuf::impl::ChooseScheduleBase<ChooseSchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetInfo> target =
        chooseTarget(getOperation(), chip, kDefaultChip);
    if (failed(target))
      return signalPassFailure();
    bool found = false;
    ScheduleQuery query{*target, schedule.getValue(), otherByLaunch};
    WalkResult result =
        getOperation().walk([&](ProblemInterface op) -> WalkResult {
          if (op.isByLanes())
            return WalkResult::advance();
          found = true;
          if (failed(verifyOnMemrefs(op)))
            return WalkResult::interrupt();
          return op.chooseSchedule(query);
        });
    if (result.wasInterrupted())
      return signalPassFailure();
    if (!found && !schedule.empty())
      getOperation()->emitWarning()
          << "has no problem with a schedule, which the option schedule='"
          << schedule << "' is for";
    getOperation()->setAttr(KVBufferDialect::kTargetAttr,
                            StringAttr::get(&getContext(), target->chip));
  }
};
} // namespace
