//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMINTERFACE_TD
#define KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMINTERFACE_TD

include "mlir/IR/OpBase.td"

def KVBuffer_ProblemInterface : OpInterface<"ProblemInterface"> {
  let cppNamespace = "::kvbuf";
  let description = [{
    A problem: an op that says what to compute, which passes make kernels of.
    Passes, drivers and tools ask this interface, and know no problem by its name:
    the op's folder in lib/Programs has all that is known of it.

    A problem has a schedule and a tile program, or is written by lanes
    (`isByLanes`); these are for problems of the first kind: `chooseSchedule`,
    `getCandidates`, `buildTile`.
  }];
  let extraClassDeclaration = [{
    ::mlir::InFlightDiagnostic emitOpError(const ::llvm::Twine &message = {}) {
      return getOperation()->emitOpError(message);
    }
  }];
  let methods = [
    InterfaceMethod<"What kernels call its operands.",
      "::llvm::SmallVector<::kvbuf::NamedOperand>", "getNamedOperands">,
    InterfaceMethod<"Whether it is on tensors; kernels are made of memrefs alone.",
      "bool", "isOnTensors">,
    InterfaceMethod<"Whether its kernel is written by lanes: it has no tiles.",
      "bool", "isByLanes", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
        A problem before it that its kernel computes, too; null if there is none.
      }], "::mlir::Operation *", "getPart", (ins), [{}], [{ return nullptr; }]>,
    InterfaceMethod<[{
        Chooses its schedule, or checks the one that it has, and says so; fails,
        with an error at the op, where the chip has none.
      }], "::llvm::LogicalResult", "chooseSchedule",
      (ins "const ::kvbuf::ScheduleQuery &":$query), [{}],
      [{ return ::llvm::success(); }]>,
    InterfaceMethod<[{
        Lists of parameters that are worth measuring on a chip, as kvbuf-tune takes
        them ("BM=64,128;BN=32,64").
      }], "::llvm::SmallVector<std::string>", "getCandidates",
      (ins "const ::kvbuf::TargetInfo &":$target), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
        Makes a kernel at the tile stage of a function of this problem, in the
        function's place.
      }], "::llvm::LogicalResult", "buildTile",
      (ins "::mlir::func::FuncOp":$function,
           "const ::kvbuf::TargetInfo &":$target), [{}],
      [{ return $_op->emitOpError("has no tile program"); }]>,
    InterfaceMethod<"The kernels that launches choose between besides a first one.",
      "::kvbuf::KernelVariants", "getVariants",
      (ins "const ::kvbuf::VariantQuery &":$query), [{}], [{ return {}; }]>,
    InterfaceMethod<"Makes the problem what an alternative computes.",
      "void", "become", (ins "const ::kvbuf::KernelAlternative &":$alternative),
      [{}], [{ return; }]>
  ];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_TRANSFORMS_PROBLEMINTERFACE_TD
