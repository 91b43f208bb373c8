//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What descriptions of this dialect's ops share: the class of an op, its traits,
// and the resources of its effects.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFEROPBASE_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFEROPBASE_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTeamInterfaces.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTypes.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

/// Every op refuses attributes that it does not know; before it verifies the
/// rest, so that a misspelt name is not reported as a missing one.
def KVBuffer_OwnAttributes : NativeOpTrait<"OwnAttributes">, StructuralOpTrait {
  let cppNamespace = "::kvbuf";
}

class KVBuffer_Op<string mnemonic, list<Trait> traits = []>
    : Op<KVBuffer_Dialect, mnemonic,
         !listconcat([KVBuffer_OwnAttributes], traits)>;

/// Results have names that say what they are: %kbuf, %ks, %s, ...
def KVBuffer_NamedResults
    : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

/// Any type that says how a cache lies in memory.
def KVBuffer_AnyCache : Type<CPred<"::llvm::isa<::kvbuf::CacheLayout>($_self)">,
                             "cache", "::mlir::Type">;

/// The data of LDS buffers.
def KVBuffer_Lds : Resource<"::kvbuf::LdsResource">;
/// Copies in flight.
def KVBuffer_Async : Resource<"::kvbuf::AsyncResource">;

/// A tensor, or the memory of one.
def KVBuffer_Shaped : AnyTypeOf<[AnyMemRef, AnyRankedTensor]>;
class KVBuffer_ShapedOf<list<Type> types, int rank>
    : AnyTypeOf<[MemRefRankOf<types, [rank]>, TensorRankOf<types, [rank]>]>;

/// Problems write what they are given: results are of tensors only.
def KVBuffer_Problem
    : TraitList<[AttrSizedOperandSegments, DestinationStyleOpInterface,
                 DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                 DeclareOpInterfaceMethods<
                     ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]>;

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFEROPBASE_TD
