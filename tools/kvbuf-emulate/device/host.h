// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host's part of a source calls, so that sources which hold both parts
// compile. Nothing of it is executed: kvbuf-emulate launches kernels itself.
// KVBUF_HOST(NAME) is "cuda" or "hip" and NAME, KVBUF_MAKE(NAME) has "make_"
// before that.

#pragma once
enum KVBUF_HOST(Error_t) {
  KVBUF_HOST(Success),
  KVBUF_HOST(ErrorInvalidValue),
  KVBUF_HOST(ErrorMemoryAllocation),
  KVBUF_HOST(ErrorNotReady),
  KVBUF_HOST(ErrorInvalidDevice),
  KVBUF_HOST(ErrorLaunchFailure),
  KVBUF_HOST(ErrorAssert),
  KVBUF_HOST(ErrorPeerAccessAlreadyEnabled),
  KVBUF_HOST(ErrorNotSupported),
  KVBUF_HOST(ErrorUnknown),
};
typedef KVBUF_HOST(Error_t) KVBUF_HOST(Error);
enum KVBUF_HOST(MemcpyKind) {
  KVBUF_HOST(MemcpyHostToHost),
  KVBUF_HOST(MemcpyHostToDevice),
  KVBUF_HOST(MemcpyDeviceToHost),
  KVBUF_HOST(MemcpyDeviceToDevice),
  KVBUF_HOST(MemcpyDefault),
};
enum KVBUF_HOST(ChannelFormatKind) {
  KVBUF_HOST(ChannelFormatKindSigned),
  KVBUF_HOST(ChannelFormatKindUnsigned),
  KVBUF_HOST(ChannelFormatKindFloat),
};
enum KVBUF_HOST(ResourceType) {
  KVBUF_HOST(ResourceTypeArray),
  KVBUF_HOST(ResourceTypeMipmappedArray),
  KVBUF_HOST(ResourceTypeLinear),
  KVBUF_HOST(ResourceTypePitch2D),
};
enum KVBUF_HOST(TextureAddressMode) {
  KVBUF_HOST(AddressModeWrap),
  KVBUF_HOST(AddressModeClamp),
  KVBUF_HOST(AddressModeMirror),
  KVBUF_HOST(AddressModeBorder),
};
enum KVBUF_HOST(TextureFilterMode) {
  KVBUF_HOST(FilterModePoint),
  KVBUF_HOST(FilterModeLinear),
};
enum KVBUF_HOST(TextureReadMode) {
  KVBUF_HOST(ReadModeElementType),
  KVBUF_HOST(ReadModeNormalizedFloat),
};
enum KVBUF_HOST(GraphExecUpdateResult) {
  KVBUF_HOST(GraphExecUpdateSuccess),
  KVBUF_HOST(GraphExecUpdateError),
};
/// Attributes and flags that are passed on.
enum {
  KVBUF_HOST(FuncAttributeMaxDynamicSharedMemorySize),
  KVBUF_HOST(FuncAttributePreferredSharedMemoryCarveout),
  KVBUF_HOST(FuncCachePreferShared),
  KVBUF_HOST(FuncCachePreferL1),
  KVBUF_HOST(SharedmemCarveoutMaxShared),
  KVBUF_HOST(DevAttrMultiProcessorCount),
  KVBUF_HOST(DevAttrCooperativeLaunch),
  KVBUF_HOST(DevAttrMaxSharedMemoryPerBlockOptin),
  KVBUF_HOST(DevAttrComputeCapabilityMajor),
  KVBUF_HOST(DevAttrComputeCapabilityMinor),
  KVBUF_HOST(DevAttrComputeMode),
  KVBUF_HOST(DevAttrClockRate),
  KVBUF_HOST(DevAttrIntegrated),
  KVBUF_HOST(DevAttrMaxThreadsPerBlock),
  KVBUF_HOST(DevAttrWarpSize),
  KVBUF_HOST(ComputeModeProhibited),
  KVBUF_HOST(DeviceScheduleAuto),
  KVBUF_HOST(DeviceScheduleBlockingSync),
  KVBUF_HOST(DeviceMapHost),
  KVBUF_HOST(DeviceAttributeMultiprocessorCount),
  KVBUF_HOST(DeviceAttributeCooperativeLaunch),
  KVBUF_HOST(DeviceAttributeWarpSize),
  KVBUF_HOST(DeviceAttributeClockRate),
  KVBUF_HOST(DeviceAttributeWallClockRate),
  KVBUF_HOST(DeviceAttributeMaxThreadsPerBlock),
  KVBUF_HOST(DeviceAttributeMaxSharedMemoryPerBlock),
  KVBUF_HOST(DeviceAttributeComputeCapabilityMajor),
  KVBUF_HOST(DeviceAttributeComputeCapabilityMinor),
  KVBUF_HOST(HostAllocDefault),
  KVBUF_HOST(HostAllocMapped),
  KVBUF_HOST(HostMallocDefault),
  KVBUF_HOST(HostRegisterDefault),
  KVBUF_HOST(MemAttachGlobal),
  KVBUF_HOST(EventDefault),
  KVBUF_HOST(EventDisableTiming),
  KVBUF_HOST(EventBlockingSync),
  KVBUF_HOST(StreamNonBlocking),
  KVBUF_HOST(StreamCaptureModeGlobal),
};
typedef struct kvbufStream *KVBUF_HOST(Stream_t);
typedef struct kvbufEvent *KVBUF_HOST(Event_t);
typedef struct kvbufGraph *KVBUF_HOST(Graph_t);
typedef struct kvbufGraphExec *KVBUF_HOST(GraphExec_t);
typedef struct kvbufGraphNode *KVBUF_HOST(GraphNode_t);
typedef struct kvbufMemPool *KVBUF_HOST(MemPool_t);
struct KVBUF_HOST(KernelNodeParams) {
  void *func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};
