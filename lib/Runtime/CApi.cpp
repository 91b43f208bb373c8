//===- lib/Runtime/CApi.cpp - C API of the runtime --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanDevice.h"
#include "kvbuffer-c/Runtime.h"
#include "kvbuffer/Runtime/CompilerLibrary.h"
#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Functions.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

using namespace kvbuf;
using namespace kvbuf::rt;

struct kvbufArtifact {
  Artifact artifact;
  std::vector<ArtifactFunction> functions;

  /// Of the only function; throws Error that lists them if there are several.
  const Manifest &manifest() const {
    return onlyFunction(functions, "kvbufArtifactFunction").manifest;
  }
};

struct kvbufDevice {
  std::unique_ptr<Device> device;
  std::string kind, description, chip;
  /// Ends a launch; modules may outlive their device.
  std::shared_ptr<int> interrupt;
};

namespace {

/// A plan, and, once it was launched on a device that knows them, what the
/// addresses leave as it is.
struct RepeatedLaunch {
  LaunchPlan plan;
  std::unique_ptr<PreparedLaunch> prepared = nullptr;
};

} // namespace

struct kvbufModule {
  std::unique_ptr<Module> module;
  std::shared_ptr<int> interrupt;
  Manifest manifest;
  unsigned multiprocessors = 0;
  bool checksLengths = false, isHost = false;
  /// Held while the module works, so that threads take turns.
  mutable std::mutex mutex;
  /// Of the last launch.
  std::vector<std::string> remarks;
  /// Of kvbufModuleLaunch, by what a plan depends on.
  std::unordered_map<std::string, RepeatedLaunch> plans;
};

struct kvbufPlan {
  kvbufModule *module;
  RepeatedLaunch launch;
};

