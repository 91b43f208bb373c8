//===- kvbuf-emu-fuzz.cpp - Damaged kernels on the emulator ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes modules at the target stage, changes them at random in memory, and
// gives those that MLIR's verifier lets pass to the emulator, with small
// limits. Whatever they hold, the emulator has to refuse it with a message, or
// run it to an end: the process must not die. Files may hold several modules,
// separated as split-file does it; what is no module with a kernel is left out.
//
//   kvbuf-emu-fuzz --rounds=100000 --seed=7 test/Emulator/*.mlir
//   kvbuf-emu-fuzz --seed=7 --first=4711 --rounds=1 --print ...
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Emulator/Emulator.h"
#include "kvbuffer/Runtime/TensorMap.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace kvbuf::emu;
using kvbuf::fuzz::Mutator;
using kvbuf::fuzz::Pool;

static cl::list<std::string> inputs(cl::Positional, cl::OneOrMore,
                                    cl::desc("modules"));
static cl::opt<uint64_t> rounds("rounds", cl::init(1000));
static cl::opt<uint64_t> first("first", cl::init(0),
                               cl::desc("number of the first round"));
static cl::opt<uint64_t> seed("seed", cl::init(1));
static cl::opt<bool> printModule("print",
                                 cl::desc("print modules before they run"));
static cl::opt<bool> verbose("verbose", cl::desc("print all messages"));

using Modules = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;

static void parseInto(Modules &modules, StringRef text,
                      mlir::MLIRContext &context) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  std::string part;
  auto take = [&] {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(part, &context);
    bool kernel = false;
    if (module)
      module->walk([&](mlir::LLVM::LLVMFuncOp f) {
        kernel |= f->hasAttr("nvvm.kernel") || f->hasAttr("rocdl.kernel") ||
                  f->hasAttr("gpu.kernel");
      });
    if (kernel)
      modules.push_back(std::move(module));
    part.clear();
  };
  for (StringRef line : lines) {
    if (line.starts_with("//---") || line.starts_with("// -----"))
      take();
    else
      part += (line + "\n").str();
  }
  take();
}

namespace {
/// What the kernels get: buffers, and a map of the first.
struct Memory {
  alignas(128) uint8_t bytes[3][1 << 14];
  kvbuf::rt::SoftwareTensorMap map;
  alignas(64) uint8_t large[1 << 15];
  uint64_t pointers[3];
  uint64_t number;
};
} // namespace

