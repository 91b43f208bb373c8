//===- KnownAttributes.cpp - Refuse attributes that nobody reads ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KnownAttributes.h"
#include "Keywords.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FiniteProduct.h"
#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ReadOnce.h"
#include "kvbuffer/Dialect/KVBuffer/IR/RelaxedAtomics.h"
#include "kvbuffer/Dialect/KVBuffer/IR/ScaledSlots.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TradedShelves.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Attributes of the dialect's ops
//===----------------------------------------------------------------------===//

/// Whether an attribute is there for the sake of the op's form, not for users.
static bool isOfForm(StringRef name) {
  return llvm::is_contained({"operandSegmentSizes", "operand_segment_sizes",
                             "resultSegmentSizes", "result_segment_sizes"},
                            name);
}

LogicalResult kvbuf::detail::verifyOwnAttributes(Operation *op) {
  for (NamedAttribute attr : op->getDiscardableAttrs()) {
    StringRef name = attr.getName();
    if (name.contains('.') || isOfForm(name))
      continue;
    SmallVector<StringRef> own;
    for (StringAttr known : op->getName().getAttributeNames())
      if (!isOfForm(known))
        own.push_back(known);
    InFlightDiagnostic diag = op->emitOpError()
                              << "has an unknown attribute '" << name << "'";
    suggest(diag, name, own);
    return diag;
  }
  return success();
}

