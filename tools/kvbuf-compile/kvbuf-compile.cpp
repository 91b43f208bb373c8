//===- kvbuf-compile.cpp - Compiles a module to an artifact ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../support/Functions.h"
#include "../support/Lists.h"
#include "../support/Page.h"
#include "kvbuffer/Compiler/CodeReport.h"
#include "kvbuffer/Compiler/Compiler.h"
#include "kvbuffer/Compiler/IsaReport.h"
#include "kvbuffer/Compiler/Remarks.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace mlir;
namespace cl = llvm::cl;

/// Bad usage or bad input.
static constexpr int kBadInput = 2;

static cl::OptionCategory category("kvbuf-compile options");

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("FILE"),
                                      cl::init("-"), cl::cat(category));
static cl::opt<std::string> outputFile(
    "o", cl::value_desc("file"),
    cl::desc("Where to write; '-' is the standard output. Default: NAME.kvbuf "
             "in the current folder for an artifact, '-' for text"),
    cl::cat(category));
static const std::string targetHelp =
    std::string("Chip to compile for, e.g. sm_80, sm_90, gfx942; overrules the "
                "one that a problem's module names (kvbuffer.target), with a "
                "remark. Default: the one that the module names, else ") +
    kvbuf::kDefaultChip;
static cl::opt<std::string> target("target", cl::value_desc("chip"),
                                   cl::desc(targetHelp), cl::cat(category));
static cl::opt<std::string>
    function("function", cl::value_desc("name"),
             cl::desc("The function to compile, or to report on, alone. "
                      "Default: all of the file's"),
             cl::cat(category));
static cl::opt<std::string>
    schedule("schedule", cl::value_desc("BM=64,warps=2"),
             cl::desc("Replace parameters of the schedule that is chosen for "
                      "the chip"),
             cl::cat(category));
static cl::opt<std::string>
    emit("emit", cl::value_desc("stage"),
         cl::desc("Stop at tile, scheduled, thread, target, llvm, asm or "
                  "artifact (the default); or write the code alone: ptx, cubin "
                  "or hsaco"),
         cl::init("artifact"), cl::cat(category));
static cl::opt<bool> remarks("remarks",
                             cl::desc("Print what passes chose, and why"),
                             cl::cat(category));
static cl::opt<bool> showTime("time",
                              cl::desc("Print the wall time of each step"),
                              cl::cat(category));
namespace {
enum class Report { None, Text, Json, Page };
} // namespace
static cl::opt<std::string> reportOption(
    "report", cl::ValueOptional, cl::value_desc("text|json|page.html"),
    cl::desc("Print what each kernel takes (registers, spills, shared memory) "
             "and what its code is made of; a name that ends in .html: write a "
             "page about the kernel and a launch on the emulator"),
    cl::cat(category));
static Report report = Report::None;
static cl::opt<bool> checkIsa(
    "check-isa",
    cl::desc("Read an AMD code object, of any compiler, or an artifact with "
             "some: fail if a release or an acquire does not wait, if a "
             "result is read too early, or if registers were spilled or lanes "
             "keep anything in memory"),
    cl::cat(category));
static cl::opt<std::string>
    ptxas("ptxas", cl::value_desc("path"),
          cl::desc("NVIDIA's assembler; 'none' stops at PTX. Default: "
                   "$KVBUF_PTXAS, the PATH, $CUDA_HOME/bin, "
                   "/usr/local/cuda/bin"),
          cl::cat(category));
static cl::opt<std::string>
    linker("linker", cl::value_desc("path"),
           cl::desc("LLVM's linker, for AMD's chips. Default: ld.lld of the "
                    "LLVM that this was built with, else of the PATH"),
           cl::cat(category));
static cl::opt<bool> noPrefetch("no-prefetch",
                                cl::desc("Leave loads where they are used"),
                                cl::cat(category));
static cl::opt<bool>
    noSplitLoops("no-split-loops",
                 cl::desc("Mask every tile, also those that need no mask"),
                 cl::cat(category));

static cl::opt<bool> noAlternatives(
    "no-alternatives",
    cl::desc("Leave out the kernel that runs for tensors which no tensor map "
             "can describe, or whose addresses or strides are no multiples of "
             "16 bytes"),
    cl::cat(category));

static cl::opt<std::string>
    code("code", cl::value_desc("machine|none"),
         cl::desc("Code of an artifact: 'machine' (the default), or 'none' for "
                  "one that the emulator alone runs, made in a fraction of the "
                  "time"),
         cl::init("machine"), cl::cat(category));

