//===- Decode.cpp - Functions, blocks and branches ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Emulator/Executed.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AsmState.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <algorithm>

using namespace mlir;
using namespace kvbuf::emu;

std::string kvbuf::emu::describeLocation(Location loc) {
  // Of what was inlined from a header of clang's or kvbuf-emulate's, who reads
  // it wants to know the place that called it.
  auto isOfHeader = [](FileLineColLoc file) {
    StringRef name = llvm::sys::path::filename(file.getFilename().getValue());
    return name.starts_with("__clang_") || name.starts_with("kvbuf_");
  };
  FileLineColLoc found;
  loc->walk([&](Location l) {
    auto file = dyn_cast<FileLineColLoc>(l);
    if (file && (!found || isOfHeader(found)))
      found = file;
    return found && !isOfHeader(found) ? WalkResult::interrupt()
                                       : WalkResult::advance();
  });
  if (!found)
    return "<unknown>";
  return (found.getFilename().getValue() + ":" + Twine(found.getLine()) + ":" +
          Twine(found.getColumn()))
      .str();
}

/// More of an operation's text than this nobody reads in a message.
static constexpr size_t maxText = 160;

FailureOr<Program> kvbuf::emu::decodeKernel(LLVM::LLVMFuncOp kernel,
                                            const Chip &chip,
                                            const Options &options,
                                            Variables &variables) {
  return Decoder(kernel, chip, options, variables).run();
}

