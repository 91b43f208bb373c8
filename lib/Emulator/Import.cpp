//===- Import.cpp - LLVM bitcode as a module of the target stage ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/Import.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMIRToLLVMTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/LLVMIRToNVVMTranslation.h"
#include "mlir/Target/LLVMIR/Import.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;

void kvbuf::emu::registerImport(DialectRegistry &registry) {
  registry.insert<KVBufferDialect, DLTIDialect, gpu::GPUDialect,
                  LLVM::LLVMDialect, NVVM::NVVMDialect, ROCDL::ROCDLDialect>();
  registerLLVMDialectImport(registry);
  registerNVVMDialectImport(registry);
}

StringRef kvbuf::emu::describeCode(StringRef bytes) {
  if (bytes.starts_with("BC\xC0\xDE") || bytes.starts_with("\xDE\xC0\x17\x0B"))
    return "LLVM bitcode";
  if (bytes.starts_with("ML\xEFR"))
    return "MLIR bytecode";
  if (bytes.starts_with("\x7F"
                        "ELF"))
    return "an ELF file";
  if (bytes.starts_with("\x50\xED\x55\xBA") ||
      bytes.starts_with("__CLANG_OFFLOAD_BUNDLE__"))
    return "a fat binary";
  // The magic number of SPIR-V, in either order of bytes.
  if (bytes.starts_with("\x03\x02\x23\x07") ||
      bytes.starts_with("\x07\x23\x02\x03"))
    return "SPIR-V";
  if (bytes.starts_with("; ModuleID"))
    return "LLVM IR";
  // Comments may be longer than what follows them.
  while (bytes.starts_with(";"))
    bytes = bytes.split('\n').second;
  StringRef text = bytes.take_front(4096);
  if (text.contains(".version") && text.contains(".target"))
    return "PTX";
  if (text.contains(".amdgcn_target") || text.contains(".amdhsa_"))
    return "assembly for AMD's GPUs";
  if (text.contains("target triple = \"") ||
      text.contains("target datalayout = \""))
    return "LLVM IR";
  return "text";
}

/// Turns "128,1,1" into three numbers.
static DenseI32ArrayAttr sizesOf(MLIRContext *context, StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  SmallVector<int32_t> sizes;
  for (StringRef part : parts) {
    int32_t n;
    if (part.trim().getAsInteger(10, n))
      return {};
    sizes.push_back(n);
  }
  return sizes.empty() ? DenseI32ArrayAttr()
                       : DenseI32ArrayAttr::get(context, sizes);
}

/// Gives a function the attributes that the target stage has for what LLVM says
/// by calling conventions and by attributes of strings.
static void markKernel(LLVM::LLVMFuncOp function) {
  MLIRContext *context = function.getContext();
  auto convention = function.getCConv();
  if (convention == LLVM::CConv::PTX_Kernel)
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                      UnitAttr::get(context));
  if (convention == LLVM::CConv::AMDGPU_KERNEL)
    function->setAttr(ROCDL::ROCDLDialect::getKernelFuncAttrName(),
                      UnitAttr::get(context));
  using Names = NVVM::NVVMDialect;
  ArrayAttr more = function.getPassthroughAttr();
  for (Attribute attr : more ? more.getValue() : ArrayRef<Attribute>()) {
    auto pair = dyn_cast<ArrayAttr>(attr);
    if (!pair || pair.size() != 2)
      continue;
    auto key = dyn_cast<StringAttr>(pair[0]),
         value = dyn_cast<StringAttr>(pair[1]);
    if (!key || !value)
      continue;
    StringRef name = key.getValue();
    int32_t number;
    if (name == Names::getMaxntidAttrName() ||
        name == Names::getReqntidAttrName() ||
        name == Names::getClusterDimAttrName()) {
      if (auto sizes = sizesOf(context, value.getValue()))
        function->setAttr(name, sizes);
    } else if ((name == Names::getMinctasmAttrName() ||
                name == Names::getMaxnregAttrName()) &&
               !value.getValue().getAsInteger(10, number)) {
      function->setAttr(
          name, IntegerAttr::get(IntegerType::get(context, 32), number));
    }
  }
}