LogicalResult kvbuf::detail::verifyPropertyKeys(
    ArrayRef<StringRef> own, Attribute properties,
    function_ref<InFlightDiagnostic()> emitError) {
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(properties);
  if (!dictionary) // which the op itself reports
    return success();
  SmallVector<StringRef> known;
  for (StringRef name : own)
    if (!isOfForm(name))
      known.push_back(name);
  for (NamedAttribute entry : dictionary) {
    StringRef name = entry.getName();
    if (llvm::is_contained(known, name) || isOfForm(name))
      continue;
    InFlightDiagnostic diag = emitError();
    diag << "has an unknown property '" << name << "'";
    suggest(diag, name, known);
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Dictionaries
//===----------------------------------------------------------------------===//

namespace {

/// What a value of a dictionary is.
enum class Kind {
  String,
  Strings,
  Bool,
  Integer,
  /// An integer or a floating-point number.
  Number,
  /// An expression over sizes of the problem, or an array of them.
  Sizes,
  /// The same as what `LaunchAttr` and `ArgumentAttr` hold.
  Numbers,
  SizeList,
  /// An expression over sizes of the problem.
  Size,
  /// A dictionary from names of sizes to such expressions.
  NamedSizes,
  /// An array of #kvbuffer.argument.
  Arguments,
  /// A dictionary, which is verified on its own.
  Dictionary
};

struct Key {
  StringLiteral name;
  Kind kind;
};

} // namespace

// As include/kvbuffer/Runtime/Manifest.h has them.
static constexpr Key kLaunchKeys[] = {{"alignment", Kind::Integer},
                                      {"args", Kind::Arguments},
                                      {"ahead", Kind::Strings},
                                      {"beside", Kind::Strings},
                                      {"block", Kind::Numbers},
                                      {"copies", Kind::String},
                                      {"copies_if", Kind::Size},
                                      {"defaults", Kind::NamedSizes},
                                      {"dynamic_shared_bytes", Kind::Integer},
                                      {"entry", Kind::String},
                                      {"grid", Kind::SizeList},
                                      {"instead", Kind::String},
                                      {"launch_if", Kind::Size},
                                      {"requires", Kind::String}};
static constexpr Key kPointerKeys[] = {{"alignment", Kind::Integer}};
static constexpr Key kStrideKeys[] = {{"dim", Kind::Integer},
                                      {"limit", Kind::Integer}};
static constexpr Key kTensorMapKeys[] = {
    {"box", Kind::Numbers},       {"columns", Kind::Numbers},
    {"dims", Kind::Numbers},      {"flat", Kind::Dictionary},
    {"interleave", Kind::String}, {"l2_promotion", Kind::Integer},
    {"oob_fill", Kind::String},   {"swizzle", Kind::Integer}};
static constexpr Key kFlatKeys[] = {
    {"columns", Kind::Integer},    {"cut_rows", Kind::Integer},
    {"first_byte", Kind::Integer}, {"fold", Kind::Integer},
    {"stride", Kind::Integer},     {"view", Kind::String}};
static constexpr Key kLdsKeys[] = {
    {"banks", Kind::Integer},  {"cols", Kind::Integer},
    {"depth", Kind::Integer},  {"element_bytes", Kind::Integer},
    {"folds", Kind::Numbers},  {"key_bits", Kind::Numbers},
    {"keys", Kind::Integer},   {"name", Kind::String},
    {"offset", Kind::Integer}, {"row_bytes", Kind::Integer},
    {"rows", Kind::Integer},   {"slot_bytes", Kind::Integer},
    {"slots", Kind::Integer},  {"swizzle", Kind::Numbers}};
static constexpr Key kAttentionKeys[] = {{"batch_invariant", Kind::Bool},
                                         {"cache", Kind::String},
                                         {"causal", Kind::Bool},
                                         {"dtype", Kind::String},
                                         {"head_size", Kind::Integer},
                                         {"heads", Kind::Integer},
                                         {"k_cache_depth", Kind::Integer},
                                         {"k_dtype", Kind::String},
                                         {"k_granularity", Kind::Integer},
                                         {"k_head_dim_offset", Kind::Integer},
                                         {"k_row", Kind::Dictionary},
                                         {"kv_heads", Kind::Integer},
                                         {"latent", Kind::Bool},
                                         {"lengths", Kind::String},
                                         {"lse", Kind::Bool},
                                         {"o_dtype", Kind::String},
                                         {"op", Kind::String},
                                         {"page_size", Kind::Integer},
                                         {"query", Kind::String},
                                         {"scale", Kind::Number},
                                         {"sink", Kind::Bool},
                                         {"softcap", Kind::Number},
                                         {"tensors", Kind::Dictionary},
                                         {"v_cache_depth", Kind::Integer},
                                         {"v_dtype", Kind::String},
                                         {"v_granularity", Kind::Integer},
                                         {"v_head_dim_offset", Kind::Integer},
                                         {"v_head_size", Kind::Integer},
                                         {"window_left", Kind::Integer},
                                         {"window_right", Kind::Integer}};

/// What may be said of an argument besides.
static ArrayRef<Key> keysOf(ArgumentKind kind) {
  switch (kind) {
  case ArgumentKind::Pointer:
    return kPointerKeys;
  case ArgumentKind::Stride:
    return kStrideKeys;
  case ArgumentKind::TensorMap:
    return kTensorMapKeys;
  case ArgumentKind::Size:
  case ArgumentKind::LaunchCounter:
    return {};
  }
  llvm_unreachable("unknown kind");
}

static bool isInteger(Attribute value) {
  return isa<IntegerAttr>(value) && !isa<BoolAttr>(value);
}

/// Whether a value is of a kind.
static bool isKind(Attribute value, Kind kind) {
  auto array = dyn_cast<ArrayAttr>(value);
  switch (kind) {
  case Kind::String:
    return isa<StringAttr>(value);
  case Kind::Strings:
    return array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
  case Kind::Bool:
    return isa<BoolAttr>(value);
  case Kind::Integer:
    return isInteger(value);
  case Kind::Number:
    return isInteger(value) || isa<FloatAttr>(value);
  case Kind::Sizes:
    return isa<DenseI64ArrayAttr, DenseI32ArrayAttr>(value) ||
           (array ? llvm::all_of(array, SizeAttr::isSize)
                  : SizeAttr::isSize(value));
  case Kind::Numbers:
    return isa<DenseI64ArrayAttr>(value);
  case Kind::SizeList:
    return array && llvm::all_of(array, SizeAttr::isSize);
  case Kind::Size:
    return SizeAttr::isSize(value);
  case Kind::NamedSizes:
    return isa<DictionaryAttr>(value) &&
           llvm::all_of(cast<DictionaryAttr>(value), [](NamedAttribute size) {
             return SizeAttr::isSize(size.getValue());
           });
  case Kind::Arguments:
    return array && llvm::all_of(array, llvm::IsaPred<ArgumentAttr>);
  case Kind::Dictionary:
    return isa<DictionaryAttr>(value);
  }
  llvm_unreachable("unknown kind");
}

/// What a value of a kind is called in messages.
static StringRef nameOf(Kind kind) {
  switch (kind) {
  case Kind::String:
    return "a string";
  case Kind::Strings:
    return "an array of strings";
  case Kind::Bool:
    return "true or false";
  case Kind::Integer:
    return "an integer";
  case Kind::Number:
    return "a number";
  case Kind::Numbers:
    return "an array of integers";
  case Kind::Sizes:
  case Kind::SizeList:
    return "an array of integers, names of sizes and #kvbuffer.size<...>";
  case Kind::Size:
    return SizeAttr::kExpected;
  case Kind::NamedSizes:
    return "a dictionary from names of sizes to sizes";
  case Kind::Arguments:
    return "an array of #kvbuffer.argument<...>";
  case Kind::Dictionary:
    return "a dictionary";
  }
  llvm_unreachable("unknown kind");
}

/// The names of keys.
static SmallVector<StringRef> namesOf(ArrayRef<Key> keys) {
  return llvm::map_to_vector(
      keys, [](const Key &key) -> StringRef { return key.name; });
}

/// The entries of a dictionary against the keys that are read. `owner` is what
/// has them, for messages.
static LogicalResult verifyKeys(function_ref<InFlightDiagnostic()> emitError,
                                const Twine &owner, DictionaryAttr dictionary,
                                ArrayRef<Key> keys) {
  for (NamedAttribute entry : dictionary) {
    StringRef name = entry.getName();
    const Key *key =
        llvm::find_if(keys, [&](const Key &k) { return k.name == name; });
    if (key == keys.end()) {
      InFlightDiagnostic diag = emitError();
      diag << owner << " has an unknown key '" << name << "'";
      suggest(diag, name, namesOf(keys));
      return diag;
    }
    if (!isKind(entry.getValue(), key->kind))
      return emitError() << "key '" << name << "' of " << owner << " must be "
                         << nameOf(key->kind) << ", got " << entry.getValue();
  }
  return success();
}

SmallVector<StringRef> kvbuf::keysOfLaunches() { return namesOf(kLaunchKeys); }

SmallVector<StringRef> kvbuf::keysOfLds() { return namesOf(kLdsKeys); }

SmallVector<StringRef> kvbuf::keysOfArguments(ArgumentKind kind) {
  return namesOf(keysOf(kind));
}

LogicalResult ArgumentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArgumentKind kind, StringAttr tensor,
                                   Attribute size, DictionaryAttr details) {
  bool isSize = kind == ArgumentKind::Size;
  if (isSize && (!size || !SizeAttr::isSize(size)))
    return emitError() << "expected " << SizeAttr::kExpected << ", got "
                       << size;
  bool hasTensor = !isSize && kind != ArgumentKind::LaunchCounter;
  if (hasTensor != bool(tensor) || isSize != bool(size))
    return emitError() << "expected a size for `size`, none and no tensor for "
                          "`launch_counter`, and else a tensor";
  std::string owner =
      ("#kvbuffer.argument<" + stringifyArgumentKind(kind) + ">").str();
  if (failed(verifyKeys(emitError, owner, details, keysOf(kind))))
    return failure();
  auto flat = details.getAs<DictionaryAttr>("flat");
  return flat ? verifyKeys(emitError, "'flat' of " + owner, flat, kFlatKeys)
              : success();
}

LogicalResult LaunchAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 DictionaryAttr fields) {
  constexpr StringLiteral owner = "#kvbuffer.launch";
  if (failed(verifyKeys(emitError, owner, fields, kLaunchKeys)))
    return failure();
  // Blocks, and threads of one: launches read three numbers of each.
  auto has = [&](StringRef key, size_t count) -> LogicalResult {
    if (count == 3)
      return success();
    return emitError() << "key '" << key << "' of " << owner
                       << " must have three extents, got " << count;
  };
  auto block = fields.getAs<DenseI64ArrayAttr>("block");
  if (block && failed(has("block", block.size())))
    return failure();
  auto grid = fields.getAs<ArrayAttr>("grid");
  return grid ? has("grid", grid.size()) : success();
}

