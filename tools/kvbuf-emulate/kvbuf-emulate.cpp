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
#include "kvbuffer/Emulator/Executed.h"
#include "kvbuffer/Emulator/Import.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace llvm;
using namespace kvbuf;
using namespace kvbuf::emulate;

static cl::OptionCategory category("Options of kvbuf-emulate");

static cl::opt<std::string> input(cl::Positional, cl::desc("FILE"),
                                  cl::cat(category));
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
                                            "stdout]; as a page, if the "
                                            "file's name ends in .html"),
                                   cl::cat(category));
static cl::opt<std::string> sarif("sarif", cl::value_desc("file"),
                                  cl::desc("write the faults as SARIF"),
                                  cl::cat(category));
static cl::list<std::string>
    symbols("symbol", cl::value_desc("name=argument"),
            cl::desc("what a variable in global or constant memory holds"),
            cl::cat(category));
static cl::list<std::string>
    printedSymbols("print-symbol", cl::value_desc("name:type"),
                   cl::desc("print a variable's elements of a type"),
                   cl::cat(category));
static cl::list<std::string>
    clangArguments("clang", cl::value_desc("argument"),
                   cl::desc("for clang, which compiles .cu and .hip; "
                            "-nocudainc or -nogpuinc: with no header at all"),
                   cl::cat(category));
static cl::opt<std::string>
    keep("keep", cl::value_desc("file"),
         cl::desc("write the bitcode that clang makes of .cu and .hip"),
         cl::cat(category));
static cl::opt<bool> listKernels("list",
                                 cl::desc("list the kernels and their "
                                          "parameters; execute nothing"),
                                 cl::cat(category));

static cl::opt<std::string>
    listOps("list-ops", cl::ValueOptional, cl::value_desc("json"),
            cl::desc("list the operations that are executed and those that "
                     "are refused, as JSON; takes no FILE"),
            cl::cat(category));

static constexpr const char *overview =
    R"(kvbuf-emulate: executes a kernel lane by lane, with no GPU, and tells of races,
missing barriers, unwritten and out-of-bounds memory, mbarrier faults.

FILE is one of
  MLIR with a gpu.module of gpu.func in upstream dialects (lowered here)
  MLIR of the target stage: llvm with nvvm or rocdl operations
  LLVM bitcode of a kernel for NVIDIA's or AMD's GPUs, or LLVM's textual IR
  CUDA (.cu) or HIP (.hip), of which clang compiles the kernels, if it is
  installed; no toolkit is needed. --kernel may be the name in the source

An ARGUMENT is one of
  x.npy           an array (bf16 as 16-bit integers)
  f32[4,8]        an array that nothing has written: reading it is an error
  f32[4,8]=0      an array filled with a number
  f32[4,8]=iota   an array of 0, 1, 2, ...
  f32[4,8]=random an array of numbers from -1 to 1 (integers: from 0 to 99), the
                  same each time; random:7 makes others
  i32:5           a number; only 5 where the kernel's parameter has a type, as
                  in CUDA and HIP
  {i32:5,x.npy}   a struct passed by value, of arguments; its fields lie as C
                  has them, arrays as addresses

Arrays become what the parameter is: a memref's descriptor, or an address.

Example:
  kvbuf-emulate saxpy.mlir --kernel=saxpy --grid=4 --block=64 \
      2.0 x.npy f32[256]=1 --print=2
  kvbuf-emulate sums.cu --kernel=sums --grid=4 --block=64 f32[4] x.npy \
      --symbol=scale=f32[1]=2 --print=0 --report=sums.html --sarif=sums.sarif
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

/// The name of a kernel in a source of C++; empty: it has no other.
static std::string nameInSource(StringRef name) {
  ItaniumPartialDemangler demangler;
  std::string terminated = name.str();
  if (demangler.partialDemangle(terminated.c_str()))
    return "";
  char *text = demangler.getFunctionName(nullptr, nullptr);
  std::string result = text ? text : "";
  std::free(text);
  return result;
}

