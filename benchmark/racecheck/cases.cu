// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 40 small kernels, each right (`name<true>`) and with one planted race
// (`name<false>`): a barrier, a fence or an atomic operation that is missing.
// All take 2 blocks of 256 threads, and arrays of 1024 numbers. compare.py runs
// them on the emulator and, on a GPU, under compute-sanitizer.

#include <cuda_runtime.h>

#define KERNEL(NAME)                                                           \
  template <bool R> __global__ void NAME(int *out, const int *in)

// What a right kernel has and the other one has not.
#define BLOCK_BARRIER                                                          \
  if constexpr (R)                                                             \
  __syncthreads()
#define WARP_BARRIER                                                           \
  if constexpr (R)                                                             \
  __syncwarp()
#define FENCE                                                                  \
  if constexpr (R)                                                             \
  __threadfence()

__device__ inline int place() { return blockIdx.x * 256 + threadIdx.x; }

//===----------------------------------------------------------------------===//
// Shared memory, between warps
//===----------------------------------------------------------------------===//

KERNEL(reverse) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  BLOCK_BARRIER;
  out[place()] = s[255 - t];
}
KERNEL(neighbour) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  BLOCK_BARRIER;
  out[place()] = s[t] + s[(t + 32) % 256];
}
KERNEL(tree_inside) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  __syncthreads();
  for (int d = 128; d; d /= 2) {
    if (t < d)
      s[t] += s[t + d];
    BLOCK_BARRIER;
    __syncwarp();
  }
  if (t == 0)
    out[blockIdx.x] = s[0];
}
KERNEL(tree_before) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  BLOCK_BARRIER;
  for (int d = 128; d; d /= 2) {
    if (t < d)
      s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0)
    out[blockIdx.x] = s[0];
}
KERNEL(scan_write_early) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int v = t >= d ? s[t - d] : 0;
    BLOCK_BARRIER;
    __syncwarp();
    s[t] += v;
    __syncthreads();
  }
  out[place()] = s[t];
}
KERNEL(scan_read_early) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int v = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += v;
    BLOCK_BARRIER;
    __syncwarp();
  }
  out[place()] = s[t];
}
KERNEL(scratch_again) {
  __shared__ int s[8];
  int t = threadIdx.x, w = t / 32, m = in[place()];
  for (int d = 16; d; d /= 2)
    m = max(m, __shfl_xor_sync(~0u, m, d));
  if (t % 32 == 0)
    s[w] = m;
  __syncthreads();
  for (int k = 0; k < 8; ++k)
    m = max(m, s[k]);
  BLOCK_BARRIER;
  __syncwarp();
  int sum = m - in[place()];
  for (int d = 16; d; d /= 2)
    sum += __shfl_xor_sync(~0u, sum, d);
  if (t % 32 == 0)
    s[w] = sum;
  __syncthreads();
  out[place()] = m + s[0];
}
KERNEL(one_buffer) {
  __shared__ int s[2][256];
  int t = threadIdx.x;
  s[0][t] = in[place()];
  __syncthreads();
  for (int k = 0; k < 4; ++k) {
    // With one buffer the new values overwrite what others still read.
    int from = R ? k % 2 : 0, to = R ? 1 - k % 2 : 0;
    s[to][t] = s[from][(t + 33) % 256] + 1;
    __syncthreads();
  }
  out[place()] = s[0][t];
}
KERNEL(transposition) {
  __shared__ int s[16][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  s[y][x] = in[place()];
  BLOCK_BARRIER;
  out[place()] = s[x][y];
}
KERNEL(halo) {
  __shared__ int s[258];
  int t = threadIdx.x;
  s[t + 1] = in[place()];
  if (t == 0)
    s[0] = 0;
  if (t == 255)
    s[257] = 0;
  BLOCK_BARRIER;
  out[place()] = s[t] + s[t + 1] + s[t + 2];
}
KERNEL(histogram_plain) {
  __shared__ int s[8];
  int t = threadIdx.x;
  if (t < 8)
    s[t] = 0;
  __syncthreads();
  if constexpr (R)
    atomicAdd(&s[in[place()] % 8], 1);
  else
    s[in[place()] % 8] += 1;
  __syncthreads();
  if (t < 8)
    out[8 * blockIdx.x + t] = s[t];
}
KERNEL(histogram_clear) {
  __shared__ int s[8];
  int t = threadIdx.x;
  if (t < 8)
    s[t] = 0;
  BLOCK_BARRIER;
  atomicAdd(&s[in[place()] % 8], 1);
  __syncthreads();
  if (t < 8)
    out[8 * blockIdx.x + t] = s[t];
}
KERNEL(histogram_flush) {
  __shared__ int s[8];
  int t = threadIdx.x;
  if (t < 8)
    s[t] = 0;
  __syncthreads();
  atomicAdd(&s[in[place()] % 8], 1);
  BLOCK_BARRIER;
  if (t < 8)
    out[8 * blockIdx.x + t] = s[t];
}
KERNEL(broadcast) {
  __shared__ int s;
  if (threadIdx.x == 0)
    s = in[blockIdx.x];
  BLOCK_BARRIER;
  out[place()] = s;
}
KERNEL(broadcast_loop) {
  __shared__ int s;
  int sum = 0;
  for (int k = 0; k < 4; ++k) {
    if (threadIdx.x == 0)
      s = in[4 * blockIdx.x + k];
    __syncthreads();
    sum += s;
    BLOCK_BARRIER;
    __syncwarp();
  }
  out[place()] = sum;
}
KERNEL(product_load) {
  __shared__ int a[16][16], b[16][16];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, sum = 0;
  for (int k = 0; k < 2; ++k) {
    a[y][x] = in[256 * k + threadIdx.x];
    b[y][x] = in[256 * (1 - k) + threadIdx.x];
    BLOCK_BARRIER;
    __syncwarp();
    for (int i = 0; i < 16; ++i)
      sum += a[y][i] * b[i][x];
    __syncthreads();
  }
  out[place()] = sum;
}
KERNEL(product_reuse) {
  __shared__ int a[16][16], b[16][16];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, sum = 0;
  for (int k = 0; k < 2; ++k) {
    a[y][x] = in[256 * k + threadIdx.x];
    b[y][x] = in[256 * (1 - k) + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum += a[y][i] * b[i][x];
    BLOCK_BARRIER;
    __syncwarp();
  }
  out[place()] = sum;
}
KERNEL(winner) {
  __shared__ int s;
  int t = threadIdx.x;
  if constexpr (R) {
    if (t == 0)
      s = 0;
    __syncthreads();
    if (t % 32 == 0)
      atomicMax(&s, t);
  } else if (t % 32 == 0) {
    s = t;
  }
  __syncthreads();
  out[place()] = s;
}
KERNEL(compaction_count) {
  __shared__ int n;
  int t = threadIdx.x;
  if (t == 0)
    n = 0;
  __syncthreads();
  if (t % 32 == 0) {
    int at;
    if constexpr (R)
      at = atomicAdd(&n, 1);
    else
      at = n++;
    out[256 * blockIdx.x + at] = 1;
  }
}
KERNEL(compaction_offsets) {
  __shared__ int count[8];
  int t = threadIdx.x, w = t / 32;
  unsigned chosen = __ballot_sync(~0u, in[place()] % 2);
  if (t % 32 == 0)
    count[w] = __popc(chosen);
  BLOCK_BARRIER;
  int before = 0;
  for (int k = 0; k < w; ++k)
    before += count[k];
  out[place()] = before;
}
KERNEL(bitonic) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  __syncthreads();
  for (int size = 2; size <= 256; size *= 2)
    for (int d = size / 2; d; d /= 2) {
      int other = t ^ d;
      if (other > t) {
        bool up = (t & size) == 0;
        if ((s[t] > s[other]) == up) {
          int v = s[t];
          s[t] = s[other];
          s[other] = v;
        }
      }
      BLOCK_BARRIER;
      __syncwarp();
    }
  out[place()] = s[t];
}
KERNEL(odd_even) {
  __shared__ int s[257];
  int t = threadIdx.x;
  s[t] = in[place()];
  if (t == 0)
    s[256] = 1 << 30;
  __syncthreads();
  for (int k = 0; k < 4; ++k) {
    if (t % 2 == k % 2 && s[t] > s[t + 1]) {
      int v = s[t];
      s[t] = s[t + 1];
      s[t + 1] = v;
    }
    BLOCK_BARRIER;
    __syncwarp();
  }
  out[place()] = s[t];
}
KERNEL(queue) {
  __shared__ int items[8], tail;
  int t = threadIdx.x;
  if (t == 0)
    tail = 0;
  __syncthreads();
  if (t % 32 == 0)
    items[atomicAdd(&tail, 1)] = t;
  BLOCK_BARRIER;
  if (t < 8)
    out[8 * blockIdx.x + t] = items[t];
}
KERNEL(largest) {
  __shared__ int s;
  int t = threadIdx.x;
  if (t == 0)
    s = 0;
  __syncthreads();
  if constexpr (R)
    atomicMax(&s, in[place()]);
  else if (in[place()] > s)
    s = in[place()];
  __syncthreads();
  out[place()] = s;
}
KERNEL(two_arrays) {
  // One array, of which halves are used for two things.
  __shared__ int s[512];
  int t = threadIdx.x, half = R ? 256 : 128;
  s[t] = in[place()];
  s[half + t] = in[place()] + 1;
  __syncthreads();
  out[place()] = s[t] + s[half + t];
}
KERNEL(copy_async) {
  __shared__ int s[256];
  int t = threadIdx.x;
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(s + t));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to),
               "l"(in + place())
               : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  BLOCK_BARRIER;
  out[place()] = s[255 - t];
}
KERNEL(named_barrier) {
  // Pairs of warps meet at barriers of their own.
  __shared__ int s[256];
  int t = threadIdx.x, pair = t / 64 + 1;
  s[t] = in[place()];
  if constexpr (R)
    asm volatile("bar.sync %0, 64;" ::"r"(pair) : "memory");
  else
    __syncwarp();
  out[place()] = s[t ^ 32];
}

