//===- kvbuf-tile-run.cpp - Executes kernels at the tile stage ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes seeded inputs for the problem of each kernel in a module, executes the
// kernel on whole tiles and checks the outputs by the pass rule; or runs any
// tile program on arrays from files. Exit status: 0
// passed, 1 a kernel broke a promise or failed the check, 2 bad usage or input.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Lengths.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Emulator/TileInterpreter.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "kvbuffer/Runtime/Check.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Workload.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SourceMgr.h"

#include <functional>
#include <map>

using namespace mlir;
using namespace kvbuf;
namespace cl = llvm::cl;

static cl::OptionCategory category("kvbuf-tile-run options");
static cl::opt<std::string> inputFile(cl::Positional, cl::init("-"),
                                      cl::desc("<input .mlir>"),
                                      cl::cat(category));
static cl::list<std::string> sizes("size", cl::desc("a size of the problem"),
                                   cl::value_desc("name=value"),
                                   cl::cat(category));
static cl::opt<uint64_t> seed("seed", cl::init(1), cl::desc("of the inputs"),
                              cl::cat(category));
static cl::opt<std::string> init("init", cl::init("normal"),
                                 cl::desc("normal, outliers, octaves or ramp"),
                                 cl::cat(category));
static cl::list<int64_t> lengthsQ("lengths-q", cl::CommaSeparated,
                                  cl::desc("queries of each sequence"),
                                  cl::cat(category));
static cl::list<int64_t> lengthsK("lengths-k", cl::CommaSeparated,
                                  cl::desc("keys of each sequence"),
                                  cl::cat(category));
static cl::list<int64_t> cacheLengths("cache-lengths", cl::CommaSeparated,
                                      cl::desc("cached keys of each sequence"),
                                      cl::cat(category));
static cl::opt<bool> sharePages("share-pages",
                                cl::desc("let pages of sequences coincide"),
                                cl::cat(category));
static cl::opt<int64_t> rowPad("row-pad", cl::desc("elements between rows"),
                               cl::cat(category));
static cl::opt<bool> headsMajor("heads-major",
                                cl::desc("heads outside of the sequence"),
                                cl::cat(category));
static cl::opt<int64_t> poisonPage(
    "bad-page", cl::init(-1),
    cl::desc(
        "put an id out of range at this position of the first page table row"),
    cl::cat(category));
static cl::opt<bool> wildLengths(
    "wild-lengths",
    cl::desc("make lengths and offsets of 0 negative, and those that reach the "
             "end of a tensor or a table's row huge: the same once they are "
             "brought into range"),
    cl::cat(category));
static cl::opt<int64_t>
    blocks("blocks", cl::init(3),
           cl::desc("blocks of a kernel that loops over tiles of queries"),
           cl::cat(category));
static cl::opt<uint64_t>
    order("order", cl::init(0),
          cl::desc("run blocks in the order of this number; 0: as they are "
                   "numbered"),
          cl::cat(category));
static cl::list<std::string>
    inputs("input", cl::value_desc("name=file.npy"),
           cl::desc("an argument's array; then no problem is looked for, and "
                    "every tensor has to be given"),
           cl::cat(category));
static cl::list<std::string>
    expects("expect", cl::value_desc("name=file.npy"),
            cl::desc("what an output has to be afterwards"), cl::cat(category));
static cl::list<std::string> outputs("output", cl::value_desc("name=file.npy"),
                                     cl::desc("write a tensor afterwards"),
                                     cl::cat(category));
static cl::opt<double> tolerance(
    "tolerance", cl::init(0.01),
    cl::desc("largest difference from --expect, relative to the largest "
             "expected magnitude [0.01]"),
    cl::cat(category));
static cl::list<int64_t>
    gridOption("grid", cl::CommaSeparated, cl::value_desc("x,y,z"),
               cl::desc("blocks, with --input [what the kernel says]"),
               cl::cat(category));
