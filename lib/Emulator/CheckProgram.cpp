//===- CheckProgram.cpp - Before the interpreter runs a program -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreter takes slots, lists, blocks and statistics from instructions
// as they are. What decoding an operation overlooks would become an access
// outside of the tables, so all of them are compared with the tables here. A
// slot counts as there if it is below the last one: 64-bit values take two.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Decoder.h"
#include "HostMath.h"
#include "MatrixJob.h"
#include "Print.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

using namespace kvbuf::emu;

namespace {

/// Which fields of an instruction name slots, and what its list holds.
struct Fields {
  /// Of "dabc": those that have to be there.
  llvm::StringRef needed;
  /// Entries of the list; ~0u: not looked at.
  uint64_t list = 0;
  /// The entries are slots, of which some may be missing.
  bool slots = true, optional = false;
  bool stat = false, align = false;
};

/// Slots that hold `imm` bytes of a lane, or 0 if no access is that large.
uint64_t accessSlots(const Inst &i) {
  if (i.imm < 1 || i.imm > 16 || !llvm::isPowerOf2_64(i.imm))
    return 0;
  return i.imm < 4 ? 1 : i.flags && i.imm >= 8 ? i.imm / 8 : i.imm / 4;
}

} // namespace

static Fields access(const Inst &i, llvm::StringRef needed) {
  Fields f{needed, accessSlots(i)};
  f.stat = f.align = true;
  if (!f.list)
    f.needed = "x"; // nothing fits
  return f;
}

static Fields withStat(llvm::StringRef needed, uint64_t list = 0) {
  Fields f{needed, list};
  f.stat = f.align = true;
  return f;
}