/// The kernel that a user names; empty, after a message: none.
static std::string findKernel(ArrayRef<StringRef> names) {
  if (kernelName.empty() && names.size() == 1)
    return names.front().str();
  SmallVector<StringRef> found;
  for (StringRef name : names) {
    if (!kernelName.empty() && name == kernelName)
      return name.str();
    // Of a template the name alone will do where it has one instance.
    std::string source = nameInSource(name);
    if (!kernelName.empty() &&
        (source == kernelName ||
         StringRef(source).split('<').first == kernelName))
      found.push_back(name);
  }
  if (found.size() == 1)
    return found.front().str();
  if (kernelName.empty())
    fail("the module has " + Twine(names.size()) +
         " kernels; --kernel names one, --list shows them");
  else if (found.empty())
    fail("no kernel '" + kernelName + "'; --list shows those that there are");
  else
    fail(Twine(found.size()) + " kernels are called '" + kernelName +
         "'; --list shows their full names");
  return "";
}

/// The numbers among a kernel's parameters, as the code of the target stage has
/// them; null: an address or a struct.
static SmallVector<mlir::Type> numbersOf(mlir::ModuleOp module,
                                         StringRef name) {
  SmallVector<mlir::Type> types;
  module.walk([&](mlir::LLVM::LLVMFuncOp f) {
    if (f.getName() != name || f.isExternal())
      return;
    for (mlir::Type type : f.getArgumentTypes())
      types.push_back(type.isIntOrFloat() ? type : mlir::Type());
  });
  return types;
}

static void printSignature(StringRef name, ArrayRef<mlir::Type> types,
                           ArrayRef<uint32_t> bytes) {
  outs() << name << "(";
  if (!types.empty())
    interleaveComma(types, outs());
  else
    interleaveComma(bytes, outs(), [](uint32_t n) { outs() << n << " bytes"; });
  outs() << ")";
  if (std::string source = nameInSource(name); !source.empty())
    outs() << " " << source;
  outs() << "\n";
}

/// The module that a file holds. Null, after a message: none.
static mlir::OwningOpRef<mlir::ModuleOp>
readModule(mlir::MLIRContext &context, SourceMgr &sources, StringRef bytes) {
  StringRef kind = emu::describeCode(bytes);
  if (kind == "LLVM bitcode" || kind == "LLVM IR")
    return emu::importLLVM(context, bytes, input);
  if (kind != "text" && kind != "MLIR bytecode") {
    fail("'" + input + "' is " + kind +
         "; the emulator executes MLIR, LLVM bitcode and LLVM's textual IR");
    return nullptr;
  }
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return nullptr;
  // Kernels that have been compiled lie in the module as binaries.
  SmallVector<mlir::gpu::BinaryOp> binaries;
  module->walk([&](mlir::gpu::BinaryOp op) { binaries.push_back(op); });
  bool hasKernels = false;
  module->walk([&](mlir::gpu::GPUModuleOp) { hasKernels = true; });
  if (binaries.empty() || hasKernels)
    return module;
  auto object = cast<mlir::gpu::ObjectAttr>(binaries.front().getObjects()[0]);
  StringRef code = object.getObject().getValue();
  StringRef codeKind = emu::describeCode(code);
  if (codeKind == "LLVM bitcode" || codeKind == "LLVM IR")
    return emu::importLLVM(context, code, binaries.front().getSymName());
  fail("the kernels of 'gpu.binary @" + binaries.front().getSymName() +
       "' are " +
       (codeKind == "text" ? StringRef("code of an unknown kind") : codeKind) +
       "; the emulator executes MLIR, LLVM bitcode and LLVM's textual IR");
  return nullptr;
}

