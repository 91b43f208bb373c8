//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_TILEEXECUTION_TD
#define KVBUFFER_EMULATOR_TILEEXECUTION_TD

include "mlir/IR/OpBase.td"

def KVBuffer_TileExecutionInterface : OpInterface<"TileExecutionInterface"> {
  let cppNamespace = "::kvbuf::emu";
  let description = [{
    An op of the tile or scheduled stage with a meaning on whole tiles, which the
    tile interpreter executes. The dialect's own ops have external models; an op
    of another dialect implements the interface, or has a model too. Ops on
    scalars alone need none, if they have a folder.
  }];
  let methods = [
    InterfaceMethod<[{
        Computes the results from the operands, for one block. Fails, with a
        diagnostic that `context` begins, where the program breaks a promise.
      }], "::llvm::LogicalResult", "executeTile",
      (ins "::kvbuf::emu::TileContext &":$context)>
  ];
}

#endif // KVBUFFER_EMULATOR_TILEEXECUTION_TD