/// Kernels that name no chip, but use what only waves of 32 lanes have: WMMA,
/// ballots of 32 bits, a lane's number counted in the lower half alone.
static void nameWave(ModuleOp module) {
  bool narrow = false, low = false, high = false;
  module.walk([&](LLVM::CallIntrinsicOp call) {
    StringRef name = call.getIntrin();
    narrow |= name.starts_with("llvm.amdgcn.wmma.") ||
              name == "llvm.amdgcn.ballot.i32";
    low |= name == "llvm.amdgcn.mbcnt.lo";
    high |= name == "llvm.amdgcn.mbcnt.hi";
  });
  if ((narrow || (low && !high)) && !module->hasAttr("kvbuffer.target"))
    module->setAttr("emulator.wave32", UnitAttr::get(module.getContext()));
}

//===----------------------------------------------------------------------===//
// What later LLVMs write
//===----------------------------------------------------------------------===//

/// A floating-point literal as this LLVM reads it: "f0x3F800000", of as many
/// bits as there are digits, infinities by name, and decimals that the type has
/// no number for are LLVM 23's.
static std::string olderLiteral(StringRef token, StringRef type) {
  const llvm::fltSemantics &semantics =
      type == "half"     ? llvm::APFloat::IEEEhalf()
      : type == "bfloat" ? llvm::APFloat::BFloat()
      : type == "double" ? llvm::APFloat::IEEEdouble()
                         : llvm::APFloat::IEEEsingle();
  llvm::APFloat value(semantics);
  StringRef digits = token;
  bool isNegative = token.starts_with("-");
  if (digits.consume_front("f0x")) {
    unsigned bits = llvm::APFloat::getSizeInBits(semantics);
    // Digits of another width than the type's stay what they are.
    if (digits.size() * 4 != bits)
      return token.str();
    value = llvm::APFloat(semantics, llvm::APInt(bits, digits, 16));
  } else if (token.contains('.')) {
    // Decimals are the nearest number of the type, not only where they are one.
    llvm::Expected<llvm::APFloat::opStatus> status =
        value.convertFromString(token, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return token.str();
    }
  } else if (token.ends_with("inf")) {
    value = llvm::APFloat::getInf(semantics, isNegative);
  } else {
    // "+nan(0x3F0000)", "-snan(0x1)", "+qnan": with these bits below the one
    // that tells whether it is quiet.
    StringRef payload = token.split('(').second;
    payload.consume_back(")");
    payload.consume_front("0x");
    llvm::APInt bits(llvm::APFloat::getSizeInBits(semantics), 0);
    if (!payload.empty() &&
        (payload.getAsInteger(16, bits) ||
         bits.getActiveBits() > llvm::APFloat::getSizeInBits(semantics)))
      return token.str();
    bits = bits.zextOrTrunc(llvm::APFloat::getSizeInBits(semantics));
    value = token.contains("snan")
                ? llvm::APFloat::getSNaN(semantics, isNegative, &bits)
                : llvm::APFloat::getQNaN(semantics, isNegative, &bits);
  }
  if (type == "half" || type == "bfloat")
    return "0x" + std::string(type == "half" ? "H" : "R") +
           llvm::utohexstr(value.bitcastToAPInt().getZExtValue(), false, 4);
  bool loses;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &loses);
  return "0x" +
         llvm::utohexstr(value.bitcastToAPInt().getZExtValue(), false, 16);
}

/// "2.5", "-1.0e-03".
static bool isDecimal(StringRef word) {
  word.consume_front("-");
  return !word.empty() && llvm::isDigit(word.front()) && word.contains('.') &&
         word.find_first_not_of("0123456789.e+-") == StringRef::npos;
}

