//===- include/kvbuffer/Runtime/CompilerLibrary.h - The compiler, opened at run
// time *- C++ -*-===//
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

#include "kvbuffer-c/Compiler.h"
#include "kvbuffer-c/Emulator.h"
#include "kvbuffer/Runtime/Device.h"

#include <string>

namespace kvbuf::rt {

/// The functions of the compiler library that the runtime uses; their meaning
/// is in the headers of the C API.
struct CompilerLibrary {
  decltype(&kvbufCompile) compile;
  decltype(&kvbufModuleTarget) moduleTarget;
  decltype(&kvbufProblemCandidates) problemCandidates;
  decltype(&kvbufReportPage) reportPage;
  decltype(&kvbufFree) free;
  decltype(&kvbufEmulatorCreate) emulatorCreate;
  decltype(&kvbufEmulatorRegisterBuffer) emulatorRegisterBuffer;
  decltype(&kvbufEmulatorRegisterTracked) emulatorRegisterTracked;
  decltype(&kvbufEmulatorClearBuffers) emulatorClearBuffers;
  decltype(&kvbufEmulatorParameters) emulatorParameters;
  decltype(&kvbufEmulatorLaunchTogether) emulatorLaunchTogether;
  decltype(&kvbufEmulatorWatch) emulatorWatch;
  decltype(&kvbufEmulatorReport) emulatorReport;
  decltype(&kvbufEmulatorDestroy) emulatorDestroy;
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

/// The page of `kvbufReportPage`; throws Error if the data is not understood.
std::string reportPage(const std::string &json);

/// The chip that `source` names (`kvbuffer.target`); empty if it names none.
/// Messages go to `message`; throws Error when it does not parse.
std::string moduleTarget(const std::string &source, const std::string &filename,
                         const MessageHandler &message);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_COMPILERLIBRARY_H
