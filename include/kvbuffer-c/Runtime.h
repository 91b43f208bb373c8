//===- kvbuffer-c/Runtime.h - C API of the runtime ----------------*- C -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------===//

/*
 * libkvbuf_runtime: loads artifacts and launches their kernels, on a GPU or on
 * the emulator. It needs no LLVM; the emulator and the compiler come from
 * libKVBufferC.so, which is opened when it is first needed.
 *
 * Functions that can fail return NULL or a status other than KVBUF_OK;
 * kvbufLastError then says what was expected, in one sentence. Every function
 * may be called from several threads at once, on one handle too: launches of
 * one module take turns. Closing a handle is the exception: nobody may use it
 * meanwhile or later.
 */

#ifndef KVBUFFER_C_RUNTIME_H
#define KVBUFFER_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define KVBUF_RUNTIME_API
#else
#define KVBUF_RUNTIME_API __attribute__((visibility("default")))
#endif

/** Statuses of functions that return int. */
enum {
  /** Success. */
  KVBUF_OK = 0,
  /** The kernel misbehaved on the device, or a detector of the emulator fired.
   */
  KVBUF_KERNEL_FAULT = 1,
  /** Bad usage or bad input. */
  KVBUF_BAD_INPUT = 2,
  /** kvbufDeviceInterrupt ended the launch. */
  KVBUF_INTERRUPTED = 3
};

/** Compiled functions, of which each is what one launch computes: manifest and
 *  binaries. */
typedef struct kvbufArtifact kvbufArtifact;
/** A GPU, or the emulator. */
typedef struct kvbufDevice kvbufDevice;
/** A function's kernels, loaded on a device. */
typedef struct kvbufModule kvbufModule;
/** Launches of a module that differ in addresses alone. */
typedef struct kvbufPlan kvbufPlan;

/** A tensor of the caller. */
typedef struct kvbufTensor {
  /** As in the manifest: "q", "k.table", ... */
  const char *name;
  /** First element, in the device's memory; on the emulator, in host memory.
   *  Aligned to the size of an element at least; 16-bit floats at addresses or
   *  with strides that are no multiples of 16 bytes are refused, or run on
   *  another kernel than the fastest, by what the artifact holds. May be NULL
   *  if the tensor has no element. */
  void *data;
  /** "f16", "bf16", "f32", "i32", "i64" or "u8". */
  const char *dtype;
  /** Number of dimensions. */
  int32_t rank;
  /** `rank` extents. */
  const int64_t *shape;
  /** `rank` strides in elements, the last one 1; NULL: row-major contiguous. */
  const int64_t *strides;
} kvbufTensor;

/** A named size. Shapes tell all but `seq_q`, the longest query of a ragged
 *  batch, without which the rows of all count: it chooses between kernels of
 *  few and of many rows and orders the work; rows of a sequence past it are
 *  computed, but slowly. And `shortest_q`, the shortest one that is not empty,
 *  without which 0 counts: where it is long enough, kernels for short ones are
 *  left out, and rows of shorter ones are not computed. A size that shapes tell
 *  may be given too, and must agree. */
typedef struct kvbufSize {
  const char *name;
  int64_t value;
} kvbufSize;

/** "0.1.0"; static. */
KVBUF_RUNTIME_API const char *kvbufRuntimeVersion(void);

/** The last error on the calling thread; "" if there was none. Valid until the
 *  next call of this library on this thread. */
KVBUF_RUNTIME_API const char *kvbufLastError(void);

/** Reads an artifact from a file. NULL if it cannot be read or is damaged. */
KVBUF_RUNTIME_API kvbufArtifact *kvbufArtifactOpenFile(const char *path);

/** Reads an artifact from memory, which is copied. */
KVBUF_RUNTIME_API kvbufArtifact *kvbufArtifactOpenBytes(const void *data,
                                                        size_t bytes);

/** Compiles MLIR source with the compiler library. `filename` appears in
 *  messages; `options_json` is an object such as {"target": "sm_80"}. */
KVBUF_RUNTIME_API kvbufArtifact *kvbufArtifactCompile(const char *source,
                                                      size_t bytes,
                                                      const char *filename,
                                                      const char *options_json);

/** Writes the artifact to a file, whole or not at all. */
KVBUF_RUNTIME_API int kvbufArtifactSave(const kvbufArtifact *artifact,
                                        const char *path);

/** The manifest, as JSON text; valid as long as the artifact. */
KVBUF_RUNTIME_API const char *
kvbufArtifactManifest(const kvbufArtifact *artifact);

/** How many functions an artifact holds, at least one: each is what one launch
 *  computes. 0 for NULL. */
KVBUF_RUNTIME_API size_t
kvbufArtifactFunctionCount(const kvbufArtifact *artifact);