/// A dictionary from names of sizes to expressions over others.
static LogicalResult verifySizes(Operation *op, StringRef where,
                                 DictionaryAttr sizes) {
  for (NamedAttribute entry : sizes)
    if (!SizeAttr::isSize(entry.getValue()))
      return op->emitOpError()
             << "key '" << entry.getName().getValue() << "' of attribute '"
             << where << "' must be " << SizeAttr::kExpected << ", got "
             << entry.getValue();
  return success();
}

LogicalResult ProblemAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  DictionaryAttr fields) {
  constexpr StringLiteral owner = "#kvbuffer.problem";
  Attribute name = fields.get("op");
  if (!name)
    return emitError() << owner << " has no 'op', the problem's name";
  if (!isa<StringAttr>(name))
    return emitError() << "key 'op' of " << owner << " must be a string, got "
                       << name;
  // Which tensors they are made of.
  if (auto tensors = fields.getAs<DictionaryAttr>("tensors"))
    for (NamedAttribute part : tensors)
      if (!isa<StringAttr>(part.getValue()))
        return emitError() << "key '" << part.getName().getValue()
                           << "' of 'tensors' of " << owner
                           << " must be a string, the tensor's name, got "
                           << part.getValue();
  // What other problems are made of besides is their makers' affair.
  if (cast<StringAttr>(name).getValue() != "attention")
    return success();
  return verifyKeys(emitError, owner, fields, kAttentionKeys);
}