static cl::opt<bool>
    verifyDiagnostics("verify-diagnostics",
                      cl::desc("compare diagnostics with expected-* comments"),
                      cl::cat(category));
static cl::list<std::string> plugins("load-dialect-plugin",
                                     cl::desc("load dialects from a library"),
                                     cl::value_desc("file"), cl::cat(category));
static cl::opt<bool>
    splitInput("split-input-file",
               cl::desc("run the parts between // ----- lines"),
               cl::cat(category));

namespace {
/// Bad input that has been reported.
struct Reported {};
/// What to exit with; the worst of all kernels.
int status = 0;
} // namespace

/// How rows are packed, as a problem states it.
static rt::PackedRow packedRow(DictionaryAttr dict) {
  auto number = [](DictionaryAttr from, StringRef name) {
    auto attr = from.getAs<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  rt::PackedRow row{number(dict, "bytes"),
                    number(dict, "tail"),
                    number(dict, "rows"),
                    number(dict, "stride"),
                    {}};
  for (auto part :
       dict.getAs<ArrayAttr>("parts").getAsRange<DictionaryAttr>()) {
    rt::PackedPart &own = row.parts.emplace_back();
    own.count = number(part, "count");
    own.at = number(part, "at");
    own.element =
        rt::parseDType(part.getAs<StringAttr>("element").getValue().str());
    own.granularity = number(part, "granularity");
    own.scaleAt = number(part, "scale_at");
    auto scale = part.getAs<StringAttr>("scale");
    if (scale && scale.getValue() != "f8E8M0FNU")
      own.scale = rt::parseDType(scale.getValue().str());
  }
  return row;
}

/// The problem that a kernel's attribute describes.
static rt::AttentionProblem readProblem(gpu::GPUFuncOp kernel) {
  ProblemAttr problem = ProblemAttr::of(kernel);
  if (!problem) {
    kernel.emitOpError() << "has no '" << KVBufferDialect::kProblemAttr << "'";
    throw Reported();
  }
  auto get = [&](StringRef name, auto type) {
    auto attr = problem.getField<decltype(type)>(name);
    if (!attr) {
      kernel.emitOpError() << "the problem has no proper '" << name << "'";
      throw Reported();
    }
    return attr;
  };
  auto number = [&](StringRef name) {
    return get(name, IntegerAttr()).getInt();
  };
  auto flag = [&](StringRef name) { return get(name, BoolAttr()).getValue(); };
  auto real = [&](StringRef name) {
    return get(name, FloatAttr()).getValueAsDouble();
  };
  auto layout = [&](StringRef name) {
    StringRef text = get(name, StringAttr()).getValue();
    return text == "ragged"       ? rt::Layout::Ragged
           : text == "continuous" ? rt::Layout::Continuous
           : text == "paged"      ? rt::Layout::Paged
                                  : rt::Layout::Dense;
  };
  rt::AttentionProblem p;
  auto lengths = problem.getField<StringAttr>("lengths");
  p.lengthsCountNew = lengths && lengths.getValue() == "all";
  p.dtype = rt::parseDType(get("dtype", StringAttr()).getValue().str());
  p.heads = number("heads");
  p.kvHeads = number("kv_heads");
  p.headSize = number("head_size");
  auto valueHeadSize = problem.getField<IntegerAttr>("v_head_size");
  p.valueHeadSize = valueHeadSize ? valueHeadSize.getInt() : p.headSize;
  auto outDtype = problem.getField<StringAttr>("o_dtype");
  p.outDtype = outDtype ? rt::parseDType(outDtype.str()) : p.dtype;
  p.query = layout("query");
  p.cache = layout("cache");
  if (p.cache == rt::Layout::Paged)
    p.pageSize = number("page_size");
  for (auto [name, row] : {std::pair("k", &p.k), std::pair("v", &p.v)}) {
    auto part = [&](StringRef what, int64_t fallback) {
      auto attr = problem.getField<IntegerAttr>((Twine(name) + what).str());
      return attr ? attr.getInt() : fallback;
    };
    *row = {part("_cache_depth", row == &p.k ? p.headSize : p.valueHeadSize),
            part("_head_dim_offset", 0)};
    auto dtype = problem.getField<StringAttr>((Twine(name) + "_dtype").str());
    if (!dtype && !rt::isFloat8(p.dtype))
      continue;
    rt::QuantizedSpec &spec =
        (row == &p.k ? p.kQuantized : p.vQuantized).emplace();
    spec.dtype = dtype ? rt::parseDType(dtype.getValue().str()) : p.dtype;
    if (auto group =
            problem.getField<IntegerAttr>((Twine(name) + "_granularity").str()))
      spec.granularity = group.getInt();
  }
  auto latent = problem.getField<BoolAttr>("latent");
  p.latent = latent && latent.getValue();
  if (auto row = problem.getField<DictionaryAttr>("k_row"))
    p.packed = packedRow(row);
  if (p.latent) {
    p.v = p.k;
    p.vQuantized = p.kQuantized;
  }
  p.causal = flag("causal");
  p.windowLeft = number("window_left");
  p.windowRight = number("window_right");
  p.softcap = real("softcap");
  p.sink = flag("sink");
  p.lse = flag("lse");
  p.scale = real("scale");
  return p;
}

/// A manifest with the problem's tensors: all that a workload needs.
static rt::Manifest makeManifest(gpu::GPUFuncOp kernel,
                                 const rt::AttentionProblem &p) {
  // The type of the integers of "q_offsets", or of the cache "k".
  auto integers = [&](StringRef of) {
    for (BlockArgument arg : kernel.getArguments()) {
      auto role = kernel.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                      "kvbuffer.name");
      auto memref = dyn_cast<MemRefType>(arg.getType());
      Type type = memref ? memref.getElementType()
                         : indexTypeOf(kernel, arg.getArgNumber());
      if (role && role.getValue() == of && type.isInteger(64))
        return rt::DType::I64;
    }
    return rt::DType::I32;
  };
  using Dim = std::variant<const char *, int64_t>;
  rt::Manifest manifest;
  manifest.name = kernel.getName().str();
  manifest.stated = std::make_shared<rt::AttentionProblem>(p);
  auto add = [&](const char *tensor, rt::DType type, std::vector<Dim> shape,
                 bool output = false) {
    rt::TensorSpec spec;
    spec.name = tensor;
    spec.dtype = type;
    spec.output = output;
    for (const Dim &dim : shape) {
      auto *size = std::get_if<const char *>(&dim);
      spec.shape.push_back(size ? SizeExpr::size(*size)
                                : SizeExpr::number(std::get<int64_t>(dim)));
    }
    manifest.tensors.push_back(spec);
  };
  auto offsets = [&](const char *tensor, StringRef of) {
    add(tensor, integers(of), {"batch"});
    SizeExpr &dim = manifest.tensors.back().shape[0];
    dim = SizeExpr::of(SizeOperator::Sum, {dim, SizeExpr::number(1)});
  };
  bool ragged = p.query == rt::Layout::Ragged;
  for (auto [tensor, dtype, size] :
       {std::tuple("q", p.dtype, p.headSize),
        std::tuple("o", p.outDtype, p.valueHeadSize)})
    ragged
        ? add(tensor, dtype, {"total_q", p.heads, size}, *tensor == 'o')
        : add(tensor, dtype, {"batch", "seq_q", p.heads, size}, *tensor == 'o');
  if (ragged)
    offsets("q_offsets", "q_offsets");
  if (p.lse)
    ragged ? add("lse", rt::DType::F32, {p.heads, "total_q"}, true)
           : add("lse", rt::DType::F32, {"batch", p.heads, "seq_q"}, true);
  if (p.sink)
    add("sink", rt::DType::F32, {p.heads});
  for (const std::string &cache : p.caches()) {
    const char *data = cache == "k" ? "k" : "v";
    std::string table = cache + ".table", lengths = cache + ".lengths";
    int64_t depth = (cache == "k" ? p.k : p.v).cacheDepth;
    const auto &quantized = cache == "k" ? p.kQuantized : p.vQuantized;
    rt::DType dtype = quantized ? quantized->dtype : p.dtype;
    if (quantized && quantized->granularity) {
      int64_t group = *quantized->granularity;
      std::vector<Dim> shape;
      if (group > 0)
        shape = p.cache == rt::Layout::Dense
                    ? std::vector<Dim>{"batch", "seq_k"}
                : p.cache == rt::Layout::Ragged ? std::vector<Dim>{"total_k"}
                : p.cache == rt::Layout::Paged
                    ? std::vector<Dim>{"num_blocks", p.pageSize}
                    : std::vector<Dim>{"num_blocks", "max_seq"};
      shape.push_back(group == 0 ? int64_t(1) : p.kvHeads);
      if (group > 0)
        shape.push_back(
            ((cache == "k" ? p.headSize : p.valueHeadSize) + group - 1) /
            group);
      add((cache + ".scales").c_str(), rt::DType::F32, shape);
    }
    switch (p.cache) {
    case rt::Layout::Dense:
      add(data, dtype, {"batch", "seq_k", p.kvHeads, depth});
      break;
    case rt::Layout::Ragged:
      add(data, dtype, {"total_k", p.kvHeads, depth});
      offsets((cache + ".offsets").c_str(), cache);
      break;
    case rt::Layout::Continuous:
      add(data, dtype, {"num_blocks", "max_seq", p.kvHeads, depth});
      add(table.c_str(), integers(cache), {"batch"});
      add(lengths.c_str(), integers(cache), {"batch"});
      break;
    case rt::Layout::Paged:
      add(data, dtype, {"num_blocks", p.pageSize, p.kvHeads, depth});
      add(table.c_str(), integers(cache), {"batch", "pages_per_seq"});
      add(lengths.c_str(), integers(cache), {"batch"});
      break;
    }
  }
  return manifest;
}

