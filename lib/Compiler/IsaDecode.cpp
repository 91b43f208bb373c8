//===- IsaDecode.cpp - Disassembles and classifies instructions -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeObject.h"
#include "Isa.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include <cmath>
#include <mutex>

using namespace kvbuf;
using llvm::StringRef;

/// Clocks of one cycle of LLVM's scheduling model of these chips, which counts
/// vector instructions of 64 lanes as 1.
static constexpr unsigned kClocksPerModelCycle = 4;

/// Whether a name begins with one of `prefixes`.
static bool startsWithAny(StringRef name, llvm::ArrayRef<StringRef> prefixes) {
  return llvm::any_of(
      prefixes, [&](StringRef prefix) { return name.starts_with(prefix); });
}

/// Sets the class of a vector instruction by its mnemonic.
static void classifyVector(IsaInstruction &instruction, StringRef name) {
  if (startsWithAny(name, {"v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"})) {
    instruction.kind = IsaClass::Mfma;
    return;
  }
  if (name == "v_nop") {
    instruction.kind = IsaClass::Nop;
    instruction.nopCycles = 1;
    return;
  }
  instruction.kind = IsaClass::Valu;
  instruction.accMove = name.starts_with("v_accvgpr_");
  instruction.dot = name.starts_with("v_dot");
  instruction.packed = name.starts_with("v_pk_") && name.contains("f32");
  instruction.transcendental =
      startsWithAny(name, {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_",
                           "v_sin_", "v_cos_"});
}

/// Sets the class of an instruction of LDS by its mnemonic.
/// Bytes that a lane moves by an LDS instruction of this name, which says the
/// bits of its data first: ds_read2_b64, ds_read_b64_tr_b16.
static unsigned ldsBytesOf(StringRef name) {
  bool isPair = startsWithAny(
      name, {"ds_read2", "ds_write2", "ds_load_2addr", "ds_store_2addr"});
  for (StringRef rest = name; !rest.empty();) {
    StringRef part;
    std::tie(part, rest) = rest.split('_');
    unsigned bits = 0;
    if (part.size() > 1 && StringRef("biuf").contains(part.front()) &&
        !part.drop_front().getAsInteger(10, bits))
      return bits / 8 * (isPair ? 2 : 1);
  }
  return 0;
}

static void classifyLds(IsaInstruction &instruction, StringRef name) {
  instruction.ldsBytes = ldsBytesOf(name);
  if (startsWithAny(name, {"ds_bpermute", "ds_permute", "ds_swizzle"}))
    instruction.kind = IsaClass::LdsExchange;
  else
    instruction.kind = startsWithAny(name, {"ds_write", "ds_store"})
                           ? IsaClass::LdsWrite
                           : IsaClass::LdsRead;
}

/// Bytes that a lane loads by a vector memory instruction of this name; 0: it
/// stores.
static unsigned loadBytesOf(StringRef name) {
  size_t at = name.find("_load_");
  if (at == StringRef::npos)
    return 0;
  StringRef width = name.drop_front(at + 6);
  width.consume_front("lds_");
  constexpr std::pair<StringRef, unsigned> kWidths[] = {
      {"dwordx4", 16},   {"dwordx3", 12}, {"dwordx2", 8}, {"dword", 4},
      {"ushort", 2},     {"sshort", 2},   {"short", 2},   {"ubyte", 1},
      {"sbyte", 1},      {"b128", 16},    {"b96", 12},    {"b64", 8},
      {"b32", 4},        {"u16", 2},      {"i16", 2},     {"d16_b16", 2},
      {"d16_hi_b16", 2}, {"u8", 1},       {"i8", 1}};
  for (auto [prefix, bytes] : kWidths)
    if (width.starts_with(prefix))
      return bytes;
  return 0;
}

/// The counters of an s_waitcnt on gfx9; all bits of a field set is "do not
/// wait" (LLVM's AMDGPUBaseInfo, "Waitcnt").
static IsaWait decodeWait(uint64_t immediate) {
  int vmcnt = (immediate & 15) | (immediate >> 14 & 3) << 4;
  int lgkmcnt = immediate >> 8 & 15;
  return {vmcnt == 63 ? -1 : vmcnt, lgkmcnt == 15 ? -1 : lgkmcnt};
}

