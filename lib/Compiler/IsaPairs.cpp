//===- IsaPairs.cpp - Instructions on pairs of f32 where they fail --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CDNA4 may compute v_pk_add_f32, v_pk_mul_f32 and v_pk_fma_f32 from what else
// was in a register while another wave of the unit multiplies matrices (sources
// in docs/targets/amd.md, "Pairs of f32"). LLVM is told to select none of them
// (`TargetInfo::pairsOfF32`); here is found what inline assembly and other
// compilers have. The other wave may be another kernel's, so that it does not
// matter whether the function multiplies matrices itself.
//
//===----------------------------------------------------------------------===//

#include "CodeObject.h"
#include "Isa.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kvbuf;

llvm::Expected<std::vector<UnsafePair>>
kvbuf::findUnsafePairs(llvm::StringRef hsaco) {
  llvm::Expected<CodeObject> object = readCodeObject(hsaco);
  if (!object)
    return object.takeError();
  std::vector<UnsafePair> found;
  std::optional<TargetInfo> target = lookupTarget(object->chip);
  if (!target || target->pairsOfF32)
    return found;
  auto look = [&](llvm::StringRef name, llvm::ArrayRef<IsaInstruction> code) {
    auto pair = llvm::find_if(code, [](const IsaInstruction &instruction) {
      return instruction.packed;
    });
    if (pair != code.end())
      found.push_back(
          {name.str(),
           llvm::formatv("the instruction on a pair of f32 at 0x{0:x-} may "
                         "compute from what else was in its registers, while "
                         "another wave of the unit multiplies matrices",
                         pair->address)
               .str()});
  };
  if (llvm::Error error = decodeFunctions(*object, look))
    return std::move(error);
  return found;
}