LogicalResult Decoder::unsupported(Operation *op, const Twine &why) {
  InFlightDiagnostic d = op->emitError("the emulator does not execute '")
                         << op->getName().getStringRef() << "'";
  std::string reason = why.str();
  if (!reason.empty())
    d << ": " << reason;
  return d;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

Inst &Decoder::emit(Code op) {
  ++insts;
  Inst &inst = code[current].emplace_back();
  inst.op = op;
  inst.cls = defaultClass(op);
  inst.origin = origin;
  return inst;
}

Comp Decoder::emit(Code op, bool wide, Comp a, Comp b, Comp c, int64_t imm) {
  Comp dst = allocate(wide);
  Inst &inst = emit(op);
  inst.dst = dst.slot;
  inst.a = a.slot;
  inst.b = b.slot;
  inst.c = c.slot;
  inst.imm = imm;
  return dst;
}

Comp Decoder::emitFree(Code op, bool wide, Comp a, Comp b, Comp c,
                       int64_t imm) {
  Comp dst = emit(op, wide, a, b, c, imm);
  code[current].back().cls = Class::None;
  return dst;
}

void Decoder::list(Inst &inst, ArrayRef<Comp> comps) {
  inst.list = program.lists.size();
  inst.listSize = comps.size();
  for (Comp c : comps)
    program.lists.push_back(c.slot);
}

uint32_t Decoder::newBlock() {
  code.emplace_back();
  return code.size() - 1;
}

Comp Decoder::allocate(bool wide) {
  Comp c{program.numSlots, wide};
  program.numSlots += wide ? 2 : 1;
  return c;
}

Comps Decoder::allocate(Type type) {
  Comps comps = shape(type);
  for (Comp &c : comps)
    c = allocate(c.wide);
  return comps;
}

Comp Decoder::constant(uint64_t value, bool wide) {
  if (!wide)
    value = static_cast<uint32_t>(value);
  auto [it, inserted] = constants.try_emplace({value, wide});
  if (inserted) {
    it->second = allocate(wide);
    program.constants.push_back({it->second.slot, wide, value});
  }
  return it->second;
}

Comp Decoder::hidden(Hidden what) {
  uint32_t &slot = program.hidden[static_cast<unsigned>(what)];
  if (slot == noSlot)
    slot = allocate(true).slot;
  return Comp{slot, true};
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Names the rows of the buffers in LDS that `kvbuffer.lds` describes, or their
/// slots where rows have no place of their own.
static void nameBuffers(LLVM::LLVMFuncOp kernel, Program &program) {
  auto buffers = kernel->getAttrOfType<ArrayAttr>(kvbuf::kLdsAttr);
  if (!buffers)
    return;
  // More names than these no chip's memory has use for.
  constexpr int64_t kMostNames = 1 << 16;
  for (auto buffer : buffers.getAsRange<kvbuf::LdsAttr>()) {
    // The attribute may be anybody's.
    StringRef label = buffer.getName();
    if (program.sharedVars.size() >= kMostNames)
      continue;
    if (std::optional<kvbuf::LdsBuffer> known = kvbuf::readLdsBuffer(buffer)) {
      program.ldsBuffers.push_back(
          std::make_shared<const kvbuf::LdsBuffer>(std::move(*known)));
      continue;
    }
    auto number = [&](StringRef key) -> int64_t {
      return buffer.getNumber(key).value_or(0);
    };
    int64_t offset = number("offset"), slots = number("slots"),
            slotBytes = number("slot_bytes"), rows = number("rows"),
            rowBytes = number("row_bytes"), cols = number("cols");
    std::string name = label.str();
    auto fits = [](int64_t x, int64_t most) { return x > 0 && x <= most; };
    if (offset < 0 || offset > UINT32_MAX || !fits(slots, kMostNames) ||
        !fits(slotBytes, UINT32_MAX / slots) ||
        offset + slots * slotBytes > UINT32_MAX)
      continue;
    bool hasRows = fits(rows, slotBytes) && fits(rowBytes, slotBytes / rows) &&
                   cols > 0 && slotBytes / rowBytes * slots <= kMostNames;
    int64_t pieceBytes = hasRows ? rowBytes : slotBytes;
    for (int64_t at = 0; at < slots * slotBytes; at += pieceBytes) {
      int64_t piece = at % slotBytes / pieceBytes;
      std::string text =
          "slot " + std::to_string(at / slotBytes) + " of " + name;
      if (hasRows) {
        int64_t first = piece / rows * cols;
        text = "row " + std::to_string(piece % rows) + ", columns " +
               std::to_string(first) + " to " +
               std::to_string(first + cols - 1) + ", of " + text;
      }
      program.sharedVars.push_back({static_cast<uint32_t>(offset + at),
                                    static_cast<uint32_t>(pieceBytes), text});
    }
  }
}

FailureOr<Program> Decoder::run() {
  program.name = kernel.getName().str();
  program.origins.push_back({"kernel", describeLocation(kernel.getLoc()), ""});
  if (kernel.isExternal())
    return kernel.emitError("kernel '") << kernel.getName() << "' has no body";
  if (!isa<LLVM::LLVMVoidType>(kernel.getFunctionType().getReturnType()))
    return kernel.emitError("a kernel returns nothing");
  if (auto sizes = kernel->getAttrOfType<DenseI32ArrayAttr>(
          NVVM::NVVMDialect::getClusterDimAttrName())) {
    ArrayRef<int32_t> size = sizes;
    if (size.empty() || size.size() > 3 ||
        llvm::any_of(size, [](int32_t n) { return n < 1 || n > 64; }))
      return kernel.emitError("expected a cluster of 1 to 3 sizes from 1 to "
                              "64, got ")
             << sizes;
    llvm::copy(size, program.cluster);
    program.clusterIsFixed = true;
  }
  for (unsigned i = 0; i < numSpecials; ++i)
    program.specials[i] = allocate(false).slot;
  if (failed(decodeParameters()))
    return failure();
  callStack.push_back(kernel);
  if (failed(decodeBody(kernel.getBody(), {}, noBlock, nullptr)))
    return failure();
  finish();
  nameBuffers(kernel, program);
  if (auto unsafe = findUnsafeInst(program)) {
    const Origin &o = program.origins[unsafe->first];
    return kernel.emitError("the emulator has decoded '")
           << o.name << "' at " << o.location << " into " << unsafe->second
           << "; please report this";
  }
  return std::move(program);
}

/// What the largest machines take as parameters (PTX ISA, ".param").
static constexpr uint64_t maxByValueBytes = 32764;

// Where the parts of a parameter lie in its bytes: as its type lies in memory.
bool Decoder::placeParameter(Type type, uint32_t index, uint64_t offset,
                             ArrayRef<Comp> comps, uint32_t &next) {
  auto put = [&](uint64_t at, uint64_t bytes) {
    if (next >= comps.size())
      return false;
    program.parameters.push_back({index, static_cast<uint32_t>(at),
                                  static_cast<uint32_t>(bytes),
                                  comps[next].slot});
    ++next;
    return true;
  };
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    uint64_t at = offset;
    for (Type field : record.getBody()) {
      if (!record.isPacked())
        at = llvm::alignTo(at, alignOf(field));
      if (!placeParameter(field, index, at, comps, next))
        return false;
      at += sizeOf(field);
    }
    return true;
  }
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    uint64_t size = sizeOf(array.getElementType());
    for (uint64_t k = 0; k < array.getNumElements(); ++k)
      if (!placeParameter(array.getElementType(), index, offset + k * size,
                          comps, next))
        return false;
    return true;
  }
  if (auto vector = dyn_cast<VectorType>(type)) {
    unsigned bits = bitsOf(vector.getElementType());
    if (bits % 8 || !bits)
      return false;
    uint64_t left = vector.getNumElements() * uint64_t(bits) / 8,
             word = bits == 64 ? 8 : 4;
    for (uint64_t at = offset; left; at += word) {
      uint64_t bytes = std::min(left, word);
      if (bytes == 3 || !put(at, bytes))
        return false;
      left -= bytes;
    }
    return true;
  }
  return put(offset, sizeOf(type));
}

