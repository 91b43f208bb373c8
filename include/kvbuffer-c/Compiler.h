/*===- kvbuffer-c/Compiler.h - C API of the compiler --------------*- C -*-===*\
|*                                                                            *|
|* Part of the kvbuf project, under the Apache License v2.0 with LLVM         *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* From MLIR to an artifact, or to the text of any stage. Every call is on    *|
|* its own; calls may come from several threads.                              *|
|*                                                                            *|
|* `options_json` is NULL, or a JSON object with any of                       *|
|*   "target": "sm_80"           the chip; overrules the module's, with a     *|
|*                               remark; default: the one that the module     *|
|*                               names (kvbuffer.target)                      *|
|*   "default_target": "sm_80"   the chip where neither names one             *|
|*   "schedule": "BM=64,warps=2" replaces parameters of the chosen schedule   *|
|*   "name": "prefill"           the artifact's name; default: the kernel's   *|
|*   "function": "append"        the function to compile alone, of a module   *|
|*                               with several; default: all                   *|
|*   "ptxas": "none"             path of NVIDIA's assembler, or none          *|
|*   "prefetch": true            issue loads ahead of their use               *|
|*   "split_loops": true         a loop of their own for unmasked tiles *|
|*   "alternatives": true        a second kernel, for tensors that the first  *|
|*                               cannot take (tensor maps, alignment)         *|
|*   "machine_code": true        code for a GPU; without it the artifact runs *|
|*                               on the emulator alone                        *|
|*   "report": false             a section with data for a page (see          *|
|*                               kvbufReportPage); the emulator's code then   *|
|*                               has lines of the target stage for locations  *|
|*   "remarks": false            also send remarks to the callback            *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef KVBUFFER_C_COMPILER_H
#define KVBUFFER_C_COMPILER_H

#include "kvbuffer-c/Common.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Compiles MLIR (text or bytecode) to the bytes of an artifact (.kvbuf), for
    the caller to free with kvbufFree. `filename` names the source in messages.
    NULL on error, of which at least one message tells; `callback` may be NULL.
 */
KVBUF_C_API void *kvbufCompile(const char *source, size_t bytes,
                               const char *filename, const char *options_json,
                               size_t *artifact_bytes,
                               kvbufMessageCallback callback, void *user);

/** Lowers MLIR to a stage and returns its text, zero-terminated, for the caller
    to free with kvbufFree: "tile", "scheduled", "thread", "target", "llvm" or
    "asm". NULL on error, as kvbufCompile. */
KVBUF_C_API char *kvbufEmit(const char *source, size_t bytes,
                            const char *filename, const char *options_json,
                            const char *stage, kvbufMessageCallback callback,
                            void *user);

/** A self-contained HTML page about a kernel, zero-terminated, for the caller
    to free with kvbufFree. `json` is an object: `program`, the artifact's
    section "report"; `emulator`, the emulator's report of a launch with the
    option "trace"; `run`, what was launched. NULL, after a message, if it is no
    JSON. */
KVBUF_C_API char *kvbufReportPage(const char *json, size_t bytes,
                                  kvbufMessageCallback callback, void *user);

/** The chip that a module names (kvbuffer.target), zero-terminated, for the
    caller to free with kvbufFree; empty if it names none. NULL if the source
    does not parse. */
KVBUF_C_API char *kvbufModuleTarget(const char *source, size_t bytes,
                                    const char *filename,
                                    kvbufMessageCallback callback, void *user);

/** What to measure when schedules for a chip are tuned: lists as kvbuf-tune
    takes them ("BM=64,128;BN=32,64"), one a line, zero-terminated, for the
   caller to free with kvbufFree. NULL for an unknown chip. */
KVBUF_C_API char *kvbufScheduleCandidates(const char *target);

/** The same for the problem of a module, MLIR as kvbufCompile takes it: what
    suits the problem. NULL if the source does not parse, too. */
KVBUF_C_API char *kvbufProblemCandidates(const char *source, size_t bytes,
                                         const char *filename,
                                         const char *target);

#ifdef __cplusplus
}
#endif

#endif /* KVBUFFER_C_COMPILER_H */
