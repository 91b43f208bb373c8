//===- Emulator.cpp - C API of the emulator -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer-c/Emulator.h"

#include "kvbuffer/Emulator/Emulator.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdlib>
#include <cstring>

using namespace kvbuf::emu;

struct kvbufEmulator {
  std::unique_ptr<Emulator> impl;
};

// Parses the module; MLIR's diagnostics become messages.
static mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context,
                                               llvm::StringRef text,
                                               const char *name,
                                               const MessageFn &message) {
  // The parser wants a zero after the text, which callers need not provide.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, name);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  mlir::SourceMgrDiagnosticHandler handler(sources, &context, stream);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(
      sources, mlir::ParserConfig(&context));
  if (!module)
    message(Severity::Error, printed.empty()
                                 ? std::string(name) + ": error: not MLIR"
                                 : llvm::StringRef(printed).rtrim().str());
  return module;
}

kvbufEmulator *kvbufEmulatorCreate(const void *mlir, size_t bytes,
                                   const char *name, const char *options_json,
                                   kvbufMessageCallback callback, void *user) {
  MessageFn message = [callback, user](Severity severity,
                                       llvm::StringRef text) {
    if (callback)
      callback(static_cast<int>(severity), text.str().c_str(), user);
  };
  auto options = Options::fromJSON(options_json ? options_json : "");
  if (!options) {
    message(Severity::Error, "error: " + llvm::toString(options.takeError()));
    return nullptr;
  }
  mlir::DialectRegistry registry;
  registry.insert<kvbuf::KVBufferDialect, mlir::DLTIDialect,
                  mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect,
                  mlir::NVVM::NVVMDialect, mlir::ROCDL::ROCDLDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  // Modules carry attributes of the stages above, which matter no more here.
  context.allowUnregisteredDialects();
  auto module =
      parse(context, llvm::StringRef(static_cast<const char *>(mlir), bytes),
            name ? name : "kernel", message);
  if (!module)
    return nullptr;
  auto impl = Emulator::create(*module, *options, message);
  return impl ? new kvbufEmulator{std::move(impl)} : nullptr;
}

int kvbufEmulatorRegisterBuffer(kvbufEmulator *emulator, const char *name,
                                void *data, size_t bytes, int readable,
                                int writable, int initialized) {
  return emulator->impl->registerBuffer(name ? name : "", data, bytes, readable,
                                        writable, initialized)
             ? 0
             : 2;
}

int kvbufEmulatorLaunch(kvbufEmulator *emulator, const char *entry,
                        const unsigned grid[3], const unsigned block[3],
                        unsigned dynamic_shared_bytes, const void *const *args,
                        const size_t *arg_bytes, unsigned arg_count,
                        kvbufProgressCallback progress, void *user) {
  llvm::SmallVector<Argument> values;
  for (unsigned i = 0; i < arg_count; ++i)
    values.push_back({args[i], arg_bytes[i]});
  ProgressFn report;
  if (progress)
    report = [=](uint64_t done, uint64_t total) {
      progress(done, total, user);
    };
  return static_cast<int>(emulator->impl->launch(
      entry, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
      dynamic_shared_bytes, values, report));
}

char *kvbufEmulatorReport(kvbufEmulator *emulator) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", emulator->impl->report());
  return strdup(text.c_str());
}

void kvbufEmulatorDestroy(kvbufEmulator *emulator) { delete emulator; }