namespace {

thread_local std::string lastError;

constexpr int32_t kMaxRank = 16;

/// Runs `body`; turns exceptions into a status and the last error.
template <typename Body> int guarded(Body body) {
  lastError.clear();
  try {
    body();
    return KVBUF_OK;
  } catch (const KernelFault &e) {
    lastError = e.what();
    return KVBUF_KERNEL_FAULT;
  } catch (const Interrupted &e) {
    lastError = e.what();
    return KVBUF_INTERRUPTED;
  } catch (const std::bad_alloc &) {
    lastError = "out of memory";
  } catch (const std::exception &e) {
    lastError = e.what();
  }
  return KVBUF_BAD_INPUT;
}

/// Likewise for functions that return a new handle.
template <typename Handle, typename Body> Handle *guardedNew(Body body) {
  std::unique_ptr<Handle> handle;
  int status = guarded([&] { handle = body(); });
  return status == KVBUF_OK ? handle.release() : nullptr;
}

void require(const void *pointer, const char *what) {
  if (!pointer)
    throw Error(std::string(what) + " is NULL");
}

std::unique_ptr<kvbufArtifact> makeArtifact(std::string_view bytes,
                                            const std::string &origin) {
  auto handle = std::make_unique<kvbufArtifact>();
  std::string error;
  if (!parseArtifact(bytes, handle->artifact, error))
    throw Error(origin + error);
  try {
    handle->functions = parseFunctions(handle->artifact);
  } catch (const Error &e) {
    throw Error(origin + e.what());
  }
  return handle;
}

std::vector<TensorArg> convert(const kvbufTensor *tensors, size_t count) {
  std::vector<TensorArg> args;
  if (count > 0)
    require(tensors, "tensors");
  for (size_t i = 0; i < count; ++i) {
    const kvbufTensor &t = tensors[i];
    require(t.name, "a tensor's name");
    require(t.dtype, "a tensor's dtype");
    if (t.rank < 0 || t.rank > kMaxRank)
      throw Error("tensor '" + std::string(t.name) + "' has rank " +
                  std::to_string(t.rank));
    if (t.rank > 0)
      require(t.shape, "a tensor's shape");
    TensorArg arg;
    arg.name = t.name;
    arg.address = reinterpret_cast<uint64_t>(t.data);
    arg.dtype = parseDType(t.dtype);
    arg.shape.assign(t.shape, t.shape + t.rank);
    for (int64_t extent : arg.shape)
      if (extent < 0)
        throw Error("tensor '" + arg.name + "' has shape " +
                    shapeString(arg.shape));
    if (t.strides)
      arg.strides.assign(t.strides, t.strides + t.rank);
    args.push_back(std::move(arg));
  }
  return args;
}

Sizes convert(const Manifest &manifest, const kvbufSize *sizes, size_t count) {
  Sizes known;
  if (count > 0)
    require(sizes, "sizes");
  std::set<std::string> names = manifest.sizeNames();
  // Callers may say these to every kernel, also to one that does not ask.
  for (const auto &[name, value] : manifest.sizeDefaults)
    names.insert(name);
  for (size_t i = 0; i < count; ++i) {
    require(sizes[i].name, "a size's name");
    if (!names.count(sizes[i].name))
      throw Error("the kernel has no size '" + std::string(sizes[i].name) +
                  "'; it has " + quotedList(names, "and"));
    known[sizes[i].name] = sizes[i].value;
  }
  return known;
}

LaunchPlan makePlan(const kvbufModule &module, const kvbufTensor *tensors,
                    size_t tensorCount, const kvbufSize *sizes,
                    size_t sizeCount) {
  return LaunchPlan(module.manifest, convert(tensors, tensorCount),
                    convert(module.manifest, sizes, sizeCount),
                    module.multiprocessors, /*ranges=*/module.isHost);
}

/// Launches; the module's mutex is held.
void launchPlan(kvbufModule &module, RepeatedLaunch &repeated,
                const uint64_t *addresses, void *stream) {
  __atomic_store_n(module.interrupt.get(), 0, __ATOMIC_RELAXED);
  LaunchPlan &plan = repeated.plan;
  if (repeated.prepared && plan.holdsAt(addresses)) {
    module.remarks.clear();
    repeated.prepared->launch(addresses, stream);
    return;
  }
  const BoundLaunch &launch = plan.at(addresses);
  if (module.checksLengths)
    checkLengths(module.manifest, plan.arguments(), plan.givenSizes());
  module.remarks = launch.remarks;
  // Remarks quote addresses: such a launch is bound again at others.
  repeated.prepared = launch.remarks.empty()
                          ? module.module->prepare(launch, addresses)
                          : nullptr;
  if (repeated.prepared)
    repeated.prepared->launch(addresses, stream);
  else
    module.module->launch(launch, stream);
}

/// What a plan depends on, as bytes; false where something is missing, of which
/// `convert` tells.
bool describeArguments(const kvbufTensor *tensors, size_t tensorCount,
                       const kvbufSize *sizes, size_t sizeCount,
                       std::string &key) {
  auto add = [&](const void *data, size_t bytes) {
    key.append(static_cast<const char *>(data), bytes);
  };
  auto text = [&](const char *s) { add(s, std::strlen(s) + 1); };
  if ((tensorCount && !tensors) || (sizeCount && !sizes))
    return false;
  for (size_t i = 0; i < tensorCount; ++i) {
    const kvbufTensor &t = tensors[i];
    if (!t.name || !t.dtype || t.rank < 0 || t.rank > kMaxRank ||
        (t.rank > 0 && !t.shape))
      return false;
    text(t.name);
    text(t.dtype);
    add(&t.rank, sizeof(t.rank));
    size_t bytes = sizeof(int64_t) * static_cast<size_t>(t.rank);
    add(t.shape, bytes);
    key.push_back(t.strides ? 's' : '-');
    if (t.strides)
      add(t.strides, bytes);
  }
  for (size_t i = 0; i < sizeCount; ++i) {
    if (!sizes[i].name)
      return false;
    text(sizes[i].name);
    add(&sizes[i].value, sizeof(sizes[i].value));
  }
  return true;
}

} // namespace

const char *kvbufRuntimeVersion(void) { return KVBUF_VERSION; }

const char *kvbufLastError(void) { return lastError.c_str(); }

kvbufArtifact *kvbufArtifactOpenFile(const char *path) {
  return guardedNew<kvbufArtifact>([&] {
    require(path, "path");
    std::string bytes, error;
    if (!readWholeFile(path, bytes, error))
      throw Error(error);
    return makeArtifact(bytes, "'" + std::string(path) + "': ");
  });
}

