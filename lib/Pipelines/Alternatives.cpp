//===- Alternatives.cpp - Kernels for any tensors -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Pipelines/Alternatives.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/SizeExpressions.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kvbuf;

/// The kernel's launch dictionary with some fields replaced.
static void setLaunchFields(LLVM::LLVMFuncOp kernel,
                            ArrayRef<NamedAttribute> fields) {
  NamedAttrList launch(
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kKernelAttr));
  for (NamedAttribute field : fields)
    launch.set(field.getName(), field.getValue());
  kernel->setAttr(KVBufferDialect::kKernelAttr,
                  launch.getDictionary(kernel.getContext()));
}

/// Dynamic shared memory is the same for every name that it has, so one name
/// serves both kernels: where `second` is one, `first` gets the stricter
/// alignment. (With two, the assembler pads one of them to the other's.)
static bool mergeDynamicShared(Operation *first, Operation *second) {
  auto a = dyn_cast<LLVM::GlobalOp>(first),
       b = dyn_cast<LLVM::GlobalOp>(second);
  auto isDynamic = [](LLVM::GlobalOp global) {
    auto array = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
    return array && array.getNumElements() == 0;
  };
  if (!a || !b || a.getAddrSpace() != b.getAddrSpace() ||
      a.getGlobalType() != b.getGlobalType() || !isDynamic(a))
    return false;
  if (b.getAlignment().value_or(1) > a.getAlignment().value_or(1))
    a.setAlignment(b.getAlignment());
  return true;
}

bool kvbuf::takesTensorMaps(LLVM::LLVMFuncOp kernel) {
  auto launch =
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kKernelAttr);
  auto args = launch ? launch.getAs<ArrayAttr>("args") : nullptr;
  return args && llvm::any_of(args, [](Attribute arg) {
           auto fields = dyn_cast<DictionaryAttr>(arg);
           auto kind = fields ? fields.getAs<StringAttr>("kind") : nullptr;
           return kind && kind.getValue() == "tensor_map";
         });
}

void kvbuf::moveKernel(gpu::GPUModuleOp code, gpu::GPUModuleOp other,
                       LLVM::LLVMFuncOp kernel, StringRef stem) {
  SymbolTable symbols(code), others(other);
  for (Operation &op : llvm::make_early_inc_range(*other.getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol) {
      op.moveBefore(code.getBody(), code.getBody()->end());
      continue;
    }
    if (Operation *same = symbols.lookup(symbol.getName())) {
      if (mergeDynamicShared(same, &op)) {
        others.erase(&op);
        continue;
      }
      // The same declaration serves both.
      if (OperationEquivalence::isEquivalentTo(
              same, &op, OperationEquivalence::IgnoreLocations)) {
        others.erase(&op);
        continue;
      }
      StringRef wanted = &op == kernel ? stem : symbol.getName();
      std::string name = wanted.str();
      for (unsigned i = 1; symbols.lookup(name) || others.lookup(name); ++i)
        name = (wanted + "_" + Twine(i)).str();
      // Nothing but the module's own ops refers to it.
      (void)others.rename(&op, StringAttr::get(code.getContext(), name));
    }
    others.remove(&op);
    op.remove();
    symbols.insert(&op);
  }
}