struct KVBUF_HOST(MemsetParams) {
  void *dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
struct KVBUF_HOST(HostNodeParams) {
  void (*fn)(void *);
  void *userData;
};
// Arrays of textures.
typedef struct KVBUF_HOST(Array) * KVBUF_HOST(Array_t);
typedef const KVBUF_HOST(Array) * KVBUF_HOST(ArrayConst_t);
struct KVBUF_HOST(ChannelFormatDesc) {
  int x, y, z, w;
  KVBUF_HOST(ChannelFormatKind) f;
};
struct KVBUF_HOST(Extent) {
  size_t width, height, depth;
};
struct KVBUF_HOST(Pos) {
  size_t x, y, z;
};
struct KVBUF_HOST(PitchedPtr) {
  void *ptr;
  size_t pitch, xsize, ysize;
};
static inline __host__ KVBUF_HOST(Extent)
    KVBUF_MAKE(Extent)(size_t w, size_t h, size_t d) {
  return {w, h, d};
}
static inline __host__ KVBUF_HOST(Pos)
    KVBUF_MAKE(Pos)(size_t x, size_t y, size_t z) {
  return {x, y, z};
}
static inline __host__ KVBUF_HOST(PitchedPtr)
    KVBUF_MAKE(PitchedPtr)(void *p, size_t pitch, size_t x, size_t y) {
  return {p, pitch, x, y};
}
struct KVBUF_HOST(Memcpy3DParms) {
  KVBUF_HOST(Array_t) srcArray;
  KVBUF_HOST(Pos) srcPos;
  KVBUF_HOST(PitchedPtr) srcPtr;
  KVBUF_HOST(Array_t) dstArray;
  KVBUF_HOST(Pos) dstPos;
  KVBUF_HOST(PitchedPtr) dstPtr;
  KVBUF_HOST(Extent) extent;
  KVBUF_HOST(MemcpyKind) kind;
};
struct KVBUF_HOST(ResourceDesc) {
  KVBUF_HOST(ResourceType) resType;
  struct {
    struct {
      KVBUF_HOST(Array_t) array;
    } array;
    struct {
      void *devPtr;
      KVBUF_HOST(ChannelFormatDesc) desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void *devPtr;
      KVBUF_HOST(ChannelFormatDesc) desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct KVBUF_HOST(TextureDesc) {
  KVBUF_HOST(TextureAddressMode) addressMode[3];
  KVBUF_HOST(TextureFilterMode) filterMode;
  KVBUF_HOST(TextureReadMode) readMode;
  int sRGB, normalizedCoords;
  float borderColor[4];
};
template <typename T>
static inline __host__ KVBUF_HOST(ChannelFormatDesc)
    KVBUF_HOST(CreateChannelDesc)() {
  return {};
}
static inline __host__ KVBUF_HOST(ChannelFormatDesc)
    KVBUF_HOST(CreateChannelDesc)(int x, int y, int z, int w,
                                  KVBUF_HOST(ChannelFormatKind) f) {
  return {x, y, z, w, f};
}
struct KVBUF_HOST(DeviceProp) {
  char name[256], gcnArchName[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin,
      sharedMemPerMultiprocessor, totalConstMem;
  int major, minor, warpSize, multiProcessorCount, maxThreadsPerBlock,
      maxThreadsPerMultiProcessor, regsPerBlock, clockRate, memoryClockRate,
      memoryBusWidth, l2CacheSize, cooperativeLaunch, managedMemory,
      concurrentKernels, concurrentManagedAccess, canMapHostMemory,
      maxThreadsDim[3], maxGridSize[3], persistingL2CacheMaxSize;
};
typedef KVBUF_HOST(DeviceProp) KVBUF_HOST(DeviceProp_t);
struct KVBUF_HOST(FuncAttributes) {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
      maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

#define KVBUF_FUNCTION(NAME)                                                   \
  template <typename... Arguments>                                             \
  static inline __host__ KVBUF_HOST(Error_t)                                   \
      KVBUF_HOST(NAME)(Arguments && ...) {                                     \
    return KVBUF_HOST(Success);                                                \
  }
// clang-format off
KVBUF_FUNCTION(Malloc) KVBUF_FUNCTION(MallocHost) KVBUF_FUNCTION(MallocManaged)
KVBUF_FUNCTION(MallocAsync) KVBUF_FUNCTION(MallocPitch) KVBUF_FUNCTION(Free)
KVBUF_FUNCTION(FreeHost) KVBUF_FUNCTION(FreeAsync) KVBUF_FUNCTION(HostAlloc)
KVBUF_FUNCTION(HostMalloc) KVBUF_FUNCTION(HostFree) KVBUF_FUNCTION(HostRegister)
KVBUF_FUNCTION(HostUnregister) KVBUF_FUNCTION(HostGetDevicePointer)
KVBUF_FUNCTION(Memcpy) KVBUF_FUNCTION(MemcpyAsync) KVBUF_FUNCTION(Memcpy2D)
KVBUF_FUNCTION(MemcpyToSymbol) KVBUF_FUNCTION(MemcpyFromSymbol)
KVBUF_FUNCTION(MemcpyToSymbolAsync) KVBUF_FUNCTION(MemcpyFromSymbolAsync)
KVBUF_FUNCTION(GetSymbolAddress) KVBUF_FUNCTION(GetSymbolSize)
KVBUF_FUNCTION(Memset) KVBUF_FUNCTION(MemsetAsync) KVBUF_FUNCTION(MemGetInfo)
KVBUF_FUNCTION(MemPrefetchAsync) KVBUF_FUNCTION(MemAdvise)
KVBUF_FUNCTION(GetLastError) KVBUF_FUNCTION(PeekAtLastError)
KVBUF_FUNCTION(DeviceSynchronize) KVBUF_FUNCTION(DeviceReset)
KVBUF_FUNCTION(GetDevice) KVBUF_FUNCTION(SetDevice)
KVBUF_FUNCTION(GetDeviceCount) KVBUF_FUNCTION(GetDeviceProperties)
KVBUF_FUNCTION(DeviceGetAttribute) KVBUF_FUNCTION(DeviceSetLimit)
KVBUF_FUNCTION(DeviceSetCacheConfig) KVBUF_FUNCTION(SetDeviceFlags)
KVBUF_FUNCTION(FuncSetAttribute) KVBUF_FUNCTION(FuncSetCacheConfig)
KVBUF_FUNCTION(FuncGetAttributes)
KVBUF_FUNCTION(OccupancyMaxActiveBlocksPerMultiprocessor)
KVBUF_FUNCTION(OccupancyMaxPotentialBlockSize)
KVBUF_FUNCTION(LaunchKernel) KVBUF_FUNCTION(LaunchCooperativeKernel)
KVBUF_FUNCTION(StreamCreate) KVBUF_FUNCTION(StreamCreateWithFlags)
KVBUF_FUNCTION(StreamCreateWithPriority) KVBUF_FUNCTION(StreamAddCallback)
KVBUF_FUNCTION(DeviceGetStreamPriorityRange) KVBUF_FUNCTION(LaunchHostFunc)
KVBUF_FUNCTION(DeviceCanAccessPeer) KVBUF_FUNCTION(DeviceEnablePeerAccess)
KVBUF_FUNCTION(DeviceDisablePeerAccess) KVBUF_FUNCTION(MemcpyPeer)
KVBUF_FUNCTION(ChooseDevice) KVBUF_FUNCTION(StreamAttachMemAsync)
KVBUF_FUNCTION(StreamDestroy) KVBUF_FUNCTION(StreamSynchronize)
KVBUF_FUNCTION(StreamWaitEvent) KVBUF_FUNCTION(StreamQuery)
KVBUF_FUNCTION(StreamBeginCapture) KVBUF_FUNCTION(StreamEndCapture)
KVBUF_FUNCTION(GraphInstantiate) KVBUF_FUNCTION(GraphLaunch)
KVBUF_FUNCTION(GraphCreate) KVBUF_FUNCTION(GraphAddKernelNode)
KVBUF_FUNCTION(GraphAddMemsetNode) KVBUF_FUNCTION(GraphAddMemcpyNode)
KVBUF_FUNCTION(GraphAddHostNode) KVBUF_FUNCTION(GraphAddDependencies)
KVBUF_FUNCTION(GraphExecKernelNodeSetParams) KVBUF_FUNCTION(GraphExecUpdate)
KVBUF_FUNCTION(GraphGetNodes) KVBUF_FUNCTION(GraphClone)
KVBUF_FUNCTION(MallocArray) KVBUF_FUNCTION(Malloc3DArray)
KVBUF_FUNCTION(FreeArray) KVBUF_FUNCTION(MemcpyToArray)
KVBUF_FUNCTION(Memcpy2DToArray) KVBUF_FUNCTION(Memcpy3D)
KVBUF_FUNCTION(Memcpy2DAsync) KVBUF_FUNCTION(Memset2D)
KVBUF_FUNCTION(CreateTextureObject) KVBUF_FUNCTION(DestroyTextureObject)
KVBUF_FUNCTION(CreateSurfaceObject) KVBUF_FUNCTION(DestroySurfaceObject)
KVBUF_FUNCTION(GraphDestroy) KVBUF_FUNCTION(GraphExecDestroy)
KVBUF_FUNCTION(EventCreate) KVBUF_FUNCTION(EventCreateWithFlags)
KVBUF_FUNCTION(EventDestroy) KVBUF_FUNCTION(EventRecord)
KVBUF_FUNCTION(EventSynchronize) KVBUF_FUNCTION(EventElapsedTime)
KVBUF_FUNCTION(EventQuery) KVBUF_FUNCTION(ProfilerStart)
KVBUF_FUNCTION(ProfilerStop) KVBUF_FUNCTION(DriverGetVersion)
KVBUF_FUNCTION(RuntimeGetVersion)
// clang-format on
#undef KVBUF_FUNCTION
                                                                            __host__
    const char *KVBUF_HOST(GetErrorString)(KVBUF_HOST(Error_t));
__host__ const char *KVBUF_HOST(GetErrorName)(KVBUF_HOST(Error_t));
