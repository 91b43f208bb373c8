//===- lib/Runtime/Calls.cpp - Plans by a framework's tensors ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading shapes and strides of a call's tensors in Python, and going through a
// foreign-function interface, take longer than everything else that a repeated
// call does before the driver. Frameworks offer a table of C functions for the
// former (DLPack 1.3, "DLPackExchangeAPI"), CPython calls C functions of a few
// shapes at no cost, so all of it is done here; without the interpreter's
// headers: its objects are opaque.
//
//===----------------------------------------------------------------------===//

#include "PlanDevice.h"
#include "kvbuffer-c/Runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t kMostInputs = 10, kMostOutputs = 2,
                 kMostTensors = kMostInputs + kMostOutputs;
/// Tensors of more dimensions have no plan.
constexpr int32_t kMostDims = 8;
/// DLPack's major version; another one may lay the table out otherwise.
constexpr uint32_t kDlpackMajor = 1;
/// DLDeviceType of host memory, which has no stream.
constexpr int32_t kHost = 1;
/// CPython's METH_FASTCALL.
constexpr int kFastCall = 0x80;

/// DLTensor of dlpack.h.
struct DlTensor {
  void *data;
  int32_t deviceType, deviceId, rank;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t byteOffset;

  void *first() const { return static_cast<char *>(data) + byteOffset; }
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

/// PyMethodDef, of an interface that is stable.
struct MethodDef {
  const char *name;
  void *(*function)(void *self, void *const *arguments, intptr_t count);
  int flags;
  const char *doc;
};

/// What a plan follows from, as words.
struct Key {
  size_t count = 0;
  std::array<int64_t, kMostInputs * (2 + 2 * kMostDims)> words;