/// Gives the workspaces and counters of `alternative` names of their own among
/// those of the other kernels of `code`. Kernels that share a name share the
/// memory, which has the size that the first of them needs; and an alternative
/// may run beside them.
static void separateScratch(gpu::GPUModuleOp code,
                            LLVM::LLVMFuncOp alternative) {
  auto tensorsOf = [](LLVM::LLVMFuncOp kernel) {
    auto list = kernel->getAttrOfType<ArrayAttr>(KVBufferDialect::kTensorsAttr);
    return list ? llvm::to_vector(list.getAsRange<DictionaryAttr>())
                : SmallVector<DictionaryAttr>();
  };
  llvm::StringSet<llvm::MallocAllocator> taken;
  for (auto kernel : code.getOps<LLVM::LLVMFuncOp>())
    if (kernel != alternative)
      for (DictionaryAttr tensor : tensorsOf(kernel))
        taken.insert(tensor.getAs<StringAttr>("name").getValue());

  Builder b(code.getContext());
  llvm::StringMap<StringAttr> renamed;
  auto withName = [&](DictionaryAttr entry, StringRef field) -> Attribute {
    NamedAttrList fields(entry);
    auto name = entry.getAs<StringAttr>(field);
    if (StringAttr other = name ? renamed.lookup(name.getValue()) : nullptr)
      fields.set(field, other);
    return fields.getDictionary(b.getContext());
  };
  SmallVector<Attribute> tensors;
  for (DictionaryAttr tensor : tensorsOf(alternative)) {
    auto name = tensor.getAs<StringAttr>("name");
    auto access = tensor.getAs<StringAttr>("access");
    bool isScratch = access && (access.getValue() == "workspace" ||
                                access.getValue() == "counter");
    if (isScratch && taken.contains(name.getValue())) {
      std::string own;
      for (unsigned i = 2; own.empty() || taken.contains(own); ++i)
        own = (name.getValue() + "_" + Twine(i)).str();
      renamed[name.getValue()] = b.getStringAttr(own);
    }
    tensors.push_back(withName(tensor, "name"));
  }
  if (renamed.empty())
    return;
  alternative->setAttr(KVBufferDialect::kTensorsAttr, b.getArrayAttr(tensors));
  auto launch =
      alternative->getAttrOfType<DictionaryAttr>(KVBufferDialect::kKernelAttr);
  SmallVector<Attribute> args;
  for (auto arg : launch.getAs<ArrayAttr>("args").getAsRange<DictionaryAttr>())
    args.push_back(withName(arg, "tensor"));
  setLaunchFields(alternative, b.getNamedAttr("args", b.getArrayAttr(args)));
}

LLVM::LLVMFuncOp kvbuf::addAlternative(gpu::GPUModuleOp code,
                                       LLVM::LLVMFuncOp kernel,
                                       gpu::GPUModuleOp other,
                                       LLVM::LLVMFuncOp alternative,
                                       StringRef stem) {
  bool maps = takesTensorMaps(kernel);
  moveKernel(code, other, alternative, stem);
  separateScratch(code, alternative);
  auto string = [&](StringRef name, StringRef value) {
    Builder b(code.getContext());
    return b.getNamedAttr(name, b.getStringAttr(value));
  };
  setLaunchFields(alternative, string("entry", alternative.getName()));
  setLaunchFields(kernel, string("instead", alternative.getName()));
  if (maps)
    setLaunchFields(kernel, string("requires", "tensor_maps"));
  return alternative;
}

namespace {
/// Builds expressions over the sizes of a launch.
struct SizeBuilder : Builder {
  using Builder::Builder;
  Attribute expr(StringRef name, ArrayRef<Attribute> operands) {
    return getDictionaryAttr(getNamedAttr(name, getArrayAttr(operands)));
  }
  Attribute number(int64_t value) { return getI64IntegerAttr(value); }
};
} // namespace

/// The condition on a launch (a size expression that is to be more than 0)
/// under which clusters of two blocks, each with `BM` of the query rows called
/// `rows` of heads of `headSize` elements, gain on a chip; `masked` where a
/// mask hides keys that other rows see, `sharing` the heads that share K and V.
/// `keys` is the number of keys, or what a table has room for, where the host
/// knows one; else null.
static Attribute launchIfClustersGain(MLIRContext *context,
                                      const TargetInfo &target, StringRef rows,
                                      Attribute keys, int64_t BM,
                                      int64_t headSize, bool masked,
                                      int64_t sharing, bool paged) {
  SizeBuilder b(context);
  auto tilesOf = [&](int64_t size) {
    return b.expr("ceildiv", {b.getStringAttr(rows), b.number(size)});
  };
  int64_t fewest = target.fewestClusterTiles(headSize, masked, sharing, paged);
  Attribute tiles = tilesOf(BM);
  // What a pair waits for is a tile of keys, so that what counts under a mask
  // is how many its rows see: of k tiles of keys and q of rows k - q / 2 on
  // average, which is q / 2 where there are as many keys as rows.
  if (keys && (paged || (masked && !TargetInfo::clustersOfHeads(sharing)))) {
    Attribute seen = b.expr(
        "product", {b.number(2), b.expr("ceildiv", {keys, b.number(BM)})});
    tiles =
        masked ? b.expr("sum", {seen, b.expr("product", {b.number(-1), tiles})})
               : seen;
  }
  Attribute enough = b.expr("sum", {tiles, b.number(1 - fewest)});
  if (TargetInfo::clustersOfHeads(sharing))
    return enough;
  // With t tiles in p pairs, n t - (n - 1) 2 p is t if t is even, else
  // t - n + 1.
  int64_t n = target.clusterOddTiles;
  Attribute gain = b.expr(
      "sum", {b.expr("product", {b.number(n), tilesOf(BM)}),
              b.expr("product", {b.number(2 - 2 * n), tilesOf(2 * BM)})});
  return b.expr("min", {gain, enough});
}

