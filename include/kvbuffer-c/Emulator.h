/*===- kvbuffer-c/Emulator.h - C API of the emulator --------------*- C -*-===*\
|*                                                                            *|
|* Part of the kvbuf project, under the Apache License v2.0 with LLVM         *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Executes target-stage kernels without a GPU, and checks them as it goes.   *|
|* One emulator is for one thread at a time; several may exist.               *|
|*                                                                            *|
|* `options_json` is NULL, or a JSON object with any of                       *|
|*   "landing": "late"         when asynchronous copies arrive: "late" (at    *|
|*                             the wait), "random" or "eager"                 *|
|*   "seed": 1                 of the order of blocks, that of warps, and of  *|
|*                             random landing                                 *|
|*   "races": true             report races over shared memory, and over *|
|*                             global memory that kernels write               *|
|*   "lanes": true             races between lanes of an NVIDIA warp, too *|
|*   "uninitialized": true     report reads of bytes that nothing wrote       *|
|*   "landing_checks": true    report accesses to bytes that a copy still owes*|
|*   "strict": true           false: what PTX leaves undefined and GPUs are *|
|*                             known to forgive is a warning (mbarriers whose *|
|*                             initialisation no barrier or fence follows,    *|
|*                             member masks of shuffles, the order of lanes   *|
|*                             that a shuffle makes, unordered stores of what *|
|*                             is there already)                              *|
|*   "max_errors": 20          different errors that stop a launch            *|
|*   "max_blocks": 0           execute so many blocks of the grid; 0: all     *|
|*   "window": 0               blocks that run interleaved; 0: some, and more *|
|*                             where all of them wait for others              *|
|*   "jobs": 0                 threads of the host, which change no result;   *|
|*                             0: KVBUF_THREADS, or as many as it has cores   *|
|*   "max_shared": 232448      bytes of shared memory of a block, in place of *|
|*                             what the module's chip has                     *|
|*   "banks": 32               of shared memory, 32 or 64, in place of the    *|
|*                             chip's                                         *|
|*   "cut_sums": false         cut sums of products on NVIDIA's chips off as  *|
|*                             an H200's matrix unit does                     *|
|*   "portable": false         use no vector extensions of the host           *|
|*   "max_instructions": 268435456  limits of one warp in one block, in       *|
|*   "max_memory": 2147483648       instructions; of a kernel and a launch, in*|
|*                                  bytes of host memory; of a lane's private *|
|*   "max_private": 1048576         memory, in bytes; of one value, in 32-bit *|
|*   "max_value": 4096              registers; of calls within calls; of a    *|
|*   "max_call_depth": 64           kernel, in operations, those of its calls *|
|*   "max_operations": 1048576      included                                  *|
|* Accesses out of bounds are always checked. The module may come from        *|
|* anywhere: what it holds is checked before it is executed.                  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef KVBUFFER_C_EMULATOR_H
#define KVBUFFER_C_EMULATOR_H

#include "kvbuffer-c/Common.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An emulator with the kernels of one module. */
typedef struct kvbufEmulator kvbufEmulator;

/** Decodes target-stage MLIR (text or bytecode), or LLVM bitcode. `name` names
   the source in messages. NULL on error, of which at least one message tells;
   `callback` may be NULL, and is used until the emulator is destroyed. */
KVBUF_C_API kvbufEmulator *kvbufEmulatorCreate(const void *mlir, size_t bytes,
                                               const char *name,
                                               const char *options_json,
                                               kvbufMessageCallback callback,
                                               void *user);

/** Makes host memory accessible to kernels: a pointer argument is a host
    address. `initialized`: its contents count as written. 0, or 2 if the memory
    is registered already and either is more than read-only. */
KVBUF_C_API int kvbufEmulatorRegisterBuffer(kvbufEmulator *emulator,
                                            const char *name, void *data,
                                            size_t bytes, int readable,
                                            int writable, int initialized);

/** The same with the caller's flags, a byte for each byte: whether it was
    written. Kernels set them. NULL: all of it counts as written. */
