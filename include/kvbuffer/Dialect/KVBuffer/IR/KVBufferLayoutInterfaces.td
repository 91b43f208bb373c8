//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTINTERFACES_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTINTERFACES_TD

include "mlir/IR/OpBase.td"

def KVBuffer_FragmentLayoutInterface : AttrInterface<"FragmentLayoutInterface"> {
  let cppNamespace = "::kvbuf";
  let description = [{
    Which warp, lane and register of a team holds which element of a fragment. A
    warp holds a part of the fragment, a grid of *atoms*; an atom is a linear
    layout over the warp's registers and lanes.
  }];
  let methods = [
    InterfaceMethod<[{
        One atom: ("register", "lane") to ("row", "col") in the fragment's own
        coordinates.
      }], "::kvbuf::LinearLayout", "getAtom">,
    InterfaceMethod<[{
        Parts that the warps cut the fragment's rows into; 1 where each holds all
        of them.
      }], "int64_t", "getRowWarps">,
    InterfaceMethod<"The same for its columns.", "int64_t", "getColWarps">,
    InterfaceMethod<[{
        Elements of a word: the unit in which a lane's values of operands are
        kept.
      }], "int64_t", "getWordElements">
  ];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTINTERFACES_TD