/// Textual IR with the literals that this LLVM reads. Strings, names and
/// comments stay as they are.
static std::string withOlderLiterals(StringRef text) {
  std::string result;
  result.reserve(text.size());
  StringRef type;
  auto inWord = [](char c) {
    return llvm::isAlnum(c) || llvm::is_contained("_.$%@!#-+\\", c);
  };
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (text[i] == '"') {
      end = std::min(text.find('"', i + 1), text.size() - 1) + 1;
    } else if (text[i] == ';') {
      end = std::min(text.find('\n', i), text.size());
    } else if (inWord(text[i])) {
      while (end < text.size() && inWord(text[end]))
        ++end;
      StringRef word = text.slice(i, end);
      if (word == "float" || word == "double" || word == "half" ||
          word == "bfloat") {
        type = word;
      } else if (!type.empty() &&
                 (isDecimal(word) || word.starts_with("f0x") ||
                  word == "+inf" || word == "-inf" || word == "+nan" ||
                  word == "-nan" || word == "+qnan" || word == "-qnan" ||
                  word == "+snan" || word == "-snan")) {
        // What a NaN holds beside its sign.
        if (word.ends_with("nan") && end < text.size() && text[end] == '(')
          end = std::min(text.find(')', end), text.size() - 1) + 1;
        word = text.slice(i, end);
        result += olderLiteral(word, type);
        i = end;
        continue;
      }
    }
    result += text.slice(i, end);
    i = end;
  }
  return result;
}

/// Blanks the word out at which LLVM's reader has given up, if it is one where
/// attributes stand: what later LLVMs tell their optimizer. False: it is not.
static bool dropAttribute(std::string &text, const llvm::SMDiagnostic &problem,
                          const char *begin) {
  static constexpr StringRef places[] = {
      "expected '{' in function body", "expected ')' at end of argument list",
      "unterminated attribute group", "expected top-level entity",
      "expected metadata after comma"};
  size_t at = problem.getLoc().getPointer() - begin;
  // A kind of memory in "memory(argmem: write, later: none)".
  if (problem.getMessage().starts_with("expected memory location")) {
    size_t first = text.rfind("memory(", at), last = text.find(')', at);
    if (first == std::string::npos || last == std::string::npos)
      return false;
    std::fill(text.begin() + first, text.begin() + last + 1, ' ');
    return true;
  }
  if (!llvm::is_contained(places, problem.getMessage()) || at >= text.size() ||
      !llvm::isAlpha(text[at]))
    return false;
  size_t end = at;
  while (end < text.size() && (llvm::isAlnum(text[end]) || text[end] == '_'))
    ++end;
  if (end < text.size() && text[end] == '(') {
    unsigned depth = 0;
    do {
      depth += text[end] == '(';
      depth -= text[end] == ')';
    } while (++end < text.size() && depth && text[end] != '\n');
    if (depth)
      return false;
  }
  std::fill(text.begin() + at, text.begin() + end, ' ');
  return true;
}

/// Names AMD's architecture as this LLVM does, where a later one has put the
/// chip into it: "amdgpu9.42-amd-amdhsa".
static void renameArchitecture(llvm::Module &module) {
  StringRef triple = module.getTargetTriple().str();
  StringRef arch = triple.split('-').first;
  if (!arch.consume_front("amdgpu"))
    return;
  std::string chip = "gfx";
  llvm::copy_if(arch, std::back_inserter(chip), llvm::isAlnum);
  if (!arch.empty())
    for (llvm::Function &f : module)
      if (!f.isDeclaration() && !f.hasFnAttribute("target-cpu"))
        f.addFnAttr("target-cpu", chip);
  module.setTargetTriple(llvm::Triple("amdgcn-amd-amdhsa"));
}

/// The descriptions of AMD's buffers have a size of 64 bits in this LLVM.
/// Others have one of 32, or name its type ("...rsrc.p7.p1.i32"), and LLVM's
/// reader ends the process on forms of intrinsics that it does not know: so
/// they are read as functions of a name of our own.
static constexpr StringRef kLlvmBuffer = "llvm.amdgcn.make.buffer.rsrc.",
                           kOwnBuffer = "emulator.make.buffer.rsrc.";

