//===- lib/Runtime/Calls.cpp - Plans by a framework's tensors ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading shapes and strides of a call's tensors in Python takes longer than
// everything else that a repeated call does before the driver. Frameworks offer
// a table of C functions for that (DLPack 1.3, "DLPackExchangeAPI"), so it is
// done here, without the interpreter's headers: its objects are opaque.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer-c/Runtime.h"

#include <array>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t kMostTensors = 7;
/// DLPack's major version; another one may lay the table out otherwise.
constexpr uint32_t kDlpackMajor = 1;
/// DLDeviceType of host memory, which has no stream.
constexpr int32_t kHost = 1;

/// DLTensor of dlpack.h.
struct DlTensor {
  void *data;
  int32_t deviceType, deviceId, rank;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t byteOffset;
};
static_assert(sizeof(DlTensor) == 48);

/// DLPackExchangeAPI of dlpack.h.
struct ExchangeApi {
  uint32_t major, minor;
  const void *older;
  void *allocate, *exportObject, *importObject;
  int (*describe)(void *object, DlTensor *tensor);
  int (*currentStream)(int32_t deviceType, int32_t deviceId, void **stream);
};

using Objects = std::array<void *, kMostTensors>;

/// What a plan follows from, as words.
using Key = std::vector<int64_t>;

uint64_t hashOf(const Key &key) {
  uint64_t hash = key.size();
  for (int64_t word : key) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

struct KeyHash {
  size_t operator()(const Key &key) const { return hashOf(key); }
};

/// A call's tensors as their framework describes them.
struct Described {
  std::array<void *, kMostTensors> data;
  int32_t deviceType = kHost, deviceId = 0;
};

struct Call {
  kvbufPlan *plan;
  std::vector<int32_t> order;
};

} // namespace

struct kvbufCalls {
  const ExchangeApi *api;
  size_t count;
  void *(*save)(void);
  void (*restore)(void *);
  /// Of `calls`; nothing that waits for the interpreter happens under it.
  std::mutex mutex;
  std::unordered_map<Key, Call, KeyHash> calls;

  /// False: the framework cannot describe an object, and says why in Python.
  bool describe(const Objects &objects, Key &key, Described &described) const {
    key.clear();
    for (size_t i = 0; i < count; ++i) {
      DlTensor t;
      if (api->describe(objects[i], &t) != 0)
        return false;
      key.push_back(static_cast<int64_t>(
          static_cast<uint64_t>(t.code) | static_cast<uint64_t>(t.bits) << 8 |
          static_cast<uint64_t>(t.lanes) << 16 |
          static_cast<uint64_t>(t.rank & 0xFF) << 32 |
          static_cast<uint64_t>(t.deviceType & 0xFF) << 40 |
          static_cast<uint64_t>(t.deviceId & 0xFFFF) << 48));
      // Without strides a tensor is contiguous, which its shape tells.
      key.push_back(t.strides != nullptr);
      key.insert(key.end(), t.shape, t.shape + t.rank);
      if (t.strides)
        key.insert(key.end(), t.strides, t.strides + t.rank);
      described.data[i] = static_cast<char *>(t.data) + t.byteOffset;
      if (i == 0) {
        described.deviceType = t.deviceType;
        described.deviceId = t.deviceId;
      }
    }
    return true;
  }
};

kvbufCalls *kvbufCallsCreate(const void *exchange, size_t tensor_count,
                             void *(*save)(void), void (*restore)(void *)) {
  const auto *api = static_cast<const ExchangeApi *>(exchange);
  if (!api || api->major != kDlpackMajor || !api->describe ||
      !api->currentStream || tensor_count == 0 || tensor_count > kMostTensors ||
      !save != !restore)
    return nullptr;
  auto *calls = new (std::nothrow) kvbufCalls;
  if (calls) {
    calls->api = api;
    calls->count = tensor_count;
    calls->save = save;
    calls->restore = restore;
  }
  return calls;
}

int kvbufCallsAdd(kvbufCalls *calls, kvbufPlan *plan, const int32_t *order,
                  size_t order_count, void *a, void *b, void *c, void *d,
                  void *e, void *f, void *g) {
  if (!calls || !plan || !order || order_count > kMostTensors * 4)
    return KVBUF_BAD_INPUT;
  for (size_t i = 0; i < order_count; ++i)
    if (order[i] < 0 || static_cast<size_t>(order[i]) >= calls->count)
      return KVBUF_BAD_INPUT;
  try {
    Key key;
    Described described;
    if (!calls->describe({a, b, c, d, e, f, g}, key, described))
      return KVBUF_BAD_INPUT;
    Call call{plan, {order, order + order_count}};
    std::lock_guard lock(calls->mutex);
    calls->calls.insert_or_assign(std::move(key), std::move(call));
  } catch (const std::bad_alloc &) {
    return KVBUF_BAD_INPUT;
  }
  return KVBUF_OK;
}

int kvbufCallsLaunch(kvbufCalls *calls, void *a, void *b, void *c, void *d,
                     void *e, void *f, void *g) {
  if (!calls)
    return KVBUF_BAD_INPUT;
  // Of this thread, so that a call allocates nothing.
  thread_local Key key;
  Described described;
  kvbufPlan *plan = nullptr;
  std::array<void *, kMostTensors * 4> addresses;
  try {
    if (!calls->describe({a, b, c, d, e, f, g}, key, described))
      return KVBUF_BAD_INPUT;
    std::lock_guard lock(calls->mutex);
    auto it = calls->calls.find(key);
    if (it == calls->calls.end())
      return KVBUF_NO_PLAN;
    plan = it->second.plan;
    const std::vector<int32_t> &order = it->second.order;
    for (size_t i = 0; i < order.size(); ++i)
      addresses[i] = described.data[static_cast<size_t>(order[i])];
  } catch (const std::bad_alloc &) {
    return KVBUF_BAD_INPUT;
  }
  void *stream = nullptr;
  if (described.deviceType != kHost &&
      calls->api->currentStream(described.deviceType, described.deviceId,
                                &stream) != 0)
    return KVBUF_BAD_INPUT;
  // A launch may wait for room in the driver's queue.
  void *thread = calls->save ? calls->save() : nullptr;
  int status = kvbufPlanLaunch(plan, addresses.data(), stream);
  if (calls->restore)
    calls->restore(thread);
  return status;
}

void kvbufCallsDestroy(kvbufCalls *calls) { delete calls; }
