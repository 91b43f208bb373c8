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
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace kvbuf::emu;

struct kvbufEmulator {
  std::unique_ptr<Emulator> impl;
};

/// Brackets within brackets beyond which nobody writes: MLIR's parser calls
/// itself for each.
static constexpr unsigned maxNesting = 256;

// Whether the text nests deeper. Strings and comments do not count.
static bool nestsTooDeep(llvm::StringRef text) {
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
    } else if (c == '/' && text.substr(i).starts_with("//")) {
      while (i + 1 < text.size() && text[i + 1] != '\n')
        ++i;
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      if (++depth > maxNesting)
        return true;
    } else if (c == ')' || c == ']' || c == '}' ||
               (c == '>' && (i == 0 || text[i - 1] != '-'))) {
      depth -= depth != 0;
    }
  }
  return false;
}

// Parses and verifies the module; MLIR's diagnostics become messages.
static mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context,
                                               llvm::StringRef text,
                                               const char *name,
                                               const MessageFn &message) {
  bool isBytecode = text.starts_with("ML\xEFR");
  if (!isBytecode && nestsTooDeep(text)) {
    message(Severity::Error, std::string(name) +
                                 ": error: brackets are nested more than " +
                                 std::to_string(maxNesting) + " deep");
    return nullptr;
  }
  // The parser wants a zero after the text, which callers need not provide.
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, name);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  mlir::SourceMgrDiagnosticHandler handler(sources, &context, stream);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(
      sources, mlir::ParserConfig(&context, /*verifyAfterParse=*/false));
  if (module && failed(verifyForeign(*module)))
    module = nullptr;
  if (!module)
    message(Severity::Error, printed.empty()
                                 ? std::string(name) + ": error: not MLIR"
                                 : llvm::StringRef(printed).rtrim().str());
  return module;
}

// Runs what reads a module of unknown origin. LLVM 22's reader of bytecode, and
// some verifiers, end the process on what somebody has damaged on purpose (a
// count of 2^61, say), by abort or by a signal; here it is an error, as
// libclang does it for sources. False: that happened, and what `body` has made
// must not be used or destroyed. Signals of other threads keep their meaning.
static bool runSafely(llvm::function_ref<void()> body) {
  static std::mutex mutex;
  static unsigned users = 0;
  {
    std::lock_guard lock(mutex);
    if (users++ == 0)
      llvm::CrashRecoveryContext::Enable();
  }
  llvm::CrashRecoveryContext recovery;
  bool finished = recovery.RunSafely(body);
  std::lock_guard lock(mutex);
  if (--users == 0)
    llvm::CrashRecoveryContext::Disable();
  return finished;
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
  auto context = std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
  // Modules carry attributes of the stages above, which matter no more here.
  context->allowUnregisteredDialects();
  // Printed types may be far larger than what names them.
  context->printOpOnDiagnostic(false);
  std::string source = name ? name : "kernel";
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (!runSafely([&] {
        module = parse(*context,
                       llvm::StringRef(static_cast<const char *>(mlir), bytes),
                       source.c_str(), message);
      })) {
    // Nobody knows what they hold.
    (void)module.release();
    (void)context.release();
    message(Severity::Error, source + ": error: the module is damaged: MLIR's "
                                      "reader or verifier breaks down on it");
    return nullptr;
  }
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

void kvbufEmulatorWatch(kvbufEmulator *emulator, const int *stop) {
  emulator->impl->watch(stop);
}

char *kvbufEmulatorReport(kvbufEmulator *emulator) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}", emulator->impl->report());
  return strdup(text.c_str());
}

void kvbufEmulatorDestroy(kvbufEmulator *emulator) { delete emulator; }