/// The condition on a launch under which blocks of several warps, as many as a
/// device has multiprocessors, have each nearly a whole multiprocessor's share:
/// no more than a tenth of them is left over when each of the `heads` heads of
/// the sequences is split over as many. For `wide` heads, of which few small
/// blocks fit a multiprocessor, also where more heads than multiprocessors, a
/// block each, take turns of which no more than a tenth is left over (H200,
/// head size 256, 32 sequences: 475 us, 481 with small blocks).
static Attribute launchIfBlocksFill(MLIRContext *context, int64_t heads,
                                    bool wide) {
  SizeBuilder b(context);
  Attribute sms = b.getStringAttr(kMultiprocessorsSize);
  Attribute lines = b.expr(
      "max", {b.number(1), b.expr("product", {b.getStringAttr(kBatchSize),
                                              b.number(heads)})});
  Attribute filled = b.expr(
      "product", {b.number(10), lines, b.expr("floordiv", {sms, lines})});
  Attribute split = b.expr(
      "sum", {filled, b.expr("product", {b.number(-9), sms}), b.number(1)});
  if (!wide)
    return split;
  Attribute turns = b.expr("ceildiv", {lines, sms});
  Attribute whole = b.expr(
      "sum", {b.expr("product", {b.number(10), lines}),
              b.expr("product", {b.number(-9), sms, turns}), b.number(1)});
  return b.expr("max", {split, whole});
}

/// The condition on a launch that sequences have at most `rows` query rows, or
/// (`more`) that some have more.
static Attribute launchIfRows(MLIRContext *context, int64_t rows, bool more) {
  SizeBuilder b(context);
  Attribute longest = b.getStringAttr(kLongestQuerySize);
  if (more)
    return b.expr("sum", {longest, b.number(-rows)});
  return b.expr(
      "sum", {b.number(rows + 1), b.expr("product", {b.number(-1), longest})});
}

/// The most keys that a sequence has, as launches know it.
static Attribute mostKeys(MLIRContext *context, CacheType cache) {
  SizeBuilder b(context);
  switch (cache.getKind()) {
  case CacheKind::Dense:
    return b.getStringAttr(kKeysSize);
  case CacheKind::Ragged:
    return b.getStringAttr(kAllKeysSize);
  case CacheKind::Continuous:
    return b.getStringAttr(kSlotRowsSize);
  case CacheKind::Paged:
    return b.expr("product", {b.getStringAttr(kTableRowSize),
                              b.number(cache.getPageSize())});
  }
  llvm_unreachable("covered switch");
}

void kvbuf::setLaunchIf(LLVM::LLVMFuncOp kernel, Attribute condition) {
  Builder b(kernel.getContext());
  setLaunchFields(
      kernel,
      b.getNamedAttr("launch_if", fixSizes(condition, fixedSizesOf(kernel))));
}

void kvbuf::addBeside(LLVM::LLVMFuncOp kernel, StringRef other) {
  Builder b(kernel.getContext());
  auto launch =
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kKernelAttr);
  SmallVector<Attribute> names{b.getStringAttr(other)};
  if (auto added = launch.getAs<ArrayAttr>("beside"))
    llvm::append_range(names, added);
  setLaunchFields(kernel, b.getNamedAttr("beside", b.getArrayAttr(names)));
}

void kvbuf::prepareAlternative(AttentionOp problem,
                               const KernelAlternative &alternative) {
  if (alternative.schedule)
    problem.removeScheduleAttr();
  if (alternative.sharedRows)
    problem->setAttr(kSharedRowsAttr, alternative.sharedRows);
}

/// Whether a schedule's parameters leave one of them to the compiler.
static bool leavesOpen(StringRef schedule, StringRef name) {
  SmallVector<StringRef> asked;
  schedule.split(asked, ',');
  return llvm::none_of(asked, [&](StringRef parameter) {
    return parameter.split('=').first.trim() == name;
  });
}

