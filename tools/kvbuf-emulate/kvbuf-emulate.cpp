//===- kvbuf-emulate.cpp - Runs one kernel of a module, without a GPU -----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../support/Lists.h"
#include "Emulate.h"

#include "kvbuffer/Emulator/Emulator.h"
#include "kvbuffer/Emulator/Import.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace kvbuf;
using namespace kvbuf::emulate;

static cl::OptionCategory category("Options of kvbuf-emulate");

static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("FILE"), cl::cat(category));
static cl::list<std::string>
    arguments(cl::Positional, cl::desc("[ARGUMENT...]"), cl::cat(category));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("name"),
                                       cl::desc("the kernel [the only one]"),
                                       cl::cat(category));
static cl::list<unsigned> grid("grid", cl::CommaSeparated,
                               cl::value_desc("x,y,z"), cl::desc("blocks [1]"),
                               cl::cat(category));
static cl::list<unsigned> block("block", cl::CommaSeparated,
                                cl::value_desc("x,y,z"),
                                cl::desc("threads of a block [1]"),
                                cl::cat(category));
static cl::list<unsigned> cluster("cluster", cl::CommaSeparated,
                                  cl::value_desc("x,y,z"),
                                  cl::desc("blocks of a cluster"),
                                  cl::cat(category));
static cl::opt<unsigned> shared("shared", cl::value_desc("bytes"),
                                cl::desc("dynamic shared memory [0]"),
                                cl::cat(category));
static cl::opt<std::string> chip("chip", cl::value_desc("name"),
                                 cl::desc("sm_80, sm_90a, gfx942, gfx1100, ... "
                                          "[the module's, else sm_90a]"),
                                 cl::cat(category));
static cl::list<std::string>
    outputs("output", cl::value_desc("N=file.npy"),
            cl::desc("write argument N (from 0 on) to a file"),
            cl::cat(category));
static cl::list<unsigned>
    prints("print", cl::CommaSeparated, cl::value_desc("N"),
           cl::desc("print argument N's elements (a struct's first "
                    "array)"),
           cl::cat(category));
static cl::opt<std::string>
    optionsText("options", cl::value_desc("json"),
                cl::desc("of the emulator: {\"landing\": \"random\", \"seed\": "
                         "7, \"strict\": true, ...}; \"strict\" is false "
                         "otherwise"),
                cl::cat(category));
static cl::opt<std::string> report("report", cl::ValueOptional,
                                   cl::value_desc("file"),
                                   cl::desc("what was executed, as JSON [to "
                                            "stdout]"),
                                   cl::cat(category));
static cl::opt<bool> listKernels("list",
                                 cl::desc("list the kernels and their "
                                          "parameters; execute nothing"),
                                 cl::cat(category));

static constexpr const char *overview =
    R"(kvbuf-emulate: executes a kernel lane by lane, with no GPU, and tells of races,
missing barriers, unwritten and out-of-bounds memory, mbarrier faults.

FILE is one of
  MLIR with a gpu.module of gpu.func in upstream dialects (lowered here)
  MLIR of the target stage: llvm with nvvm or rocdl operations
  LLVM bitcode of a kernel for NVIDIA's or AMD's GPUs

An ARGUMENT is one of
  x.npy           an array (bf16 as 16-bit integers)
  f32[4,8]        an array that nothing has written: reading it is an error
  f32[4,8]=0      an array filled with a number
  i32:5           a number (only 5, where the source names the type)
  {i32:5,x.npy}   a struct passed by value, of arguments; its fields lie as C
                  has them, arrays as addresses

Arrays become what the parameter is: a memref's descriptor, or an address.

Example:
  kvbuf-emulate saxpy.mlir --kernel=saxpy --grid=4 --block=64 \
      2.0 x.npy f32[256]=1 --print=2
)";

static constexpr const char *exitStatus = R"(
Exit status: 0 clean, 1 a detector found a fault or an assertion failed, 2 bad
usage or an operation that is not executed (the message names it).
)";

static int fail(const Twine &text) {
  errs() << "kvbuf-emulate: error: " << text << "\n";
  return 2;
}

/// Three sizes from a list of at most three.
static std::array<unsigned, 3> sizes(const cl::list<unsigned> &list,
                                     unsigned otherwise) {
  std::array<unsigned, 3> all = {otherwise, otherwise, otherwise};
  for (unsigned d = 0; d < std::min<size_t>(list.size(), 3); ++d)
    all[d] = list[d];
  return all;
}