static rt::WorkloadOptions workloadOptions() {
  rt::WorkloadOptions options;
  for (StringRef text : sizes) {
    auto [name, value] = text.split('=');
    int64_t number;
    if (value.getAsInteger(10, number))
      throw rt::Error("--size " + text.str() + ": expected name=value");
    options.sizes[name.str()] = number;
  }
  options.seed = seed;
  options.init = rt::parseInit(init);
  if (!lengthsQ.empty())
    options.lengthsQ.emplace(lengthsQ.begin(), lengthsQ.end());
  if (!lengthsK.empty())
    options.lengthsK.emplace(lengthsK.begin(), lengthsK.end());
  if (!cacheLengths.empty())
    options.cacheLengths.emplace(cacheLengths.begin(), cacheLengths.end());
  options.sharePages = sharePages;
  options.memory.rowPad = rowPad;
  options.memory.headsMajor = headsMajor;
  return options;
}

static void printComparison(raw_ostream &os, StringRef what,
                            const rt::Comparison &c, const std::string &where) {
  os << llvm::format("  %-13s %.3e (baseline %.3e, limit %.3e)",
                     what.str().c_str(), c.value, c.baseline, c.limit)
     << where << '\n';
}

/// See the option. Returns what the tensors held, to be put back before the
/// outputs are checked.
static std::map<std::string, std::vector<int64_t>>
makeLengthsWild(rt::Workload &workload) {
  std::map<std::string, std::vector<int64_t>> sane;
  auto replace = [&](const char *name, auto isMost) {
    rt::HostTensor *tensor = workload.find(name);
    if (!tensor)
      return;
    bool wide = tensor->dtype == rt::DType::I64;
    int64_t least = wide ? std::numeric_limits<int64_t>::min()
                         : std::numeric_limits<int32_t>::min();
    int64_t most = wide ? std::numeric_limits<int64_t>::max()
                        : std::numeric_limits<int32_t>::max();
    for (int64_t i = 0; i < tensor->shape[0]; ++i) {
      int64_t value = tensor->integer(i);
      sane[name].push_back(value);
      if (value == 0)
        tensor->setInteger(i, least + i);
      else if (isMost(i, value))
        tensor->setInteger(i, most - i);
    }
  };
  const rt::Sizes &sizes = workload.sizes();
  auto isEnd = [&](const char *total) {
    return
        [&sizes, total](int64_t, int32_t at) { return at == sizes.at(total); };
  };
  replace("q_offsets", isEnd("total_q"));
  replace("k.offsets", isEnd("total_k"));
  replace("v.offsets", isEnd("total_k"));
  auto isFull = [&](int64_t b, int64_t) {
    int64_t room = workload.problem().pageSize
                       ? sizes.at("pages_per_seq") * workload.problem().pageSize
                       : sizes.at("max_seq");
    return workload.keys(b) == room;
  };
  replace("k.lengths", isFull);
  replace("v.lengths", isFull);
  return sane;
}