LogicalResult LdsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              DictionaryAttr fields) {
  if (!fields.get("name"))
    return emitError() << "#kvbuffer.lds has no 'name', the buffer's";
  return verifyKeys(emitError, "#kvbuffer.lds", fields, kLdsKeys);
}

//===----------------------------------------------------------------------===//
// Attributes with the dialect's prefix
//===----------------------------------------------------------------------===//

namespace {
/// Where an attribute is read.
enum class Place { Module, Function, Loop, Problem, Any };

struct Known {
  StringLiteral name;
  Place place;
};
} // namespace

static constexpr Known kKnown[] = {
    {KVBufferDialect::kPhaseAttr, Place::Function},
    {KVBufferDialect::kScheduleAttr, Place::Function},
    {KVBufferDialect::kTargetAttr, Place::Module},
    {KVBufferDialect::kWholeAfterFirstAttr, Place::Loop},
    {KVBufferDialect::kProblemAttr, Place::Function},
    {KVBufferDialect::kGridAttr, Place::Function},
    {KVBufferDialect::kKernelAttr, Place::Function},
    {KVBufferDialect::kTensorsAttr, Place::Function},
    {kLdsAttr, Place::Function},
    {kSizesAttr, Place::Function},
    {kLengthsAttr, Place::Problem},
    {kSharedRowsAttr, Place::Any},
    {kKnownRowsAttr, Place::Problem},
    {kWidenedAttr, Place::Problem},
    {kResidentBlocksAttr, Place::Function},
    {KVBufferDialect::kEdgeTilesAttr, Place::Any},
    {kFiniteProductAttr, Place::Any},
    {kParkedAttr, Place::Any},
    {kReadOnceAttr, Place::Any},
    {kRelaxedAttr, Place::Any},
    {kScaledByAttr, Place::Any},
    {kTradedAttr, Place::Any},
    {KVBufferDialect::kStageAttr, Place::Any},
    {KVBufferDialect::kPipelineAttr, Place::Loop},
    {KVBufferDialect::kGroupAttr, Place::Any}};

