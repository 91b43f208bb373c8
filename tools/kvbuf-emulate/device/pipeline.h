// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's pipelines: stages of copies in the background, of a thread by itself,
// and of a block whose threads produce and consume.

#pragma once
#include <kvbuf_barrier.h>

namespace cuda {
enum class pipeline_role { producer, consumer };

template <thread_scope Scope, unsigned Stages> struct pipeline_shared_state {
  barrier<Scope> produced[Stages], consumed[Stages];
  unsigned producers;
};

/// Of threads of a block: each stage has a barrier that its copies arrive at,
/// and one for those who have read them.
template <thread_scope Scope> class pipeline {
public:
  __device__ pipeline(barrier<Scope> *produced, barrier<Scope> *consumed,
                      unsigned stages)
      : produced(produced), consumed(consumed), stages(stages) {}
  __device__ void producer_acquire() {
    // A stage that nobody has used yet is free: its barrier's phase before
    // the first one counts as over.
    consumed[head].wait_parity(!headPhase);
  }
  __device__ void producer_commit() {
    kvbuf::arriveWithCopies(produced + head);
    produced[head].arrive();
    advance(head, headPhase);
  }
  __device__ void consumer_wait() { produced[tail].wait_parity(tailPhase); }
  __device__ void consumer_release() {
    consumed[tail].arrive();
    advance(tail, tailPhase);
  }
  __device__ bool quit() { return true; }

private:
  __device__ void advance(unsigned &stage, bool &phase) {
    if (++stage == stages) {
      stage = 0;
      phase = !phase;
    }
  }
  barrier<Scope> *produced, *consumed;
  unsigned stages, head = 0, tail = 0;
  bool headPhase = false, tailPhase = false;
};

/// Of one thread: groups of its own copies, which it waits for in their order.
template <> class pipeline<thread_scope_thread> {
public:
  __device__ void producer_acquire() {}
  __device__ void producer_commit() {
    kvbuf::commitCopies();
    ++committed;
  }
  __device__ void consumer_wait() {
    if (committed == awaited)
      return;
    __pipeline_wait_prior(committed - awaited - 1);
    ++awaited;
  }
  __device__ void consumer_release() {}
  __device__ bool quit() { return true; }

private:
  template <unsigned Groups>
  friend __device__ void
  pipeline_consumer_wait_prior(pipeline<thread_scope_thread> &);
  unsigned char committed = 0, awaited = 0;
};
template <unsigned Groups>
__device__ inline void
pipeline_consumer_wait_prior(pipeline<thread_scope_thread> &p) {
  kvbuf::waitForCopies<Groups>();
  p.awaited = p.committed - Groups;
}
template <thread_scope Scope>
__device__ inline void pipeline_producer_commit(pipeline<thread_scope_thread> &,
                                                barrier<Scope> &b) {
  kvbuf::arriveWithCopies(&b);
}

__device__ inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
namespace details {
template <typename Group, thread_scope Scope, unsigned Stages>
__device__ inline pipeline<Scope>
makePipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
             bool produces, bool consumes, unsigned producers) {
  bool first = group.thread_rank() == 0;
  if (!producers) {
    if (first)
      state->producers = 0;
    group.sync();
    if (produces)
      atomicAdd_block(&state->producers, 1u);
    group.sync();
    producers = state->producers;
  }
  if (first)
    for (unsigned s = 0; s < Stages; ++s) {
      init(&state->produced[s], producers);
      init(&state->consumed[s],
           consumes && produces ? group.size() : group.size() - producers);
    }
  group.sync();
  return {state->produced, state->consumed, Stages};
}
} // namespace details
/// All threads of the group produce and consume.
template <typename Group, thread_scope Scope, unsigned Stages>
__device__ inline pipeline<Scope>
make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state) {
  return details::makePipeline(group, state, true, true, group.size());
}
template <typename Group, thread_scope Scope, unsigned Stages>
__device__ inline pipeline<Scope>
make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
              pipeline_role role) {
  return details::makePipeline(group, state, role == pipeline_role::producer,
                               role == pipeline_role::consumer, 0);
}
/// The first `producers` threads of the group produce.
template <typename Group, thread_scope Scope, unsigned Stages>
__device__ inline pipeline<Scope>
make_pipeline(const Group &group, pipeline_shared_state<Scope, Stages> *state,
              size_t producers) {
  return details::makePipeline(group, state, group.thread_rank() < producers,
                               group.thread_rank() >= producers, producers);
}

// Copies of the stage that is being produced.
template <typename T, thread_scope Scope>
__device__ inline void memcpy_async(T *to, const T *from, size_t bytes,
                                    pipeline<Scope> &) {
  kvbuf::copyAsync<kvbuf::AlignOf<T>::value>(to, from, bytes, 0, 1);
}
template <typename T, size_t Align, thread_scope Scope>
__device__ inline void memcpy_async(T *to, const T *from,
                                    aligned_size_t<Align> bytes,
                                    pipeline<Scope> &) {
  kvbuf::copyAsync<Align>(to, from, bytes, 0, 1);
}
template <typename Group, typename T, thread_scope Scope>
__device__ inline void memcpy_async(const Group &group, T *to, const T *from,
                                    size_t bytes, pipeline<Scope> &) {
  kvbuf::copyAsync<kvbuf::AlignOf<T>::value>(to, from, bytes,
                                             group.thread_rank(), group.size());
}
template <typename Group, typename T, size_t Align, thread_scope Scope>
__device__ inline void memcpy_async(const Group &group, T *to, const T *from,
                                    aligned_size_t<Align> bytes,
                                    pipeline<Scope> &) {
  kvbuf::copyAsync<Align>(to, from, bytes, group.thread_rank(), group.size());
}
} // namespace cuda
