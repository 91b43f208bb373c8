//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_LANELOWERING_TD
#define KVBUFFER_CONVERSION_LANELOWERING_TD

include "mlir/IR/OpBase.td"

def KVBuffer_LaneLoweringInterface : OpInterface<"LaneLoweringInterface"> {
  let cppNamespace = "::kvbuf";
  let description = [{
    An op of the tile or scheduled stage that becomes code for one lane.
    `convert-kvbuffer-to-gpu` visits a kernel's ops in their order and asks each for
    it. The dialect's own ops have external models; an op of another dialect
    implements the interface, or has a model too, and takes part like any other.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the lane code of the op, after that of its operands, and tells
        `context` what a lane holds of each result. The op itself is deleted with
        the kernel. Reports an error at the op if there is no such code.
      }], "::llvm::LogicalResult", "lowerToLanes",
      (ins "::kvbuf::LaneContext &":$context)>
  ];
}

#endif // KVBUFFER_CONVERSION_LANELOWERING_TD
