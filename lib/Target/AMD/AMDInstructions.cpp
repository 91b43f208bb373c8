//===- AMDInstructions.cpp - Instructions that AMD chips lack -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's rocdl dialect has the instructions of all AMD chips. Its backend ends
// compilation on one that the chip lacks, with a message about its own graph;
// the tables here are for a better one, earlier. They follow LLVM's features of
// gfx942, gfx950 and gfx1250 (`MAIInsts`, `GFX940Insts`, `GFX950Insts`,
// `GFX1250Insts`).
//
//===----------------------------------------------------------------------===//

#include "Vendors.h"
#include "llvm/ADT/STLExtras.h"

using namespace kvbuf;
using llvm::StringRef;

/// Ops of later or other families, by the beginning of their names.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
    kForeign[] = {
        {"wmma.", "WMMA is RDNA's; this chip has MFMA"},
        {"s.wait.", "gfx12 has a counter for each kind of access; this chip "
                    "has s_waitcnt"},
        {"s.barrier.", "split and named barriers came with gfx12"},
        {"s.get.", "split and named barriers came with gfx12"},
        {"s.wakeup.barrier", "split and named barriers came with gfx12"},
        {"ds.atomic.", "barriers in LDS came with gfx1250"},
        {"tensor.", "tensor copies came with gfx1250"},
        {"cluster.", "clusters came with gfx1250"},
        {"global.load.async.", "this copy into LDS came with gfx1250"},
        {"permlanex16", "permlanex16 is RDNA's"},
        {"cvt.scale.", "this conversion came with gfx1250"},
};

/// Ops that gfx1250 lacks, which other chips of the vendor have.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
    kNotGfx1250[] = {
        {"mfma.", "MFMA is CDNA's; this chip has WMMA"},
        {"smfmac.", "MFMA is CDNA's; this chip has WMMA"},
        {"s.waitcnt", "this chip has a counter for each kind of access, and "
                      "s.wait.* for each"},
        {"ds.read.tr", "this chip's transposed LDS reads are ds.load.tr*"},
        {"raw.ptr.buffer.load.lds", "this chip copies into LDS by "
                                    "global.load.async.* and tensor.*"},
        {"raw.buffer.load.lds", "this chip copies into LDS by "
                                "global.load.async.* and tensor.*"},
        {"global.load.lds", "this chip copies into LDS by "
                            "global.load.async.* and tensor.*"},
        {"load.to.lds", "this chip copies into LDS by global.load.async.* "
                        "and tensor.*"},
};

/// Ops that came with gfx950.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral>
    kSinceGfx950[] = {
        {"ds.read.tr", "transposed LDS reads came with gfx950"},
        {"permlane16.swap", "swaps between halves of a wave came with gfx950"},
        {"permlane32.swap", "swaps between halves of a wave came with gfx950"},
        {"cvt.scalef32.", "scaled conversions came with gfx950"},
};

/// MFMAs that neither chip has: bf16 with 2 elements a lane and i8 with 4 were
/// gfx908's.
static constexpr llvm::StringLiteral kGone[] = {
    "mfma.f32.32x32x2bf16", "mfma.f32.16x16x2bf16", "mfma.f32.4x4x2bf16",
    "mfma.f32.32x32x4bf16", "mfma.f32.16x16x8bf16", "mfma.i32.32x32x8i8",
    "mfma.i32.16x16x16i8"};

/// MFMAs of gfx942 alone.
static constexpr llvm::StringLiteral kGfx942Only[] = {"mfma.f32.16x16x8.xf32",
                                                      "mfma.f32.32x32x4.xf32"};

/// MFMAs of gfx950 alone.
static constexpr llvm::StringLiteral kGfx950Only[] = {
    "mfma.f32.16x16x32.bf16",
    "mfma.f32.16x16x32.f16",
    "mfma.f32.32x32x16.bf16",
    "mfma.f32.32x32x16.f16",
    "mfma.i32.16x16x64.i8",
    "mfma.i32.32x32x32.i8",
    "mfma.scale.f32.16x16x128.f8f6f4",
    "mfma.scale.f32.32x32x64.f8f6f4",
    "smfmac.f32.16x16x128.bf8.bf8",
    "smfmac.f32.16x16x128.bf8.fp8",
    "smfmac.f32.16x16x128.fp8.bf8",
    "smfmac.f32.16x16x128.fp8.fp8",
    "smfmac.f32.16x16x64.bf16",
    "smfmac.f32.16x16x64.f16",
    "smfmac.f32.32x32x32.bf16",
    "smfmac.f32.32x32x32.f16",
    "smfmac.f32.32x32x64.bf8.bf8",
    "smfmac.f32.32x32x64.bf8.fp8",
    "smfmac.f32.32x32x64.fp8.bf8",
    "smfmac.f32.32x32x64.fp8.fp8",
    "smfmac.i32.16x16x128.i8",
    "smfmac.i32.32x32x64.i8"};

std::optional<std::string> detail::whyNotAMD(const TargetInfo &target,
                                             StringRef op) {
  if (!op.consume_front("rocdl."))
    return std::nullopt;
  if (target.matrixUnit() == MatrixUnit::Wmma) {
    for (const auto &[prefix, reason] : kNotGfx1250)
      if (op.starts_with(prefix))
        return reason.str();
    return std::nullopt;
  }
  for (const auto &[prefix, reason] : kForeign)
    if (op.starts_with(prefix))
      return reason.str();
  bool cdna4 = target.chip == "gfx950";
  if (!cdna4)
    for (const auto &[prefix, reason] : kSinceGfx950)
      if (op.starts_with(prefix))
        return reason.str();
  if (!llvm::is_contained(kGone, op) &&
      !llvm::is_contained(cdna4 ? llvm::ArrayRef(kGfx942Only)
                                : llvm::ArrayRef(kGfx950Only),
                          op))
    return std::nullopt;
  return "the chip has no matrix instruction of this shape and type; for bf16 "
         "and f16 it has " +
         TargetInfo::shapesOf(target.matrixInstructions);
}