/** The name of function `number`, counted from 0; "" if there are not as many.
 *  Valid as long as the artifact. */
KVBUF_RUNTIME_API const char *
kvbufArtifactFunctionName(const kvbufArtifact *artifact, size_t number);

/** The function of this name, as an artifact of its own, which stays valid when
 *  the other one is closed. Of an artifact with several functions,
 *  kvbufArtifactInferShape and kvbufModuleLoad take one of these alone. NULL,
 *  with the names that there are, if there is no such function. */
KVBUF_RUNTIME_API kvbufArtifact *
kvbufArtifactFunction(const kvbufArtifact *artifact, const char *name);

/** The shape that the manifest's tensor `name` must have beside these tensors
 *  (shapes alone count) and sizes, so that an output can be allocated. `shape`
 *  has room for 16 extents, of which `rank` are set. */
KVBUF_RUNTIME_API int
kvbufArtifactInferShape(const kvbufArtifact *artifact, const char *name,
                        const kvbufTensor *tensors, size_t tensor_count,
                        const kvbufSize *sizes, size_t size_count,
                        int64_t shape[16], int32_t *rank);

/** Releases an artifact; modules loaded from it stay valid. NULL is allowed. */
KVBUF_RUNTIME_API void kvbufArtifactClose(kvbufArtifact *artifact);

/** Opens "cuda", "cuda:1", "hip", "hip:1", "emulator", or "auto": a GPU if
 *  there is one, else the emulator. `options_json` is for the emulator
 *  ({"landing": "random"}); NULL: its defaults. */
KVBUF_RUNTIME_API kvbufDevice *kvbufDeviceOpen(const char *name,
                                               const char *options_json);

/** "cuda", "hip" or "emulator"; static. */
KVBUF_RUNTIME_API const char *kvbufDeviceKind(const kvbufDevice *device);

/** For people, as "NVIDIA H200 (sm_90)"; valid as long as the device. */
KVBUF_RUNTIME_API const char *kvbufDeviceDescription(const kvbufDevice *device);

/** What to compile for on this device, as "sm_90a"; "" if it cannot tell. Valid
 *  as long as the device. */
KVBUF_RUNTIME_API const char *kvbufDeviceChip(const kvbufDevice *device);

/** Ends the launch that another thread has running on the emulator, with
 *  KVBUF_INTERRUPTED; does nothing on a GPU. It may be called from a signal's
 *  handler, and again if the launch has not begun yet. */
KVBUF_RUNTIME_API void kvbufDeviceInterrupt(kvbufDevice *device);

/** Waits for all work on the device. KVBUF_KERNEL_FAULT if a kernel failed. */
KVBUF_RUNTIME_API int kvbufDeviceSynchronize(kvbufDevice *device);

/** Releases a device, after its modules. NULL is allowed. */
KVBUF_RUNTIME_API void kvbufDeviceClose(kvbufDevice *device);

/** Loads the kernels of an artifact with one function. NULL if they do not fit
 *  the device. */
KVBUF_RUNTIME_API kvbufModule *kvbufModuleLoad(kvbufDevice *device,
                                               const kvbufArtifact *artifact);

/** Launches all kernels of the module, in order. Every tensor of the manifest
 *  must be given once. Sizes follow from the shapes and from `sizes`, and
 *  everything is checked against the manifest before anything is launched.
 *  `stream` is the driver's handle (NULL: the default stream); on a GPU the
 *  call returns before the kernels are done, on the emulator after. Where the
 *  host can read lengths and offsets (on the emulator), those that no cache can
 *  have are refused; elsewhere a kernel takes the nearest that fits. */
KVBUF_RUNTIME_API int kvbufModuleLaunch(kvbufModule *module,
                                        const kvbufTensor *tensors,
                                        size_t tensor_count,
                                        const kvbufSize *sizes,
                                        size_t size_count, void *stream);

/** What the emulator counted in the last launch, as JSON; "" on a GPU. Valid
 *  until the calling thread's next call of this function. */
KVBUF_RUNTIME_API const char *kvbufModuleReport(kvbufModule *module);

/** What was decided in the last launch, one line each: a kernel whose tensor
 *  maps cannot describe a tensor, and the one that ran in its place. "" if
 *  there is nothing to say. Valid until the calling thread's next call of this
 *  function. */
KVBUF_RUNTIME_API const char *kvbufModuleRemarks(const kvbufModule *module);

/** What kvbufModuleLaunch does before it launches, done once: tensors and sizes
 *  are checked and the arguments prepared. Only names, types, shapes, strides
 *  and the alignment of `data` count, and what kvbufPlanLaunch is told can
 *  differ in the last. NULL on error. */
