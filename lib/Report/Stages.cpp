//===- Stages.cpp - The stages of a kernel, line by line ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/CodeReport.h"
#include "kvbuffer/Compiler/IsaReport.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Report/Report.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace mlir;
using namespace kvbuf;
namespace json = llvm::json;

namespace {

/// The stages that are MLIR, in order; all but the first come from others.
constexpr Stage kStages[] = {Stage::Problem, Stage::Tile, Stage::Scheduled,
                             Stage::Thread, Stage::Target};

/// What stands for a file's name in the location of a line of a stage.
std::string fileOf(Stage stage) { return ("kvbuf-" + stageName(stage)).str(); }

/// Prints a module's stages one after the other.
class StageWriter {
public:
  explicit StageWriter(ModuleOp module) : module(module) {}

  /// Prints the module as it is, and adds to each op's location its line.
  void write(Stage stage);
  /// Adds the assembly, whose `.loc` directives name lines of the target stage.
  void writeAssembly(StringRef text);
  /// Replaces locations by the lines of the target stage.
  void keepTargetLines();

  json::Array stages;

private:
  ModuleOp module;
  llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>> targetLines;
};

} // namespace

void StageWriter::write(Stage stage) {
  AsmState::LocationMap lines;
  std::string text;
  {
    llvm::raw_string_ostream os(text);
    AsmState state(module, OpPrintingFlags(), &lines);
    module->print(os, state);
  }
  MLIRContext *context = module.getContext();
  json::Array ops;
  bool isFirst = stages.empty();
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto line = lines.find(op);
    if (line == lines.end())
      return;
    json::Object from;
    Location before = op->getLoc();
    for (Stage source : kStages) {
      if (source >= stage)
        break;
      std::set<int64_t> numbers;
      before->walk([&](Location loc) {
        if (auto file = dyn_cast<FileLineColLoc>(loc))
          if (file.getFilename().getValue() == fileOf(source))
            numbers.insert(file.getLine());
        return WalkResult::advance();
      });
      if (!numbers.empty())
        from[stageName(source)] = json::Array(numbers);
    }
    ops.push_back(json::Object{{"line", line->second.first},
                               {"op", op->getName().getStringRef()},
                               {"from", std::move(from)}});
    Location own = FileLineColLoc::get(context, fileOf(stage),
                                       line->second.first, line->second.second);
    // Of the file that the user has written, only the first stage knows.
    op->setLoc(isFirst ? own : FusedLoc::get(context, {before, own}));
    if (stage == Stage::Target)
      targetLines[op] = line->second;
  });
  stages.push_back(json::Object{{"name", stageName(stage)},
                                {"text", std::move(text)},
                                {"ops", std::move(ops)}});
}

void StageWriter::keepTargetLines() {
  module->walk([&](Operation *op) {
    auto line = targetLines.find(op);
    if (line != targetLines.end())
      op->setLoc(FileLineColLoc::get(op->getContext(), fileOf(Stage::Target),
                                     line->second.first, line->second.second));
  });
}

void StageWriter::writeAssembly(StringRef text) {
  std::string kept;
  json::Array ops;
  int64_t line = 0, source = 0;
  while (!text.empty()) {
    auto [first, rest] = text.split('\n');
    text = rest;
    StringRef words = first.trim();
    // ".loc <file> <line> <column> ..."
    if (words.consume_front(".loc")) {
      StringRef file, number;
      std::tie(file, words) = llvm::getToken(words);
      std::tie(number, words) = llvm::getToken(words);
      if (number.getAsInteger(10, source))
        source = 0;
      continue;
    }
    if (words.starts_with(".file"))
      continue;
    // What follows the code describes it to debuggers.
    if (words.starts_with(".section") && words.contains(".debug"))
      break;
    kept += (first + "\n").str();
    ++line;
    bool isCode =
        !words.empty() && words.front() != '.' && words.front() != '/' &&
        words.front() != ';' && words.front() != '$' && words.front() != '{' &&
        words.front() != '}' && words.front() != '(' && words.back() != ':';
    if (isCode && source)
      ops.push_back(json::Object{
          {"line", line},
          {"op", llvm::getToken(words).first},
          {"from",
           json::Object{{stageName(Stage::Target), json::Array{source}}}}});
    // Line 0 begins what comes from nowhere.
    if (words.ends_with(":") && words.starts_with("."))
      continue;
  }
  stages.push_back(json::Object{{"name", stageName(Stage::Asm)},
                                {"text", std::move(kept)},
                                {"ops", std::move(ops)}});
}

/// The assembly of a module at the target stage, with a `.loc` for each line of
/// the stage that it comes from.
static llvm::FailureOr<std::string>
assemblyWithLines(ModuleOp module, const CompileOptions &options) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  LLVM::DIScopeForLLVMFuncOpPassOptions scopes;
  scopes.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass(scopes));
  if (failed(pm.run(*copy)))
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(emitStage(*copy, Stage::Asm, options, os)))
    return failure();
  return text;
}

static json::Value textOf(Attribute attr) {
  if (!attr)
    return nullptr;
  std::string text;
  llvm::raw_string_ostream os(text);
  attr.print(os);
  return text;
}

