//===- kvbuf-emu-test.cpp - Runs one kernel on the emulator ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver of the emulator's tests and its benchmark. Arguments:
//   buf:TYPE:COUNT:INIT[:name]  a buffer; INIT is iota, zero, uninit,
//                               const=X, mod=N (element i is i mod N),
//                               list=A/B/C, or file=PATH (its bytes as they
//                               are)
//   i32:X, i64:X, f32:X         a number
//   map:ARG:BYTES:DIMS:BOX:SWIZZLE[:STRIDES]
//                               a tensor map, by value, of the buffer that is
//                               argument ARG: bytes of an element, sizes joined
//                               by x, strides in bytes from dimension 1 on
// TYPE is i8, i16, i32, i64, f16, bf16, f32 or f64.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Emulator/DeviceMemory.h"
#include "kvbuffer/Emulator/Emulator.h"
#include "kvbuffer/Runtime/TensorMap.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace llvm;
using namespace kvbuf::emu;

static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("kernel.mlir"));
static cl::opt<std::string> entry("entry", cl::init("kernel"));
static cl::list<unsigned> gridSize("grid", cl::CommaSeparated);
static cl::list<unsigned> blockSize("block", cl::CommaSeparated);
static cl::opt<unsigned> sharedBytes("shared", cl::init(0));
static cl::list<std::string> argSpecs("arg", cl::desc("see the source"));
static cl::list<unsigned> used("use", cl::CommaSeparated,
                               cl::desc("arguments of the launch [all]"));
static cl::list<std::string>
    beside("beside", cl::desc("ENTRY:ARG,ARG: a launch at the same time"));
static cl::opt<std::string> optionsText("options", cl::init(""));
static cl::list<std::string>
    printSpecs("print", cl::desc("ARG[:FIRST:COUNT[:PER_LINE]]"));
static cl::list<std::string>
    dumpSpecs("dump", cl::desc("ARG:PATH: write a buffer's bytes to a file"));
static cl::opt<bool> printReport("report");
static cl::opt<bool> bench("bench",
                           cl::desc("print lane-instructions per second"));

namespace {
struct Arg {
  std::string type, name;
  kvbuf::emu::DeviceBytes data; // the buffer, or the number
  const void *pointer = nullptr;
  bool isBuffer = false, initialized = true;
  size_t count = 1;
};
} // namespace

static size_t widthOf(StringRef type) {
  return StringSwitch<size_t>(type)
      .Case("i8", 1)
      .Cases({"i16", "f16", "bf16"}, 2)
      .Cases({"i32", "f32"}, 4)
      .Cases({"i64", "f64"}, 8)
      .Default(0);
}

static const fltSemantics *semanticsOf(StringRef type) {
  return StringSwitch<const fltSemantics *>(type)
      .Case("f16", &APFloat::IEEEhalf())
      .Case("bf16", &APFloat::BFloat())
      .Case("f32", &APFloat::IEEEsingle())
      .Case("f64", &APFloat::IEEEdouble())
      .Default(nullptr);
}

static void store(char *p, StringRef type, double value) {
  uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  if (const fltSemantics *s = semanticsOf(type)) {
    APFloat f(value);
    bool lost;
    f.convert(*s, APFloat::rmNearestTiesToEven, &lost);
    bits = f.bitcastToAPInt().getZExtValue();
  }
  std::memcpy(p, &bits, widthOf(type));
}

static void print(const char *p, StringRef type) {
  uint64_t bits = 0;
  size_t width = widthOf(type);
  std::memcpy(&bits, p, width);
  if (const fltSemantics *s = semanticsOf(type)) {
    APFloat f(*s, APInt(width * 8, bits));
    bool lost;
    f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    outs() << format("%g", f.convertToDouble());
    return;
  }
  outs() << APInt(width * 8, bits).getSExtValue();
}