KVBUF_RUNTIME_API kvbufPlan *
kvbufPlanCreate(kvbufModule *module, const kvbufTensor *tensors,
                size_t tensor_count, const kvbufSize *sizes, size_t size_count);

/** As kvbufModuleLaunch, on tensors at `data`, one address for each tensor in
 *  the order of kvbufPlanCreate. */
KVBUF_RUNTIME_API int kvbufPlanLaunch(kvbufPlan *plan, void *const *data,
                                      void *stream);

/** Releases a plan, before its module. NULL is allowed. */
KVBUF_RUNTIME_API void kvbufPlanDestroy(kvbufPlan *plan);

/** Plans by the tensors that they are for, where tensors are objects of a
 *  framework for Python: a call that was made before is found, gets its outputs
 *  and is launched without a step in Python. */
typedef struct kvbufCalls kvbufCalls;

/** What calls use of CPython, whose objects are opaque here: functions of its
 *  stable ABI by their names, and two objects, which must outlive the calls. */
typedef struct kvbufPython {
  void *(*PyEval_SaveThread)(void);
  void (*PyEval_RestoreThread)(void *state);
  void *(*PyObject_Call)(void *callable, void *arguments, void *keywords);
  void *(*PyObject_CallFunctionObjArgs)(void *callable, ...);
  void *(*PyObject_CallFunction)(void *callable, const char *format, ...);
  void *(*PyTuple_Pack)(intptr_t count, ...);
  void (*PyErr_Clear)(void);
  void (*Py_IncRef)(void *object);
  void (*Py_DecRef)(void *object);
  /** Py_None. */
  void *none;
  /** Called with the status of a launch that failed; raises. */
  void *check;
} kvbufPython;

/** How a call's output is made: by `make` of a tensor `like`, NULL for the
 *  call's first one; or, where the plan's device is the current one of the
 *  thread, by `quick` of the tuple `quick_arguments`, which may be NULL.
 * Objects must outlive the calls. */
typedef struct kvbufOutput {
  void *make, *like;
  void *quick, *quick_arguments;
} kvbufOutput;

/** Calls with `input_count` tensors each, at most 10, and `output_count` new
 * ones, 1 or 2; or 0: the last one given is the output. `exchange` is the
 * framework's DLPackExchangeAPI (DLPack 1.3): what the capsule
 * `__dlpack_c_exchange_api__` of the objects' type holds. NULL on error. */
KVBUF_RUNTIME_API kvbufCalls *kvbufCallsCreate(const void *exchange,
                                               size_t input_count,
                                               size_t output_count,
                                               const kvbufPython *python);

/** From now on a call with tensors whose types, shapes, strides and devices are
 *  those of `inputs` (PyObjects) is a launch of `plan`, unless it was one of
 *  another plan before. Its address number i is that of tensor order[i], inputs
 *  first; `order_count` is the plan's number of tensors. The plan has to
 * outlive the calls. The interpreter's lock is held by the caller; where the
 * framework refuses an object, its Python exception is set. */
KVBUF_RUNTIME_API int kvbufCallsAdd(kvbufCalls *calls, kvbufPlan *plan,
                                    const int32_t *order, size_t order_count,
                                    void *const *inputs,
                                    const kvbufOutput *outputs);

/** A PyMethodDef (METH_FASTCALL) whose functions, made by PyCFunction_NewEx of
 *  an int that is a kvbufCalls' address, are called with the input tensors.
 * They launch the plan of such tensors on the stream that the framework works
 * on now, on the first one's device, and return the output, or a tuple of two;
 *  None if there is no plan. The interpreter's lock is not held during the
 *  launch. */
KVBUF_RUNTIME_API void *
kvbufCallsMethod(void *(*PyLong_AsVoidPtr)(void *object));

/** Releases calls, not their plans. NULL is allowed. */
KVBUF_RUNTIME_API void kvbufCallsDestroy(kvbufCalls *calls);

/** A handler of XLA's foreign-function interface (XLA_FFI_Handler, which takes
 * an XLA_FFI_CallFrame and returns an XLA_FFI_Error or NULL): launches the plan
 * of the call's attribute `number` (s64) on the call's buffers, arguments
 * first, on XLA's stream. */
KVBUF_RUNTIME_API void *kvbufXlaHandler(void *call_frame);

/** From now on custom calls of this number are launches of `plan`, which takes
 *  `tensor_count` tensors and is never destroyed; of one for each device that
 * of the device that the calling thread works on. */
KVBUF_RUNTIME_API int kvbufXlaAdd(int64_t number, kvbufPlan *plan,
                                  size_t tensor_count);

/** Releases a module. NULL is allowed. */
KVBUF_RUNTIME_API void kvbufModuleUnload(kvbufModule *module);

#ifdef __cplusplus
}
#endif

#endif /* KVBUFFER_C_RUNTIME_H */
