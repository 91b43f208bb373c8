//===- Emulator.cpp - C API of the emulator -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer-c/Emulator.h"

#include "kvbuffer/Emulator/Emulator.h"
#include "kvbuffer/Emulator/Import.h"

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
  std::string kind = describeCode(text).str();
  bool isBytecode = kind == "MLIR bytecode";
  if (kind == "LLVM bitcode") {
    std::string printed;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
      if (d.getSeverity() == mlir::DiagnosticSeverity::Error)
        printed += (printed.empty() ? "" : "\n") + std::string(name) +
                   ": error: " + d.str();
      return mlir::success();
    });
    mlir::OwningOpRef<mlir::ModuleOp> module = importLLVM(context, text, name);
    if (module && failed(verifyForeign(*module)))
      module = nullptr;
    if (!module)
      message(Severity::Error, printed);
    return module;
  }
  if (!isBytecode && kind != "text") {
    message(Severity::Error,
            std::string(name) + ": error: this is " + kind +
                "; the emulator executes LLVM bitcode and MLIR of the target "
                "stage. In MLIR's pipelines the option 'cubin-format' or "
                "'format', set to 'offloading', leaves bitcode");
    return nullptr;
  }
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
  registerImport(registry);
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

int kvbufEmulatorRegisterTracked(kvbufEmulator *emulator, const char *name,
                                 void *data, size_t bytes, int readable,
                                 int writable, uint8_t *written) {
  return emulator->impl->registerTracked(name ? name : "", data, bytes,
                                         readable, writable, written)
             ? 0
             : 2;
}

void kvbufEmulatorClearBuffers(kvbufEmulator *emulator) {
  emulator->impl->clearBuffers();
}

int kvbufEmulatorSetVariable(kvbufEmulator *emulator, const char *name,
                             const void *data, size_t bytes) {
  llvm::ArrayRef<uint8_t> given(static_cast<const uint8_t *>(data), bytes);
  return emulator->impl->setVariable(name ? name : "", given) ? 0 : 2;
}

const void *kvbufEmulatorVariable(kvbufEmulator *emulator, const char *name,
                                  size_t *bytes) {
  auto found = emulator->impl->variable(name ? name : "");
  if (bytes)
    *bytes = found ? found->size() : 0;
  return found ? found->data() : nullptr;
}

const char *kvbufEmulatorKernelName(kvbufEmulator *emulator, unsigned number) {
  std::vector<llvm::StringRef> names = emulator->impl->kernelNames();
  return number < names.size() ? names[number].data() : nullptr;
}

int kvbufEmulatorParameters(kvbufEmulator *emulator, const char *entry,
                            const uint32_t **bytes, unsigned *count) {
  auto sizes = emulator->impl->parameterBytes(entry);
  if (!sizes)
    return 2;
  *bytes = sizes->data();
  *count = static_cast<unsigned>(sizes->size());
  return 0;
}

int kvbufEmulatorLaunch(kvbufEmulator *emulator, const char *entry,
                        const unsigned grid[3], const unsigned block[3],
                        unsigned dynamic_shared_bytes, const void *const *args,
                        const size_t *arg_bytes, unsigned arg_count,
                        kvbufProgressCallback progress, void *user) {
  const unsigned cluster[3] = {0, 0, 0};
  return kvbufEmulatorLaunchCluster(emulator, entry, grid, block, cluster,
                                    dynamic_shared_bytes, args, arg_bytes,
                                    arg_count, progress, user);
}

int kvbufEmulatorLaunchCluster(kvbufEmulator *emulator, const char *entry,
                               const unsigned grid[3], const unsigned block[3],
                               const unsigned cluster[3],
                               unsigned dynamic_shared_bytes,
                               const void *const *args, const size_t *arg_bytes,
                               unsigned arg_count,
                               kvbufProgressCallback progress, void *user) {
  kvbufEmulatorRequest request = {entry,
                                  {grid[0], grid[1], grid[2]},
                                  {block[0], block[1], block[2]},
                                  {cluster[0], cluster[1], cluster[2]},
                                  dynamic_shared_bytes,
                                  args,
                                  arg_bytes,
                                  arg_count};
  return kvbufEmulatorLaunchTogether(emulator, &request, 1, progress, user);
}

int kvbufEmulatorLaunchTogether(kvbufEmulator *emulator,
                                const kvbufEmulatorRequest *requests,
                                unsigned count, kvbufProgressCallback progress,
                                void *user) {
  llvm::ArrayRef<kvbufEmulatorRequest> all(requests, count);
  std::vector<std::vector<Argument>> values;
  std::vector<LaunchRequest> launches;
  for (const kvbufEmulatorRequest &r : all) {
    std::vector<Argument> &args = values.emplace_back();
    for (unsigned i = 0; i < r.arg_count; ++i)
      args.push_back({r.args[i], r.arg_bytes[i]});
  }
  auto three = [](const unsigned *n) {
    return std::array<unsigned, 3>{n[0], n[1], n[2]};
  };
  for (auto [r, args] : llvm::zip_equal(all, values))
    launches.push_back({r.entry, three(r.grid), three(r.block),
                        r.dynamic_shared_bytes, args, three(r.cluster)});
  ProgressFn report;
  if (progress)
    report = [=](uint64_t done, uint64_t total) {
      progress(done, total, user);
    };
  return static_cast<int>(emulator->impl->launchTogether(launches, report));
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