static void printSignature(StringRef name, ArrayRef<mlir::Type> types,
                           ArrayRef<uint32_t> bytes) {
  outs() << name << "(";
  if (!types.empty())
    interleaveComma(types, outs());
  else
    interleaveComma(bytes, outs(), [](uint32_t n) { outs() << n << " bytes"; });
  outs() << ")\n";
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  std::string help =
      std::string(overview) + kvbuf::run::kEmulatorList + exitStatus;
  if (!cl::ParseCommandLineOptions(argc, argv, help, &errs()))
    return 2;
  if (grid.size() > 3 || block.size() > 3 || cluster.size() > 3)
    return fail("--grid, --block and --cluster take at most three sizes");

  auto file = MemoryBuffer::getFileOrSTDIN(input);
  if (!file)
    return fail("cannot read '" + input + "': " + file.getError().message());
  StringRef bytes = (*file)->getBuffer();

  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  emu::registerImport(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  context.printOpOnDiagnostic(false);
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(bytes, input),
                             SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(sources, &context, errs());

  StringRef kind = emu::describeCode(bytes);
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (kind == "LLVM bitcode")
    module = emu::importLLVM(context, bytes, input);
  else if (kind == "text" || kind == "MLIR bytecode")
    module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  else
    return fail("'" + input + "' is " + kind +
                "; the emulator executes MLIR and LLVM bitcode");
  if (!module)
    return 2;

  SmallVector<Signature> signatures;
  if (needsLowering(*module)) {
    module->walk([&](mlir::gpu::GPUFuncOp f) {
      if (f.isKernel())
        signatures.push_back(
            {f.getName().str(), llvm::to_vector<4>(f.getArgumentTypes())});
    });
    module = lowerToTarget(*module, chip.empty() ? "sm_90a" : StringRef(chip));
    if (!module)
      return 2;
    (*module)->setAttr(emu::kForeignAttr, mlir::UnitAttr::get(&context));
  }

  // Programs from elsewhere rely on what GPUs forgive.
  emu::Options defaults;
  defaults.strict = false;
  auto options = emu::Options::fromJSON(optionsText, defaults);
  if (!options)
    return fail(toString(options.takeError()));
  if (!chip.empty())
    options->chip = chip;
  auto message = [](emu::Severity, StringRef text) { errs() << text << "\n"; };
  std::unique_ptr<emu::Emulator> emulator =
      emu::Emulator::create(*module, *options, message);
  if (!emulator)
    return 2;

  auto typesOf = [&](StringRef name) -> ArrayRef<mlir::Type> {
    for (const Signature &s : signatures)
      if (s.kernel == name)
        return s.types;
    return {};
  };
  std::vector<StringRef> names = emulator->kernelNames();
  if (listKernels) {
    for (StringRef name : names)
      if (!emulator->refuses(name))
        printSignature(name, typesOf(name), *emulator->parameterBytes(name));
    return 0;
  }
  std::string name = kernelName;
  if (name.empty()) {
    if (names.size() != 1)
      return fail("the module has " + Twine(names.size()) +
                  " kernels; --kernel names one, --list shows them");
    name = names.front().str();
  }
  auto parameters = emulator->parameterBytes(name);
  if (!parameters)
    return fail("no kernel '" + name + "'; --list shows those that there are");

  if (emulator->refuses(name))
    return 2;

  ArrayRef<mlir::Type> types = typesOf(name);
  if (!types.empty() && types.size() != arguments.size())
    return fail("kernel '" + name + "' takes " + Twine(types.size()) +
                " arguments, not " + Twine(arguments.size()) +
                "; --list shows their types");
  Arguments all;
  for (auto [i, text] : enumerate(arguments))
    if (Error e = all.add(text, types.empty() ? mlir::Type() : types[i]))
      return fail(toString(std::move(e)));
  if (all.sizes.size() != parameters->size())
    return fail("kernel '" + name + "' takes " + Twine(parameters->size()) +
                " parameters, and the arguments make " +
                Twine(all.sizes.size()));
  for (Buffer &b : all.buffers)
    if (!b.bytes.empty() &&
        !emulator->registerBuffer(b.name, b.bytes.data(), b.bytes.size(), true,
                                  true, b.initialized))
      return 2;
  SmallVector<emu::Argument> values;
  for (auto [i, words] : enumerate(all.words))
    values.push_back({words.data(), all.sizes[i]});
  emu::LaunchRequest request = {name,   sizes(grid, 1), sizes(block, 1),
                                shared, values,         {0, 0, 0}};
  if (!cluster.empty())
    request.cluster = sizes(cluster, 1);
  emu::LaunchResult result = emulator->launchTogether(request);
  if (result == emu::LaunchResult::Usage)
    return 2;

  for (unsigned n : prints) {
    if (n >= all.bufferOf.size() || all.bufferOf[n] < 0)
      return fail("argument " + Twine(n) + " is no array");
    outs() << show(all.buffers[all.bufferOf[n]], 1024) << "\n";
  }
  for (StringRef output : outputs) {
    auto [number, path] = output.split('=');
    unsigned n;
    if (number.getAsInteger(10, n) || path.empty() ||
        n >= all.bufferOf.size() || all.bufferOf[n] < 0)
      return fail("--output takes such as 2=result.npy, of an argument that is "
                  "an array");
    std::error_code error;
    raw_fd_ostream out(path, error);
    if (error)
      return fail("cannot write '" + path + "': " + error.message());
    out << toNpy(all.buffers[all.bufferOf[n]]);
  }
  if (report.getNumOccurrences()) {
    std::error_code error;
    raw_fd_ostream out(report.empty() ? "-" : StringRef(report), error);
    if (error)
      return fail("cannot write '" + report + "': " + error.message());
    out << formatv("{0:2}\n", emulator->report());
  }
  return result == emu::LaunchResult::Clean ? 0 : 1;
}
