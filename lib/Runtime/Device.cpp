//===- lib/Runtime/Device.cpp - Opening a device by name --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Error.h"

using namespace kvbuf;
using namespace kvbuf::rt;

std::unique_ptr<Device> rt::openDevice(const std::string &name,
                                       const DeviceOptions &options) {
  std::string kind = name.substr(0, name.find(':'));
  unsigned ordinal = 0;
  bool wellFormed = true;
  if (kind.size() < name.size()) {
    std::string digits = name.substr(kind.size() + 1);
    wellFormed = !digits.empty() && digits.size() < 4 &&
                 digits.find_first_not_of("0123456789") == std::string::npos;
    if (wellFormed)
      ordinal = static_cast<unsigned>(std::stoul(digits));
  }
  if (wellFormed && kind == "cuda")
    return openCudaDevice(ordinal);
  if (wellFormed && kind == "hip")
    return openHipDevice(ordinal);
  if (name == "emulator")
    return openEmulatorDevice(options);
  throw Error("unknown device '" + name +
              "'; expected auto, emulator, cuda, cuda:N, hip or hip:N");
}

std::unique_ptr<Device> rt::openAutoDevice(const Artifact *artifact,
                                           const Manifest *manifest,
                                           const DeviceOptions &options,
                                           std::string &why) {
  std::string reasons;
  for (auto *open : {openCudaDevice, openHipDevice}) {
    std::string reason;
    try {
      std::unique_ptr<Device> device = open(0);
      if (artifact)
        reason = device->whyNot(manifest->target, *artifact);
      else if (device->chip().empty())
        reason = "no code can be made for " + device->description();
      if (reason.empty()) {
        why = device->description();
        return device;
      }
    } catch (const Error &e) {
      reason = e.what();
    }
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  std::unique_ptr<Device> device;
  try {
    device = openEmulatorDevice(options);
  } catch (const Error &e) {
    throw Error("no device: " + reasons + "; " + e.what());
  }
  why = device->description() + " (" + reasons + ")";
  return device;
}