static bool parseMap(ArrayRef<StringRef> parts, ArrayRef<Arg> args, Arg &arg) {
  kvbuf::rt::SoftwareTensorMap map = {};
  map.magic = map.expectedMagic;
  size_t of;
  SmallVector<StringRef> dims, box, strides;
  if (parts.size() < 6 || parts[1].getAsInteger(10, of) || of >= args.size() ||
      parts[2].getAsInteger(10, map.elementBytes) ||
      parts[5].getAsInteger(10, map.swizzle))
    return false;
  parts[3].split(dims, 'x');
  parts[4].split(box, 'x');
  if (parts.size() > 6)
    parts[6].split(strides, 'x');
  if (dims.size() > map.maxRank || box.size() != dims.size())
    return false;
  map.rank = dims.size();
  map.address = reinterpret_cast<uint64_t>(args[of].pointer);
  uint64_t stride = map.elementBytes;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].getAsInteger(10, map.dims[d]) ||
        box[d].getAsInteger(10, map.box[d]))
      return false;
    stride *= map.dims[d];
    if (d + 1 < dims.size())
      map.strides[d] = stride;
    if (d < strides.size() && strides[d].getAsInteger(10, map.strides[d]))
      return false;
  }
  arg.type = "map";
  arg.data.assign(reinterpret_cast<char *>(&map),
                  reinterpret_cast<char *>(&map + 1));
  return true;
}

static bool parseArg(StringRef spec, ArrayRef<Arg> before, Arg &arg) {
  SmallVector<StringRef> parts;
  spec.split(parts, ':');
  double x;
  if (parts[0] == "map")
    return parseMap(parts, before, arg);
  if (parts[0] != "buf") {
    arg.type = parts[0].str();
    if (parts.size() != 2 || !widthOf(arg.type) || parts[1].getAsDouble(x))
      return false;
    arg.data.resize(widthOf(arg.type));
    store(arg.data.data(), arg.type, x);
    return true;
  }
  if (parts.size() < 4 || parts[2].getAsInteger(10, arg.count))
    return false;
  arg.isBuffer = true;
  arg.type = parts[1].str();
  arg.name = parts.size() > 4 ? parts[4].str() : "";
  size_t width = widthOf(arg.type);
  arg.data.assign(width * arg.count + 64, 0);
  StringRef init = parts[3];
  double value = 0, modulus = 0;
  SmallVector<StringRef> numbers;
  if (init == "uninit")
    arg.initialized = false;
  else if (init.consume_front("const="))
    init.getAsDouble(value);
  else if (init.consume_front("mod="))
    init.getAsDouble(modulus);
  else if (init.consume_front("list="))
    init.split(numbers, '/');
  else if (!init.starts_with("file=") && init != "iota" && init != "zero")
    return false;
  char *p = arg.data.data();
  p += -reinterpret_cast<uintptr_t>(p) & 63;
  arg.pointer = p;
  if (init.consume_front("file=")) {
    auto file = MemoryBuffer::getFile(init);
    if (!file || (*file)->getBufferSize() != width * arg.count)
      return false;
    std::memcpy(p, (*file)->getBufferStart(), width * arg.count);
    return width != 0;
  }
  // What is given, or counted; then the last so many elements repeat.
  size_t given = modulus           ? static_cast<size_t>(modulus)
                 : init == "iota"  ? arg.count
                 : numbers.empty() ? 1
                                   : numbers.size();
  given = std::min(given, arg.count);
  for (size_t i = 0; i < given; ++i) {
    if (i < numbers.size())
      numbers[i].getAsDouble(value);
    store(p + width * i, arg.type,
          modulus || init == "iota" ? static_cast<double>(i) : value);
  }
  char *base = modulus || !given ? p : p + width * (given - 1);
  for (char *at = p + width * given, *end = p + width * arg.count; at < end;) {
    size_t bytes = std::min(at - base, end - at);
    std::memcpy(at, base, bytes);
    at += bytes;
  }
  return width != 0;
}

