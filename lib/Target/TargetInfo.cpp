//===- TargetInfo.cpp - What the lowering asks of a chip --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Target/TargetInfo.h"
#include "Vendors.h"
#include "kvbuffer/Target/SystemFunctions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace kvbuf;

llvm::StringRef kvbuf::vendorName(Vendor vendor) {
  return vendor == Vendor::NVIDIA ? "nvidia" : "amd";
}

llvm::ArrayRef<llvm::StringLiteral> kvbuf::systemFunctions(Vendor vendor) {
  // CUDA Programming Guide, "Formatted Output", "Assertion" and "Dynamic Global
  // Memory Allocation"; what a kernel asks the last one, the backend answers.
  static constexpr llvm::StringLiteral ofNVIDIA[] = {
      "vprintf", "__assertfail", "malloc", "free", "__nvvm_reflect"};
  if (vendor == Vendor::NVIDIA)
    return ofNVIDIA;
  return {};
}

const MatrixInstruction *TargetInfo::findMatrix(llvm::ArrayRef<int64_t> shape,
                                                llvm::StringRef element) const {
  for (const MatrixInstruction &mma : matrixInstructionsFor(element))
    if (shape == llvm::ArrayRef<int64_t>(mma.shape()))
      return &mma;
  return nullptr;
}

const MatrixInstruction *
TargetInfo::instructionFor(llvm::ArrayRef<int64_t> shape,
                           llvm::StringRef element) const {
  if (const MatrixInstruction *exact = findMatrix(shape, element))
    return exact;
  for (const MatrixInstruction &mma : matrixInstructionsFor(element))
    if (shape.take_front(2) == llvm::ArrayRef<int64_t>{mma.m, mma.n})
      return &mma;
  return nullptr;
}

const MatrixInstruction *
TargetInfo::instructionFor(llvm::ArrayRef<int64_t> shape,
                           llvm::StringRef element, bool byGroups) const {
  if (const MatrixInstruction *named = instructionFor(shape, element);
      named && named->isOfGroups() == byGroups)
    return named;
  for (const MatrixInstruction &mma : matrixInstructionsFor(element))
    if (mma.isOfGroups() == byGroups && shape[1] == mma.n)
      return &mma;
  return nullptr;
}

const MatrixInstruction *
TargetInfo::groupInstruction(llvm::StringRef element) const {
  for (const MatrixInstruction &mma : matrixInstructionsFor(element))
    if (mma.isOfGroups())
      return &mma;
  return nullptr;
}

llvm::SmallVector<MatrixInstruction>
TargetInfo::warpInstructions(llvm::StringRef element) const {
  llvm::SmallVector<MatrixInstruction> known;
  for (const MatrixInstruction &mma : matrixInstructionsFor(element))
    if (!mma.isOfGroups())
      known.push_back(mma);
  return known;
}

std::optional<std::string> TargetInfo::whyNot(llvm::StringRef op) const {
  return vendor == Vendor::AMD ? detail::whyNotAMD(*this, op)
                               : detail::whyNotNVIDIA(*this, op);
}

static bool is16Bit(llvm::StringRef element) {
  return element == "bf16" || element == "f16";
}

/// "a, b and c", or with another word before the last.
template <typename Range>
static std::string listOf(const Range &items, llvm::StringRef last) {
  std::string text;
  size_t left = items.size();
  for (const auto &item : items) {
    text += item;
    --left;
    if (left)
      text += left == 1 ? (" " + last + " ").str() : ", ";
  }
  return text;
}

std::string TargetInfo::shapeText(llvm::ArrayRef<int64_t> shape) {
  return std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" +
         std::to_string(shape[2]);
}

std::string
TargetInfo::shapesOf(llvm::ArrayRef<MatrixInstruction> instructions) {
  llvm::SmallVector<std::string> shapes;
  for (const MatrixInstruction &mma : instructions)
    shapes.push_back(shapeText(mma.shape()));
  return listOf(shapes, "and");
}

llvm::ArrayRef<MatrixInstruction>
TargetInfo::matrixInstructionsFor(llvm::StringRef element) const {
  if (is16Bit(element))
    return matrixInstructions;
  if (llvm::is_contained(float8Formats, element))
    return float8Instructions;
  return {};
}