static constexpr const char *overview =
    R"(kvbuf-compile: compiles attention problems to kernels

FILE holds a module in MLIR, as text or as bytecode. Each func.func with a
problem (kvbuffer.attention, kvbuffer.cache_append) is a function of the
artifact, by its name; so is each gpu.module with kernels at a later stage,
which go on from there and run one after the other, by the first one's name.
'-' is the standard input. With --report, FILE may also be
an artifact or an AMD code object; nothing is written then.

An artifact (.kvbuf) holds PTX, and a cubin where ptxas is found, or an AMD code
object; the manifest that says how to launch it; and the target stage for the
emulator. kvbuf-run executes it.

EXAMPLES:
  kvbuf-compile examples/prefill.mlir                 # prefill.kvbuf for sm_80
  kvbuf-compile examples/prefill.mlir --target=sm_90 -o /tmp/p.kvbuf --report
  kvbuf-compile examples/prefill.mlir --emit=tile     # look at a stage
  kvbuf-compile examples/prefill.mlir --emit=asm --schedule=BN=32,warps=2
  kvbuf-compile examples/prefill.mlir --target=gfx950 --emit=hsaco -o p.hsaco
  kvbuf-compile examples/prefill.mlir --report=page.html
  kvbuf-compile examples/prefill.mlir --remarks --time
  kvbuf-compile model.mlir --function=decode --emit=asm   # one of several
  kvbuf-compile prefill.kvbuf --report=json           # a kernel's loops
)";

static constexpr const char *exitStatus = R"(
EXIT STATUS: 0 done, 2 bad usage or bad input (nothing is written).
)";

static int fail(const llvm::Twine &message) {
  llvm::errs() << "kvbuf-compile: error: " << message << "\n";
  return kBadInput;
}

namespace {

/// Keeps the wall time of each step, and shows the current one on a terminal.
class Steps {
public:
  using Clock = std::chrono::steady_clock;

  Steps()
      : onTerminal(llvm::sys::Process::StandardErrIsDisplayed()),
        since(Clock::now()) {}

  /// Ends the current step and begins `name`; an empty name begins none.
  void begin(llvm::StringRef name) {
    Clock::time_point now = Clock::now();
    if (!current.empty())
      times.push_back({current, std::chrono::duration<double>(now - since)});
    current = name.str();
    since = now;
    if (onTerminal) {
      llvm::errs() << "\r\033[K";
      if (!current.empty())
        llvm::errs() << "kvbuf-compile: " << current << " ...";
      llvm::errs().flush();
    }
  }

  void print(llvm::raw_ostream &os) const {
    double total = 0;
    for (const auto &[name, time] : times) {
      os << llvm::format("%9.1f ms  ", time.count() * 1e3) << name << "\n";
      total += time.count();
    }
    os << llvm::format("%9.1f ms  ", total * 1e3) << "total\n";
  }

private:
  bool onTerminal;
  Clock::time_point since;
  std::string current;
  llvm::SmallVector<std::pair<std::string, std::chrono::duration<double>>>
      times;
};

} // namespace

/// The name of the artifact and of its default file: the input's, without its
/// folder and extension.
static std::string baseName() {
  return inputFile == "-" ? "kernel"
                          : llvm::sys::path::stem(inputFile.getValue()).str();
}

/// Prints a report that is JSON, or leaves it in `into`.
static int printJson(llvm::json::Value report, llvm::json::Value *into) {
  if (into)
    *into = std::move(report);
  else
    llvm::outs() << llvm::formatv("{0:2}\n", report);
  return 0;
}

/// Prints the report of an AMD code object, whose launch adds `dynamicLds`
/// bytes of LDS. `into`: where JSON goes instead.
static int reportCodeObject(llvm::StringRef hsaco, int64_t dynamicLds,
                            llvm::json::Value *into = nullptr) {
  llvm::Expected<kvbuf::IsaReport> isa =
      kvbuf::analyzeCodeObject(hsaco, dynamicLds);
  if (!isa)
    return fail(llvm::toString(isa.takeError()));
  if (report == Report::Json)
    return printJson(kvbuf::isaReportToJSON(*isa), into);
  kvbuf::printIsaReport(*isa, llvm::outs());
  return 0;
}