static bool stands(Operation *op, Place place) {
  switch (place) {
  case Place::Module:
    return op->hasTrait<OpTrait::SymbolTable>();
  case Place::Function:
    return isa<FunctionOpInterface>(op);
  case Place::Loop:
    return isa<LoopLikeOpInterface>(op);
  case Place::Problem:
    return isa<AttentionOp>(op);
  case Place::Any:
    return true;
  }
  llvm_unreachable("unknown place");
}

static StringRef nameOf(Place place) {
  return place == Place::Module     ? "module"
         : place == Place::Function ? "function"
         : place == Place::Problem  ? "kvbuffer.attention"
                                    : "loop";
}

/// What is said of the query rows of a problem's launches.
static LogicalResult
verifyRows(Operation *op, NamedAttribute attr,
           llvm::function_ref<LogicalResult(bool, const Twine &)> expect) {
  if (attr.getName() == kSharedRowsAttr) {
    std::optional<SharedRows> rows = SharedRows::of(op);
    if (!rows || rows->over < 0 || rows->shared < 1 ||
        (rows->upto != -1 && rows->upto <= rows->over))
      return expect(false,
                    "[over, upto, shared] with 0 <= over < upto (or upto "
                    "= -1) and shared >= 1, as array<i64: ...>");
    auto attention = dyn_cast<AttentionOp>(op);
    return expect(attention ? attention.isRagged()
                            : isa<FunctionOpInterface>(op),
                  "on a kvbuffer.attention with ragged queries, or a kernel");
  }
  auto count = dyn_cast<IntegerAttr>(attr.getValue());
  if (!count || count.getInt() < 1)
    return expect(false, "an integer of 1 or more");
  auto attention = cast<AttentionOp>(op);
  return expect(
      !attention.isRagged() &&
          cast<ShapedType>(attention.getQ().getType()).isDynamicDim(1),
      "with dense queries whose type leaves the number of rows of "
      "a sequence open");
}

