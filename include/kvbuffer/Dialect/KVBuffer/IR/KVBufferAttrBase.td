//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRBASE_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRBASE_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferDialect.td"
include "mlir/IR/AttrTypeBase.td"

class KVBuffer_Attr<string name, string mnem, list<Trait> traits = []>
    : AttrDef<KVBuffer_Dialect, name, traits> {
  let mnemonic = mnem;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERATTRBASE_TD