static std::string withOwnBuffers(std::string text) {
  std::string from = ("@" + kLlvmBuffer).str(), to = ("@" + kOwnBuffer).str();
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;)
    text.replace(at, from.size(), to);
  return text;
}

/// Makes intrinsics of those functions.
static void widenBuffers(llvm::Module &module) {
  for (llvm::Function &f : llvm::make_early_inc_range(module)) {
    if (!f.getName().starts_with(kOwnBuffer) || f.arg_size() != 4 ||
        !f.getArg(2)->getType()->isIntegerTy())
      continue;
    llvm::Function *known = llvm::Intrinsic::getOrInsertDeclaration(
        &module, llvm::Intrinsic::amdgcn_make_buffer_rsrc,
        {f.getReturnType(), f.getArg(0)->getType()});
    for (llvm::User *user : llvm::make_early_inc_range(f.users())) {
      auto *call = dyn_cast<llvm::CallInst>(user);
      if (!call || call->getCalledFunction() != &f)
        continue;
      llvm::IRBuilder<> builder(call);
      llvm::Value *size = builder.CreateZExtOrTrunc(
          call->getArgOperand(2), known->getArg(2)->getType());
      call->replaceAllUsesWith(builder.CreateCall(
          known, {call->getArgOperand(0), call->getArgOperand(1), size,
                  call->getArgOperand(3)}));
      call->eraseFromParent();
    }
    if (f.use_empty())
      f.eraseFromParent();
  }
}

OwningOpRef<ModuleOp> kvbuf::emu::importLLVM(MLIRContext &context,
                                             StringRef bytes, StringRef name) {
  llvm::LLVMContext llvmContext;
  llvm::SMDiagnostic problem;
  Location loc = FileLineColLoc::get(&context, name, 0, 0);
  bool isTextual = describeCode(bytes) == "LLVM IR";
  std::string text =
      isTextual ? withOwnBuffers(withOlderLiterals(bytes)) : bytes.str();
  std::unique_ptr<llvm::Module> module;
  // Each of them is found by reading the module once more.
  constexpr unsigned mostDropped = 64;
  for (unsigned dropped = 0; !module; ++dropped) {
    llvm::MemoryBufferRef buffer(text, name);
    module = llvm::parseIR(buffer, problem, llvmContext);
    if (module || !isTextual || dropped == mostDropped ||
        !dropAttribute(text, problem, buffer.getBufferStart()))
      break;
  }
  if (!module) {
    // Of bitcode there are no lines.
    bool isText = problem.getLineNo() > 0;
    emitError(isText ? FileLineColLoc::get(&context, name, problem.getLineNo(),
                                           problem.getColumnNo() + 1)
                     : loc,
              "not LLVM IR: ")
        << problem.getMessage();
    return nullptr;
  }
  renameArchitecture(*module);
  widenBuffers(*module);
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(*module, &stream)) {
    emitError(loc, "the LLVM IR is not valid: ") << StringRef(broken).rtrim();
    return nullptr;
  }
  bool isAMD = module->getTargetTriple().isAMDGPU();
  // Of the data layout nothing here depends on what MLIR cannot take of it.
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &d) {
    return success(d.getSeverity() == DiagnosticSeverity::Warning &&
                   StringRef(d.str()).starts_with("unhandled data layout"));
  });
  OwningOpRef<ModuleOp> result = translateLLVMIRToModule(
      std::move(module), &context, /*emitExpensiveWarnings=*/false,
      /*dropDICompositeTypeElements=*/true);
  if (!result)
    return nullptr;
  result->walk(markKernel);
  (*result)->setAttr(kForeignAttr, UnitAttr::get(&context));
  if (isAMD)
    nameWave(*result);
  return result;
}
