//===- DevicePeaks.cpp - What devices can do at most ----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Target/DevicePeaks.h"

using namespace kvbuf;

// NVIDIA's data sheets of the A100, H100 and H200 Tensor Core GPUs state rates
// with sparsity, twice these.
static constexpr DevicePeak ampere[] = {{"A100-SXM4-80GB", 312e12, 2.039e12},
                                        {"A100 80GB PCIe", 312e12, 1.935e12},
                                        {"A100", 312e12, 1.555e12}};
static constexpr DevicePeak hopper[] = {{"H200", 989.4e12, 4.8e12},
                                        {"H100 80GB HBM3", 989.4e12, 3.35e12},
                                        {"H100 PCIe", 756e12, 2.0e12}};
// AMD's data sheets of the Instinct MI300X, MI325X, MI350X and MI355X.
static constexpr DevicePeak cdna3[] = {{"MI325X", 1307.4e12, 6.0e12},
                                       {"MI300X", 1307.4e12, 5.3e12}};
static constexpr DevicePeak cdna4[] = {{"MI355X", 2516.6e12, 8.0e12},
                                       {"MI350X", 2309.6e12, 8.0e12}};

llvm::ArrayRef<DevicePeak> kvbuf::devicePeaks(llvm::StringRef chip) {
  if (chip == "sm_80")
    return ampere;
  if (chip == "sm_90" || chip == "sm_90a")
    return hopper;
  if (chip == "gfx942")
    return cdna3;
  if (chip == "gfx950")
    return cdna4;
  return {};
}