/// An alignment with which a kernel asks nothing of addresses but what elements
/// ask.
static constexpr int64_t kElementsAlone = 2;

/// Threads of a kernel's blocks; 1 where nothing says how many.
static int64_t threadsOf(LLVM::LLVMFuncOp kernel) {
  auto launch =
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kKernelAttr);
  auto block = launch ? launch.getAs<ArrayAttr>("block") : ArrayAttr();
  int64_t threads = 1;
  if (block)
    for (auto size : block.getAsRange<IntegerAttr>())
      threads *= size.getInt();
  return threads;
}

/// Whether launches decide over the clusters of a problem's kernel: nobody has
/// asked for some or none, and types leave the number of query rows open.
static bool choosesByLaunch(AttentionOp problem, StringRef schedule) {
  return leavesOpen(schedule, "cluster") && !problem.getScheduleAttr() &&
         !problem.isRagged() &&
         cast<ShapedType>(problem.getQ().getType()).isDynamicDim(1);
}

/// Whether a kernel is what a `kvbuffer.cache_append` has become.
static bool isAppend(LLVM::LLVMFuncOp kernel) {
  auto problem =
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kProblemAttr);
  auto op = problem ? problem.getAs<StringAttr>("op") : StringAttr();
  return op && op.getValue() == "cache_append";
}

/// Whether a kernel by lanes asks more of a tensor's address and strides than
/// its elements do; it says nothing where it does not.
static bool asksMoreThanElements(LLVM::LLVMFuncOp kernel) {
  auto launch =
      kernel->getAttrOfType<DictionaryAttr>(KVBufferDialect::kKernelAttr);
  return llvm::any_of(
      launch.getAs<ArrayAttr>("args").getAsRange<DictionaryAttr>(),
      [](DictionaryAttr arg) {
        auto own = arg.getAs<IntegerAttr>("alignment");
        return own && own.getInt() > 1;
      });
}

