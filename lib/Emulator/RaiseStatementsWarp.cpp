//===- RaiseStatementsWarp.cpp - Lanes and tensor maps in PTX -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Data Movement and Conversion Instructions: shfl.sync,
// tensormap.replace, tensormap.cp_fenceproxy", "Parallel Synchronization and
// Communication Instructions: vote.sync, redux.sync, elect.sync".
//
//===----------------------------------------------------------------------===//

#include "RaiseStatements.h"

#include "kvbuffer/Runtime/TensorMap.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstddef>

using namespace mlir;
using namespace kvbuf::emu;
using kvbuf::rt::SoftwareTensorMap;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

bool StatementRaiser::raiseLanes(StringRef opcode,
                                 const std::vector<PtxOperand> &o) {
  MLIRContext *context = op.getContext();
  Type word = b.getI32Type(), bit = b.getI1Type();
  if (opcode == "activemask.b32" && o.size() == 1)
    return set(o[0], call("llvm.nvvm.activemask", {}, word));
  StringRef rest = opcode;
  if (rest.consume_front("vote.sync.") && o.size() == 3) {
    auto [what, type] = rest.split('.');
    auto kind = NVVM::symbolizeVoteSyncKind(what);
    Value p = get(o[1], bit), mask = get(o[2], word);
    return kind && p && mask && type == (what == "ballot" ? "b32" : "pred") &&
           set(o[0],
               make("nvvm.vote.sync", {mask, p},
                    attr("kind", NVVM::VoteSyncKindAttr::get(context, *kind)),
                    what == "ballot" ? word : bit)
                   ->getResult(0));
  }
  if (rest.consume_front("redux.sync.") && o.size() == 3) {
    auto [what, type] = rest.split('.');
    bool isUnsigned = type == "u32" && (what == "min" || what == "max");
    Value x = get(o[1], word), mask = get(o[2], word);
    return x && mask && (type == "u32" || type == "s32" || type == "b32") &&
           set(o[0], call("llvm.nvvm.redux.sync." +
                              Twine(isUnsigned ? "u" : "") + what,
                          {x, mask}, word));
  }
  // "d|p": the value, and whether there was such a lane.
  auto both = [&](const PtxOperand &to, Value first, Value second) {
    return to.kind == PtxOperand::List
               ? to.parts.size() == 2 && set(to.parts[0], first) &&
                     set(to.parts[1], second)
               : set(to, first);
  };
  if (opcode == "elect.sync" && o.size() == 2) {
    Value mask = get(o[1], word);
    if (!mask)
      return false;
    Value leads = make("nvvm.elect.sync", mask, {}, bit)->getResult(0);
    return both(o[0],
                LLVM::CountTrailingZerosOp::create(b, loc, word, mask, false),
                leads);
  }
  if (!rest.consume_front("shfl.sync.") || !rest.consume_back(".b32") ||
      o.size() != 5)
    return false;
  auto kind = NVVM::symbolizeShflKind(rest);
  Value x = get(o[1], word), lane = get(o[2], word), clamp = get(o[3], word),
        mask = get(o[4], word);
  if (!kind || !x || !lane || !clamp || !mask)
    return false;
  Value r = make("nvvm.shfl.sync", {mask, x, lane, clamp},
                 {attr("kind", NVVM::ShflKindAttr::get(context, *kind)),
                  attr("return_value_and_is_valid", b.getUnitAttr())},
                 Type(LLVM::LLVMStructType::getLiteral(context, {word, bit})))
                ->getResult(0);
  auto part = [&](int64_t i) -> Value {
    return LLVM::ExtractValueOp::create(b, loc, r, ArrayRef<int64_t>{i});
  };
  return both(o[0], part(0), part(1));
}

//===----------------------------------------------------------------------===//
// Products that were awaited
//===----------------------------------------------------------------------===//

// Outputs that are tied to inputs are what the wait hands out.
bool StatementRaiser::raiseGroupWait(const std::vector<PtxOperand> &o) {
  auto n = o.size() == 1 ? constant(o[0]) : std::nullopt;
  if (!n)
    return false;
  auto record = op.getNumResults()
                    ? dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType())
                    : LLVM::LLVMStructType();
  size_t outputs = record               ? record.getBody().size()
                   : op.getNumResults() ? 1
                                        : 0;
  SmallVector<Value> values = {number(b.getI32Type(), *n)};
  SmallVector<Type> types;
  SmallVector<size_t> places;
  for (size_t i = 0; i < outputs && i < numbered.size(); ++i)
    if (numbered[i]) {
      values.push_back(numbered[i]);
      types.push_back(numbered[i].getType());
      places.push_back(i);
    }
  if (types.empty())
    return make("nvvm.wgmma.wait.group.sync.aligned", {},
                attr("group", b.getI64IntegerAttr(*n)));
  Value all = call("llvm.nvvm.wgmma.wait_group", values,
                   LLVM::LLVMStructType::getLiteral(op.getContext(), types));
  for (auto [k, i] : llvm::enumerate(places))
    numbered[i] = LLVM::ExtractValueOp::create(
        b, loc, all, ArrayRef<int64_t>{static_cast<int64_t>(k)});
  return true;
}