static Fields fieldsOf(const Inst &i) {
  switch (i.op) {
  case Code::MovN:
  case Code::Mov64:
  case Code::Abs32:
  case Code::Abs64:
  case Code::Ctpop32:
  case Code::Ctpop64:
  case Code::Ctlz32:
  case Code::Ctlz64:
  case Code::Cttz32:
  case Code::Cttz64:
  case Code::AddImm32:
  case Code::AddImm64:
  case Code::AndImm32:
  case Code::Lo64:
  case Code::Hi64:
  case Code::ZExt64:
  case Code::SExt64:
  case Code::ToGeneric:
  case Code::FromGeneric:
  case Code::NegF32:
  case Code::NegF64:
  case Code::FabsF32:
  case Code::FabsF64:
  case Code::SqrtF32:
  case Code::SqrtF64:
  case Code::FloorF32:
  case Code::FloorF64:
  case Code::CeilF32:
  case Code::CeilF64:
  case Code::RoundEvenF32:
  case Code::RoundEvenF64:
  case Code::TruncToF32:
  case Code::TruncToF64:
  case Code::Exp2F32:
  case Code::Exp2F64:
  case Code::Log2F32:
  case Code::Log2F64:
  case Code::Exp2FtzF32:
  case Code::Log2FtzF32:
  case Code::RcpF32:
  case Code::RcpFtzF32:
  case Code::RsqrtF32:
  case Code::TanhF32:
  case Code::F32ToF16:
  case Code::F32ToBF16:
  case Code::F16ToF32:
  case Code::BF16ToF32:
  case Code::AmdBallot:
    return {"da"};
  case Code::SExtBits:
    return {i.imm >= 1 && i.imm <= 31 ? "da" : "x"};
  case Code::ExtractHalf:
  case Code::ExtractByte:
    return {i.imm >= 0 && i.imm <= 31 ? "da" : "x"};
  case Code::InsertHalf:
  case Code::InsertByte:
    return {i.imm >= 0 && i.imm <= 31 ? "dab" : "x"};
  case Code::Fshl32:
  case Code::Fshl64:
  case Code::Fshr32:
  case Code::Fshr64:
  case Code::Select32:
  case Code::Select64:
  case Code::Prmt:
  case Code::FmaF32:
  case Code::FmaF64:
  case Code::AmdPerm:
  case Code::AmdDot2F16:
  case Code::AmdDot2BF16:
    return {"dabc"};
  case Code::Clock:
    return {"d"};
  case Code::LoadShared:
  case Code::StoreShared:
  case Code::LoadGlobal:
  case Code::StoreGlobal:
  case Code::LoadLocal:
  case Code::StoreLocal:
  case Code::LoadGeneric:
  case Code::StoreGeneric:
    return access(i, "a");
  case Code::AmdBufferLoad:
  case Code::AmdBufferStore:
    return access(i, "abc");
  case Code::CpAsync: {
    bool fits = i.imm == 4 || i.imm == 8 || i.imm == 16;
    return withStat(fits ? "ab" : "x");
  }
  case Code::AmdGlobalLoadLds:
  case Code::AmdBufferLoadLds: {
    bool global = i.op == Code::AmdGlobalLoadLds,
         fits = i.imm == 4 || i.imm == 12 || i.imm == 16;
    return withStat(!fits ? "x" : global ? "ab" : "abc", global ? 0 : 2);
  }
  case Code::LdMatrix:
  case Code::StMatrix: {
    bool fits = i.listSize == 1 || i.listSize == 2 || i.listSize == 4;
    return withStat(fits ? "a" : "x", i.listSize);
  }
  case Code::AmdReadTr16:
    return withStat("a", 2);
  case Code::AmdLoadTr16:
    return withStat("a", 4);
  case Code::AmdTensorLoad:
    return withStat("", tensorWords);
  case Code::MmaSync: {
    bool fits = i.imm == 8 || i.imm == 16;
    return {fits ? "" : "x", static_cast<uint64_t>(8 + i.imm / 4 + i.imm / 8)};
  }
  case Code::AmdMfma: {
    uint64_t m = i.imm >> 16, k = i.imm & 0xFFFF;
    uint64_t words = i.flags & mfmaFloat8 ? m * k / 256 : m * k / 128;
    return {m == 16 || m == 32 ? "" : "x", 2 * (m * m / 64) + 2 * words};
  }
  case Code::Shuffle: {
    Fields f{"dabc", 2};
    f.optional = true;
    return f;
  }
  case Code::Elect:
  case Code::LaneTranspose:
    return {"da"};
  case Code::WarpSync:
    return {"a"};
  case Code::AtomicGlobal:
  case Code::AtomicShared:
    return withStat(i.imm == 1 || i.imm == 2 || i.imm == 4 || i.imm == 8 ? "dab"
                                                                         : "x");
  case Code::LaneCall:
    return {
        i.imm >= 0 && i.imm < numLaneFunctions() ? "" : "x",
        std::strlen(
            laneFunctions()[i.imm < numLaneFunctions() ? i.imm : 0].signature) -
            1};
  case Code::WarpCall:
    return {i.imm >= 0 ? "" : "x", i.listSize};
  case Code::Print: {
    static const uint64_t sizes[] = {2, 1, 4, 0, 3, 1};
    bool fits = i.flags < std::size(sizes);
    uint64_t least = fits ? sizes[i.flags] : 0;
    PrintKind kind = static_cast<PrintKind>(i.flags);
    bool more = kind == PrintKind::Printf || kind == PrintKind::OcklNumbers;
    fits &= more ? i.listSize >= least : i.listSize == least;
    return {fits ? "" : "x", i.listSize};
  }
  case Code::MBarrierInit:
    return {"ab"};
  case Code::MBarrierInval:
  case Code::MBarrierOwe:
    return {"a"};
  case Code::MBarrierTest:
    return {"ab"};
  case Code::MBarrierArrive: {
    Fields f{"a", 3};
    f.optional = true;
    return f;
  }
  case Code::ClusterStore:
    // One word in a field of the instruction, the others behind the rank.
    return withStat(i.imm == 1 || i.imm == 4 ? "abc" : "x", i.imm);
  case Code::ClusterCopy:
    return withStat("abc", 2);
  case Code::BulkLoad:
  case Code::BulkStore: {
    bool load = i.op == Code::BulkLoad, fits = i.imm >= 0 && i.imm <= 5;
    // A column and four rows.
    fits &= !(load && i.flags & bulkGathers) || i.imm == 5;
    Fields f = withStat(!fits  ? "x"
                        : load ? "abc"
                               : "ab",
                        2 + i.imm + (load && i.flags & bulkToCluster ? 1 : 0));
    f.optional = true;
    return f;
  }
  case Code::Wgmma: {
    uint64_t n = wgmmaColumns(i.imm), steps = wgmmaSteps(i.imm), half = n / 2;
    bool fits = n && n % 8 == 0 && n <= 256 && steps;
    bool registers = i.flags & wgmmaRegisterA;
    Fields f{!fits       ? "x"
             : registers ? "b"
                         : "ab",
             half + (i.flags & wgmmaAccumulate ? half : 0) +
                 (registers ? 4 * steps : 0) + 2 * steps};
    f.slots = false; // the last ones are numbers
    return f;
  }
  case Code::WgmmaWait:
    return {i.listSize % 2 || i.imm < 0 ? "x" : "", i.listSize};
  case Code::WgmmaCheck:
    return {"", i.listSize};
  case Code::AmdUse: {
    Fields f{"", i.listSize};
    f.slots = false; // statistics
    return f;
  }
  case Code::AmdLaneMap: {
    Fields f{"dab", 64};
    f.slots = false; // lanes
    return f;
  }
  case Code::AmdReadLane:
    return {"da"};
  case Code::AmdBpermute: {
    Fields f{"dab"};
    f.stat = true;
    return f;
  }
  case Code::AmdSwap:
    return {i.imm == 16 || i.imm == 32 ? "ab" : "x", 2};
  case Code::Branch: {
    Fields f{"a", 2};
    f.slots = false; // blocks
    return f;
  }
  case Code::BarrierReduce:
    return {i.flags >= 1 && i.flags <= 3 ? "dc" : "x"};
  case Code::CpAsyncCommit:
  case Code::CpAsyncWait:
  case Code::Barrier:
  case Code::BarrierArrive:
  case Code::Fence:
  case Code::ClusterArrive:
  case Code::ClusterWait:
  case Code::ProxyFence:
  case Code::BulkCommit:
  case Code::BulkWait:
  case Code::WgmmaFence:
  case Code::WgmmaCommit:
  case Code::SetMaxRegisters:
  case Code::Jump:
  case Code::Return:
  case Code::Trap:
  case Code::AmdCountVm:
  case Code::AmdWait:
  case Code::AmdTensorWait:
  case Code::AmdMark:
    return {""};
  default:
    // Conversions have one operand, everything else two.
    if (i.op >= Code::F32ToF64 && i.op <= Code::F64ToU64)
      return {"da"};
    return {"dab"};
  }
}

