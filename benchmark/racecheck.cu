// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What compute-sanitizer's racecheck makes of shared memory that the lanes of a
// warp write and others await at an mbarrier. Four of five kinds are right by
// PTX's memory model; docs/performance.md has what the tool says of each.
//
//   nvcc -arch=sm_90a -o racecheck benchmark/racecheck.cu
//   for i in $(seq 0 9); do compute-sanitizer --tool racecheck ./racecheck $i;
//   done
//
// A producer warp fills a slot of 64 rows of 128 bytes, of which the last 14
// are zeros, and four consumer warps read it: two slots, eight fillings.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// Who arrives for the producer's writes: every lane, after its own; the copies
/// by themselves (cp.async.mbarrier.arrive.noinc); lane 0, after the warp's
/// barrier, plainly or announcing bytes; lane 0 before any of them.
enum Announce { EveryLane, Copies, LaneZero, LaneZeroExpect, TooEarly };
enum Write { CpAsync, Store };
enum Read { LdMatrix, LdShared };
/// Who gives a slot back: every lane, or lane 0 after the warp's barrier.
enum Release { EachReader, FirstReader };

constexpr int kRows = 64, kThere = 50, kRowBytes = 128, kSlots = 2;
constexpr int kFillings = 8, kBytes = kRows * kRowBytes;

__device__ uint32_t shared(const void *p) {
  return uint32_t(__cvta_generic_to_shared(p));
}
__device__ void init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(arrivals));
}
__device__ void wait(uint32_t barrier, int parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta"
               ".b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
__device__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}
__device__ void arriveExpect(uint32_t barrier) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 0;" ::"r"(barrier)
      : "memory");
}

template <Announce A, Write W>
__device__ void fill(const uint4 *in, uint32_t slot, uint32_t barrier,
                     int lane) {
  if (A == TooEarly && lane == 0)
    arrive(barrier);
  for (int i = lane; i < kBytes / 16; i += 32) {
    int bytes = i * 16 / kRowBytes < kThere ? 16 : 0;
    if (W == CpAsync) {
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(slot + i * 16),
          "l"(in + i), "r"(bytes)
          : "memory");
      continue;
    }
    uint4 v = bytes ? in[i] : make_uint4(0, 0, 0, 0);
    asm volatile(
        "st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(slot + i * 16),
        "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
        : "memory");
  }
  if (A == Copies) {
    asm volatile(
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier)
        : "memory");
    return;
  }
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (A == EveryLane)
    arrive(barrier);
  if (A == LaneZero && lane == 0)
    arrive(barrier);
  if (A == LaneZeroExpect && lane == 0)
    arriveExpect(barrier);
}

template <Read R> __device__ uint32_t sumRows(uint32_t rows, int lane) {
  uint32_t sum = 0;
  for (int c = 0; c < kRowBytes / 32; ++c) {
    if (R == LdMatrix) {
      uint32_t r[4];
      uint32_t at = rows + lane % 16 * kRowBytes + c * 32 + lane / 16 * 16;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, "
                   "[%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                   : "r"(at)
                   : "memory");
      sum += r[0] + r[1] + r[2] + r[3];
    } else
      for (int k = 0; k < 4; ++k) {
        uint32_t v;
        asm volatile(
            "ld.shared.b32 %0, [%1];"
            : "=r"(v)
            : "r"(rows + lane / 2 * kRowBytes + c * 32 + lane % 2 * 16 + k * 4)
            : "memory");
        sum += v;
      }
  }
  return sum;
}

template <Announce A, Write W, Read R, Release L>
__global__ void kernel(const uint4 *in, uint32_t *out) {
  extern __shared__ __align__(1024) unsigned char slots[];
  __shared__ uint64_t full[kSlots], empty[kSlots];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0)
    for (int s = 0; s < kSlots; ++s) {
      init(shared(&full[s]), A == EveryLane || A == Copies ? 32 : 1);
      init(shared(&empty[s]), L == EachReader ? 128 : 4);
    }
  __syncthreads();
  uint32_t sum = 0;
  for (int f = 0; f < kFillings; ++f) {
    int s = f % kSlots, round = f / kSlots & 1;
    uint32_t slot = shared(slots) + s * kBytes;
    if (warp == 4) {
      wait(shared(&empty[s]), round ^ 1);
      fill<A, W>(in + f * (kBytes / 16), slot, shared(&full[s]), lane);
      continue;
    }
    wait(shared(&full[s]), round);
    sum += sumRows<R>(slot + warp * 16 * kRowBytes, lane);
    __syncwarp();
    if (L == EachReader || lane == 0)
      arrive(shared(&empty[s]));
  }
  if (warp < 4)
    out[threadIdx.x] = sum;
}

using Kernel = void (*)(const uint4 *, uint32_t *);
struct {
  const char *name;
  Kernel kernel;
} cases[] = {
    {"every lane; cp.async, ldmatrix",
     kernel<EveryLane, CpAsync, LdMatrix, EachReader>},
    {"every lane; cp.async, ld.shared",
     kernel<EveryLane, CpAsync, LdShared, EachReader>},
    {"every lane; st.shared, ld.shared",
     kernel<EveryLane, Store, LdShared, EachReader>},
    {"copies by themselves; ldmatrix",
     kernel<Copies, CpAsync, LdMatrix, EachReader>},
    {"copies by themselves; ld.shared",
     kernel<Copies, CpAsync, LdShared, EachReader>},
    {"one lane for its warp; cp.async, ldmatrix",
     kernel<LaneZeroExpect, CpAsync, LdMatrix, EachReader>},
    {"one lane for its warp; cp.async, ld.shared",
     kernel<LaneZero, CpAsync, LdShared, EachReader>},
    {"one lane for its warp; st.shared, ld.shared",
     kernel<LaneZero, Store, LdShared, EachReader>},
    {"one reader for its warp; cp.async, ldmatrix",
     kernel<EveryLane, CpAsync, LdMatrix, FirstReader>},
    {"wrong: before the copies; cp.async, ldmatrix",
     kernel<TooEarly, CpAsync, LdMatrix, EachReader>},
};

int main(int argc, char **argv) {
  int number = argc > 1 ? atoi(argv[1]) : -1;
  if (number < 0 || number >= int(sizeof(cases) / sizeof(*cases))) {
    fprintf(stderr, "usage: racecheck 0..%zu\n",
            sizeof(cases) / sizeof(*cases) - 1);
    return 2;
  }
  constexpr size_t words = kFillings * kBytes / 4;
  static uint32_t host[words], sums[128];
  uint32_t expected = 0, sum = 0;
  for (size_t i = 0; i < words; ++i) {
    host[i] = uint32_t(i) * 2654435761u;
    if (i * 4 / kRowBytes % kRows < kThere)
      expected += host[i];
  }
  void *in, *out;
  cudaMalloc(&in, sizeof(host));
  cudaMalloc(&out, sizeof(sums));
  cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice);
  cases[number].kernel<<<1, 160, kSlots * kBytes>>>((const uint4 *)in,
                                                    (uint32_t *)out);
  cudaMemcpy(sums, out, sizeof(sums), cudaMemcpyDeviceToHost);
  for (uint32_t v : sums)
    sum += v;
  printf("%s: %s, %s\n", cases[number].name,
         cudaGetErrorString(cudaGetLastError()),
         sum == expected ? "right" : "wrong");
}
