/*===- kvbuffer-c/Common.h - What the C APIs share ----------------*- C -*-===*\
|*                                                                            *|
|* Part of the kvbuf project, under the Apache License v2.0 with LLVM         *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef KVBUFFER_C_COMMON_H
#define KVBUFFER_C_COMMON_H

#include <stddef.h>
#include <stdint.h>

#define KVBUF_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/** Receives a message: UTF-8 text such as "prefill.mlir:12:3: error: ...", of
    one or more lines, without a newline at its end. `severity`: 0 note,
    1 remark, 2 warning, 3 error. `user` is what the caller passed along. */
typedef void (*kvbufMessageCallback)(int severity, const char *message,
                                     void *user);

/** Told now and then how far long work has come: `done` of `total`. */
typedef void (*kvbufProgressCallback)(uint64_t done, uint64_t total,
                                      void *user);

/** Frees what a function of libKVBufferC has allocated for its caller; NULL is
    allowed. */
KVBUF_C_API void kvbufFree(void *memory);

/** The version of libKVBufferC, such as "0.1.0"; not to be freed. */
KVBUF_C_API const char *kvbufCompilerVersion(void);

#ifdef __cplusplus
}
#endif

#endif /* KVBUFFER_C_COMMON_H */
