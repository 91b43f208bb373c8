// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's barriers that threads arrive at and wait for at different times, in
// shared memory: mbarriers.

#pragma once
namespace cuda {
enum thread_scope {
  thread_scope_system,
  thread_scope_device,
  thread_scope_block,
  thread_scope_thread
};

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
  __device__ void arrive_and_wait() { wait(arrive()); }

private:
  __device__ unsigned place() const {
    return static_cast<unsigned>(__cvta_generic_to_shared(this));
  }
  unsigned long long state;
};
} // namespace cuda
