//===- GraphLeases.h - Memory that captured graphs hold ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_GRAPHLEASES_H
#define KVBUFFER_LIB_RUNTIME_GRAPHLEASES_H

#include "GpuDriver.h"

#include <memory>
#include <mutex>
#include <vector>

namespace kvbuf::rt {

/// Pieces of memory that nobody uses. Graphs give theirs back when they are
/// destroyed, on a thread of the driver's and perhaps after the module is gone.
template <typename Piece> class GraphLeases {
public:
  /// Calls `use` with the free pieces, which no graph changes meanwhile.
  template <typename Use> auto withFree(Use use) {
    std::lock_guard<std::mutex> lock(pool->mutex);
    return use(pool->free);
  }

  /// Lets a graph hold a piece until it and all that were made of it are
  /// destroyed and have run to their end. `doing`: for an error's message.
  void giveTo(GpuBackend &gpu, void *graph, Piece piece, const char *doing) {
    auto lease = std::make_unique<Lease>(Lease{pool, piece});
    void *object = nullptr;
    gpu.check(gpu.driver.userObjectCreate(&object, lease.get(), Lease::end, 1,
                                          kNoDestructorSync),
              doing);
    {
      std::lock_guard<std::mutex> lock(pool->mutex);
      ++pool->held;
    }
    lease.release();
    gpu.check(
        gpu.driver.graphRetainUserObject(graph, object, 1, kMoveReference),
        doing);
  }

  /// Whether a graph that holds a piece is still alive.
  bool heldByGraphs() const {
    std::lock_guard<std::mutex> lock(pool->mutex);
    return pool->held > 0;
  }

private:
  /// CUuserObject_flags and CUuserObjectRetain_flags; HIP's are the same.
  static constexpr unsigned kNoDestructorSync = 1, kMoveReference = 1;

  struct Pool {
    std::mutex mutex;
    std::vector<Piece> free;
    unsigned held = 0;
  };
  /// What a graph holds.
  struct Lease {
    std::shared_ptr<Pool> pool;
    Piece piece;

    static void end(void *lease) {
      std::unique_ptr<Lease> self(static_cast<Lease *>(lease));
      std::lock_guard<std::mutex> lock(self->pool->mutex);
      self->pool->free.push_back(self->piece);
      --self->pool->held;
    }
  };

  std::shared_ptr<Pool> pool = std::make_shared<Pool>();
};

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_GRAPHLEASES_H