LogicalResult kvbuf::verifyDialectAttribute(Operation *op,
                                            NamedAttribute attr) {
  StringRef name = attr.getName();
  Attribute value = attr.getValue();
  const Known *known =
      llvm::find_if(kKnown, [&](const Known &k) { return k.name == name; });
  if (known == std::end(kKnown)) {
    SmallVector<StringRef> names;
    for (const Known &k : kKnown)
      names.push_back(k.name);
    InFlightDiagnostic diag = op->emitOpError()
                              << "has an unknown attribute '" << name << "'";
    suggest(diag, name, names);
    return diag;
  }
  if (!stands(op, known->place))
    return op->emitOpError()
           << "has the attribute '" << name << "', which nothing reads here; "
           << "expected it on a " << nameOf(known->place);
  auto expect = [&](bool good, const Twine &what) -> LogicalResult {
    if (good)
      return success();
    return op->emitOpError() << "attribute '" << name << "' must be " << what;
  };
  auto dictionary = dyn_cast<DictionaryAttr>(value);
  auto array = dyn_cast<ArrayAttr>(value);
  if (name == KVBufferDialect::kPhaseAttr)
    return expect(isa<PhaseAttr>(value), "a #kvbuffer.phase<...>");
  if (name == KVBufferDialect::kScheduleAttr)
    return expect(isa<ScheduleAttr>(value), "a #kvbuffer.schedule<...>");
  if (name == KVBufferDialect::kTargetAttr)
    return expect(isa<StringAttr>(value), "a string, the chip's name");
  if (name == KVBufferDialect::kKernelAttr)
    return expect(isa<LaunchAttr>(value), "a #kvbuffer.launch<...>");
  if (name == KVBufferDialect::kProblemAttr)
    return expect(isa<ProblemAttr>(value), "a #kvbuffer.problem<...>");
  if (name == KVBufferDialect::kTensorsAttr)
    return expect(array && llvm::all_of(array, llvm::IsaPred<TensorAttr>),
                  "an array of #kvbuffer.tensor<...>");
  if (name == kSizesAttr)
    return dictionary ? verifySizes(op, name, dictionary)
                      : expect(false, "a dictionary");
  if (name == kLdsAttr)
    return expect(array && llvm::all_of(array, llvm::IsaPred<LdsAttr>),
                  "an array of #kvbuffer.lds<...>");
  if (name == kScaledByAttr) {
    auto staged = op->getNumResults() == 1
                      ? dyn_cast<StagedType>(op->getResult(0).getType())
                      : StagedType();
    if (!staged || !staged.getParams().getElementType().isBF16())
      return op->emitOpError()
             << "has the attribute '" << name << "', which nothing reads here; "
             << "expected it on what awaits one slot of bf16";
    auto by = dyn_cast<FloatAttr>(value);
    return expect(by && by.getType().isF32() &&
                      scalesExactly(by.getValueAsDouble()),
                  "a power of two of f32, from 2^-60 to 1");
  }
  if (name == kReadOnceAttr && !isa<RingLoadOp>(op))
    return op->emitOpError()
           << "has the attribute '" << name << "', which nothing reads here; "
           << "expected it on a kvbuffer.ring_load";
  if (name == kParkedAttr) {
    if (!isa<ShelfOp>(op))
      return op->emitOpError()
             << "has the attribute '" << name << "', which nothing reads here; "
             << "expected it on a kvbuffer.shelf";
    if (op->hasAttr(kTradedAttr))
      return op->emitOpError() << "has the attribute '" << name << "' beside '"
                               << kTradedAttr << "'; expected one of them";
    return expect(isa<UnitAttr>(value), "a unit");
  }
  if (name == kTradedAttr) {
    if (!isa<ShelfOp>(op))
      return op->emitOpError()
             << "has the attribute '" << name << "', which nothing reads here; "
             << "expected it on a kvbuffer.shelf";
    return expect(isa<UnitAttr>(value), "a unit");
  }
  if (name == KVBufferDialect::kStageAttr) {
    Operation *loop = op->getParentOp();
    if (isa<StageAttr>(value) &&
        (!loop || !loop->hasAttr(KVBufferDialect::kPipelineAttr)))
      return op->emitOpError()
             << "has the attribute '" << name << "', which nothing reads here; "
             << "expected it in the body of a loop with '"
             << KVBufferDialect::kPipelineAttr << "'";
    return expect(isa<StageAttr>(value), "a #kvbuffer.stage<...>");
  }
  if (name == KVBufferDialect::kPipelineAttr)
    return expect(isa<PipelineAttr>(value), "a #kvbuffer.pipeline<...>");
  if (name == KVBufferDialect::kGridAttr)
    return !array ? expect(false, "an array")
           : !isKind(value, Kind::Sizes)
               ? expect(false, nameOf(Kind::Sizes))
               : expect(array.size() == 3,
                        "three extents, along x, y and z; got " +
                            Twine(array.size()));
  if (name == kLengthsAttr) {
    auto text = dyn_cast<StringAttr>(value);
    if (!text || (text.getValue() != "cached" && text.getValue() != "all"))
      return expect(false, "\"cached\" or \"all\"");
    CacheType cache = cast<AttentionOp>(op).getKCacheType();
    return expect(cache && cache.hasTable(), "with a cache that has lengths, a "
                                             "continuous or paged one");
  }
  if (name == kSharedRowsAttr || name == kKnownRowsAttr)
    return verifyRows(op, attr, expect);
  if (name == kResidentBlocksAttr) {
    auto count = dyn_cast<IntegerAttr>(value);
    return expect(count && count.getInt() > 0, "an integer of 1 or more");
  }
  return expect(isa<UnitAttr>(value), "a unit attribute");
}

