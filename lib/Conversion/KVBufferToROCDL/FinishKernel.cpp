//===- FinishKernel.cpp - What LLVM is told of an AMD kernel ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KVBufferToROCDL/FinishKernel.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"

using namespace mlir;
using namespace kvbuf;

/// The parameters that point to tensors of which the kernel's manifest says
/// that it only reads them. A kernel without a manifest has none.
static llvm::DenseSet<Value> readOnlyPointers(LLVM::LLVMFuncOp func) {
  llvm::DenseSet<Value> pointers;
  LaunchAttr launch = LaunchAttr::of(func);
  auto tensors = func->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr);
  ArrayAttr args = launch ? launch.getArgs() : ArrayAttr();
  if (!args || !tensors || args.size() != func.getNumArguments())
    return pointers;
  auto isRead = [&](StringAttr name) {
    return name &&
           llvm::any_of(tensors.getAsRange<TensorAttr>(),
                        [&](TensorAttr tensor) {
                          return tensor.getName() == name &&
                                 tensor.getAccess() == TensorAccess::Read;
                        });
  };
  for (auto [arg, value] :
       llvm::zip_equal(args.getAsRange<ArgumentAttr>(), func.getArguments()))
    if (arg.getKind() == ArgumentKind::Pointer && isRead(arg.getTensor()))
      pointers.insert(value);
  return pointers;
}

/// What an address was computed from, as far as that can be told.
static Value baseOf(Value pointer) {
  for (;;) {
    Operation *op = pointer.getDefiningOp();
    if (auto gep = dyn_cast_or_null<LLVM::GEPOp>(op))
      pointer = gep.getBase();
    else if (auto cast = dyn_cast_or_null<LLVM::AddrSpaceCastOp>(op))
      pointer = cast.getArg();
    else if (auto buffer = dyn_cast_or_null<ROCDL::MakeBufferRsrcOp>(op))
      pointer = buffer.getBase();
    else if (auto extract = dyn_cast_or_null<LLVM::ExtractValueOp>(op)) {
      // Out of a descriptor that was put together in this function.
      auto insert = extract.getContainer().getDefiningOp<LLVM::InsertValueOp>();
      while (insert && insert.getPosition() != extract.getPosition())
        insert = insert.getContainer().getDefiningOp<LLVM::InsertValueOp>();
      if (!insert)
        return pointer;
      pointer = insert.getValue();
    } else {
      return pointer;
    }
  }
}

/// Says which memory operations cannot be each other's concern: without it the
/// backend waits for every copy in flight before each read of LDS. Loads of
/// tensors that the kernel only reads are invariant. Of others they must not
/// be: the scalar cache, which invariant loads may go through, sees no writes,
/// and no acquire invalidates it.
static void tagMemory(LLVM::LLVMFuncOp func) {
  MLIRContext *context = func.getContext();
  Builder b(context);
  auto domain =
      LLVM::AliasScopeDomainAttr::get(context, b.getStringAttr("AsyncOps"));
  auto scope = [&](StringRef name) {
    return LLVM::AliasScopeAttr::get(domain, b.getStringAttr(name));
  };
  ArrayAttr copies = b.getArrayAttr({scope("AsyncCopies")});
  ArrayAttr local = b.getArrayAttr({scope("LocalLoads")});
  llvm::DenseSet<Value> readOnly = readOnlyPointers(func);
  auto isLds = [](Value pointer) {
    return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() ==
           kLds;
  };
  func.walk([&](Operation *op) {
    if (isa<ROCDL::RawPtrBufferLoadLdsOp, ROCDL::GlobalLoadLDSOp,
            ROCDL::TensorLoadToLDSOp>(op)) {
      cast<LLVM::AliasAnalysisOpInterface>(op).setAliasScopes(copies);
      return;
    }
    if (auto load = dyn_cast<LLVM::LoadOp>(op);
        load && load.getOrdering() == LLVM::AtomicOrdering::not_atomic &&
        !load.getVolatile_() && readOnly.contains(baseOf(load.getAddr())))
      load.setInvariant(true);
    auto access = dyn_cast<LLVM::AliasAnalysisOpInterface>(op);
    bool lds = isa<ROCDL::ds_read_tr16_b64, ROCDL::DsLoadTr16_B128>(op);
    if (auto load = dyn_cast<LLVM::LoadOp>(op))
      lds = isLds(load.getAddr());
    if (auto store = dyn_cast<LLVM::StoreOp>(op))
      lds = isLds(store.getAddr());
    if (access && lds) {
      access.setAliasScopes(local);
      access.setNoAliasScopes(copies);
    }
  });
}

/// Branches on votes are rare (`kvbuffer.lane_any`): the backend lays their
/// blocks out of the way of those that most iterations run.
static void weighBranches(LLVM::LLVMFuncOp func) {
  llvm::DenseSet<Value> votes;
  func.walk([&](LLVM::ICmpOp compare) {
    if (compare.getLhs().getDefiningOp<ROCDL::BallotOp>())
      votes.insert(compare);
  });
  // A vote of one iteration may be acted upon in the next.
  for (bool changed = true; changed;) {
    changed = false;
    func.walk([&](BranchOpInterface branch) {
      for (unsigned i = 0; i < branch->getNumSuccessors(); ++i) {
        SuccessorOperands operands = branch.getSuccessorOperands(i);
        for (unsigned arg = 0; arg < operands.size(); ++arg)
          if (operands[arg] && votes.contains(operands[arg]))
            changed |=
                votes.insert(branch->getSuccessor(i)->getArgument(arg)).second;
      }
    });
  }
  func.walk([&](LLVM::CondBrOp branch) {
    if (votes.contains(branch.getCondition()))
      branch.setBranchWeights(ArrayRef<int32_t>{1, 1000});
  });
}