//===----------------------------------------------------------------------===//
// Shared memory, within warps
//===----------------------------------------------------------------------===//

KERNEL(warp_tree) {
  __shared__ int s[256];
  int t = threadIdx.x, lane = t % 32;
  s[t] = in[place()];
  for (int d = 16; d; d /= 2) {
    WARP_BARRIER;
    if (lane < d)
      s[t] += s[t + d];
  }
  if (lane == 0)
    out[place()] = s[t];
}
KERNEL(warp_reverse) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[place()];
  WARP_BARRIER;
  out[place()] = s[t ^ 31];
}
KERNEL(warp_scan) {
  __shared__ int s[256];
  int t = threadIdx.x, lane = t % 32;
  s[t] = in[place()];
  __syncwarp();
  for (int d = 1; d < 32; d *= 2) {
    int v = lane >= d ? s[t - d] : 0;
    WARP_BARRIER;
    s[t] += v;
    __syncwarp();
  }
  out[place()] = s[t];
}
KERNEL(warp_halves) {
  __shared__ int s[256];
  int t = threadIdx.x, lane = t % 32;
  if (lane < 16)
    s[t] = in[place()];
  WARP_BARRIER;
  if (lane >= 16)
    out[place()] = s[t - 16];
}
KERNEL(warp_count) {
  __shared__ int s[8];
  int t = threadIdx.x, w = t / 32;
  if (t % 32 == 0)
    s[w] = 0;
  __syncwarp();
  if constexpr (R)
    atomicAdd(&s[w], 1);
  else
    s[w] += 1;
  __syncwarp();
  out[place()] = s[w];
}
KERNEL(warp_broadcast) {
  __shared__ int s[8];
  int t = threadIdx.x, w = t / 32;
  if (t % 32 == 0)
    s[w] = in[place()];
  WARP_BARRIER;
  out[place()] = s[w];
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

KERNEL(other_block) {
  // Each block reads what the other one writes; a right one reads its own.
  out[place()] = in[place()];
  __syncthreads();
  int block = R ? blockIdx.x : 1 - blockIdx.x;
  out[512 + place()] = out[256 * block + threadIdx.x];
}
KERNEL(global_counter) {
  if (threadIdx.x == 0) {
    if constexpr (R)
      atomicAdd(out, 1);
    else
      out[0] += 1;
  }
}
KERNEL(global_neighbour) {
  out[place()] = in[place()];
  BLOCK_BARRIER;
  out[512 + place()] = out[256 * blockIdx.x + (threadIdx.x + 32) % 256];
}
KERNEL(last_block) {
  __shared__ int last;
  if (threadIdx.x == 0) {
    out[blockIdx.x] = in[blockIdx.x] + 1;
    FENCE;
    last = atomicAdd(out + 512, 1) == 1;
    FENCE;
    if (last)
      out[100] = out[0] + out[1];
  }
}
KERNEL(message) {
  if (threadIdx.x != 0)
    return;
  if (blockIdx.x == 0) {
    out[0] = in[5];
    FENCE;
    atomicExch(out + 512, 1);
  } else {
    while (atomicAdd(out + 512, 0) == 0)
      ;
    FENCE;
    out[1] = out[0];
  }
}
KERNEL(lock) {
  if (threadIdx.x != 0)
    return;
  while (atomicCAS(out + 512, 0, 1) != 0)
    ;
  FENCE;
  out[0] += 1;
  FENCE;
  atomicExch(out + 512, 0);
}
KERNEL(two_phases) {
  // All blocks meet between two phases; without that the second one begins
  // early.
  out[place()] = in[place()];
  if constexpr (R) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(out + 1023, 1);
      while (atomicAdd(out + 1023, 0) < 2)
        ;
      __threadfence();
    }
  }
  __syncthreads();
  if (threadIdx.x < 128)
    out[512 + 128 * blockIdx.x + threadIdx.x] =
        out[256 * (1 - blockIdx.x) + threadIdx.x];
}

