//===- include/kvbuffer/Runtime/CompilerLibrary.h - The compiler, opened at run
//time *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// libKVBufferC.so holds the compiler and the emulator, and with them LLVM. It
// is opened when something needs it, so that a machine that only serves
// artifacts can do without.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_COMPILERLIBRARY_H
#define KVBUFFER_RUNTIME_COMPILERLIBRARY_H

#include "kvbuffer/Runtime/Device.h"

#include <cstddef>
#include <string>

struct kvbufEmulator;

namespace kvbuf::rt {

/// The functions of the compiler's C API that the runtime uses; their meaning
/// is in kvbuffer-c/Compiler.h and kvbuffer-c/Emulator.h.
struct CompilerLibrary {
  using MessageCallback = void (*)(int severity, const char *message,
                                   void *user);
  using ProgressCallback = void (*)(uint64_t done, uint64_t total, void *user);

  void *(*compile)(const char *source, size_t bytes, const char *filename,
                   const char *options, size_t *artifactBytes,
                   MessageCallback message, void *user);
  void (*free)(void *);
  kvbufEmulator *(*emulatorCreate)(const void *mlir, size_t bytes,
                                   const char *name, const char *options,
                                   MessageCallback message, void *user);
  int (*emulatorRegisterBuffer)(kvbufEmulator *, const char *name, void *data,
                                size_t bytes, int readable, int writable,
                                int initialized);
  int (*emulatorLaunch)(kvbufEmulator *, const char *entry,
                        const unsigned grid[3], const unsigned block[3],
                        unsigned dynamicSharedBytes, const void *const *args,
                        const size_t *argBytes, unsigned argCount,
                        ProgressCallback progress, void *user);
  char *(*emulatorReport)(kvbufEmulator *);
  void (*emulatorDestroy)(kvbufEmulator *);
};

/// The library, opened on first use: from $KVBUF_LIB_DIR, beside this program
/// or library, from ../lib, or from where the loader looks. Throws Error that
/// says where it was looked for.
const CompilerLibrary &compilerLibrary();

/// Compiles `source` and returns the artifact's bytes. `options` is a JSON
/// object ({"target": "sm_80", "schedule": "..."}). Messages go to `message`
/// as they come; throws Error when there was an error among them.
std::string compileSource(const std::string &source,
                          const std::string &filename,
                          const std::string &options,
                          const MessageHandler &message);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_COMPILERLIBRARY_H
