// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of threads as CUDA and HIP have them: a block, tiles of its warps, the
// lanes that are together, and the grid, with their reductions and scans.

#pragma once
#if defined(__HIP__)
#define KVBUF_LANES(NAME) __##NAME
#define KVBUF_MASK
#else
#define KVBUF_LANES(NAME) __##NAME##_sync
#define KVBUF_MASK mask(),
#include <kvbuf_async.h>
#endif

namespace cooperative_groups {
namespace details {
#if defined(__HIP__)
typedef unsigned long long Lanes;
#else
typedef unsigned Lanes;
#endif
__device__ inline unsigned rankInBlock() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
__device__ inline unsigned sizeOfBlock() {
  return blockDim.x * blockDim.y * blockDim.z;
}
__device__ inline unsigned lane() {
#if defined(__HIP__)
  return __lane_id();
#else
  unsigned n;
  asm("mov.u32 %0, %%laneid;" : "=r"(n));
  return n;
#endif
}
__device__ inline void syncLanes(unsigned mask) {
#if defined(__HIP__)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
  __syncwarp(mask);
#endif
}
} // namespace details

/// Any group that lies within a block.
class thread_group {
public:
  __device__ unsigned thread_rank() const { return rank; }
  __device__ unsigned size() const { return count; }
  __device__ unsigned num_threads() const { return count; }
  __device__ bool is_valid() const { return true; }
  __device__ void sync() const {
    if (isBlock)
      __syncthreads();
    else
      details::syncLanes(lanes);
  }

protected:
  __device__ thread_group(unsigned rank, unsigned count, unsigned lanes,
                          bool isBlock)
      : rank(rank), count(count), lanes(lanes), isBlock(isBlock) {}
  unsigned rank, count, lanes;
  bool isBlock;
  friend __device__ thread_group tiled_partition(const thread_group &,
                                                 unsigned);
};

class thread_block : public thread_group {
public:
  __device__ thread_block()
      : thread_group(details::rankInBlock(), details::sizeOfBlock(), ~0u,
                     true) {}
  __device__ void sync() const { __syncthreads(); }
  __device__ dim3 group_index() const { return blockIdx; }
  __device__ dim3 thread_index() const { return threadIdx; }
  __device__ dim3 group_dim() const { return blockDim; }
  __device__ dim3 dim_threads() const { return blockDim; }
};
__device__ inline thread_block this_thread_block() { return {}; }

/// N lanes of a warp that lie behind each other.
template <unsigned N, typename Parent = void>
class thread_block_tile : public thread_group {
public:
  __device__ thread_block_tile()
      : thread_group(details::rankInBlock() % N, N, maskOf(), false) {}
  template <typename Other>
  __device__ thread_block_tile(const thread_block_tile<N, Other> &)
      : thread_block_tile() {}
  static __device__ constexpr unsigned size() { return N; }
  static __device__ constexpr unsigned num_threads() { return N; }
  __device__ void sync() const { details::syncLanes(mask()); }
  __device__ unsigned meta_group_rank() const {
    return details::rankInBlock() / N;
  }
  __device__ unsigned meta_group_size() const {
    return (details::sizeOfBlock() + N - 1) / N;
  }
#define KVBUF_SHUFFLE(NAME, BY)                                                \
  template <typename T> __device__ T NAME(T v, BY by) const {                  \
    int words[(sizeof(T) + 3) / 4] = {};                                       \
    __builtin_memcpy(words, &v, sizeof(T));                                    \
    for (int &word : words)                                                    \
      word = KVBUF_LANES(NAME)(KVBUF_MASK word, by, N);                        \
    __builtin_memcpy(&v, words, sizeof(T));                                    \
    return v;                                                                  \
  }
  KVBUF_SHUFFLE(shfl, int)
  KVBUF_SHUFFLE(shfl_xor, int)
  KVBUF_SHUFFLE(shfl_up, unsigned)
  KVBUF_SHUFFLE(shfl_down, unsigned)
#undef KVBUF_SHUFFLE
  __device__ unsigned ballot(int p) const {
    return (KVBUF_LANES(ballot)(KVBUF_MASK p) >> first()) &
           (N < 32 ? (1u << (N % 32)) - 1 : ~0u);
  }
  __device__ int any(int p) const { return ballot(p) != 0; }
  __device__ int all(int p) const { return ballot(!p) == 0; }