/// Writes what --symbol says into the module's variables.
static Error setSymbols(emu::Emulator &emulator, Arguments &values) {
  for (StringRef text : symbols) {
    auto [name, value] = text.split('=');
    if (name.empty() || value.empty())
      return createStringError("--symbol takes such as scale=f32[1]=2");
    size_t first = values.words.size();
    if (Error e = values.add(value, mlir::Type()))
      return e;
    int array = values.bufferOf.back();
    ArrayRef<uint8_t> bytes(
        reinterpret_cast<const uint8_t *>(values.words[first].data()),
        values.sizes[first]);
    if (array >= 0 && !value.starts_with("{"))
      bytes = ArrayRef<uint8_t>(
          reinterpret_cast<const uint8_t *>(values.buffers[array].bytes.data()),
          values.buffers[array].bytes.size());
    if (!emulator.setVariable(name, bytes))
      return createStringError("--symbol=" + text + " sets nothing");
  }
  return Error::success();
}

/// Prints what --print-symbol names.
static Error printSymbols(const emu::Emulator &emulator) {
  for (StringRef text : printedSymbols) {
    auto [name, type] = text.rsplit(':');
    size_t width = widthOf(type);
    if (!width)
      return createStringError("--print-symbol takes such as counter:i32");
    auto bytes = emulator.variable(name);
    if (!bytes)
      return createStringError("no kernel uses a variable '" + name +
                               "' of global or constant memory");
    Buffer buffer;
    buffer.type = type.str();
    buffer.shape = {static_cast<int64_t>(bytes->size() / width)};
    buffer.bytes.assign(bytes->begin(), bytes->end());
    outs() << show(buffer, 1024) << "\n";
  }
  return Error::success();
}

/// Writes text to a file, or to stdout. False, after a message: it cannot.
static bool writeFile(StringRef path, StringRef text) {
  std::error_code error;
  raw_fd_ostream out(path, error);
  if (error) {
    fail("cannot write '" + path + "': " + error.message());
    return false;
  }
  out << text;
  return true;
}

/// The file that is named, or the bitcode that clang makes of it. Null, after a
/// message: it cannot be read or compiled.
static std::unique_ptr<MemoryBuffer> readInput() {
  if (languageOf(input) == Language::None) {
    auto read = MemoryBuffer::getFileOrSTDIN(input);
    if (read)
      return std::move(*read);
    fail("cannot read '" + input + "': " + read.getError().message());
    return nullptr;
  }
  auto compiled = compileSource(input, chip, clangArguments);
  if (!compiled) {
    fail(toString(compiled.takeError()));
    return nullptr;
  }
  if (!keep.empty() && !writeFile(keep, (*compiled)->getBuffer()))
    return nullptr;
  return std::move(*compiled);
}

/// What was executed and found, as options ask. False, after a message: a file
/// cannot be written.
static bool writeReports(const emu::Emulator &emulator) {
  json::Value all = emulator.report();
  if (report.getNumOccurrences()) {
    bool page = StringRef(report).ends_with(".html");
    if (!writeFile(report.empty() ? "-" : StringRef(report),
                   page ? toPage(all, input) : formatv("{0:2}\n", all).str()))
      return false;
  }
  return sarif.empty() ||
         writeFile(sarif, formatv("{0:2}\n", toSarif(all, input)).str());
}

/// Makes the arguments of a kernel. `types`: those of its source, or none;
/// `numbers`: the types of the numbers among `count` parameters.
static Error addArguments(Arguments &all, StringRef kernel,
                          ArrayRef<mlir::Type> types,
                          ArrayRef<mlir::Type> numbers, size_t count) {
  if (!types.empty() && types.size() != arguments.size())
    return createStringError("kernel '" + kernel + "' takes " +
                             Twine(types.size()) + " arguments, not " +
                             Twine(arguments.size()) +
                             "; --list shows their types");
  if (types.empty() && numbers.size() == arguments.size())
    types = numbers;
  for (auto [i, text] : enumerate(arguments))
    if (Error e = all.add(text, types.empty() ? mlir::Type() : types[i]))
      return e;
  if (all.sizes.size() != count)
    return createStringError("kernel '" + kernel + "' takes " + Twine(count) +
                             " parameters, and the arguments make " +
                             Twine(all.sizes.size()));
  return Error::success();
}