/// Prints the report of an artifact of one function whose kernels take
/// `resources`. `into`: where JSON goes instead.
static int reportFunction(const kvbuf::Artifact &artifact, llvm::StringRef chip,
                          llvm::ArrayRef<kvbuf::KernelResources> resources,
                          llvm::json::Value *into = nullptr) {
  if (report == Report::Text)
    kvbuf::printResources(resources, llvm::outs());
  const std::string *hsaco = artifact.find("hsaco");
  if (!hsaco) {
    kvbuf::CodeReport code = kvbuf::analyzeNvidiaCode(artifact, chip);
    if (report == Report::Json)
      return printJson(kvbuf::codeReportToJSON(code, resources), into);
    kvbuf::printCodeReport(code, resources, llvm::outs());
    return 0;
  }
  int64_t dynamicLds = 0;
  for (const kvbuf::KernelResources &use : resources)
    dynamicLds = std::max(dynamicLds, use.dynamicSharedBytes);
  return reportCodeObject(*hsaco, dynamicLds, into);
}

/// Prints the report of an artifact of one function, with its manifest's
/// numbers. `into`: where JSON goes instead.
static int reportManifest(const kvbuf::Artifact &artifact,
                          const llvm::json::Object *root,
                          llvm::json::Value *into = nullptr) {
  llvm::SmallVector<kvbuf::KernelResources> resources;
  const llvm::json::Array *kernels = root ? root->getArray("kernels") : nullptr;
  for (const llvm::json::Value &entry :
       kernels ? *kernels : llvm::json::Array()) {
    const llvm::json::Object *kernel = entry.getAsObject();
    if (!kernel)
      continue;
    kvbuf::KernelResources &use = resources.emplace_back();
    use.entry = kernel->getString("entry").value_or("").str();
    use.registers = kernel->getInteger("registers").value_or(-1);
    use.spillBytes = kernel->getInteger("spill_bytes").value_or(-1);
    use.staticSharedBytes =
        kernel->getInteger("static_shared_bytes").value_or(-1);
    use.dynamicSharedBytes =
        kernel->getInteger("dynamic_shared_bytes").value_or(-1);
    if (const llvm::json::Array *block = kernel->getArray("block")) {
      use.threads = 1;
      for (const llvm::json::Value &size : *block)
        use.threads *= size.getAsInteger().value_or(1);
    }
  }
  const llvm::json::Object *chip = root ? root->getObject("target") : nullptr;
  return reportFunction(artifact,
                        chip ? chip->getString("chip").value_or("") : "",
                        resources, into);
}

/// Prints the report of an artifact, one function after the other.
static int reportArtifact(const kvbuf::Artifact &artifact) {
  llvm::Expected<llvm::json::Value> manifest =
      llvm::json::parse(artifact.manifest);
  if (!manifest)
    return fail("'" + inputFile + "': " + llvm::toString(manifest.takeError()));
  const llvm::json::Object *root = manifest->getAsObject();
  if (function.empty() && (!root || !root->get("functions")))
    return reportManifest(artifact, root);
  std::vector<kvbuf::run::FunctionAlone> functions;
  std::string error;
  if (!kvbuf::run::splitArtifact(artifact, function, functions, error))
    return fail("'" + inputFile + "': " + error);
  llvm::json::Array reports;
  for (const kvbuf::run::FunctionAlone &alone : functions) {
    llvm::json::Value own =
        llvm::cantFail(llvm::json::parse(alone.artifact.manifest));
    llvm::json::Value told(nullptr);
    if (report == Report::Text && functions.size() > 1)
      llvm::outs() << (reports.empty() ? "" : "\n") << "function " << alone.name
                   << "\n";
    if (int status = reportManifest(alone.artifact, own.getAsObject(), &told))
      return status;
    reports.push_back(
        llvm::json::Object{{"name", alone.name}, {"report", std::move(told)}});
  }
  if (report != Report::Json)
    return 0;
  return printJson(
      functions.size() == 1
          ? std::move(*reports.front().getAsObject()->get("report"))
          : llvm::json::Object{{"functions", std::move(reports)}},
      nullptr);
}

/// Says what is wrong with AMD's code in what was compiled already.
static int checkFile(llvm::StringRef bytes) {
  std::vector<llvm::StringRef> objects;
  kvbuf::Artifact artifact;
  std::string error;
  if (kvbuf::looksLikeElf(bytes)) {
    objects.push_back(bytes);
  } else {
    if (!kvbuf::parseArtifact(bytes, artifact, error))
      return fail("'" + inputFile + "': " + error);
    for (const kvbuf::ArtifactSection &section : artifact.sections)
      if (llvm::StringRef(section.kind).starts_with("hsaco"))
        objects.push_back(section.data);
  }
  if (objects.empty())
    return fail("--check-isa: '" + inputFile + "' has no code for AMD's chips");
  int status = 0;
  for (llvm::StringRef object : objects) {
    llvm::Expected<std::vector<std::string>> found =
        kvbuf::checkCodeObject(object);
    if (!found)
      return fail(llvm::toString(found.takeError()));
    for (const std::string &text : *found)
      status = fail(text);
  }
  if (!status)
    llvm::outs() << "releases and acquires wait, and so does what reads "
                    "results; nothing is spilled or kept in memory\n";
  return status;
}