//===----------------------------------------------------------------------===//
// Tensor maps that kernels make
//===----------------------------------------------------------------------===//

// Bytes of an element; 0: one that the emulator's maps do not have.
static int64_t bytesOfElement(int64_t type) {
  static constexpr int64_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4};
  return type >= 0 && type < static_cast<int64_t>(std::size(bytes))
             ? bytes[type]
             : 0;
}

// Stores a field of the emulator's own map.
bool StatementRaiser::raiseMapField(StringRef field,
                                    const std::vector<PtxOperand> &o,
                                    unsigned space) {
  Value base = pointer(o[0], space);
  if (!base)
    return false;
  auto put = [&](size_t offset, Value v) {
    Value at = LLVM::GEPOp::create(
        b, loc, base.getType(), b.getI8Type(), base,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
    LLVM::StoreOp::create(b, loc, v, at);
    return true;
  };
  auto byte = [&](int64_t n) { return number(integer(8), n); };
  if (field == "global_address" && o.size() == 2) {
    Value address = get(o[1], integer(64));
    return address &&
           put(offsetof(SoftwareTensorMap, magic),
               number(integer(64), static_cast<int64_t>(
                                       SoftwareTensorMap::expectedMagic))) &&
           put(offsetof(SoftwareTensorMap, address), address);
  }
  if (o.size() == 2) {
    auto n = constant(o[1]);
    if (!n)
      return false;
    if (field == "rank")
      return put(offsetof(SoftwareTensorMap, rank), byte(*n + 1));
    if (field == "elemtype")
      return bytesOfElement(*n) &&
             put(offsetof(SoftwareTensorMap, elementBytes),
                 byte(bytesOfElement(*n)));
    if (field == "swizzle_mode")
      return *n >= 0 && *n <= 3 &&
             put(offsetof(SoftwareTensorMap, swizzle), byte(*n ? 16 << *n : 0));
    // Rows of their own, zeros outside.
    return (field == "interleave_layout" || field == "fill_mode") && *n == 0;
  }
  auto d = o.size() == 3 ? constant(o[1]) : std::nullopt;
  if (!d || *d < 0 || *d >= SoftwareTensorMap::maxRank)
    return false;
  if (field == "element_stride")
    return constant(o[2]) == 1;
  if (field == "global_stride") {
    Value stride = get(o[2], integer(64));
    return stride && *d + 1 < SoftwareTensorMap::maxRank &&
           put(offsetof(SoftwareTensorMap, strides) + 8 * *d, stride);
  }
  Value size = get(o[2], integer(32));
  if (!size)
    return false;
  if (field == "box_dim")
    return put(offsetof(SoftwareTensorMap, box) + 4 * *d, size);
  return field == "global_dim" &&
         put(offsetof(SoftwareTensorMap, dims) + 8 * *d,
             convert(size, integer(64)));
}

static std::optional<unsigned> spaceOf(StringRef name) {
  return llvm::StringSwitch<std::optional<unsigned>>(name)
      .Case("global", 1)
      .Case("shared::cta", 3)
      .Default(std::nullopt);
}

bool StatementRaiser::raiseMap(StringRef opcode,
                               const std::vector<PtxOperand> &o) {
  auto fence = [&](LLVM::AtomicOrdering ordering) {
    return LLVM::FenceOp::create(b, loc, ordering, "device");
  };
  if (opcode == "fence.proxy.tensormap::generic.acquire.gpu")
    return fence(LLVM::AtomicOrdering::acquire);
  if (opcode == "fence.proxy.tensormap::generic.release.gpu")
    return fence(LLVM::AtomicOrdering::release);
  SmallVector<StringRef> words;
  opcode.split(words, '.');
  // tensormap.replace.tile.<field>.<space>.b1024.<type>
  if (words.size() == 7 && words[1] == "replace" && words[2] == "tile" &&
      o.size() >= 2) {
    auto space = spaceOf(words[4]);
    return space && raiseMapField(words[3], o, *space);
  }
  // tensormap.cp_fenceproxy.<to>.<from>.tensormap::generic.release.gpu.sync.
  // aligned [to], [from], 128: each lane of the warp copies a word.
  if (words.size() < 8 || words[1] != "cp_fenceproxy" || o.size() != 3 ||
      constant(o[2]) != sizeof(SoftwareTensorMap))
    return false;
  auto to = spaceOf(words[2]), from = spaceOf(words[3]);
  if (!to || !from)
    return false;
  Type word = b.getI32Type();
  Value target = pointer(o[0], *to), source = pointer(o[1], *from),
        lane = special("%laneid");
  if (!target || !source)
    return false;
  auto place = [&](Value base) -> Value {
    return LLVM::GEPOp::create(b, loc, base.getType(), word, base,
                               ArrayRef<LLVM::GEPArg>{lane});
  };
  auto meet = [&] { make("nvvm.bar.warp.sync", number(word, -1)); };
  meet();
  LLVM::StoreOp::create(
      b, loc, LLVM::LoadOp::create(b, loc, word, place(source)), place(target));
  meet();
  return fence(LLVM::AtomicOrdering::release);
}