/// "name=value" options as a map.
static std::map<std::string, std::string>
pairsOf(StringRef option, const cl::list<std::string> &list) {
  std::map<std::string, std::string> pairs;
  for (StringRef text : list) {
    auto [name, value] = text.split('=');
    if (name.empty() || value.empty())
      throw rt::Error((option + " " + text + ": expected name=file.npy").str());
    pairs[name.str()] = value.str();
  }
  return pairs;
}

/// What the options say of a program of any kind.
static tilerun::ArrayRun arrayRun() {
  tilerun::ArrayRun run;
  run.inputs = pairsOf("--input", inputs);
  run.expected = pairsOf("--expect", expects);
  run.outputs = pairsOf("--output", outputs);
  for (const auto &[name, value] : workloadOptions().sizes)
    run.sizes[name] = value;
  if (!gridOption.empty()) {
    run.grid.emplace(std::array<int64_t, 3>{1, 1, 1});
    if (gridOption.size() > 3)
      throw rt::Error("--grid: at most three sizes");
    llvm::copy(gridOption, run.grid->begin());
  }
  run.tolerance = tolerance;
  run.order = order;
  return run;
}

/// Refuses options that are for what is not asked for: arrays, or a problem's
/// inputs.
static void refuseIdleOptions() {
  bool arrays = !inputs.empty() || !expects.empty();
  auto refuse =
      [](std::initializer_list<std::reference_wrapper<const cl::Option>>
             options,
         const char *why) {
        for (const cl::Option &option : options)
          if (option.getNumOccurrences())
            throw rt::Error(("--" + option.ArgStr + why).str());
      };
  if (arrays)
    refuse({seed, init, lengthsQ, lengthsK, cacheLengths, sharePages, rowPad,
            headsMajor, poisonPage, wildLengths, blocks},
           " is for inputs that are drawn; --input and --expect give arrays");
  else
    refuse({outputs, gridOption, tolerance},
           " is for arrays; give --input or --expect");
}

