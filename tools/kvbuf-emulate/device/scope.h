// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's scopes of threads, and atomic objects in them.

#pragma once
namespace cuda {
enum thread_scope {
  thread_scope_system,
  thread_scope_device,
  thread_scope_block,
  thread_scope_thread
};

enum memory_order {
  memory_order_relaxed = __ATOMIC_RELAXED,
  memory_order_consume = __ATOMIC_CONSUME,
  memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE,
  memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST
};
namespace std {
using cuda::memory_order;
using cuda::memory_order_acq_rel;
using cuda::memory_order_acquire;
using cuda::memory_order_consume;
using cuda::memory_order_relaxed;
using cuda::memory_order_release;
using cuda::memory_order_seq_cst;
} // namespace std

// A builtin takes its scope as a constant.
#define KVBUF_SCOPED(CALL, ...)                                                \
  (Scope == thread_scope_system   ? CALL(__VA_ARGS__, __MEMORY_SCOPE_SYSTEM)   \
   : Scope == thread_scope_device ? CALL(__VA_ARGS__, __MEMORY_SCOPE_DEVICE)   \
   : Scope == thread_scope_block  ? CALL(__VA_ARGS__, __MEMORY_SCOPE_WRKGRP)   \
                                  : CALL(__VA_ARGS__, __MEMORY_SCOPE_SINGLE))
#define KVBUF_FETCH(NAME)                                                      \
  __device__ T fetch_##NAME(T v, memory_order o = memory_order_seq_cst)        \
      const {                                                                  \
    return KVBUF_SCOPED(__scoped_atomic_fetch_##NAME, place, v, (int)o);       \
  }

/// Atomic accesses of an object that is elsewhere.
template <typename T, thread_scope Scope = thread_scope_system>
class atomic_ref {
public:
  __device__ explicit atomic_ref(T &object) : place(&object) {}
  __device__ T load(memory_order o = memory_order_seq_cst) const {
    return KVBUF_SCOPED(__scoped_atomic_load_n, place, (int)o);
  }
  __device__ void store(T v, memory_order o = memory_order_seq_cst) const {
    KVBUF_SCOPED(__scoped_atomic_store_n, place, v, (int)o);
  }
  __device__ T exchange(T v, memory_order o = memory_order_seq_cst) const {
    return KVBUF_SCOPED(__scoped_atomic_exchange_n, place, v, (int)o);
  }
  __device__ bool
  compare_exchange_strong(T &expected, T v,
                          memory_order o = memory_order_seq_cst) const {
    return KVBUF_SCOPED(__scoped_atomic_compare_exchange_n, place, &expected, v,
                        false, (int)o, __ATOMIC_ACQUIRE);
  }
  __device__ bool
  compare_exchange_weak(T &expected, T v,
                        memory_order o = memory_order_seq_cst) const {
    return compare_exchange_strong(expected, v, o);
  }
  __device__ bool compare_exchange_strong(T &expected, T v, memory_order o,
                                          memory_order) const {
    return compare_exchange_strong(expected, v, o);
  }
  __device__ bool compare_exchange_weak(T &expected, T v, memory_order o,
                                        memory_order) const {
    return compare_exchange_strong(expected, v, o);
  }
  KVBUF_FETCH(add)
  KVBUF_FETCH(sub)
  KVBUF_FETCH(min)
  KVBUF_FETCH(max)
  KVBUF_FETCH(and)
  KVBUF_FETCH(or)
  KVBUF_FETCH(xor)
  __device__ void wait(T old, memory_order o = memory_order_seq_cst) const {
    while (load(o) == old)
      ;
  }
  __device__ void notify_one() const {}
  __device__ void notify_all() const {}
  __device__ operator T() const { return load(); }
  __device__ T operator=(T v) const {
    store(v);
    return v;
  }
  __device__ T operator++() const { return fetch_add(1) + 1; }
  __device__ T operator++(int) const { return fetch_add(1); }
  __device__ T operator--() const { return fetch_sub(1) - 1; }
  __device__ T operator--(int) const { return fetch_sub(1); }
  __device__ T operator+=(T v) const { return fetch_add(v) + v; }
  __device__ T operator-=(T v) const { return fetch_sub(v) - v; }

private:
  T *place;
};
#undef KVBUF_FETCH

/// An object of which all accesses are atomic.
template <typename T, thread_scope Scope = thread_scope_system>
class atomic : public atomic_ref<T, Scope> {
public:
  __device__ atomic() : atomic_ref<T, Scope>(object) {}
  __device__ explicit atomic(T v) : atomic_ref<T, Scope>(object), object(v) {}
  atomic(const atomic &) = delete;
  using atomic_ref<T, Scope>::operator=;

private:
  T object;
};

__device__ inline void
atomic_thread_fence(memory_order o, thread_scope scope = thread_scope_system) {
  if (scope == thread_scope_block)
    __scoped_atomic_thread_fence((int)o, __MEMORY_SCOPE_WRKGRP);
  else if (scope == thread_scope_device)
    __scoped_atomic_thread_fence((int)o, __MEMORY_SCOPE_DEVICE);
  else if (scope == thread_scope_system)
    __scoped_atomic_thread_fence((int)o, __MEMORY_SCOPE_SYSTEM);
}
#undef KVBUF_SCOPED
} // namespace cuda
