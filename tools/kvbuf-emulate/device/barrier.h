// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's barriers that threads arrive at and wait for at different times, in
// shared memory: mbarriers. And copies that such a barrier waits for.

#pragma once
#include <kvbuf_async.h>
#include <kvbuf_scope.h>

namespace cuda {
template <thread_scope Scope> class barrier {
public:
  typedef unsigned long long arrival_token;
  __device__ friend void init(barrier *b, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b->place()),
                 "r"(count)
                 : "memory");
  }
  __device__ arrival_token arrive(unsigned n = 1) {
    arrival_token token;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;"
                 : "=l"(token)
                 : "r"(place()), "r"(n)
                 : "memory");
    return token;
  }
  __device__ void wait(arrival_token token) const {
    unsigned done;
    do
      asm volatile("{\n.reg .pred p;\n"
                   "mbarrier.test_wait.shared::cta.b64 p, [%1], %2;\n"
                   "selp.b32 %0, 1, 0, p;\n}"
                   : "=r"(done)
                   : "r"(place()), "l"(token)
                   : "memory");
    while (!done);
  }
  __device__ void wait_parity(bool phase) const {
    unsigned done;
    do
      asm volatile("{\n.reg .pred p;\n"
                   "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                   "selp.b32 %0, 1, 0, p;\n}"
                   : "=r"(done)
                   : "r"(place()), "r"((unsigned)phase)
                   : "memory");
    while (!done);
  }
  __device__ void arrive_and_wait() { wait(arrive()); }
  __device__ void arrive_and_drop() {
    asm volatile(
        "{\n.reg .b64 t;\n"
        "mbarrier.arrive_drop.shared::cta.b64 t, [%0];\n}" ::"r"(place())
        : "memory");
  }

private:
  __device__ unsigned place() const {
    return static_cast<unsigned>(__cvta_generic_to_shared(this));
  }
  unsigned long long state;
};

// Copies that the current phase of a barrier waits for.
template <typename T, thread_scope Scope>
__device__ inline void memcpy_async(T *to, const T *from, size_t bytes,
                                    barrier<Scope> &b) {
  kvbuf::copyAsync<kvbuf::AlignOf<T>::value>(to, from, bytes, 0, 1);
  kvbuf::arriveWithCopies(&b);
}
template <typename T, size_t Align, thread_scope Scope>
__device__ inline void memcpy_async(T *to, const T *from,
                                    aligned_size_t<Align> bytes,
                                    barrier<Scope> &b) {
  kvbuf::copyAsync<Align>(to, from, bytes, 0, 1);
  kvbuf::arriveWithCopies(&b);
}
template <typename Group, typename T, thread_scope Scope>
__device__ inline void memcpy_async(const Group &group, T *to, const T *from,
                                    size_t bytes, barrier<Scope> &b) {
  kvbuf::copyAsync<kvbuf::AlignOf<T>::value>(to, from, bytes,
                                             group.thread_rank(), group.size());
  kvbuf::arriveWithCopies(&b);
}
template <typename Group, typename T, size_t Align, thread_scope Scope>
__device__ inline void memcpy_async(const Group &group, T *to, const T *from,
                                    aligned_size_t<Align> bytes,
                                    barrier<Scope> &b) {
  kvbuf::copyAsync<Align>(to, from, bytes, group.thread_rank(), group.size());
  kvbuf::arriveWithCopies(&b);
}
} // namespace cuda