/// Refuses numbers that options cannot be.
static void checkNumbers() {
  auto check = [](const cl::opt<int64_t> &option, int64_t least, int64_t most) {
    if (option.getNumOccurrences() && (option < least || option > most))
      throw rt::Error(("--" + option.ArgStr).str() + ": expected " +
                      std::to_string(least) + " to " + std::to_string(most) +
                      ", got " + std::to_string(option));
  };
  check(rowPad, 0, 1 << 20);
  check(blocks, 1, std::numeric_limits<int32_t>::max());
  check(poisonPage, 0, std::numeric_limits<int32_t>::max());
}

/// Puts an id out of range into the tables (--bad-page).
static void poisonTables(rt::Workload &workload) {
  bool found = false;
  for (const char *table : {"k.table", "v.table"})
    if (rt::HostTensor *tensor = workload.find(table)) {
      int64_t entries = 1;
      for (int64_t size : tensor->shape)
        entries *= size;
      if (poisonPage >= entries)
        throw rt::Error("--bad-page: '" + tensor->name + "' has " +
                        std::to_string(entries) + " entries, got " +
                        std::to_string(poisonPage));
      tensor->setInteger(poisonPage, 0x3fffffff);
      found = true;
    }
  if (!found)
    throw rt::Error("--bad-page: the caches have no tables");
}