LogicalResult Decoder::decodeParameters() {
  for (auto [i, arg] : llvm::enumerate(kernel.getArguments())) {
    Type type = arg.getType();
    Comps comps = allocate(type);
    if (comps.empty() || infoOf(type).size == 0 ||
        infoOf(type).size > maxByValueBytes)
      return kernel.emitError("the emulator takes no kernel parameter of type ")
             << type;
    auto value = kernel.getArgAttrOfType<TypeAttr>(
        i, LLVM::LLVMDialect::getByValAttrName());
    // AMD's kernels find it in their arguments' memory.
    if (!value)
      value = kernel.getArgAttrOfType<TypeAttr>(
          i, LLVM::LLVMDialect::getByRefAttrName());
    if (value) {
      uint64_t bytes = infoOf(value.getValue()).size;
      auto ptr = dyn_cast<LLVM::LLVMPointerType>(type);
      if (bytes == 0 || bytes > maxByValueBytes || !ptr ||
          (ptr.getAddressSpace() > 1 && ptr.getAddressSpace() != 4))
        return kernel.emitError("the emulator passes no parameter of type ")
               << type << " by value; expected a pointer to global memory for "
               << "1 to " << maxByValueBytes << " bytes, not " << bytes;
      program.parameters.push_back({static_cast<uint32_t>(i), 0,
                                    static_cast<uint32_t>(bytes),
                                    comps.front().slot, true});
      program.argBytes.push_back(bytes);
      set(arg, comps);
      continue;
    }
    if (auto ptr = dyn_cast<LLVM::LLVMPointerType>(type);
        ptr && ptr.getAddressSpace() > 1)
      return kernel.emitError("a pointer parameter must be global");
    uint32_t next = 0;
    if (!placeParameter(type, i, 0, comps, next))
      return kernel.emitError("the emulator takes no kernel parameter of type ")
             << type;
    program.argBytes.push_back(sizeOf(type));
    set(arg, comps);
  }
  return success();
}

LogicalResult Decoder::decodeBody(Region &body, ArrayRef<Comps> arguments,
                                  uint32_t continuation,
                                  SmallVectorImpl<Comps> *results) {
  unsigned returns = 0;
  llvm::SmallVector<Block *> order;
  for (Block *block : llvm::ReversePostOrderTraversal<Block *>(&body.front()))
    order.push_back(block);
  for (Block *block : order) {
    // The first block of a program is where it starts.
    blockIds[block] = newBlock();
    returns += isa<LLVM::ReturnOp>(block->getTerminator());
    for (auto [i, arg] : llvm::enumerate(block->getArguments())) {
      if (block == &body.front()) {
        if (results)
          set(arg, arguments[i]);
        continue;
      }
      Comps comps = allocate(arg.getType());
      if (comps.empty())
        return emitError(arg.getLoc(), "the emulator holds no values of type ")
               << describe(arg.getType());
      set(arg, comps);
      offsets.erase(arg);
    }
  }
  if (results) {
    uint32_t entry = blockIds[&body.front()];
    emit(Code::Jump).imm = entry;
    code[current].back().cls = Class::None;
  }
  for (Block *block : order) {
    current = blockIds[block];
    for (Operation &op : *block) {
      program.origins.push_back({op.getName().getStringRef().str(),
                                 describeLocation(op.getLoc()), ""});
      originOps.push_back(&op);
      origin = program.origins.size() - 1;
      here = &op;
      checkLimits();
      if (broken)
        return failure();
      LogicalResult done =
          op.hasTrait<OpTrait::IsTerminator>()
              ? decodeTerminator(&op, continuation, results, returns == 1)
              : decodeOp(&op);
      if (failed(done) || broken)
        return failure();
    }
  }
  return success();
}