/// Whether no option says how to compile what is compiled already; says which
/// does.
static bool isOnlyRead() {
  for (const cl::Option *option :
       {static_cast<const cl::Option *>(&target),
        static_cast<const cl::Option *>(&schedule),
        static_cast<const cl::Option *>(&emit),
        static_cast<const cl::Option *>(&outputFile),
        static_cast<const cl::Option *>(&remarks),
        static_cast<const cl::Option *>(&showTime),
        static_cast<const cl::Option *>(&ptxas),
        static_cast<const cl::Option *>(&linker),
        static_cast<const cl::Option *>(&noPrefetch),
        static_cast<const cl::Option *>(&noSplitLoops),
        static_cast<const cl::Option *>(&noAlternatives),
        static_cast<const cl::Option *>(&code)}) {
    if (!option->getNumOccurrences())
      continue;
    fail((option->ArgStr.size() == 1 ? "-" : "--") + option->ArgStr +
         " is for the compiler, but '" + inputFile + "' is compiled already");
    return false;
  }
  return true;
}

/// Prints the report of what was compiled already.
static int reportFile(llvm::StringRef bytes) {
  if (report == Report::None)
    return fail("'" + inputFile +
                "' is compiled already; only --report can read it");
  if (report == Report::Page)
    return fail("--report=" + reportOption + " needs the MLIR that '" +
                inputFile + "' was made from: it has no tile program");
  if (kvbuf::looksLikeElf(bytes))
    return reportCodeObject(bytes, 0);
  kvbuf::Artifact artifact;
  std::string error;
  if (!kvbuf::parseArtifact(bytes, artifact, error))
    return fail("'" + inputFile + "': " + error);
  return reportArtifact(artifact);
}

/// The kinds of code that --emit names, each a section of an artifact.
static bool isCodeKind(llvm::StringRef kind) {
  return llvm::is_contained({"ptx", "cubin", "hsaco"}, kind);
}

/// The code that --emit asks for.
static int takeCode(const kvbuf::Artifact &artifact, std::string &output) {
  if (const std::string *code = artifact.find(emit.getValue())) {
    output = *code;
    return 0;
  }
  // Each vendor's chips have their own; a cubin needs NVIDIA's assembler.
  if (emit == "cubin" && artifact.find("ptx"))
    return fail("--emit=cubin: ptxas was not found, or is switched off; "
                "--emit=ptx needs none");
  return fail("--emit=" + emit + ": the chip has no such code; expected " +
              (artifact.find("ptx") ? "ptx or cubin" : "hsaco"));
}