/// Runs one kernel; returns false if it broke a promise or failed the check.
static bool runKernel(gpu::GPUFuncOp kernel, raw_ostream &os) {
  if (!inputs.empty() || !expects.empty())
    return tilerun::runOnArrays(kernel, arrayRun(), os);
  rt::AttentionProblem problem = readProblem(kernel);
  auto schedule =
      kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
  if (!schedule) {
    kernel.emitOpError() << "has no '" << KVBufferDialect::kScheduleAttr << "'";
    throw Reported();
  }
  rt::Workload workload(makeManifest(kernel, problem), workloadOptions());
  if (poisonPage >= 0)
    poisonTables(workload);

  std::map<std::string, std::vector<int64_t>> sane;
  if (wildLengths) {
    sane = makeLengthsWild(workload);
    if (sane.empty())
      throw rt::Error("--wild-lengths: there are no lengths and no offsets");
  }

  auto interpreter = emu::TileInterpreter::create(kernel);
  if (failed(interpreter))
    throw Reported();
  for (const rt::HostTensor &t : workload.tensors())
    if (failed((*interpreter)
                   ->bind(t.name, t.memory->data(), t.shape, t.strides,
                          t.output ? emu::TileAccess::Write
                                   : emu::TileAccess::Read)))
      throw Reported();
  int64_t tiles =
      llvm::divideCeil(workload.sizes().at("seq_q"), schedule.getBM());
  std::array<int64_t, 3> grid{tiles, problem.heads, workload.batch()};
  // Blocks that find their tile among those of all sequences.
  bool finds = kernel.walk([](FindTileOp) { return WalkResult::interrupt(); })
                   .wasInterrupted();
  auto rows = workload.sizes().find("total_q");
  if (finds && rows != workload.sizes().end())
    grid = {int64_t(llvm::divideCeil(rows->second, schedule.getBM())) +
                workload.batch(),
            problem.heads, 1};
  bool persistent = false;
  kernel.walk([&](NextTileOp) { persistent = true; });
  if (persistent)
    grid = {std::min<int64_t>(blocks, tiles * problem.heads * workload.batch()),
            1, 1};
  // Whole clusters.
  if (auto cluster = kernel.getKnownClusterSize())
    grid[0] = llvm::alignTo(grid[0], cluster->front());
  for (const auto &[size, value] : workload.sizes())
    (*interpreter)->bindSize(size, value);
  (*interpreter)->bindSize("batch", workload.batch());
  if (!persistent &&
      (kernel->hasAttr(KVBufferDialect::kGridAttr) || WorkItemOp::of(kernel))) {
    FailureOr<std::array<int64_t, 3>> own = (*interpreter)->grid();
    if (failed(own))
      throw Reported();
    grid = *own;
  }
  FailureOr<emu::TileReport> report = (*interpreter)->run(grid, order);
  if (failed(report))
    return false;
  for (auto &[name, values] : sane)
    for (auto [i, value] : llvm::enumerate(values))
      workload.find(name)->setInteger(i, value);

  os << kernel.getName() << ": " << workload.describe() << '\n'
     << "  blocks " << report->blocks << ", loads " << report->loads
     << ", bytes " << report->bytesLoaded << ", look-ups " << report->lookups
     << ", barriers " << report->barriers << ", multiply-adds "
     << report->multiplyAdds << ", stored " << report->stored << '\n';
  rt::CheckOptions everyRow;
  everyRow.rows = -1;
  rt::CheckResult check = rt::checkOutputs(workload, everyRow);
  printComparison(os, "largest error", check.largest,
                  " at " + rt::rowString(check.largestRow));
  printComparison(os, "mean error", check.mean, "");
  printComparison(os, "worst row", check.worstRow,
                  " at " + rt::rowString(check.worstRowId));
  os << "  rows " << check.rowsChecked << ", without a key " << check.emptyRows
     << '\n';
  for (const std::string &failure : check.failures)
    os << "  " << failure << '\n';
  os << (check.pass ? "PASS" : "FAIL") << '\n';
  return check.pass;
}

