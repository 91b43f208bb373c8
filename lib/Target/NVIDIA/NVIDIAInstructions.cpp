//===- NVIDIAInstructions.cpp - Instructions that NVIDIA chips lack -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's backend cannot select some of these for a chip that lacks them, others
// it writes as text that only the assembler refuses, or the driver of whoever
// runs the kernel. PTX ISA, "Target ISA Notes" of each instruction.
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"

using namespace kvbuf;
using llvm::StringRef;

namespace {
/// Ops by the beginning of their names, and the first chip that has them;
/// `exact`: only chips with an "a" after their number.
struct Since {
  llvm::StringLiteral prefix;
  unsigned chip;
  bool exact = false;
};
} // namespace

/// The first entry that an op's name begins with counts.
static constexpr Since kSince[] = {
    {"kvbuffer.wgmma", 90, true},
    {"nvvm.wgmma.", 90, true},
    {"nvvm.setmaxregister", 90, true},
    {"nvvm.tcgen05.", 100, true},
    {"nvvm.cp.async.bulk.", 90},
    {"nvvm.mbarrier.try_wait", 90},
    {"nvvm.mbarrier.arrive.expect_tx", 90},
    {"nvvm.cluster.", 90},
    {"nvvm.mapa", 90},
    {"nvvm.elect.sync", 90},
    {"nvvm.stmatrix", 90},
    {"nvvm.fence.mbarrier.init", 90},
    {"nvvm.fence.proxy", 90},
    {"nvvm.griddepcontrol", 90},
};

std::optional<std::string> detail::whyNotNVIDIA(const TargetInfo &target,
                                                StringRef op) {
  StringRef name = target.chip;
  unsigned number = 0;
  if (!name.consume_front("sm_") || name.consumeInteger(10, number))
    return std::nullopt;
  for (const Since &since : kSince) {
    if (!op.starts_with(since.prefix))
      continue;
    // Instructions of a chip with an "a" are that chip's alone.
    bool has = since.exact ? number == since.chip && name == "a"
                           : number >= since.chip;
    if (has)
      return std::nullopt;
    return "it " + std::string(since.exact ? "is of" : "came with") + " sm_" +
           std::to_string(since.chip) + (since.exact ? "a" : "");
  }
  return std::nullopt;
}