  void add(int64_t word) { words[count++] = word; }
  void add(const int64_t *from, size_t n) {
    std::copy(from, from + n, words.begin() + count);
    count += n;
  }
  bool operator==(const Key &other) const {
    return count == other.count && std::memcmp(words.data(), other.words.data(),
                                               count * sizeof(int64_t)) == 0;
  }
};

struct KeyHash {
  size_t operator()(const Key &key) const {
    uint64_t hash = key.count;
    for (size_t i = 0; i < key.count; ++i) {
      hash = (hash ^ static_cast<uint64_t>(key.words[i])) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// A call's tensors as their framework describes them.
struct Described {
  std::array<void *, kMostTensors> data;
  int32_t deviceType = kHost, deviceId = 0;
};

struct Call {
  kvbufPlan *plan;
  std::vector<int32_t> order;
  std::array<kvbufOutput, kMostOutputs> outputs;
};

} // namespace

struct kvbufCalls {
  const ExchangeApi *api;
  size_t inputs, outputs;
  kvbufPython python;
  /// Of `calls` and `last`; nothing that waits for the interpreter happens
  /// under it. Calls that are there stay as they are.
  std::mutex mutex;
  std::unordered_map<Key, Call, KeyHash> calls;
  const std::pair<const Key, Call> *last = nullptr;

  /// False where there is no plan for such objects, or the framework cannot
  /// describe one, and has set a Python exception (`refused`).
  bool describe(void *const *objects, Key &key, Described &described,
                bool &refused) const {
    refused = false;
    for (size_t i = 0; i < inputs; ++i) {
      DlTensor t;
      if (api->describe(objects[i], &t) != 0) {
        refused = true;
        return false;
      }
      if (t.rank < 0 || t.rank > kMostDims)
        return false;
      key.add(static_cast<int64_t>(
          static_cast<uint64_t>(t.code) | static_cast<uint64_t>(t.bits) << 8 |
          static_cast<uint64_t>(t.lanes) << 16 |
          static_cast<uint64_t>(t.rank & 0xFF) << 32 |
          static_cast<uint64_t>(t.deviceType & 0xFF) << 40 |
          static_cast<uint64_t>(t.deviceId & 0xFFFF) << 48));
      // Without strides a tensor is contiguous, which its shape tells.
      key.add(t.strides != nullptr);
      key.add(t.shape, static_cast<size_t>(t.rank));
      if (t.strides)
        key.add(t.strides, static_cast<size_t>(t.rank));
      described.data[i] = t.first();
      if (i == 0) {
        described.deviceType = t.deviceType;
        described.deviceId = t.deviceId;
      }
    }
    return true;
  }

  const Call *find(const Key &key) {
    std::lock_guard lock(mutex);
    if (last && last->first == key)
      return &last->second;
    auto it = calls.find(key);
    if (it == calls.end())
      return nullptr;
    last = &*it;
    return &it->second;
  }

  void *none() const {
    python.Py_IncRef(python.none);
    return python.none;
  }

  /// A new output, null with an exception.
  void *make(const kvbufOutput &output, void *first, bool current) const {
    if (current && output.quick)
      return python.PyObject_Call(output.quick, output.quick_arguments,
                                  nullptr);
    return python.PyObject_CallFunctionObjArgs(
        output.make, output.like ? output.like : first, nullptr);
  }

  /// What a call returns: an object, or null with an exception.
  void *run(void *const *arguments) {
    Key key;
    Described described;
    bool refused;
    if (!describe(arguments, key, described, refused)) {
      // The slower way says what is wrong.
      if (refused)
        python.PyErr_Clear();
      return none();
    }
    const Call *call = find(key);
    if (!call)
      return none();
    bool current = kvbuf::rt::isCurrent(*call->plan);
    std::array<void *, kMostOutputs> made = {};
    auto drop = [&] {
      for (void *object : made)
        if (object)
          python.Py_DecRef(object);
    };
    for (size_t i = 0; i < outputs; ++i) {
      DlTensor t;
      made[i] = make(call->outputs[i], arguments[0], current);
      if (!made[i] || api->describe(made[i], &t) != 0) {
        drop();
        return nullptr;
      }
      described.data[inputs + i] = t.first();
    }
    void *stream = nullptr;
    if (described.deviceType != kHost &&
        api->currentStream(described.deviceType, described.deviceId, &stream)) {
      drop();
      return nullptr;
    }
    if (int status = launch(*call, described, stream)) {
      drop();
      return python.PyObject_CallFunction(python.check, "i", status);
    }
    if (outputs == 0) {
      python.Py_IncRef(arguments[inputs - 1]);
      return arguments[inputs - 1];
    }
    if (outputs == 1)
      return made[0];
    void *both = python.PyTuple_Pack(2, made[0], made[1]);
    drop();
    return both;
  }

  int launch(const Call &call, const Described &described, void *stream) const {
    std::array<void *, kMostTensors * 4> addresses;
    for (size_t i = 0; i < call.order.size(); ++i)
      addresses[i] = described.data[static_cast<size_t>(call.order[i])];
    // A launch may wait for room in the driver's queue.
    void *thread = python.PyEval_SaveThread();
    int status = kvbufPlanLaunch(call.plan, addresses.data(), stream);
    python.PyEval_RestoreThread(thread);
    return status;
  }
};

kvbufCalls *kvbufCallsCreate(const void *exchange, size_t input_count,
                             size_t output_count, const kvbufPython *python) {
  const auto *api = static_cast<const ExchangeApi *>(exchange);
  if (!api || api->major != kDlpackMajor || !api->describe ||
      !api->currentStream || !python || input_count == 0 ||
      input_count > kMostInputs || output_count > kMostOutputs)
    return nullptr;
  auto *calls = new (std::nothrow) kvbufCalls;
  if (calls) {
    calls->api = api;
    calls->inputs = input_count;
    calls->outputs = output_count;
    calls->python = *python;
  }
  return calls;
}

int kvbufCallsAdd(kvbufCalls *calls, kvbufPlan *plan, const int32_t *order,
                  size_t order_count, void *const *inputs,
                  const kvbufOutput *outputs) {
  if (!calls || !plan || !order || !inputs || !outputs ||
      order_count > kMostTensors * 4)
    return KVBUF_BAD_INPUT;
  for (size_t i = 0; i < order_count; ++i)
    if (order[i] < 0 ||
        static_cast<size_t>(order[i]) >= calls->inputs + calls->outputs)
      return KVBUF_BAD_INPUT;
  for (size_t i = 0; i < calls->outputs; ++i)
    if (!outputs[i].make || !outputs[i].quick != !outputs[i].quick_arguments)
      return KVBUF_BAD_INPUT;
  try {
    Key key;
    Described described;
    bool refused;
    if (!calls->describe(inputs, key, described, refused))
      return refused ? KVBUF_BAD_INPUT : KVBUF_OK;
    Call call{plan, {order, order + order_count}, {}};
    std::copy(outputs, outputs + calls->outputs, call.outputs.begin());
    std::lock_guard lock(calls->mutex);
    calls->calls.emplace(key, std::move(call));
  } catch (const std::bad_alloc &) {
    return KVBUF_BAD_INPUT;
  }
  return KVBUF_OK;
}

/// CPython's function of that name.
static void *(*asVoidPtr)(void *object) = nullptr;

/// PyCFunctionFast.
static void *callWith(void *self, void *const *arguments, intptr_t count) {
  auto *calls = static_cast<kvbufCalls *>(asVoidPtr(self));
  if (static_cast<size_t>(count) != calls->inputs)
    return calls->none();
  return calls->run(arguments);
}

void *kvbufCallsMethod(void *(*PyLong_AsVoidPtr)(void *object)) {
  static MethodDef method = {"call", callWith, kFastCall, nullptr};
  asVoidPtr = PyLong_AsVoidPtr;
  return &method;
}

void kvbufCallsDestroy(kvbufCalls *calls) { delete calls; }