static bool isTerminator(Code op) {
  return op == Code::Jump || op == Code::Branch || op == Code::Return ||
         op == Code::Trap;
}

static std::string whyUnsafe(const Program &p, const Inst &i) {
  Fields f = fieldsOf(i);
  if (f.needed == "x")
    return "an instruction of no known form";
  auto isSlot = [&](uint64_t slot) { return slot + 1 < p.numSlots; };
  for (auto [letter, slot] : {std::pair('d', i.dst), std::pair('a', i.a),
                              std::pair('b', i.b), std::pair('c', i.c)})
    if (slot == noSlot ? f.needed.contains(letter) : !isSlot(slot))
      return "an operand that is no register";
  if (i.op == Code::MovN &&
      (i.imm < 1 || !isSlot(i.dst + static_cast<uint64_t>(i.imm) - 1) ||
       !isSlot(i.a + static_cast<uint64_t>(i.imm) - 1)))
    return "a copy of registers that do not exist";
  if (f.list != i.listSize)
    return "a list of another length";
  // A buffer's length lies beside its data.
  bool beside = i.op == Code::AmdBufferLoad || i.op == Code::AmdBufferStore;
  uint64_t end = static_cast<uint64_t>(i.list) + i.listSize + beside;
  if (i.listSize && end > p.lists.size())
    return "a list that does not exist";
  for (uint64_t k = i.list; f.slots && i.listSize && k < end; ++k)
    if (!(f.optional && p.lists[k] == noSlot) && !isSlot(p.lists[k]))
      return "a list of what are no registers";
  if (f.stat && static_cast<uint64_t>(i.stat) + statsOf(i.op) > p.numStats)
    return "no statistics";
  if (f.align && !llvm::isPowerOf2_32(i.align))
    return "an alignment that is no power of two";
  auto entry = [&](uint64_t k) { return p.lists[i.list + k]; };
  auto number = [&](uint64_t k) { return entry(k) < p.blocks.size(); };
  switch (i.op) {
  case Code::WarpCall: {
    if (static_cast<uint64_t>(i.imm) >= p.warpOps.size())
      return "no operation of the warp";
    const WarpOp &op = p.warpOps[i.imm];
    uint64_t needed = i.listSize;
    switch (op.kind) {
    case WarpOpKind::Mma:
    case WarpOpKind::Wmma:
    case WarpOpKind::AmdWmma:
      needed = 2 * op.numD + op.numA + op.numB;
      break;
    case WarpOpKind::AmdMfmaAny:
      needed =
          2 * op.numD + op.numA + op.numB + (op.detail & mfmaScaled ? 2 : 0);
      break;
    case WarpOpKind::WmmaLoad:
    case WarpOpKind::WmmaStore:
      return i.listSize >= 3 ? "" : "no fragment";
    case WarpOpKind::Redux:
      needed = 3;
      break;
    case WarpOpKind::Match:
      needed = op.detail ? 4 : 3;
      break;
    case WarpOpKind::ActiveMask:
      needed = 1;
      break;
    }
    return needed == i.listSize ? "" : "another number of registers";
  }
  case Code::Jump:
    return static_cast<uint64_t>(i.imm) < p.blocks.size() ? "" : "no block";
  case Code::Branch:
    return number(0) && number(1) ? "" : "no block";
  case Code::Wgmma:
    if (i.c != noSlot && !isSlot(i.c))
      return "no register that says whether results are added";
    for (uint64_t k = 0, n = i.listSize - 2 * wgmmaSteps(i.imm); k < n; ++k)
      if (!isSlot(entry(k)))
        return "a list of what are no registers";
    return "";
  case Code::AmdUse:
    for (uint64_t k = 0; k < i.listSize; ++k)
      if (entry(k) >= p.numStats)
        return "no statistics";
    return "";
  case Code::Shuffle: // the mask is no part that may be missing
    return isSlot(entry(0)) ? "" : "no mask";
  case Code::BulkLoad:
  case Code::BulkStore:
    // A copy in a row has a size, a box as many coordinates as dimensions.
    for (uint64_t k = i.imm ? 2 : 1, n = i.imm ? i.listSize : 2; k < n; ++k)
      if (!isSlot(entry(k)))
        return "no size or coordinates";
    return "";
  case Code::MBarrierArrive:
    // Expected or completed bytes have a number.
    return i.flags & (16 | 32) && !isSlot(entry(1)) ? "no bytes" : "";
  default:
    return "";
  }
}

std::optional<std::pair<uint32_t, std::string>>
kvbuf::emu::findUnsafeInst(const Program &p) {
  auto bad = [](uint32_t origin, std::string why) {
    return std::make_pair(origin, std::move(why));
  };
  for (const CodeBlock &b : p.blocks) {
    if (b.begin >= b.end || b.end > p.insts.size())
      return bad(0, "an empty block");
    for (uint32_t k = b.begin; k < b.end; ++k) {
      const Inst &i = p.insts[k];
      if (isTerminator(i.op) != (k + 1 == b.end))
        return bad(i.origin, "a block that does not end");
      if (std::string why = whyUnsafe(p, i); !why.empty())
        return bad(i.origin, why);
    }
  }
  auto isSlot = [&](uint64_t slot) { return slot + 1 < p.numSlots; };
  for (const Constant &c : p.constants)
    if (!isSlot(c.slot))
      return bad(0, "a constant that has no register");
  for (const Parameter &q : p.parameters)
    if (!isSlot(q.slot))
      return bad(0, "a parameter that has no register");
  return std::nullopt;
}