#define ALL_CASES(X)                                                           \
  X(reverse) X(neighbour) X(tree_inside) X(tree_before) X(scan_write_early)    \
  X(scan_read_early) X(scratch_again) X(one_buffer) X(transposition) X(halo)   \
  X(histogram_plain) X(histogram_clear) X(histogram_flush) X(broadcast)        \
  X(broadcast_loop) X(product_load) X(product_reuse) X(winner)                 \
  X(compaction_count) X(compaction_offsets) X(bitonic) X(odd_even) X(queue)    \
  X(largest) X(two_arrays) X(copy_async) X(named_barrier) X(warp_tree)         \
  X(warp_reverse) X(warp_scan) X(warp_halves) X(warp_count)                    \
  X(warp_broadcast) X(other_block) X(global_counter) X(global_neighbour)       \
  X(last_block) X(message) X(lock) X(two_phases)

#define INSTANCES(NAME)                                                        \
  template __global__ void NAME<true>(int *, const int *);                     \
  template __global__ void NAME<false>(int *, const int *);
ALL_CASES(INSTANCES)

#ifdef WITH_MAIN
#include <cstdio>
#include <cstring>

// `cases NAME right|wrong`: runs one kernel once.
int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  bool right = !std::strcmp(argv[2], "right"), found = false;
  int host[1024], *in, *out;
  for (int i = 0; i < 1024; ++i)
    host[i] = i * 37 % 101;
  cudaMalloc(&in, sizeof(host));
  cudaMalloc(&out, sizeof(host));
  cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof(host));
#define RUN(NAME)                                                              \
  if (!std::strcmp(argv[1], #NAME)) {                                          \
    found = true;                                                              \
    if (right)                                                                 \
      NAME<true><<<2, 256>>>(out, in);                                         \
    else                                                                       \
      NAME<false><<<2, 256>>>(out, in);                                        \
  }
  ALL_CASES(RUN)
  cudaError_t status = cudaDeviceSynchronize();
  if (!found || status != cudaSuccess) {
    std::fprintf(stderr, "%s\n",
                 found ? cudaGetErrorString(status) : "no such kernel");
    return 2;
  }
  return 0;
}
#endif