  __device__ unsigned mask() const { return lanes; }

private:
  static __device__ unsigned first() { return details::lane() & ~(N - 1); }
  static __device__ unsigned maskOf() {
    return (N < 32 ? (1u << (N % 32)) - 1 : ~0u) << (first() % 32);
  }
};
template <unsigned N, typename Parent>
__device__ inline thread_block_tile<N, Parent> tiled_partition(const Parent &) {
  return {};
}
__device__ inline thread_group tiled_partition(const thread_group &,
                                               unsigned n) {
  unsigned rank = details::rankInBlock();
  unsigned first = details::lane() & ~(n - 1);
  return thread_group(rank % n, n, (n < 32 ? (1u << n) - 1 : ~0u) << first % 32,
                      false);
}

class coalesced_group;
namespace details {
template <unsigned N, typename P>
__device__ inline Lanes membersOf(const thread_block_tile<N, P> &) {
  Lanes all = N < 8 * sizeof(Lanes) ? (Lanes(1) << N % (8 * sizeof(Lanes))) - 1
                                    : ~Lanes(0);
  return all << (lane() & ~(N - 1));
}
__device__ inline Lanes membersOf(const coalesced_group &group);
} // namespace details

/// Lanes that are at the same place now.
class coalesced_group : public thread_group {
public:
  __device__ explicit coalesced_group(details::Lanes mask)
      : thread_group(__builtin_popcountll(
                         mask & ((details::Lanes(1) << details::lane()) - 1)),
                     __builtin_popcountll(mask), static_cast<unsigned>(mask),
                     false),
        members(mask) {}
  __device__ details::Lanes mask() const { return members; }
  __device__ void sync() const { details::syncLanes(lanes); }
  template <typename T> __device__ T shfl(T v, unsigned from) const {
    return KVBUF_LANES(shfl)(KVBUF_MASK v, laneOf(from));
  }
  template <typename T> __device__ T shfl_up(T v, unsigned by) const {
    return shfl(v, rank < by ? rank : rank - by);
  }
  template <typename T> __device__ T shfl_down(T v, unsigned by) const {
    return shfl(v, rank + by < count ? rank + by : rank);
  }
  __device__ int any(int p) const { return ballot(p) != 0; }
  __device__ int all(int p) const { return ballot(!p) == 0; }
  __device__ details::Lanes ballot(int p) const {
    details::Lanes yes = KVBUF_LANES(ballot)(KVBUF_MASK p), bits = 0;
    unsigned k = 0;
    for (details::Lanes rest = members; rest; ++k, rest &= rest - 1)
      bits |= (yes >> __builtin_ctzll(rest) & 1) << k;
    return bits;
  }

private:
  __device__ int laneOf(unsigned member) const {
    details::Lanes rest = members;
    for (; member; --member)
      rest &= rest - 1;
    return __builtin_ctzll(rest);
  }
  details::Lanes members;
};
__device__ inline coalesced_group coalesced_threads() {
  return coalesced_group(__activemask());
}
/// Those of a group with the same answer, or the same label.
template <typename Group>
__device__ inline coalesced_group binary_partition(const Group &group,
                                                   bool answer) {
  details::Lanes members = details::membersOf(group), yes;
#if defined(__HIP__)
  yes = __ballot(answer) & members;
  members &= __activemask();
#else
  yes = __ballot_sync(members, answer);
  members = __ballot_sync(members, true); // some may have ended
#endif
  return coalesced_group(answer ? yes : members & ~yes);
}
#if !defined(__HIP__)
template <typename Group, typename T>
__device__ inline coalesced_group labeled_partition(const Group &group,
                                                    T label) {
  return coalesced_group(__match_any_sync(details::membersOf(group), label));
}
#endif
template <typename T, typename Op>
__device__ inline T reduce(const coalesced_group &group, T v, Op op) {
  T all = group.shfl(v, 0);
  for (unsigned k = 1; k < group.size(); ++k)
    all = op(all, group.shfl(v, k));
  return all;
}
namespace details {
__device__ inline Lanes membersOf(const coalesced_group &group) {
  return group.mask();
}
} // namespace details

#if defined(__HIP__)
static __device__ unsigned kvbufGridBarrier;
#endif
/// All blocks. On NVIDIA the driver's registers have the place of the word that
/// they count in.
class grid_group {
public:
  __device__ bool is_valid() const { return true; }
  __device__ unsigned long long size() const {
    return (unsigned long long)num_blocks() * details::sizeOfBlock();
  }
  __device__ unsigned long long num_threads() const { return size(); }
  __device__ unsigned num_blocks() const {
    return gridDim.x * gridDim.y * gridDim.z;
  }
  __device__ unsigned block_rank() const {
    return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  __device__ unsigned long long thread_rank() const {
    return (unsigned long long)block_rank() * details::sizeOfBlock() +
           details::rankInBlock();
  }
  __device__ dim3 group_dim() const { return gridDim; }
  __device__ void sync() const {
    __syncthreads();
    if (details::rankInBlock() == 0) {
#if defined(__HIP__)
      unsigned *word = &kvbufGridBarrier;
#else
      unsigned high, low;
      asm("mov.u32 %0, %%envreg1;" : "=r"(high));
      asm("mov.u32 %0, %%envreg2;" : "=r"(low));
      unsigned *word =
          reinterpret_cast<unsigned *>((unsigned long long)high << 32 | low) +
          1;
#endif
      // What all blocks add turns the highest bit over.
      unsigned by = block_rank() ? 1u : 0x80000000u - (num_blocks() - 1);
      __threadfence();
      unsigned old = atomicAdd(word, by);
      while (!((__scoped_atomic_load_n(word, __ATOMIC_RELAXED,
                                       __MEMORY_SCOPE_DEVICE) ^
                old) &
               0x80000000u))
        ;
      __threadfence();
    }
    __syncthreads();
  }
};
__device__ inline grid_group this_grid() { return {}; }

template <typename Group> __device__ inline void sync(const Group &group) {
  group.sync();
}

template <typename T = void> struct plus {
  template <typename U> __device__ U operator()(U a, U b) const {
    return a + b;
  }
};
template <typename T = void> struct less {
  template <typename U> __device__ U operator()(U a, U b) const {
    return b < a ? b : a;
  }
};
template <typename T = void> struct greater {
  template <typename U> __device__ U operator()(U a, U b) const {
    return a < b ? b : a;
  }
};
template <typename T = void> struct bit_and {
  template <typename U> __device__ U operator()(U a, U b) const {
    return a & b;
  }
};
template <typename T = void> struct bit_or {
  template <typename U> __device__ U operator()(U a, U b) const {
    return a | b;
  }
};
template <typename T = void> struct bit_xor {
  template <typename U> __device__ U operator()(U a, U b) const {
    return a ^ b;
  }
};

template <unsigned N, typename P, typename T, typename Op>
__device__ inline T reduce(const thread_block_tile<N, P> &tile, T v, Op op) {
  for (unsigned by = N / 2; by; by /= 2)
    v = op(v, tile.shfl_xor(v, by));
  return v;
}
template <unsigned N, typename P, typename T, typename Op>
__device__ inline T inclusive_scan(const thread_block_tile<N, P> &tile, T v,
                                   Op op) {
  for (unsigned by = 1; by < N; by *= 2) {
    T before = tile.shfl_up(v, by);
    if (tile.thread_rank() >= by)
      v = op(before, v);
  }
  return v;
}
template <unsigned N, typename P, typename T>
__device__ inline T inclusive_scan(const thread_block_tile<N, P> &tile, T v) {
  return inclusive_scan(tile, v, plus<T>());
}
template <unsigned N, typename P, typename T, typename Op>
__device__ inline T exclusive_scan(const thread_block_tile<N, P> &tile, T v,
                                   Op op) {
  T all = tile.shfl_up(inclusive_scan(tile, v, op), 1);
  return tile.thread_rank() ? all : T(0);
}
template <unsigned N, typename P, typename T>
__device__ inline T exclusive_scan(const thread_block_tile<N, P> &tile, T v) {
  return exclusive_scan(tile, v, plus<T>());
}

#if !defined(__HIP__)
// Copies by all threads of a group, in the background; each is a group of
// copies of its own.
template <typename Group, typename T>
__device__ inline void memcpy_async(const Group &group, T *to, const T *from,
                                    size_t bytes) {
  kvbuf::copyAsync<kvbuf::AlignOf<T>::value>(to, from, bytes,
                                             group.thread_rank(), group.size());
  kvbuf::commitCopies();
}
template <typename Group, typename T, size_t Align>
__device__ inline void memcpy_async(const Group &group, T *to, const T *from,
                                    cuda::aligned_size_t<Align> bytes) {
  kvbuf::copyAsync<Align>(to, from, bytes, group.thread_rank(), group.size());
  kvbuf::commitCopies();
}
/// As many elements as both have.
template <typename Group, typename T>
__device__ inline void memcpy_async(const Group &group, T *to, size_t room,
                                    const T *from, size_t elements) {
  memcpy_async(group, to, from,
               (room < elements ? room : elements) * sizeof(T));
}
template <typename Group> __device__ inline void wait(const Group &group) {
  kvbuf::waitForCopies<0>();
  group.sync();
}
template <unsigned Copies, typename Group>
__device__ inline void wait_prior(const Group &group) {
  kvbuf::waitForCopies<Copies>();
  group.sync();
}
#endif
} // namespace cooperative_groups
#undef KVBUF_LANES
#undef KVBUF_MASK