static std::array<unsigned, 3> triple(ArrayRef<unsigned> list) {
  std::array<unsigned, 3> t = {1, 1, 1};
  for (size_t i = 0; i < list.size() && i < 3; ++i)
    t[i] = list[i];
  return t;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "kvbuf emulator tests\n");
  mlir::DialectRegistry registry;
  registry.insert<mlir::DLTIDialect, mlir::LLVM::LLVMDialect,
                  mlir::NVVM::NVVMDialect, mlir::ROCDL::ROCDLDialect,
                  mlir::gpu::GPUDialect, kvbuf::KVBufferDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<kvbuf::KVBufferDialect>();
  context.allowUnregisteredDialects();
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(
      input, mlir::ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!module)
    return 2;
  auto options = Options::fromJSON(optionsText);
  if (!options) {
    errs() << "error: " << toString(options.takeError()) << "\n";
    return 2;
  }
  auto emulator =
      Emulator::create(*module, *options, [](Severity, StringRef text) {
        errs() << text << "\n";
      });
  if (!emulator)
    return 2;

  std::vector<Arg> args(argSpecs.size());
  std::vector<kvbuf::emu::Argument> values;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!parseArg(argSpecs[i], ArrayRef(args).take_front(i), args[i])) {
      errs() << "error: bad --arg=" << argSpecs[i] << "\n";
      return 2;
    }
    Arg &a = args[i];
    if (!a.isBuffer) {
      values.push_back({a.data.data(), a.data.size()});
      continue;
    }
    if (a.name.empty())
      a.name = "arg" + std::to_string(i);
    emulator->registerBuffer(a.name, const_cast<void *>(a.pointer),
                             widthOf(a.type) * a.count, true, true,
                             a.initialized);
    values.push_back({&a.pointer, 8});
  }
  // The launch, and those at the same time.
  std::vector<std::vector<kvbuf::emu::Argument>> taken;
  std::vector<std::string> entries;
  auto take = [&](StringRef name, ArrayRef<unsigned> which) {
    entries.push_back(name.str());
    taken.emplace_back();
    for (unsigned i : which)
      if (i < values.size())
        taken.back().push_back(values[i]);
    if (which.empty())
      taken.back() = values;
  };
  take(entry, SmallVector<unsigned>(used.begin(), used.end()));
  for (StringRef spec : beside) {
    auto [name, list] = spec.split(':');
    SmallVector<StringRef> numbers;
    list.split(numbers, ',', -1, /*KeepEmpty=*/false);
    SmallVector<unsigned> which;
    for (StringRef number : numbers)
      if (number.getAsInteger(10, which.emplace_back())) {
        errs() << "error: bad --beside=" << spec << "\n";
        return 2;
      }
    take(name, which);
  }
  std::vector<LaunchRequest> requests;
  for (size_t i = 0; i < taken.size(); ++i)
    requests.push_back({entries[i], triple(gridSize), triple(blockSize),
                        sharedBytes, taken[i]});
  LaunchResult result = emulator->launchTogether(requests);
  for (StringRef spec : printSpecs) {
    SmallVector<StringRef> parts;
    spec.split(parts, ':');
    size_t index = 0, first = 0, perLine = 0;
    parts[0].getAsInteger(10, index);
    size_t count = args[index].count;
    if (parts.size() > 2) {
      parts[1].getAsInteger(10, first);
      parts[2].getAsInteger(10, count);
    }
    if (parts.size() > 3)
      parts[3].getAsInteger(10, perLine);
    outs() << "arg" << index << ":";
    for (size_t k = first; k < first + count && k < args[index].count; ++k) {
      outs() << (perLine && (k - first) % perLine == 0 ? "\n  " : " ");
      print(static_cast<const char *>(args[index].pointer) +
                k * widthOf(args[index].type),
            args[index].type);
    }
    outs() << "\n";
  }
  for (StringRef spec : dumpSpecs) {
    auto [number, path] = spec.split(':');
    size_t index = 0;
    number.getAsInteger(10, index);
    std::error_code error;
    raw_fd_ostream file(path, error);
    if (error) {
      errs() << "error: " << path << ": " << error.message() << "\n";
      return 2;
    }
    file.write(static_cast<const char *>(args[index].pointer),
               widthOf(args[index].type) * args[index].count);
  }
  json::Value report = emulator->report();
  if (printReport)
    outs() << formatv("{0:2}", report) << "\n";
  if (bench)
    outs() << format(
        "%.1f million lane-instructions/s\n",
        *report.getAsObject()->getNumber("lane_instructions_per_second") / 1e6);
  return static_cast<int>(result);
}
