//===- lib/Runtime/PlanDevice.h - The device of a plan ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_PLANDEVICE_H
#define KVBUFFER_LIB_RUNTIME_PLANDEVICE_H

struct kvbufPlan;

namespace kvbuf::rt {

/// Whether the calling thread works on the plan's device.
bool isCurrent(const kvbufPlan &plan);

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_PLANDEVICE_H