/// A wait of gfx12, which has a counter for each kind of access: loads for
/// vmcnt; LDS and scalar loads for lgkmcnt (LLVM's AMDGPUBaseInfo,
/// "Waitcnt"). Nothing: no wait.
static std::optional<IsaWait> decodeCounterWait(StringRef name,
                                                uint64_t immediate) {
  if (!name.consume_front("s_wait_"))
    return std::nullopt;
  int count = immediate & 63, other = immediate >> 8 & 63;
  if (name == "loadcnt")
    return IsaWait{count, -1};
  if (name == "dscnt" || name == "kmcnt")
    return IsaWait{-1, count};
  if (name == "loadcnt_dscnt")
    return IsaWait{other, count};
  if (name == "storecnt_dscnt")
    return IsaWait{-1, count};
  if (name == "storecnt" || name == "asynccnt" || name == "tensorcnt")
    return IsaWait{-1, -1};
  // Hazards of registers, for which nothing of memory is awaited.
  return std::nullopt;
}

namespace {

/// The parts of LLVM's machine code layer that a disassembler needs.
class Decoder : public IsaDecoder {
public:
  llvm::Error initialize(StringRef chip);
  llvm::Expected<std::vector<IsaInstruction>>
  decode(StringRef code, uint64_t address) const override;

private:
  IsaInstruction classify(const llvm::MCInst &inst, uint64_t address,
                          unsigned size) const;
  /// Fills in what hazards are told by.
  void addRegisters(IsaInstruction &result, const llvm::MCInst &inst,
                    StringRef name, StringRef operands) const;

  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

} // namespace

llvm::Error Decoder::initialize(StringRef chip) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return llvm::createStringError("this LLVM cannot disassemble for AMD: " +
                                   message);
  registers.reset(target->createMCRegInfo(triple));
  assembly.reset(target->createMCAsmInfo(*registers, triple, options));
  subtarget.reset(target->createMCSubtargetInfo(triple, chip, ""));
  if (!subtarget->isCPUStringValid(chip))
    return llvm::createStringError("this LLVM does not know the chip '" + chip +
                                   "'");
  instructions.reset(target->createMCInstrInfo());
  analysis.reset(target->createMCInstrAnalysis(instructions.get()));
  context = std::make_unique<llvm::MCContext>(triple, assembly.get(),
                                              registers.get(), subtarget.get());
  disassembler.reset(target->createMCDisassembler(*subtarget, *context));
  printer.reset(
      target->createMCInstPrinter(triple, assembly->getAssemblerDialect(),
                                  *assembly, *instructions, *registers));
  return llvm::Error::success();
}

