// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels use of CUB: reductions and scans of a warp and of a block. They
// need the barriers between two uses of one TempStorage that CUB's need.

#pragma once
#include <kvbuf_groups.h>

namespace cub {
struct Sum {
  template <typename T, typename U> __device__ auto operator()(T a, U b) const {
    return a + b;
  }
};
struct Max {
  template <typename T> __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename T> __device__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm {
  BLOCK_SCAN_RAKING,
  BLOCK_SCAN_RAKING_MEMOIZE,
  BLOCK_SCAN_WARP_SCANS
};

namespace details {
template <typename T, int N, typename Op>
__device__ inline T ofArray(T (&items)[N], Op op) {
  T all = items[0];
  for (int i = 1; i < N; ++i)
    all = op(all, items[i]);
  return all;
}
} // namespace details

/// The results are those of the first thread; others hold what is left over.
template <typename T, int X,
          BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
          int Y = 1, int Z = 1>
class BlockReduce {
public:
  struct TempStorage {
    T items[X * Y * Z];
  };
  __device__ explicit BlockReduce(TempStorage &storage)
      : items(storage.items) {}
  template <typename Op> __device__ T Reduce(T v, Op op, int valid) {
    int rank = cooperative_groups::details::rankInBlock();
    items[rank] = v;
    __syncthreads();
    for (int by = 1; by < X * Y * Z; by *= 2) {
      bool joins = rank % (2 * by) == 0 && rank + by < valid;
      if (joins)
        items[rank] = v = op(v, items[rank + by]);
      if (2 * by < X * Y * Z)
        __syncthreads();
    }
    return v;
  }
  template <typename Op> __device__ T Reduce(T v, Op op) {
    return Reduce(v, op, X * Y * Z);
  }
  template <int N, typename Op> __device__ T Reduce(T (&v)[N], Op op) {
    return Reduce(details::ofArray(v, op), op);
  }
  __device__ T Sum(T v) { return Reduce(v, cub::Sum()); }
  __device__ T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
  template <int N> __device__ T Sum(T (&v)[N]) { return Reduce(v, cub::Sum()); }

private:
  T *items;
};

template <typename T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING,
          int Y = 1, int Z = 1>
class BlockScan {
  static constexpr int threads = X * Y * Z;

public:
  struct TempStorage {
    T items[threads];
  };
  __device__ explicit BlockScan(TempStorage &storage) : items(storage.items) {}

  template <typename Op>
  __device__ void InclusiveScan(T in, T &out, Op op, T &all) {
    int rank = cooperative_groups::details::rankInBlock();
    items[rank] = in;
    __syncthreads();
    for (int by = 1; by < threads; by *= 2) {
      T before = rank >= by ? items[rank - by] : in;
      __syncthreads();
      if (rank >= by)
        items[rank] = in = op(before, in);
      __syncthreads();
    }
    out = in;
    all = items[threads - 1];
  }
  template <typename Op>
  __device__ void ExclusiveScan(T in, T &out, T first, Op op, T &all) {
    int rank = cooperative_groups::details::rankInBlock();
    T to;
    InclusiveScan(in, to, op, all);
    out = rank ? op(first, items[rank - 1]) : first;
  }
  template <typename Op> __device__ void InclusiveScan(T in, T &out, Op op) {
    T all;
    InclusiveScan(in, out, op, all);
  }
  template <typename Op>
  __device__ void ExclusiveScan(T in, T &out, T first, Op op) {
    T all;
    ExclusiveScan(in, out, first, op, all);
  }
  __device__ void InclusiveSum(T in, T &out) {
    InclusiveScan(in, out, cub::Sum());
  }
  __device__ void InclusiveSum(T in, T &out, T &all) {
    InclusiveScan(in, out, cub::Sum(), all);
  }
  __device__ void ExclusiveSum(T in, T &out) {
    ExclusiveScan(in, out, T(0), cub::Sum());
  }
  __device__ void ExclusiveSum(T in, T &out, T &all) {
    ExclusiveScan(in, out, T(0), cub::Sum(), all);
  }
  // Several items of each thread, which lie behind each other.
  template <int N>
  __device__ void ExclusiveSum(T (&in)[N], T (&out)[N], T &all) {
    T before;
    ExclusiveSum(details::ofArray(in, cub::Sum()), before, all);
    for (int i = 0; i < N; ++i) {
      T v = in[i];
      out[i] = before;
      before = before + v;
    }
  }
  template <int N>
  __device__ void InclusiveSum(T (&in)[N], T (&out)[N], T &all) {
    T before;
    ExclusiveSum(details::ofArray(in, cub::Sum()), before, all);
    for (int i = 0; i < N; ++i)
      out[i] = before = before + in[i];
  }
  template <int N> __device__ void ExclusiveSum(T (&in)[N], T (&out)[N]) {
    T all;
    ExclusiveSum(in, out, all);
  }
  template <int N> __device__ void InclusiveSum(T (&in)[N], T (&out)[N]) {
    T all;
    InclusiveSum(in, out, all);
  }

private:
  T *items;
};

template <typename T, int Lanes = 32> class WarpReduce {
public:
  struct TempStorage {};
  __device__ explicit WarpReduce(TempStorage &) {}
  template <typename Op> __device__ T Reduce(T v, Op op, int valid = Lanes) {
    cooperative_groups::thread_block_tile<Lanes> lanes;
    int rank = lanes.thread_rank();
    for (int by = 1; by < Lanes; by *= 2) {
      T other = lanes.shfl_down(v, by);
      if (rank % (2 * by) == 0 && rank + by < valid)
        v = op(v, other);
    }
    return v;
  }
  __device__ T Sum(T v) { return Reduce(v, cub::Sum()); }
  __device__ T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
};

template <typename T, int Lanes = 32> class WarpScan {
public:
  struct TempStorage {};
  __device__ explicit WarpScan(TempStorage &) {}
  template <typename Op> __device__ void InclusiveScan(T in, T &out, Op op) {
    out = cooperative_groups::inclusive_scan(lanes, in, op);
  }
  template <typename Op>
  __device__ void ExclusiveScan(T in, T &out, T first, Op op) {
    T all = cooperative_groups::inclusive_scan(lanes, in, op);
    T before = lanes.shfl_up(all, 1);
    out = lanes.thread_rank() ? op(first, before) : first;
  }
  __device__ void InclusiveSum(T in, T &out) {
    InclusiveScan(in, out, cub::Sum());
  }
  __device__ void ExclusiveSum(T in, T &out) {
    ExclusiveScan(in, out, T(0), cub::Sum());
  }
  __device__ T Broadcast(T v, unsigned from) { return lanes.shfl(v, from); }

private:
  cooperative_groups::thread_block_tile<Lanes> lanes;
};
} // namespace cub