LogicalResult Decoder::decodeOp(Operation *op) {
  for (Type type : op->getResultTypes()) {
    if (!shape(type).empty())
      continue;
    uint64_t slots = infoOf(type).slots;
    return slots
               ? unsupported(op, "values of type " + describe(type) + " take " +
                                     Twine(slots) + " registers; at most " +
                                     Twine(options.maxValue) +
                                     " are possible ('max_value')")
               : unsupported(op, "values of type " + describe(type) +
                                     " do not fit its registers");
  }
  if (!op->isRegistered() || op->getNumRegions())
    return unsupported(op);
  if (failed(decodeByOp(op)))
    return failure();
  // Every way through has to leave results behind.
  for (Value v : op->getResults())
    if (!values.contains(v))
      fail("its result of type " + describe(v.getType()));
  return failure(broken);
}

LogicalResult Decoder::decodeByOp(Operation *op) {
  if (!executesOperation(op->getName().getStringRef()))
    return unsupported(op);
  if (auto call = dyn_cast<LLVM::CallOp>(op))
    return decodeCall(call);
  if (op->getName().getDialectNamespace() == "kvbuffer")
    return decodeKVBuffer(op);
  bool known = true;
  if (program.chip.isAMD) {
    if (failed(decodeROCDL(op, known)))
      return failure();
    if (known)
      return success();
    known = true;
  } else if (isa<NVVM::NVVMDialect>(op->getDialect())) {
    if (failed(decodeNVVM(op, known)))
      return failure();
    return known ? success() : unsupported(op);
  }
  if (failed(decodeMemory(op, known)))
    return failure();
  if (known)
    return success();
  known = true;
  if (failed(decodeLLVM(op, known)))
    return failure();
  return known ? success() : unsupported(op);
}

// Of a module that says where its operations are nothing is printed.
void Decoder::describeOrigins() {
  llvm::DenseMap<Operation *, std::unique_ptr<AsmState>> states;
  auto flags = OpPrintingFlags().skipRegions().elideLargeElementsAttrs();
  // The first origin is the kernel's.
  for (auto [origin, op] :
       llvm::zip_equal(llvm::drop_begin(program.origins), originOps)) {
    auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
    if (origin.location != "<unknown>" || !function)
      continue;
    std::unique_ptr<AsmState> &state = states[function];
    if (!state)
      state = std::make_unique<AsmState>(function, flags);
    llvm::raw_string_ostream out(origin.text);
    out << "in '" << llvm::demangle(function.getName().str()) << "': ";
    op->print(out, *state);
    if (origin.text.size() > maxText)
      origin.text.replace(maxText, std::string::npos, " ...");
  }
}

void Decoder::finish() {
  describeOrigins();
  // Dynamic shared memory follows the static variables.
  program.staticShared =
      llvm::alignTo(program.staticShared,
                    dynamicSharedSlots.empty() ? 1 : dynamicSharedAlign);
  for (Constant &c : program.constants)
    if (llvm::is_contained(dynamicSharedSlots, c.slot))
      c.value = program.staticShared;
  if (program.chip.isAMD)
    insertCounting(code, program.lists);
  for (const std::vector<Inst> &insts : code)
    for (const Inst &inst : insts)
      program.usesGroups |=
          (inst.op >= Code::Wgmma && inst.op <= Code::WgmmaWait) ||
          inst.op == Code::SetMaxRegisters;
  checkProducts();
  // A slot that nothing uses, so that the last one may be half of a pair.
  ++program.numSlots;
  for (std::vector<Inst> &insts : code) {
    CodeBlock &block = program.blocks.emplace_back();
    block.begin = program.insts.size();
    for (Inst &inst : insts) {
      ++block.classCount[static_cast<unsigned>(inst.cls)];
      block.products += matrixProducts(program, inst);
      program.insts.push_back(inst);
    }
    block.end = program.insts.size();
  }
  computeJoins(program);
  orderSides(program);
}