void Decoder::addRegisters(IsaInstruction &result, const llvm::MCInst &inst,
                           StringRef name, StringRef operands) const {
  IsaRegisters &own = result.registers;
  auto isVector = [&](llvm::MCRegister reg) {
    StringRef of = registers->getName(reg);
    return of.starts_with("VGPR") || of.starts_with("AGPR");
  };
  auto add = [&](RegisterUnits &units, llvm::MCRegister reg) {
    for (auto unit : registers->regunits(reg))
      units.push_back(static_cast<uint16_t>(unit));
  };
  auto writes = [&](llvm::MCRegister reg) {
    StringRef of = registers->getName(reg);
    own.writesExec |= of.starts_with("EXEC");
    own.writesM0 |= of.starts_with("M0");
    own.writesVCC |= of.starts_with("VCC");
    add(isVector(reg) ? own.vectorsWritten : own.scalarsWritten, reg);
  };
  auto reads = [&](llvm::MCRegister reg, bool isAccumulator) {
    StringRef of = registers->getName(reg);
    own.readsVCC |= of.starts_with("VCC");
    if (isVector(reg))
      add(isAccumulator ? own.accumulatorsRead : own.vectorsRead, reg);
    else if (!of.starts_with("EXEC"))
      add(own.scalarsRead, reg);
  };
  const llvm::MCInstrDesc &desc = instructions->get(inst.getOpcode());
  result.selectsLane = name == "v_readlane_b32" || name == "v_writelane_b32";
  unsigned sources = 0;
  for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
    const llvm::MCOperand &operand = inst.getOperand(i);
    if (i < desc.getNumDefs()) {
      if (operand.isReg() && operand.getReg())
        writes(operand.getReg());
      continue;
    }
    // A matrix instruction has A, B and C behind its result.
    bool isC = result.kind == IsaClass::Mfma && sources == 2;
    if (operand.isReg() && operand.getReg()) {
      reads(operand.getReg(), isC);
      // What is read, or data; then the number of a lane.
      if (result.selectsLane && sources == 1)
        add(own.laneNumber, operand.getReg());
      if (desc.mayStore() && isVector(operand.getReg()))
        own.storeBytes = std::max<unsigned>(
            own.storeBytes,
            2 * llvm::range_size(registers->regunits(operand.getReg())));
    }
    ++sources;
  }
  for (llvm::MCPhysReg reg : desc.implicit_defs())
    writes(reg);
  for (llvm::MCPhysReg reg : desc.implicit_uses())
    reads(reg, false);
  result.readsLane = name == "v_readlane_b32" || name == "v_readfirstlane_b32";
  result.betweenLanes = name.contains("_dpp") || operands.contains("row_") ||
                        operands.contains("quad_perm") ||
                        operands.contains("wave_sh");
  result.dividesByVCC = name.starts_with("v_div_fmas");
  result.ofF64 = result.kind == IsaClass::Mfma && name.contains("f64");
  result.ofF32 = result.kind == IsaClass::Mfma && !result.ofF64 &&
                 (name.ends_with("f32") || name.contains("x1f32") ||
                  name.contains("x2f32") || name.contains("x4f32"));
}

IsaInstruction Decoder::classify(const llvm::MCInst &inst, uint64_t address,
                                 unsigned size) const {
  IsaInstruction result;
  result.address = address;
  result.size = size;
  // The printed form is what manuals call the instruction; opcodes have a name
  // for each encoding.
  std::string text;
  llvm::raw_string_ostream os(text);
  printer->printInst(&inst, address, "", *subtarget, os);
  StringRef name = StringRef(text).ltrim();
  StringRef operands = name;
  name = name.take_until([](char c) { return llvm::isSpace(c); });
  operands = operands.drop_front(name.size());
  auto immediate = [&]() -> uint64_t {
    return inst.getNumOperands() && inst.getOperand(0).isImm()
               ? inst.getOperand(0).getImm() & 0xffff
               : 0;
  };

  if (name.starts_with("v_")) {
    classifyVector(result, name);
    if (result.kind == IsaClass::Mfma)
      result.mfmaCycles = static_cast<unsigned>(
          kClocksPerModelCycle *
          std::lround(subtarget->getSchedModel().getReciprocalThroughput(
              *subtarget, *instructions, inst)));
  } else if (name.starts_with("ds_")) {
    classifyLds(result, name);
  } else if (startsWithAny(name, {"buffer_", "global_", "flat_", "tensor_"})) {
    result.kind = IsaClass::Vmem;
    result.ldsDma = name.contains("_lds_") || name.ends_with("_lds") ||
                    operands.contains(" lds");
    result.loadBytes = loadBytesOf(name);
    if (result.ldsDma)
      result.ldsBytes = result.loadBytes;
    result.writesBack = name == "buffer_wbl2";
    result.invalidates = name == "buffer_inv";
    result.changesMemory = name.contains("_store_") || name.contains("_atomic");
  } else if (name.starts_with("scratch_")) {
    result.kind = IsaClass::Scratch;
  } else if (name == "s_waitcnt") {
    result.kind = IsaClass::Wait;
    result.wait = decodeWait(immediate());
  } else if (std::optional<IsaWait> wait =
                 decodeCounterWait(name, immediate())) {
    result.kind = IsaClass::Wait;
    result.wait = *wait;
  } else if (name == "s_nop") {
    result.kind = IsaClass::Nop;
    result.nopCycles = immediate() + 1;
  } else if (name == "s_barrier" || name == "s_barrier_wait") {
    result.kind = IsaClass::Barrier;
  } else if (startsWithAny(name, {"s_branch", "s_cbranch", "s_setpc"})) {
    result.kind = IsaClass::Branch;
    result.fallsThrough = name.starts_with("s_cbranch");
    uint64_t target;
    if (analysis->evaluateBranch(inst, address, size, target))
      result.target = target;
  } else if (name == "s_endpgm") {
    result.kind = IsaClass::Other;
    result.fallsThrough = false;
  } else if (name.starts_with("s_")) {
    result.kind = IsaClass::Scalar;
    result.isCall = name.starts_with("s_swappc") || name.starts_with("s_call");
  }
  addRegisters(result, inst, name, operands);
  return result;
}

