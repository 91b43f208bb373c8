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

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

class KVBuffer_Level<string name> : NativeOpTrait<name> {
  let cppNamespace = "::kvbuf";
}
/// What a function of a problem consists of.
def KVBuffer_ProblemLevel : KVBuffer_Level<"ProblemLevel">;
/// Values are tiles, and a block or a team of its warps executes the op.
def KVBuffer_TileLevel : KVBuffer_Level<"TileLevel">;
/// Values are those of one lane.
def KVBuffer_LaneLevel : KVBuffer_Level<"LaneLevel">;
/// Of these: asks a cache, which kvbuf-expand-cache-ops rewrites.
def KVBuffer_OnCaches : KVBuffer_Level<"OnCaches">;
/// Of these: stays through the target stage.
def KVBuffer_UntilTranslation : KVBuffer_Level<"UntilTranslation">;

/// A chapter of the reference, and the level of its ops, which phases ask for. A
/// file has ops of one group.
class KVBuffer_Group<string title, list<Trait> levels, string text>
    : OpDocGroup {
  let summary = title;
  let description = text;
  list<Trait> traits = levels;
}

def KVBuffer_Problems : KVBuffer_Group<"Problems", [KVBuffer_ProblemLevel],
    "What to compute: the problem stage. Others' problems are of this level, too.">;
def KVBuffer_Caches : KVBuffer_Group<"Caches, lane by lane",
    [KVBuffer_LaneLevel, KVBuffer_OnCaches],
    "What a lane asks a cache; any function may.">;
def KVBuffer_Tiles : KVBuffer_Group<"Tiles", [KVBuffer_TileLevel],
    "Tiles in DRAM, and their way through LDS into fragments and back.">;
def KVBuffer_Fragments : KVBuffer_Group<"Fragments", [KVBuffer_TileLevel],
    "What products take and give, and arithmetic on it.">;
def KVBuffer_Softmax : KVBuffer_Group<"Softmax", [KVBuffer_TileLevel],
    "The softmax of attention, as a whole and in the parts that pipelines cut it into.">;
def KVBuffer_Teams : KVBuffer_Group<"Teams", [KVBuffer_TileLevel],
    "Teams of a block's warps, where they meet, and what they hand on by queues and shelves.">;
def KVBuffer_Rings : KVBuffer_Group<"Rings and products in flight", [KVBuffer_TileLevel],
    "Slots that teams hand on, numbers that they send, products that are awaited later, and turns.">;
def KVBuffer_Work : KVBuffer_Group<"Work", [KVBuffer_TileLevel],
    "What a block takes of a launch, and what blocks tell each other through DRAM.">;
def KVBuffer_Lanes : KVBuffer_Group<"Lanes", [KVBuffer_LaneLevel],
    "What lanes of any vendor do where upstream's dialects have no op for it.">;
def KVBuffer_AMD : KVBuffer_Group<"Lanes of AMD's chips", [KVBuffer_LaneLevel],
    "The thread stage alone: kvbuf-to-rocdl lowers them.">;
def KVBuffer_NVIDIA : KVBuffer_Group<"Lanes of NVIDIA's chips",
    [KVBuffer_LaneLevel, KVBuffer_UntilTranslation],
    "Instructions that become inline assembly in the translation out of MLIR.">;

class KVBuffer_OpOf<KVBuffer_Group group, string mnemonic, list<Trait> traits = []>
    : Op<KVBuffer_Dialect, mnemonic,
         !listconcat([KVBuffer_OwnAttributes], group.traits, traits)> {
  let opDocGroup = group;
}

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