static LaunchResult launch(Emulator &emulator, mlir::LLVM::LLVMFuncOp kernel,
                           bool isAMD, Mutator &mutator, Memory &memory) {
  memset(memory.bytes, 0, sizeof(memory.bytes));
  kvbuf::rt::SoftwareTensorMap &map = memory.map;
  map = {};
  map.magic = map.expectedMagic;
  map.elementBytes = 2;
  map.rank = 2;
  static const uint8_t swizzles[] = {0, 32, 64, 128};
  map.swizzle = swizzles[mutator.below(4)];
  map.address = reinterpret_cast<uint64_t>(memory.bytes[0]);
  map.dims[0] = 64;
  map.dims[1] = 64;
  map.strides[0] = 128;
  map.box[0] = 8 << mutator.below(4);
  map.box[1] = 1 << mutator.below(9);
  memcpy(memory.large, &map, sizeof(map));
  std::vector<kvbuf::emu::Argument> args;
  for (auto [i, arg] : enumerate(kernel.getArguments())) {
    mlir::Type type = arg.getType();
    if (auto value = kernel.getArgAttrOfType<mlir::TypeAttr>(
            i, mlir::LLVM::LLVMDialect::getByValAttrName())) {
      auto array = dyn_cast<mlir::LLVM::LLVMArrayType>(value.getValue());
      args.push_back({memory.large, array ? array.getNumElements() : 128});
    } else if (isa<mlir::LLVM::LLVMPointerType>(type)) {
      memory.pointers[i % 3] = reinterpret_cast<uint64_t>(memory.bytes[i % 3]);
      args.push_back({&memory.pointers[i % 3], 8});
    } else {
      memory.number = 32 + mutator.below(64);
      unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
      args.push_back({&memory.number, divideCeil(bits, 8)});
    }
  }
  unsigned threads = isAMD ? 64 : 32 << mutator.below(3);
  for (StringRef name : {"nvvm.maxntid", "nvvm.reqntid"})
    if (auto sizes = kernel->getAttrOfType<mlir::DenseI32ArrayAttr>(name);
        sizes && !sizes.empty() && sizes[0] > 0 && sizes[0] <= 512)
      threads = sizes[0];
  unsigned cluster = 1;
  if (auto sizes =
          kernel->getAttrOfType<mlir::DenseI32ArrayAttr>("nvvm.cluster_dim");
      sizes && !sizes.empty() && sizes[0] > 0 && sizes[0] < 9)
    cluster = sizes[0];
  return emulator.launch(kernel.getName(), {cluster, 1, 1}, {threads, 1, 1},
                         mutator.below(3) * 24 * 1024, args);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "kvbuf emulator fuzzer\n");
  mlir::DialectRegistry registry;
  registry.insert<mlir::DLTIDialect, mlir::LLVM::LLVMDialect,
                  mlir::NVVM::NVVMDialect, mlir::ROCDL::ROCDLDialect,
                  mlir::gpu::GPUDialect, kvbuf::KVBufferDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.allowUnregisteredDialects();
  context.printOpOnDiagnostic(false);
  mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic &d) {
    if (verbose)
      errs() << d.getLocation() << ": " << d << "\n";
    return mlir::success();
  });
  Modules modules;
  for (const std::string &path : inputs) {
    auto file = MemoryBuffer::getFile(path);
    if (!file) {
      errs() << "error: " << path << ": " << file.getError().message() << "\n";
      return 2;
    }
    parseInto(modules, (*file)->getBuffer(), context);
  }
  if (modules.empty()) {
    errs() << "error: no module with a kernel\n";
    return 2;
  }
  Pool pool;
  for (auto &module : modules)
    pool.collect(*module);
  pool.addHostile(&context);

  Options options;
  options.maxInstructions = 20000;
  options.maxMemory = 64 << 20;
  options.maxErrors = 5;
  auto memory = std::make_unique<Memory>();
  uint64_t refused = 0, invalid = 0, ended[4] = {};
  for (uint64_t round = first; round < first + rounds; ++round) {
    PrettyStackTraceFormat where(
        "round %llu (--first=%llu --rounds=1 --seed=%llu)",
        static_cast<unsigned long long>(round),
        static_cast<unsigned long long>(round),
        static_cast<unsigned long long>(seed));
    Mutator mutator(pool, seed * 0x9E3779B97F4A7C15ull + round);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        (*modules[mutator.below(modules.size())]).clone();
    // What the verifier refuses is put back, so that changes add up.
    unsigned wanted = 1 + mutator.below(4), made = 0;
    for (unsigned tries = 0; made < wanted && tries < 24; ++tries) {
      mlir::OwningOpRef<mlir::ModuleOp> next = module->clone();
      if (!mutator.mutate(*next))
        continue;
      if (failed(verifyForeign(*next))) {
        ++invalid;
        continue;
      }
      module = std::move(next);
      ++made;
    }
    if (!made)
      continue;
    if (printModule)
      module->print(errs(), mlir::OpPrintingFlags().useLocalScope());
    bool error = false;
    options.seed = mutator.below(1000);
    options.landing = static_cast<Landing>(mutator.below(3));
    auto emulator = Emulator::create(
        *module, options, [&](Severity severity, StringRef text) {
          error |= severity == Severity::Error;
          if (verbose)
            errs() << text << "\n";
          if (!text.contains("please report this"))
            return;
          errs() << "error: round " << round << ": " << text << "\n";
          exit(1);
        });
    if (!emulator) {
      if (!error) {
        errs() << "error: round " << round << ": refused without a word\n";
        return 1;
      }
      ++refused;
      continue;
    }
    for (unsigned i = 0; i < 3; ++i)
      emulator->registerBuffer("arg" + std::to_string(i), memory->bytes[i],
                               sizeof(memory->bytes[i]), true, true, i != 1);
    module->walk([&](mlir::LLVM::LLVMFuncOp f) {
      if (!f->hasAttr("nvvm.kernel") && !f->hasAttr("rocdl.kernel") &&
          !f->hasAttr("gpu.kernel"))
        return;
      error = false;
      LaunchResult result =
          launch(*emulator, f, f->hasAttr("rocdl.kernel"), mutator, *memory);
      ++ended[static_cast<unsigned>(result)];
      if (result != LaunchResult::Clean && !error) {
        errs() << "error: round " << round << ": ended without a word\n";
        exit(1);
      }
    });
  }
  outs() << rounds << " rounds over " << modules.size()
         << " modules: " << invalid << " changes invalid, " << refused
         << " kernels refused, " << ended[0] << " launches clean, " << ended[1]
         << " with faults, " << ended[2] << " refused\n";
  return 0;
}