/// The kernels of a module at the target stage: what each has of buffers and
/// needs of registers.
static json::Array describeKernels(ModuleOp module) {
  json::Array kernels;
  module->walk([&](LLVM::LLVMFuncOp function) {
    if (!function->hasAttr(KVBufferDialect::kPhaseAttr))
      return;
    auto lineOf = [](Operation *op) -> int64_t {
      auto file = op->getLoc()->findInstanceOf<FileLineColLoc>();
      return file ? file.getLine() : 0;
    };
    kernels.push_back(json::Object{
        {"name", function.getName()},
        {"schedule", textOf(function->getAttr(KVBufferDialect::kScheduleAttr))},
        {"lds", describeLds(function)},
        {"registers", describeRegisters(function, lineOf)}});
  });
  return kernels;
}

/// The peaks that a manifest states, for the operands of its problem.
static json::Array peaksIn(StringRef manifest) {
  llvm::Expected<json::Value> parsed = json::parse(manifest);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {};
  }
  json::Object *root = parsed->getAsObject();
  json::Object *target = root ? root->getObject("target") : nullptr;
  json::Array *peaks = target ? target->getArray("peaks") : nullptr;
  return peaks ? std::move(*peaks) : json::Array();
}

llvm::FailureOr<Artifact> kvbuf::compileForReport(ModuleOp module,
                                                  const CompileOptions &given) {
  if (failed(keepOneFunction(module, given, "a page")))
    return failure();
  CompileOptions options = given;
  options.alternatives = false;
  CompileOptions scheduled = options;
  // A schedule is for the problem, and so is what its making leaves out: both
  // are refused at later stages.
  scheduled.schedule.clear();
  scheduled.prefetch = scheduled.splitLoops = true;
  StageWriter writer(module);
  // A kernel that is at a later stage already begins there.
  bool isProblem = true;
  std::optional<Phase> phase;
  module->walk([&](Operation *op) {
    if (auto attr = op->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr))
      phase = attr.getValue();
  });
  if (phase) {
    isProblem = false;
    static constexpr std::pair<Phase, Stage> known[] = {
        {Phase::Tile, Stage::Tile},
        {Phase::Scheduled, Stage::Scheduled},
        {Phase::Thread, Stage::Thread},
        {Phase::Target, Stage::Target}};
    for (auto [at, stage] : known)
      if (at == *phase)
        writer.write(stage);
  }
  if (isProblem)
    writer.write(Stage::Problem);
  for (Stage stage : kStages) {
    bool isPast = stage == Stage::Problem;
    for (auto [at, other] : {std::pair(Phase::Tile, Stage::Tile),
                             std::pair(Phase::Scheduled, Stage::Scheduled),
                             std::pair(Phase::Thread, Stage::Thread),
                             std::pair(Phase::Target, Stage::Target)})
      isPast |= phase && *phase == at && stage <= other;
    if (isPast)
      continue;
    llvm::raw_null_ostream unused;
    if (stage == Stage::Scheduled)
      options.schedule.clear();
    if (failed(emitStage(module, stage,
                         stage > Stage::Scheduled ? scheduled : options,
                         unused)))
      return failure();
    writer.write(stage);
  }
  writer.keepTargetLines();
  json::Array kernels = describeKernels(module);
  llvm::FailureOr<std::string> assembly = assemblyWithLines(module, scheduled);
  if (failed(assembly))
    return failure();
  writer.writeAssembly(*assembly);

  SmallVector<KernelResources> resources;
  llvm::FailureOr<Artifact> artifact = compile(module, scheduled, &resources);
  if (failed(artifact))
    return failure();
  auto chip = module->getAttrOfType<StringAttr>(KVBufferDialect::kTargetAttr);
  std::optional<TargetInfo> target =
      lookupTarget(chip ? chip.getValue() : StringRef(kDefaultChip));
  json::Array taken;
  for (const KernelResources &use : resources)
    taken.push_back(resourcesToJSON(use));
  json::Object data{{"version", KVBUF_VERSION},
                    {"chip", chip ? chip.getValue() : StringRef(kDefaultChip)},
                    {"stages", std::move(writer.stages)},
                    {"kernels", std::move(kernels)},
                    {"resources", std::move(taken)}};
  if (target) {
    data["vendor"] = vendorName(target->vendor);
    data["wave"] = target->waveSize;
    data["banks"] = target->banks;
    data["peaks"] = peaksIn(artifact->manifest);
  }
  if (const std::string *hsaco = artifact->find("hsaco")) {
    int64_t lds = 0;
    for (const KernelResources &use : resources)
      lds = std::max(lds, use.dynamicSharedBytes);
    if (llvm::Expected<IsaReport> isa = analyzeCodeObject(*hsaco, lds))
      data["isa"] = isaReportToJSON(*isa);
    else
      llvm::consumeError(isa.takeError());
  }
  if (artifact->find("ptx"))
    data["code"] = codeReportToJSON(
        analyzeNvidiaCode(*artifact, target ? target->chip : ""), resources);
  artifact->sections.push_back(
      {kReportSection.str(),
       llvm::formatv("{0}", json::Value(std::move(data))).str()});
  return artifact;
}