/// Chooses what programs leave to the chip, the one that the module names or
/// the default: slots are counted here, too.
static LogicalResult complete(ModuleOp module) {
  bool open = false;
  module.walk([&](Operation *op) {
    auto schedule =
        op->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    auto alloc = dyn_cast<AllocOp>(op);
    open |= (schedule && schedule.isOpen()) ||
            (alloc && alloc.getType().getParams().getOpen());
  });
  if (!open)
    return success();
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addPass(createChooseTarget());
  pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>().addPass(
      createCompleteProgram());
  return pm.run(module);
}

static LogicalResult runModule(MLIRContext &context, llvm::SourceMgr &sources,
                               raw_ostream &os) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module || failed(complete(*module))) {
    status = 2;
    return failure();
  }
  try {
    refuseIdleOptions();
    checkNumbers();
  } catch (const rt::Error &e) {
    module->emitError() << e.what();
    status = 2;
    return failure();
  }
  bool any = false;
  module->walk([&](gpu::GPUFuncOp kernel) {
    any = true;
    try {
      if (!runKernel(kernel, os))
        status = std::max(status, 1);
    } catch (const Reported &) {
      status = 2;
    } catch (const rt::Error &e) {
      kernel.emitError() << e.what();
      status = 2;
    }
  });
  if (!any) {
    module->emitError() << "has no gpu.func to execute";
    status = 2;
  }
  return success(status == 0);
}

static constexpr llvm::StringLiteral overview =
    R"(kvbuf-tile-run: executes kernels at the tile stage, on whole tiles

A kernel that came of a problem runs on seeded inputs, and its outputs are compared
with attention in float64. Any other runs on arrays from files:

  kvbuf-tile-run examples/gemm.mlir --input a=a.npy --input b=b.npy --expect c=c.npy

Exit status: 0 passed; 1 a kernel broke a promise or failed the check; 2 bad usage
or bad input.
)";

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs()))
    return 2;
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> input =
      openInputFile(inputFile, &message);
  if (!input) {
    llvm::errs() << "kvbuf-tile-run: " << message << '\n';
    return 2;
  }
  DialectRegistry registry;
  registerAllDialects(registry);
  for (const std::string &file : plugins) {
    llvm::Expected<DialectPlugin> plugin = DialectPlugin::load(file);
    if (!plugin) {
      llvm::errs() << "kvbuf-tile-run: " << llvm::toString(plugin.takeError())
                   << '\n';
      return 2;
    }
    plugin->registerDialectRegistryCallbacks(registry);
  }
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);

  auto process = [&](std::unique_ptr<llvm::MemoryBuffer> chunk,
                     raw_ostream &os) -> LogicalResult {
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(std::move(chunk), SMLoc());
    if (verifyDiagnostics) {
      SourceMgrDiagnosticVerifierHandler handler(sources, &context);
      (void)runModule(context, sources, os);
      status = 0;
      return handler.verify();
    }
    SourceMgrDiagnosticHandler handler(sources, &context);
    return runModule(context, sources, os);
  };
  LogicalResult result =
      splitAndProcessBuffer(std::move(input), process, llvm::outs(),
                            splitInput ? kDefaultSplitMarker : "");
  if (failed(result) && status == 0)
    status = 1;
  return status;
}