llvm::Expected<std::vector<IsaInstruction>>
Decoder::decode(StringRef code, uint64_t address) const {
  llvm::ArrayRef<uint8_t> bytes = llvm::arrayRefFromStringRef(code);
  std::vector<IsaInstruction> result;
  for (uint64_t at = 0; at < bytes.size();) {
    llvm::MCInst inst;
    uint64_t size = 0;
    if (disassembler->getInstruction(inst, size, bytes.drop_front(at),
                                     address + at, llvm::nulls()) !=
            llvm::MCDisassembler::Success ||
        !size)
      return llvm::createStringError("no instruction of " +
                                     subtarget->getCPU() + " at byte 0x" +
                                     llvm::utohexstr(at) + " of the kernel");
    result.push_back(classify(inst, address + at, size));
    at += size;
  }
  // Functions are padded to the size of an instruction prefetch.
  auto last = llvm::find_if(llvm::reverse(result), [](const auto &instruction) {
    return !instruction.fallsThrough;
  });
  result.erase(last.base(), result.end());
  return result;
}

llvm::Expected<std::unique_ptr<IsaDecoder>> IsaDecoder::create(StringRef chip) {
  auto decoder = std::make_unique<Decoder>();
  if (llvm::Error error = decoder->initialize(chip))
    return std::move(error);
  return decoder;
}

void kvbuf::countInstruction(IsaCounts &counts,
                             const IsaInstruction &instruction) {
  switch (instruction.kind) {
  case IsaClass::Mfma:
    ++counts.mfma;
    break;
  case IsaClass::Valu:
    ++counts.valu;
    counts.transcendental += instruction.transcendental;
    counts.packed += instruction.packed;
    counts.dot += instruction.dot;
    counts.accMoves += instruction.accMove;
    break;
  case IsaClass::LdsRead:
    ++counts.ldsReads;
    break;
  case IsaClass::LdsWrite:
    ++counts.ldsWrites;
    break;
  case IsaClass::LdsExchange:
    ++counts.ldsExchanges;
    break;
  case IsaClass::Vmem:
    ++counts.vmem;
    counts.ldsDma += instruction.ldsDma;
    break;
  case IsaClass::Scratch:
    ++counts.scratch;
    break;
  case IsaClass::Scalar:
    ++counts.scalar;
    break;
  case IsaClass::Wait:
    ++counts.waits;
    break;
  case IsaClass::Nop:
    ++counts.nops;
    counts.nopCycles += instruction.nopCycles;
    break;
  case IsaClass::Barrier:
    ++counts.barriers;
    break;
  case IsaClass::Branch:
    ++counts.branches;
    break;
  case IsaClass::Other:
    ++counts.other;
    break;
  }
}

llvm::Error kvbuf::decodeFunctions(
    const CodeObject &object,
    llvm::function_ref<void(llvm::StringRef, llvm::ArrayRef<IsaInstruction>)>
        fn) {
  auto decoder = IsaDecoder::create(object.chip);
  if (!decoder)
    return decoder.takeError();
  for (const CodeObjectFunction &function : object.functions) {
    auto code = (*decoder)->decode(function.code, function.address);
    if (!code)
      return llvm::createStringError("function '" + function.name +
                                     "': " + llvm::toString(code.takeError()));
    fn(function.name, *code);
  }
  return llvm::Error::success();
}