SmallVector<KernelAlternative> kvbuf::alternativesOf(LLVM::LLVMFuncOp kernel,
                                                     AttentionOp problem,
                                                     const TargetInfo &target,
                                                     StringRef schedule) {
  SmallVector<KernelAlternative> list;
  auto chosen =
      kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
  std::string entry = kernel.getName().str();
  // Kernels by lanes keep to the alignment of their accesses.
  if (!chosen) {
    if (!isAppend(kernel) || !asksMoreThanElements(kernel))
      return list;
    KernelAlternative &any = list.emplace_back();
    any.name = entry + "_unaligned";
    any.alignment = kElementsAlone;
    any.when = "which runs for tensors whose addresses or strides are no "
               "multiples of 16 bytes";
    return list;
  }
  // The condition of the last kernel so far, for the one after it.
  Attribute suits;
  bool clusters = problem && chosen.getStructure().cluster() > 1 &&
                  choosesByLaunch(problem, schedule);
  if (clusters) {
    MaskAttr mask = problem.getMaskValue();
    CacheType cache = problem.getK().getType();
    bool paged = cache.getKind() == CacheKind::Paged;
    SizeBuilder b(kernel.getContext());
    Attribute keys;
    if (paged || cache.getKind() == CacheKind::Dense)
      keys = mostKeys(kernel.getContext(), cache);
    suits =
        launchIfClustersGain(kernel.getContext(), target, kLongestQuerySize,
                             keys, chosen.getBM(), problem.getHeadSize(),
                             /*masked=*/mask.boundsLeft() || mask.boundsRight(),
                             problem.getHeads() / problem.getKVHeads(), paged);
  }
  // Whoever asks for a schedule gets its kernel.
  std::optional<FewQueryRows> few;
  if (problem && !chosen.getSplitKeys() && !problem.getScheduleAttr() &&
      schedule.empty())
    few = fewQueryRows(problem, target);
  if (few) {
    MLIRContext *context = kernel.getContext();
    // That clusters gain on long contexts says nothing of rows.
    Attribute more = launchIfRows(context, few->most, /*more=*/true);
    suits = suits ? SizeBuilder(context).expr("min", {more, suits}) : more;
  }
  // The kernels of a mixed batch know each other's rows; and a row's bits would
  // follow from the room that others have.
  if (problem && target.sumKeys && chosen.getMovingTeam() &&
      !chosen.getSplitKeys() && !problem.isRagged() &&
      !problem.getBatchInvariant() && !problem.getScheduleAttr() &&
      schedule.empty()) {
    MLIRContext *context = kernel.getContext();
    SizeBuilder b(context);
    int64_t most = target.mostSumKeys;
    Attribute keys = mostKeys(context, problem.getK().getType());
    Attribute fits = b.expr(
        "sum", {b.number(most + 1), b.expr("product", {b.number(-1), keys})});
    KernelAlternative &sums = list.emplace_back();
    sums.name = entry + "_of_many_keys";
    sums.schedule = "sum_keys=" + std::to_string(target.sumKeys);
    sums.launchIf = suits ? b.expr("min", {suits, fits}) : fits;
    sums.when = "which adds up sums over parts of the keys, and runs where a "
                "sequence may have more than " +
                std::to_string(most);
    suits = b.expr("sum", {keys, b.number(-most)});
    if (few)
      suits = b.expr("min",
                     {suits, launchIfRows(context, few->most, /*more=*/true)});
  }
  if (few) {
    MLIRContext *context = kernel.getContext();
    auto add = [&](StringRef name, const Twine &schedule, int64_t over,
                   int64_t most) {
      KernelAlternative &split = list.emplace_back();
      split.name = (entry + name).str();
      split.schedule = schedule.str();
      split.launchIf = suits;
      split.when = "which splits keys over blocks and runs for up to " +
                   std::to_string(most) + " query rows of a sequence";
      if (problem.isRagged()) {
        split.sharedRows = SharedRows{over, most, few->most}.attribute(context);
        split.when += ", and beside more for the sequences of " +
                      std::to_string(over + 1) + " to " + std::to_string(most);
      }
      suits = launchIfRows(context, most, /*more=*/false);
    };
    // Half of a large tile is faster where it is enough.
    int64_t half = few->tile / 2;
    int64_t fewer = half / (problem.getHeads() / problem.getKVHeads());
    if (few->tile < target.splitKeysRows)
      fewer = 0;
    add("_of_few_rows", "split_keys=true", fewer, few->most);
    if (fewer > 0) {
      suits = SizeBuilder(context).expr(
          "min", {suits, launchIfRows(context, fewer, /*more=*/true)});
      add("_of_fewer_rows", "split_keys=true,BM=" + Twine(half), 0, fewer);
    }
  }
  if (clusters) {
    KernelAlternative &plain = list.emplace_back();
    plain.name = entry + "_without_clusters";
    plain.launchIf = std::exchange(suits, Attribute());
    plain.when = "which runs where clusters lose more by few query rows than "
                 "they gain";
  }
  // Warps that have heads side by side are what as many blocks would be. Where
  // the launch chose by the number of sequences, a row's bits would follow from
  // it.
  if (problem && chosen.getSplitKeys() && !chosen.getSplitKeys()->equalShares &&
      !chosen.getMovingTeam() && !problem.getBatchInvariant() &&
      !problem.getScheduleAttr() && leavesOpen(schedule, "warps") &&
      threadsOf(kernel) > int64_t(target.waveSize)) {
    KernelAlternative &small = list.emplace_back();
    small.name = entry + "_of_small_blocks";
    small.launchIf = launchIfBlocksFill(
        kernel.getContext(), problem.getKVHeads(),
        /*wide=*/std::max(problem.getHeadSize(), problem.getValueHeadSize()) >
            target.narrowHeadSize);
    small.when = "which runs where blocks of several warps would leave "
                 "multiprocessors idle";
  }
  // Of others no kernel stores tokens besides.
  if (problem && appendOf(problem))
    return list;
  bool maps = takesTensorMaps(kernel);
  // The teams of a program of the tile stage are its author's.
  if ((!maps && !target.copiesUnaligned) ||
      (chosen.getMovingTeam() && !problem))
    return list;
  KernelAlternative &any = list.emplace_back();
  any.launchIf = suits;
  any.name = entry + (maps ? "_without_maps" : "_unaligned");
  any.alignment = target.copiesUnaligned ? 2 : 16;
  // The caller's schedule, and the problem's, are for a kernel whose tiles a
  // team moves.
  if (chosen.getMovingTeam())
    any.schedule = "producers=0";
  any.when = "which runs for tensors";
  if (maps)
    any.when += " that no tensor map can describe";
  if (target.copiesUnaligned)
    any.when += std::string(maps ? ", or" : "") +
                " whose addresses or strides are no multiples of 16 bytes";
  return list;
}
