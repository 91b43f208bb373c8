// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Textures and surfaces: sources with them compile, and the kernels that read
// or write through them are refused, by the functions' names. As in
// kvbuf_host.h KVBUF_HOST(NAME) is "cuda" or "hip" and NAME.

#pragma once
typedef unsigned long long KVBUF_HOST(TextureObject_t);
typedef unsigned long long KVBUF_HOST(SurfaceObject_t);
enum KVBUF_HOST(SurfaceBoundaryMode) {
  KVBUF_HOST(BoundaryModeZero),
  KVBUF_HOST(BoundaryModeClamp),
  KVBUF_HOST(BoundaryModeTrap),
};

#define KVBUF_READS(NAME, ...)                                                 \
  template <typename T> __device__ T NAME(unsigned long long, __VA_ARGS__);    \
  template <typename T>                                                        \
  __device__ void NAME(T *, unsigned long long, __VA_ARGS__);
#define KVBUF_WRITES(NAME, ...)                                                \
  template <typename T>                                                        \
  __device__ void NAME(T, unsigned long long, __VA_ARGS__,                     \
                       KVBUF_HOST(SurfaceBoundaryMode) =                       \
                           KVBUF_HOST(BoundaryModeTrap));
KVBUF_READS(tex1Dfetch, int)
KVBUF_READS(tex1D, float)
KVBUF_READS(tex2D, float, float)
KVBUF_READS(tex3D, float, float, float)
KVBUF_READS(tex1DLayered, float, int)
KVBUF_READS(tex2DLayered, float, float, int)
KVBUF_READS(texCubemap, float, float, float)
KVBUF_READS(tex1DLod, float, float)
KVBUF_READS(tex2DLod, float, float, float)
KVBUF_READS(tex3DLod, float, float, float, float)
KVBUF_READS(surf1Dread, int)
KVBUF_READS(surf2Dread, int, int)
KVBUF_READS(surf3Dread, int, int, int)
KVBUF_WRITES(surf1Dwrite, int)
KVBUF_WRITES(surf2Dwrite, int, int)
KVBUF_WRITES(surf3Dwrite, int, int, int)
#undef KVBUF_READS
#undef KVBUF_WRITES