kvbufArtifact *kvbufArtifactOpenBytes(const void *data, size_t bytes) {
  return guardedNew<kvbufArtifact>([&] {
    require(data, "data");
    return makeArtifact({static_cast<const char *>(data), bytes}, "");
  });
}

kvbufArtifact *kvbufArtifactCompile(const char *source, size_t bytes,
                                    const char *filename,
                                    const char *options_json) {
  return guardedNew<kvbufArtifact>([&] {
    require(source, "source");
    // Warnings and remarks have no place to go here; errors become the
    // exception's text, all of them.
    std::string errors;
    std::string name = filename ? filename : "<memory>";
    try {
      std::string image = compileSource(
          std::string(source, bytes), name, options_json ? options_json : "{}",
          [&](Severity severity, const std::string &text) {
            if (severity == Severity::Error ||
                (severity == Severity::Note && !errors.empty()))
              errors += (errors.empty() ? "" : "\n") + text;
          });
      return makeArtifact(image, "");
    } catch (const Error &) {
      if (errors.empty())
        throw;
      throw Error(errors);
    }
  });
}

int kvbufArtifactSave(const kvbufArtifact *artifact, const char *path) {
  return guarded([&] {
    require(artifact, "artifact");
    require(path, "path");
    std::string error;
    if (!writeWholeFile(path, serializeArtifact(artifact->artifact), error))
      throw Error(error);
  });
}

const char *kvbufArtifactManifest(const kvbufArtifact *artifact) {
  return artifact ? artifact->artifact.manifest.c_str() : "";
}

size_t kvbufArtifactFunctionCount(const kvbufArtifact *artifact) {
  return artifact ? artifact->functions.size() : 0;
}

const char *kvbufArtifactFunctionName(const kvbufArtifact *artifact,
                                      size_t number) {
  if (number >= kvbufArtifactFunctionCount(artifact))
    return "";
  return artifact->functions[number].manifest.name.c_str();
}

kvbufArtifact *kvbufArtifactFunction(const kvbufArtifact *artifact,
                                     const char *name) {
  return guardedNew<kvbufArtifact>([&] {
    require(artifact, "artifact");
    require(name, "name");
    auto handle = std::make_unique<kvbufArtifact>();
    handle->artifact = extractFunction(artifact->artifact,
                                       findFunction(artifact->functions, name));
    handle->functions = parseFunctions(handle->artifact);
    return handle;
  });
}

int kvbufArtifactInferShape(const kvbufArtifact *artifact, const char *name,
                            const kvbufTensor *tensors, size_t tensor_count,
                            const kvbufSize *sizes, size_t size_count,
                            int64_t shape[16], int32_t *rank) {
  return guarded([&] {
    require(artifact, "artifact");
    require(name, "name");
    require(shape, "shape");
    require(rank, "rank");
    const Manifest &manifest = artifact->manifest();
    const TensorSpec *spec = manifest.findTensor(name);
    if (!spec)
      throw Error("the kernel has no tensor '" + std::string(name) + "'");
    Sizes known = convert(manifest, sizes, size_count);
    inferSizes(manifest, convert(tensors, tensor_count), known);
    std::vector<int64_t> extents = evaluateShape(*spec, known);
    *rank = static_cast<int32_t>(extents.size());
    std::copy(extents.begin(), extents.end(), shape);
  });
}

void kvbufArtifactClose(kvbufArtifact *artifact) { delete artifact; }

kvbufDevice *kvbufDeviceOpen(const char *name, const char *options_json) {
  return guardedNew<kvbufDevice>([&] {
    DeviceOptions options;
    if (options_json)
      options.emulator = options_json;
    auto handle = std::make_unique<kvbufDevice>();
    handle->interrupt = std::make_shared<int>(0);
    options.interrupt = handle->interrupt;
    std::string which = name ? name : "auto", why;
    handle->device = which == "auto"
                         ? openAutoDevice(nullptr, nullptr, options, why)
                         : openDevice(which, options);
    handle->kind = handle->device->kind();
    handle->description = handle->device->description();
    handle->chip = handle->device->chip();
    return handle;
  });
}

const char *kvbufDeviceKind(const kvbufDevice *device) {
  return device ? device->kind.c_str() : "";
}