/// Why a chip cannot multiply elements of a type that it does not have; nothing
/// if it has them.
static std::optional<std::string> whyLacking(const TargetInfo &target,
                                             llvm::StringRef element) {
  // The names of 8-bit floats in MLIR: f8E4M3FN and so on.
  if (!element.starts_with("f8") ||
      llvm::is_contained(target.float8Formats, element))
    return std::nullopt;
  std::string text = ", which " + target.chip + " lacks; ";
  if (target.float8Formats.empty())
    return text + "it has no 8-bit floats";
  return text + "its 8-bit floats are " + listOf(target.float8Formats, "and");
}

/// Why a chip multiplies no operands of a type, if it does not. `unwritten`:
/// what there is not yet for 8-bit floats that it has; `others`: what there is
/// not for types of other kinds.
static std::optional<std::string> whyNone(const TargetInfo &target,
                                          llvm::StringRef element,
                                          const std::string &unwritten,
                                          const std::string &others) {
  if (!target.matrixInstructionsFor(element).empty())
    return std::nullopt;
  if (std::optional<std::string> lacking = whyLacking(target, element))
    return lacking;
  llvm::SmallVector<llvm::StringRef> known = {"bf16", "f16"};
  if (llvm::is_contained(target.float8Formats, element))
    return ", which " + target.chip + " has, but " + unwritten +
           " yet; expected " + listOf(known, "or");
  if (!target.float8Instructions.empty())
    known.append(target.float8Formats);
  return ", for which there " + others + "; expected " + listOf(known, "or");
}

std::optional<std::string>
TargetInfo::whyNoProduct(llvm::StringRef element) const {
  return whyNone(*this, element, "there is no code for its products",
                 "is no matrix instruction on " + chip);
}

std::optional<std::string>
TargetInfo::whyNoKernel(llvm::StringRef element) const {
  return whyNone(*this, element, "there are no kernels for 8-bit floats",
                 "are no kernels");
}

MmaLayouts TargetInfo::layouts(const MatrixInstruction &mma) const {
  return *matrixLayouts(mma.unit, mma.m, mma.n, mma.k * mma.group);
}

bool TargetInfo::feeds(const MatrixInstruction &mma,
                       const MatrixInstruction &next, bool swapped) const {
  MmaLayouts from = layouts(mma), to = layouts(next);
  LinearLayout operand = swapped ? transposed(to.b) : to.a;
  LinearLayout result = swapped ? transposed(from.c) : from.c;
  if (contractionOrder(operand, result))
    return true;
  if (!transposesAmongLanes)
    return false;
  std::optional<LinearLayout> turned = transposedAmongLanes(result);
  return turned && contractionOrder(operand, *turned);
}

Swizzle TargetInfo::swizzle(const MatrixInstruction &mma, int64_t rowBytes,
                            int64_t elementBytes, bool transposed,
                            bool direct) const {
  return vendor == Vendor::NVIDIA
             ? conflictFreeSwizzle(rowBytes, banks)
             : detail::swizzleAMD(*this, mma, rowBytes, elementBytes,
                                  transposed, direct);
}

bool TargetInfo::lanesLookUp(int64_t rows, int64_t page, int64_t warps) const {
  // Of several warps each would look up all rows; where copies are a wave's own
  // instructions, each needs many of them, but where it has rows of one page.
  constexpr int64_t rowsOfWave = 16;
  int64_t few = warps > 1 && page % rowsOfWave ? 1 : fewPages;
  return looksUpByLane && page && rows <= waveSize && rows > few * page &&
         (warps == 1 || has(CopyEngine::Waves));
}

bool TargetInfo::canCopyDirectly(int64_t rows, int64_t rowBytes,
                                 int64_t pageSize, int64_t warps) const {
  if (!has(CopyEngine::Waves))
    return true;
  if (has(CopyEngine::WaveBoxes))
    return !pageSize;
  // One instruction fills whole rows of one block, from one page, or from where
  // its lanes say.
  constexpr unsigned widestLoad = 16;
  int64_t bytes = waveSize * asyncCopyBytes.back();
  bool byLane = warps > 1 && asyncCopyBytes.back() == widestLoad &&
                lanesLookUp(rows, pageSize, warps);
  return rows * rowBytes % bytes == 0 && bytes >= rowBytes &&
         (byLane || pageSize * rowBytes % bytes == 0);
}

std::optional<TargetInfo> kvbuf::lookupTarget(llvm::StringRef chip) {
  if (std::optional<TargetInfo> target = detail::lookupNVIDIA(chip))
    return target;
  return detail::lookupAMD(chip);
}

llvm::ArrayRef<llvm::StringRef> kvbuf::knownTargets() {
  static const llvm::StringRef names[] = {
#define KVBUF_CHIP(NAME) NAME,
#include "kvbuffer/Target/Chips.def"
  };
  return names;
}