/// Compiles; `output` receives the file's bytes, or stays empty where there is
/// nothing to write.
static int compileTo(std::string &output, kvbuf::Stage stage, Steps &steps) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file =
      llvm::MemoryBuffer::getFileOrSTDIN(inputFile);
  if (std::error_code error = file.getError())
    return fail("cannot read '" + inputFile + "': " + error.message());
  llvm::StringRef bytes = (*file)->getBuffer();
  if (kvbuf::looksLikeElf(bytes) || kvbuf::looksLikeArtifact(bytes))
    return !isOnlyRead() ? kBadInput
           : checkIsa    ? checkFile(bytes)
                         : reportFile(bytes);
  if (checkIsa)
    return fail("--check-isa reads a code object or an artifact; '" +
                inputFile + "' is neither");

  steps.begin("parse");
  DialectRegistry registry;
  kvbuf::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // A whole kernel under each message would bury it.
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  if (remarks &&
      failed(kvbuf::enableRemarks(context, ".*", [](const std::string &text) {
        llvm::errs() << text << "\n";
      })))
    return fail("remarks cannot be enabled");
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return kBadInput;

  kvbuf::CompileOptions options;
  options.target = target;
  options.schedule = schedule;
  options.function = function;
  options.ptxas = ptxas;
  options.linker = linker;
  options.prefetch = !noPrefetch;
  options.splitLoops = !noSplitLoops;
  options.alternatives = !noAlternatives;
  options.machineCode = code == "machine";
  options.onStep = [&](llvm::StringRef name) { steps.begin(name); };
  if (stage != kvbuf::Stage::Artifact) {
    llvm::raw_string_ostream os(output);
    return failed(kvbuf::emitStage(*module, stage, options, os)) ? kBadInput
                                                                 : 0;
  }
  // Code of one kind is of one function, and so is a page.
  if ((isCodeKind(emit) || report == Report::Page) &&
      failed(kvbuf::keepOneFunction(
          *module, options, isCodeKind(emit) ? "--emit=" + emit : "a page")))
    return kBadInput;
  // Compiling changes the module, and the page begins with the source.
  std::string source;
  if (report == Report::Page)
    source =
        sources->getMemoryBuffer(sources->getMainFileID())->getBuffer().str();
  llvm::FailureOr<kvbuf::Artifact> artifact = kvbuf::compile(*module, options);
  if (failed(artifact))
    return kBadInput;
  if (isCodeKind(emit)) {
    if (int status = takeCode(*artifact, output))
      return status;
  } else {
    output = kvbuf::serializeArtifact(*artifact);
  }
  if (report == Report::Page) {
    steps.begin("page");
    kvbuf::run::PageRequest request;
    request.source = std::move(source);
    request.filename = inputFile;
    request.function = function;
    request.target = target;
    request.schedule = schedule;
    request.ptxas = ptxas;
    return kvbuf::run::writePage("kvbuf-compile", request, reportOption);
  }
  return report == Report::None ? 0 : reportArtifact(*artifact);
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "kvbuf " KVBUF_VERSION "\n"; });
  std::string help = overview + kvbuf::run::chipList() +
                     kvbuf::run::scheduleList() + exitStatus;
  if (!cl::ParseCommandLineOptions(argc, argv, help, &llvm::errs()))
    return kBadInput;
  if (reportOption.getNumOccurrences()) {
    report = llvm::StringSwitch<Report>(reportOption)
                 .Cases({"", "text"}, Report::Text)
                 .Case("json", Report::Json)
                 .Default(Report::Page);
    if (report == Report::Page && !kvbuf::run::isPage(reportOption))
      return fail("--report=" + reportOption +
                  ": expected text, json, or a file whose name ends in .html");
  }
  std::optional<kvbuf::Stage> stage =
      isCodeKind(emit) ? kvbuf::Stage::Artifact : kvbuf::parseStage(emit);
  if (!stage || *stage == kvbuf::Stage::Problem)
    return fail("--emit=" + emit +
                ": expected tile, scheduled, thread, target, llvm, asm, "
                "artifact, ptx, cubin or hsaco");
  if (!target.empty() && !kvbuf::lookupTarget(target))
    return fail("--target=" + target + ": unknown chip; expected one of " +
                llvm::join(kvbuf::knownTargets(), ", "));
  bool binary = *stage == kvbuf::Stage::Artifact;
  if (code != "machine" && code != "none")
    return fail("--code=" + code + ": expected machine or none");
  if (code == "none" && (isCodeKind(emit) || report != Report::None))
    return fail(
        "--code=none leaves out the machine code, which " +
        (isCodeKind(emit) ? "--emit=" + emit : std::string("--report")) +
        " is about");
  if (report != Report::None && !binary)
    return fail("--report needs --emit=artifact: the numbers come from the "
                "binary");
  for (const cl::opt<std::string> *tool : {&ptxas, &linker})
    if (!tool->empty() && *tool != "none" && (!binary || code == "none"))
      return fail("--" + tool->ArgStr + " is for machine code, and " +
                  (binary ? "--code=none" : "--emit=" + emit) + " makes none");
  std::string path = outputFile;
  if (path.empty())
    path = isCodeKind(emit) ? baseName() + "." + emit.getValue()
           : binary         ? baseName() + ".kvbuf"
                            : "-";
  if (binary && emit != "ptx" && path == "-" &&
      llvm::sys::Process::StandardOutIsDisplayed())
    return fail(emit + " is binary; redirect it or name a file with -o");

  Steps steps;
  std::string output;
  int status = compileTo(output, *stage, steps);
  steps.begin("");
  if (status || output.empty())
    return status;
  if (path == "-") {
    llvm::outs() << output;
    llvm::outs().flush();
    if (std::error_code error = llvm::outs().error()) {
      llvm::outs().clear_error();
      return fail("cannot write to the standard output: " + error.message());
    }
  } else {
    steps.begin("write");
    std::string error;
    bool written = kvbuf::writeWholeFile(path, output, error);
    steps.begin("");
    if (!written)
      return fail(error);
  }
  if (showTime)
    steps.print(llvm::errs());
  return 0;
}