const char *kvbufDeviceDescription(const kvbufDevice *device) {
  return device ? device->description.c_str() : "";
}

const char *kvbufDeviceChip(const kvbufDevice *device) {
  return device ? device->chip.c_str() : "";
}

void kvbufDeviceInterrupt(kvbufDevice *device) {
  if (device)
    __atomic_store_n(device->interrupt.get(), 1, __ATOMIC_RELAXED);
}

int kvbufDeviceSynchronize(kvbufDevice *device) {
  return guarded([&] {
    require(device, "device");
    device->device->synchronize();
  });
}

void kvbufDeviceClose(kvbufDevice *device) { delete device; }

kvbufModule *kvbufModuleLoad(kvbufDevice *device,
                             const kvbufArtifact *artifact) {
  return guardedNew<kvbufModule>([&] {
    require(device, "device");
    require(artifact, "artifact");
    auto handle = std::make_unique<kvbufModule>();
    handle->manifest = artifact->manifest();
    handle->module = device->device->load(artifact->artifact, handle->manifest);
    handle->interrupt = device->interrupt;
    handle->multiprocessors = device->device->multiprocessors();
    handle->checksLengths = device->device->checksLengths();
    handle->isHost = device->device->isHost();
    return handle;
  });
}

int kvbufModuleLaunch(kvbufModule *module, const kvbufTensor *tensors,
                      size_t tensor_count, const kvbufSize *sizes,
                      size_t size_count, void *stream) {
  return guarded([&] {
    require(module, "module");
    // A server launches the same few shapes again and again.
    constexpr size_t kMostPlans = 256;
    std::string key;
    if (!describeArguments(tensors, tensor_count, sizes, size_count, key)) {
      convert(tensors, tensor_count);
      convert(module->manifest, sizes, size_count);
    }
    std::lock_guard lock(module->mutex);
    auto it = module->plans.find(key);
    if (it == module->plans.end()) {
      RepeatedLaunch plan{
          makePlan(*module, tensors, tensor_count, sizes, size_count)};
      if (module->plans.size() == kMostPlans)
        module->plans.clear();
      it = module->plans.emplace(key, std::move(plan)).first;
    }
    std::vector<uint64_t> addresses(tensor_count);
    for (size_t i = 0; i < tensor_count; ++i)
      addresses[i] = reinterpret_cast<uint64_t>(tensors[i].data);
    launchPlan(*module, it->second, addresses.data(), stream);
  });
}

kvbufPlan *kvbufPlanCreate(kvbufModule *module, const kvbufTensor *tensors,
                           size_t tensor_count, const kvbufSize *sizes,
                           size_t size_count) {
  return guardedNew<kvbufPlan>([&] {
    require(module, "module");
    return std::unique_ptr<kvbufPlan>(new kvbufPlan{
        module, {makePlan(*module, tensors, tensor_count, sizes, size_count)}});
  });
}

int kvbufPlanLaunch(kvbufPlan *plan, void *const *data, void *stream) {
  return guarded([&] {
    require(plan, "plan");
    require(data, "data");
    static_assert(sizeof(void *) == sizeof(uint64_t));
    std::lock_guard lock(plan->module->mutex);
    launchPlan(*plan->module, plan->launch,
               reinterpret_cast<const uint64_t *>(data), stream);
  });
}

void kvbufPlanDestroy(kvbufPlan *plan) { delete plan; }

bool kvbuf::rt::isCurrent(const kvbufPlan &plan) {
  return plan.module->module->isCurrent();
}

const char *kvbufModuleReport(kvbufModule *module) {
  // A copy for the thread that asks: another's launch may replace the text.
  thread_local std::string report;
  report.clear();
  if (!module)
    return "";
  guarded([&] {
    std::lock_guard lock(module->mutex);
    report = module->module->report();
  });
  return report.c_str();
}

const char *kvbufModuleRemarks(const kvbufModule *module) {
  thread_local std::string remarks;
  remarks.clear();
  if (module) {
    std::lock_guard lock(module->mutex);
    for (const std::string &remark : module->remarks)
      remarks += (remarks.empty() ? "" : "\n") + remark;
  }
  return remarks.c_str();
}

void kvbufModuleUnload(kvbufModule *module) { delete module; }
