//===- lib/Runtime/AllowDuringCapture.h - Allocations in captures *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_ALLOWDURINGCAPTURE_H
#define KVBUFFER_LIB_RUNTIME_ALLOWDURINGCAPTURE_H

#include "GpuDriver.h"

namespace kvbuf::rt {

/// Lets this thread allocate while it, or another one, captures a stream. That
/// is forbidden by default because an allocation may wait for the device, which
/// one that nobody waits for does no harm with.
class AllowDuringCapture {
public:
  explicit AllowDuringCapture(const GpuDriver &driver) : driver(driver) {
    exchange();
  }
  ~AllowDuringCapture() { exchange(); }

private:
  void exchange() {
    if (driver.exchangeCaptureMode)
      driver.exchangeCaptureMode(&mode);
  }
  const GpuDriver &driver;
  /// CUstreamCaptureMode: relaxed.
  int mode = 2;
};

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_ALLOWDURINGCAPTURE_H