/// Says what nothing wrote of an array that is shown or kept: it is no result.
static void noteUnwritten(const Buffer &b, unsigned n) {
  size_t missing = llvm::count(b.written, 0), bytes = b.bytes.size();
  if (missing)
    errs() << "note: nothing has written "
           << (missing == bytes
                   ? std::string()
                   : formatv("{0} of the {1} bytes of ", missing, bytes).str())
           << "argument " << n << "\n";
  if (!b.before.empty() && llvm::equal(b.before, b.bytes))
    errs() << "note: argument " << n << " holds what it was given\n";
}

/// Prints and writes what options ask for. Another status than 0, after a
/// message: something cannot be.
static int writeResults(const emu::Emulator &emulator, const Arguments &all) {
  for (unsigned n : prints) {
    if (n >= all.bufferOf.size() || all.bufferOf[n] < 0)
      return fail("argument " + Twine(n) + " is no array");
    noteUnwritten(all.buffers[all.bufferOf[n]], n);
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
    noteUnwritten(all.buffers[all.bufferOf[n]], n);
    out << toNpy(all.buffers[all.bufferOf[n]]);
  }
  if (Error e = printSymbols(emulator))
    return fail(toString(std::move(e)));
  if (!writeReports(emulator))
    return 2;
  return 0;
}

/// Prints what is executed.
static int listOperations() {
  if (!listOps.empty() && listOps != "json")
    return fail("--list-ops prints json, not '" + listOps + "'");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  emu::registerImport(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  outs() << formatv("{0:2}\n", emu::listExecuted(context));
  return 0;
}

/// Whether kernels are still a part of the host's program.
static bool launchesInPlace(mlir::ModuleOp module) {
  bool found = false;
  module.walk([&](mlir::gpu::LaunchOp) { found = true; });
  return found && !needsLowering(module);
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
  if (is_contained(cluster, 0u))
    return fail("--cluster takes sizes of at least 1");

  if (listOps.getNumOccurrences())
    return listOperations();
  if (input.empty())
    return fail("expected a FILE; --help says which");
  if (languageOf(input) == Language::None &&
      (!keep.empty() || !clangArguments.empty()))
    return fail(
        "--keep and --clang are for .cu and .hip, which clang compiles");

  std::unique_ptr<MemoryBuffer> file = readInput();
  if (!file)
    return 2;
  StringRef bytes = file->getBuffer();

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

  mlir::OwningOpRef<mlir::ModuleOp> module =
      readModule(context, sources, bytes);
  if (!module)
    return 2;

  if (launchesInPlace(*module))
    return fail("'" + input +
                "' launches its kernels where they are written ('gpu.launch'): "
                "mlir-runner runs such a program (docs/mlir-runner.md)");
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
  std::string name = findKernel(names);
  if (name.empty())
    return 2;
  auto parameters = emulator->parameterBytes(name);

  if (emulator->refuses(name))
    return 2;

  Arguments all;
  if (Error e = addArguments(all, name, typesOf(name), numbersOf(*module, name),
                             parameters->size()))
    return fail(toString(std::move(e)));
  for (Buffer &b : all.buffers) {
    if (b.initialized && !outputs.empty())
      b.before.assign(b.bytes.begin(), b.bytes.end());
    if (!b.initialized && options->uninitialized)
      b.written.resize(b.bytes.size());
    if (!b.bytes.empty() &&
        !emulator->registerTracked(
            b.name, b.bytes.data(), b.bytes.size(), true, true,
            b.written.empty() ? nullptr : b.written.data()))
      return 2;
  }
  Arguments ofSymbols;
  if (Error e = setSymbols(*emulator, ofSymbols))
    return fail(toString(std::move(e)));
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

  if (int status = writeResults(*emulator, all))
    return status;
  return result == emu::LaunchResult::Clean ? 0 : 1;
}
