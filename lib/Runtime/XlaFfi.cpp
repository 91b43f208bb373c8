//===- lib/Runtime/XlaFfi.cpp - Plans as XLA's custom calls -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// XLA calls foreign functions through a C interface whose layout is stable
// (xla/ffi/api/c_api.h, major version 0). What is used of it stands here, so
// that nothing of XLA's is needed to build.
//
//===----------------------------------------------------------------------===//

#include "PlanDevice.h"
#include "kvbuffer-c/Runtime.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

/// XLA_FFI_API_MAJOR of the layouts here.
constexpr int kMajor = 0;
/// XLA_FFI_Error_Code's.
enum Code : int { InvalidArgument = 3, Internal = 13 };
/// XLA_FFI_Extension_Metadata.
constexpr int kMetadata = 1;
/// XLA_FFI_ExecutionStage_EXECUTE.
constexpr int kExecute = 3;
/// XLA_FFI_AttrType_SCALAR, and XLA_FFI_DataType_S64 of it.
constexpr int kScalar = 3, kS64 = 5;

struct Extension {
  size_t size;
  int type;
  Extension *next;
};

struct ApiVersion {
  size_t size;
  Extension *extension;
  int major, minor;
};

/// As far as all versions have it; traits stay 0.
struct Metadata {
  size_t size;
  ApiVersion version;
  uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

struct ErrorArguments {
  size_t size;
  Extension *extension;
  const char *message;
  int code;
};

struct StreamArguments {
  size_t size;
  Extension *extension;
  void *context;
  void *stream;
};

struct Api {
  size_t size;
  Extension *extension;
  ApiVersion version;
  const void *internal;
  void *(*createError)(ErrorArguments *);
  void (*getMessage)(void *);
  void (*destroyError)(void *);
  void *(*registerHandler)(void *);
  void *(*getStream)(StreamArguments *);
};

struct ErrorHandle {
  size_t size;
  Extension *extension;
  void *error;
};

struct Buffer {
  size_t size;
  Extension *extension;
  int dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
};

/// XLA_FFI_Args and XLA_FFI_Rets.
struct Buffers {
  size_t size;
  Extension *extension;
  int64_t count;
  int *types;
  Buffer **buffers;
};

struct Span {
  const char *data;
  size_t size;
};

struct Scalar {
  int dtype;
  const void *value;
};

struct Attributes {
  size_t size;
  Extension *extension;
  int64_t count;
  int *types;
  Span **names;
  void **values;
};

struct CallFrame {
  size_t size;
  Extension *extension;
  const Api *api;
  void *context;
  int stage;
  Buffers arguments, results;
  Attributes attributes;
};
static_assert(sizeof(Buffers) == 40 && sizeof(Attributes) == 48 &&
              offsetof(CallFrame, arguments) == 40 &&
              offsetof(CallFrame, attributes) == 120);

struct Entry {
  kvbufPlan *plan;
  size_t tensors;
};

std::mutex mutex;
/// By number; one for each device.
std::unordered_map<int64_t, std::vector<Entry>> &plans() {
  static auto *all = new std::unordered_map<int64_t, std::vector<Entry>>;
  return *all; // threads of XLA's may outlive destructors
}

void *error(const CallFrame &frame, Code code, const std::string &message) {
  ErrorArguments arguments{sizeof(ErrorArguments), nullptr, message.c_str(),
                           code};
  return frame.api->createError(&arguments);
}

/// The attribute "number".
const int64_t *numberOf(const Attributes &attributes) {
  for (int64_t i = 0; i < attributes.count; ++i) {
    const Span &name = *attributes.names[i];
    if (std::string_view(name.data, name.size) != "number" ||
        attributes.types[i] != kScalar)
      continue;
    const auto *scalar = static_cast<const Scalar *>(attributes.values[i]);
    if (scalar->dtype == kS64)
      return static_cast<const int64_t *>(scalar->value);
  }
  return nullptr;
}

/// The stream that XLA works on; null on the host, where there is none.
void *streamOf(const CallFrame &frame) {
  StreamArguments arguments{sizeof(StreamArguments), nullptr, frame.context,
                            nullptr};
  void *failed = frame.api->getStream(&arguments);
  if (!failed)
    return arguments.stream;
  ErrorHandle handle{sizeof(ErrorHandle), nullptr, failed};
  frame.api->destroyError(&handle);
  return nullptr;
}

/// The plan of a number on the device that the thread works on.
Entry find(int64_t number) {
  std::lock_guard lock(mutex);
  auto found = plans().find(number);
  if (found != plans().end())
    for (const Entry &entry : found->second)
      if (kvbuf::rt::isCurrent(*entry.plan))
        return entry;
  return {nullptr, 0};
}

void *launch(const CallFrame &frame) {
  const int64_t *number = numberOf(frame.attributes);
  if (!number)
    return error(frame, InvalidArgument,
                 "kvbuf: the call has no attribute 'number' of 64 bits");
  Entry entry = find(*number);
  if (!entry.plan)
    return error(frame, InvalidArgument,
                 "kvbuf: this process has no kernel of number " +
                     std::to_string(*number) +
                     " on the device; trace the function here, on that device");
  size_t count = frame.arguments.count + frame.results.count;
  if (count != entry.tensors)
    return error(frame, InvalidArgument,
                 "kvbuf: the call has " + std::to_string(count) +
                     " buffers, and the kernel takes " +
                     std::to_string(entry.tensors));
  std::vector<void *> data;
  data.reserve(count);
  // What has no element may be nowhere.
  alignas(16) static char nothing[16];
  for (const Buffers *buffers : {&frame.arguments, &frame.results})
    for (int64_t i = 0; i < buffers->count; ++i) {
      const Buffer &buffer = *buffers->buffers[i];
      bool isEmpty = std::count(buffer.dims, buffer.dims + buffer.rank, 0) > 0;
      data.push_back(buffer.data || !isEmpty ? buffer.data : nothing);
    }
  if (kvbufPlanLaunch(entry.plan, data.data(), streamOf(frame)) != KVBUF_OK)
    return error(frame, Internal, std::string("kvbuf: ") + kvbufLastError());
  return nullptr;
}

} // namespace

int kvbufXlaAdd(int64_t number, kvbufPlan *plan, size_t tensor_count) {
  if (!plan)
    return KVBUF_BAD_INPUT;
  std::lock_guard lock(mutex);
  plans()[number].push_back({plan, tensor_count});
  return KVBUF_OK;
}

void *kvbufXlaHandler(void *call_frame) {
  auto &frame = *static_cast<CallFrame *>(call_frame);
  if (frame.extension && frame.extension->type == kMetadata) {
    // Layouts here are those of all minor versions.
    auto *asked = reinterpret_cast<MetadataExtension *>(frame.extension);
    asked->metadata->version.major = kMajor;
    asked->metadata->version.minor = frame.api->version.minor;
    asked->metadata->traits = 0;
    return nullptr;
  }
  return frame.stage == kExecute ? launch(frame) : nullptr;
}