/// Whether a cast makes words of 32 bits of bytes, or bytes of words.
static bool castsBetween(LLVM::BitcastOp cast, unsigned from, unsigned to) {
  auto source = dyn_cast<VectorType>(cast.getArg().getType()),
       result = dyn_cast<VectorType>(cast.getType());
  return source && result && source.getElementType().isInteger(from) &&
         result.getElementType().isInteger(to);
}

/// Keeps bytes that a loop carries as words in words. LLVM would carry bytes,
/// if it saw that the words were some, or become some, and takes these apart at
/// the iteration's end, for which it waits for all loads. It looks through no
/// assembly.
static void keepWords(LLVM::LLVMFuncOp func) {
  SmallVector<LLVM::BitcastOp> loaded, carried;
  func.walk([&](LLVM::BitcastOp cast) {
    auto load = cast.getArg().getDefiningOp<LLVM::LoadOp>();
    if (castsBetween(cast, 8, 32) && load && load->hasOneUse())
      loaded.push_back(cast);
    if (castsBetween(cast, 32, 8) && isa<BlockArgument>(cast.getArg()))
      carried.push_back(cast);
  });
  for (LLVM::BitcastOp cast : loaded) {
    auto load = cast.getArg().getDefiningOp<LLVM::LoadOp>();
    load.getRes().setType(cast.getType());
    cast.getRes().replaceAllUsesWith(load.getRes());
    cast.erase();
  }
  for (LLVM::BitcastOp cast : carried) {
    OpBuilder b(cast);
    Location loc = cast.getLoc();
    Value words = cast.getArg();
    // A register, or several.
    int64_t bits =
        32 * mlir::cast<VectorType>(words.getType()).getNumElements();
    Type type = bits > 64 ? words.getType() : b.getIntegerType(bits);
    if (type != words.getType())
      words = LLVM::BitcastOp::create(b, loc, type, words);
    auto statement = LLVM::InlineAsmOp::create(
        b, loc, type, words, /*asm_string=*/"", /*constraints=*/"=v,0",
        /*has_side_effects=*/false, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(cast->getContext(), LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
    cast.setOperand(statement.getRes());
  }
}

/// Keeps loads in front of scheduling barriers that only stores of memory may
/// pass. LLVM sinks loads to where they are used, behind a branch too, and then
/// they are younger than others that were issued later: waits that count them
/// would be for all. It moves none across a statement that may write to memory.
static void keepLoadsInFront(LLVM::LLVMFuncOp func) {
  constexpr uint32_t all = 0x10, reads = 0x20, writes = 0x40;
  func.walk([&](ROCDL::SchedBarrier barrier) {
    if ((barrier.getMask() & (all | reads | writes)) != writes)
      return;
    OpBuilder b(barrier);
    LLVM::InlineAsmOp::create(
        b, barrier.getLoc(), TypeRange(), ValueRange(), /*asm_string=*/"",
        /*constraints=*/"~{memory}", /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(barrier.getContext(),
                                  LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
  });
}

/// The bytes of the LDS of a kernel's module.
static int64_t ldsBytesOf(LLVM::LLVMFuncOp func) {
  auto lds = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      func, StringAttr::get(func.getContext(), kLdsName));
  auto array = lds ? dyn_cast<LLVM::LLVMArrayType>(lds.getGlobalType())
                   : LLVM::LLVMArrayType();
  return array ? array.getNumElements() : 0;
}

void kvbuf::finishKernel(LLVM::LLVMFuncOp func, const TargetInfo &target) {
  MLIRContext *context = func.getContext();
  Builder b(context);
  tagMemory(func);
  weighBranches(func);
  keepWords(func);
  keepLoadsInFront(func);
  SmallVector<Attribute> attributes{b.getStringAttr("nounwind")};
  // Two waves a SIMD share its registers, so that one computes while the other
  // waits: 256 for each lane, which is all that an instruction can name. Fewer
  // registers would give the reads of LDS less room. A kernel without LDS hides
  // its loads by as many waves as there are.
  bool usesLds = func.walk([](LLVM::AddressOfOp op) {
                       return op.getGlobalName() == kLdsName
                                  ? WalkResult::interrupt()
                                  : WalkResult::advance();
                     })
                     .wasInterrupted();
  // Blocks of one wave may be as few as their LDS leaves room for; those of a
  // wave a SIMD, of which LDS has room for one alone, are.
  LaunchAttr launch = LaunchAttr::of(func);
  ArrayRef<int64_t> block = launch ? launch.getBlock() : ArrayRef<int64_t>();
  int64_t waves = block.empty() ? 0 : block.front() / target.waveSize;
  constexpr int64_t kSimds = 4;
  bool isAlone =
      waves > 0 && waves <= kSimds && 2 * ldsBytesOf(func) > target.ldsBytes;
  if (usesLds)
    attributes.insert(
        attributes.begin(),
        b.getStrArrayAttr(
            {"amdgpu-waves-per-eu", waves == 1 || isAlone ? "1,2" : "2,2"}));
  func.setPassthroughAttr(b.getArrayAttr(attributes));
  // The size of a block is known: the registers that a lane may use follow.
  if (!block.empty()) {
    std::string range = std::to_string(launch.getThreads());
    func->setAttr("rocdl.flat_work_group_size",
                  b.getStringAttr(range + "," + range));
    func->setAttr("rocdl.reqd_work_group_size",
                  b.getDenseI32ArrayAttr(
                      SmallVector<int32_t>(block.begin(), block.end())));
  }
  func->setAttr(KVBufferDialect::kPhaseAttr,
                PhaseAttr::get(context, Phase::Target));
}