KVBUF_C_API int kvbufEmulatorRegisterTracked(kvbufEmulator *emulator,
                                             const char *name, void *data,
                                             size_t bytes, int readable,
                                             int writable, uint8_t *written);

/** Forgets all registered memory. */
KVBUF_C_API void kvbufEmulatorClearBuffers(kvbufEmulator *emulator);

/** Writes the first bytes of a variable in global or constant memory that a
    kernel uses, as a host sets `__constant__` and `__device__` variables before
    a launch. 0, or 2 if there is none, or it is smaller. */
KVBUF_C_API int kvbufEmulatorSetVariable(kvbufEmulator *emulator,
                                         const char *name, const void *data,
                                         size_t bytes);

/** The bytes of such a variable, as the last launch left them, and how many;
    NULL if no kernel uses one of that name. Valid up to the next call. */
KVBUF_C_API const void *kvbufEmulatorVariable(kvbufEmulator *emulator,
                                              const char *name, size_t *bytes);

/** The name of the kernel with a number, from 0 on; NULL after the last one.
    Valid as long as the emulator. */
KVBUF_C_API const char *kvbufEmulatorKernelName(kvbufEmulator *emulator,
                                                unsigned number);

/** The sizes of a kernel's parameters, in bytes; valid as long as the emulator.
    2 if there is no such kernel. */
KVBUF_C_API int kvbufEmulatorParameters(kvbufEmulator *emulator,
                                        const char *entry,
                                        const uint32_t **bytes,
                                        unsigned *count);

/** Executes a kernel. args[i] points at the value of its i-th parameter, of
    arg_bytes[i] bytes. 0: clean; 1: a check found a fault, and messages were
    sent; 2: bad usage; 3: interrupted (kvbufEmulatorWatch); 4: an assertion of
    the kernel failed, which was printed. `progress` may be NULL. */
KVBUF_C_API int kvbufEmulatorLaunch(kvbufEmulator *emulator, const char *entry,
                                    const unsigned grid[3],
                                    const unsigned block[3],
                                    unsigned dynamic_shared_bytes,
                                    const void *const *args,
                                    const size_t *arg_bytes, unsigned arg_count,
                                    kvbufProgressCallback progress, void *user);

/** The same with a number of blocks in a cluster; zeros: as the kernel says. */
KVBUF_C_API int kvbufEmulatorLaunchCluster(
    kvbufEmulator *emulator, const char *entry, const unsigned grid[3],
    const unsigned block[3], const unsigned cluster[3],
    unsigned dynamic_shared_bytes, const void *const *args,
    const size_t *arg_bytes, unsigned arg_count, kvbufProgressCallback progress,
    void *user);

/** A launch among others; as the arguments of kvbufEmulatorLaunchCluster. */
typedef struct kvbufEmulatorRequest {
  const char *entry;
  unsigned grid[3], block[3], cluster[3];
  unsigned dynamic_shared_bytes;
  const void *const *args;
  const size_t *arg_bytes;
  unsigned arg_count;
} kvbufEmulatorRequest;

/** Executes several launches at once, as those of different streams are: their
    blocks run interleaved, and what one writes and another one accesses is a
    race unless they order it themselves. The result is as that of one. */
KVBUF_C_API int kvbufEmulatorLaunchTogether(
    kvbufEmulator *emulator, const kvbufEmulatorRequest *requests,
    unsigned count, kvbufProgressCallback progress, void *user);

/** A launch ends with 3 soon after `*stop` is no longer 0. Another thread, or a
    signal's handler, may write it; it has to live as long as launches do.
    NULL: none does. */
KVBUF_C_API void kvbufEmulatorWatch(kvbufEmulator *emulator, const int *stop);

/** What was executed since creation, as JSON, for the caller to free with
    kvbufFree: instructions by class, bank conflicts and sectors by operation,
    bytes moved, errors. */
KVBUF_C_API char *kvbufEmulatorReport(kvbufEmulator *emulator);

/** NULL is allowed. Registered memory is not touched. */
KVBUF_C_API void kvbufEmulatorDestroy(kvbufEmulator *emulator);

#ifdef __cplusplus
}
#endif

#endif /* KVBUFFER_C_EMULATOR_H */