/// Other names for the sizes of a kernel's argument that is a cache.
static LogicalResult verifyCacheSizes(Operation *op, unsigned argument,
                                      NamedAttribute attr) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  auto cache = kernel
                   ? dyn_cast<CacheLayout>(kernel.getArgumentTypes()[argument])
                   : CacheLayout();
  auto sizes = dyn_cast<DictionaryAttr>(attr.getValue());
  if (!cache || !sizes || !llvm::all_of(sizes, [](NamedAttribute size) {
        return isa<StringAttr>(size.getValue());
      }))
    return op->emitOpError()
           << "attribute '" << attr.getName().getValue() << "' of argument "
           << argument
           << " must be a dictionary from names of sizes to names, on a "
              "kernel's cache, got "
           << attr.getValue();
  SmallVector<StringRef> known;
  auto add = [&](ArrayRef<CacheDim> dims) {
    for (const CacheDim &dim : dims)
      if (!dim.name.empty() && !llvm::is_contained(known, dim.name))
        known.push_back(dim.name);
  };
  add(cache.getLeadingDims());
  for (const CacheTensor &tensor : cache.getIndexTensors())
    add(tensor.dims);
  for (NamedAttribute size : sizes)
    if (!llvm::is_contained(known, size.getName().getValue())) {
      InFlightDiagnostic diag = op->emitOpError()
                                << "attribute '" << attr.getName().getValue()
                                << "' of argument " << argument
                                << " renames an unknown size '"
                                << size.getName().getValue() << "'";
      suggest(diag, size.getName(), known);
      return diag;
    }
  return success();
}

LogicalResult kvbuf::verifyArgumentAttribute(Operation *op, unsigned argument,
                                             NamedAttribute attr) {
  StringRef name = attr.getName();
  auto bad = [&](const Twine &expected) {
    return op->emitOpError()
           << "attribute '" << name << "' of argument " << argument
           << " must be " << expected << ", got " << attr.getValue();
  };
  if (name == KVBufferDialect::kNameAttr)
    return isa<StringAttr>(attr.getValue())
               ? success()
               : bad("a string, the tensor's name");
  if (name == KVBufferDialect::kAccessAttr) {
    auto access = dyn_cast<StringAttr>(attr.getValue());
    return access && llvm::is_contained({"read", "write", "read_write",
                                         "workspace", "counter"},
                                        access.getValue())
               ? success()
               : bad("\"read\", \"write\", \"read_write\", \"workspace\" or "
                     "\"counter\"");
  }
  if (name == KVBufferDialect::kShapeAttr)
    return isKind(attr.getValue(), Kind::Sizes) ? success()
                                                : bad(nameOf(Kind::Sizes));
  if (name == kIndexAttr) {
    auto type = dyn_cast<TypeAttr>(attr.getValue());
    return type && (type.getValue().isSignlessInteger(32) ||
                    type.getValue().isSignlessInteger(64))
               ? success()
               : bad("i32 or i64");
  }
  if (name == kSizesAttr)
    return verifyCacheSizes(op, argument, attr);
  if (name == KVBufferDialect::kStreamAttr || name == kRisingAttr)
    return isa<UnitAttr>(attr.getValue()) ? success() : bad("unit");
  InFlightDiagnostic diag = op->emitOpError()
                            << "argument " << argument
                            << " has an unknown attribute '" << name << "'";
  suggest(diag, name,
          {KVBufferDialect::kNameAttr, KVBufferDialect::kAccessAttr,
           KVBufferDialect::kShapeAttr, kIndexAttr, kSizesAttr, kRisingAttr,
           KVBufferDialect::kStreamAttr});
  return diag;
}
