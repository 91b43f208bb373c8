//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What joins teams: the interface of the ops that make it, and the traits of the
// ops that use it or that a team's warps do together.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTEAMINTERFACES_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTEAMINTERFACES_TD

include "mlir/IR/OpBase.td"

def KVBuffer_TeamChannelInterface : OpInterface<"TeamChannelInterface"> {
  let cppNamespace = "::kvbuf";
  let description = [{
    An op that makes what joins teams: one team fills it, others take from it. It
    names them, and its only result stands for it. Ops that fill or take have the
    traits `FillsChannel` and `TakesFromChannel`, by which verifiers know in
    which team they belong.
  }];
  let methods = [
    InterfaceMethod<"The name of the team that fills.",
                    "::llvm::StringRef", "getFrom">,
    InterfaceMethod<"The names of the teams that take, each a symbol.",
                    "::mlir::ArrayAttr", "getTo">,
    InterfaceMethod<"Whether the team that fills takes, too.",
                    "bool", "doesFillerTake", (ins), [{}], [{ return false; }]>
  ];
  let extraSharedClassDeclaration = [{
    /// What ops fill and take from.
    ::mlir::Value getChannel() { return $_op->getResult(0); }
    /// The place of a team among those that take; -1 if it does not.
    int64_t getTaker(::llvm::StringRef team) {
      for (auto [i, name] : ::llvm::enumerate($_op.getTo()))
        if (::llvm::cast<::mlir::FlatSymbolRefAttr>(name).getValue() == team)
          return i;
      return -1;
    }
  }];
}

// TeamTraits.h tells what they mean.
class KVBuffer_TeamTrait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::kvbuf";
}
def KVBuffer_NeedsBlock : KVBuffer_TeamTrait<"NeedsBlock">;
def KVBuffer_Moves : KVBuffer_TeamTrait<"Moves">;
def KVBuffer_Together : KVBuffer_TeamTrait<"Together">;
def KVBuffer_FillsChannel : KVBuffer_TeamTrait<"FillsChannel">;
def KVBuffer_TakesFromChannel : KVBuffer_TeamTrait<"TakesFromChannel">;

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERTEAMINTERFACES_TD
