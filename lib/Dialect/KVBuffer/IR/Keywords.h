//===- Keywords.h - The words of an enumeration -----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_IR_KEYWORDS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_IR_KEYWORDS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace kvbuf {

/// "a, b or c", of at least one name.
inline std::string alternatives(llvm::ArrayRef<llvm::StringRef> names) {
  std::string text = llvm::join(names.drop_back(), ", ");
  return (names.size() > 1 ? text + " or " : text) + names.back().str();
}

/// Adds the name that is nearest to an unknown one, and all that are known.
inline void suggest(mlir::InFlightDiagnostic &diag, llvm::StringRef name,
                    llvm::ArrayRef<llvm::StringRef> known) {
  if (known.empty()) {
    diag << "; expected none";
    return;
  }
  llvm::StringRef nearest =
      *llvm::min_element(known, [&](llvm::StringRef a, llvm::StringRef b) {
        return name.edit_distance(a) < name.edit_distance(b);
      });
  diag << "; did you mean '" << nearest << "'? (expected "
       << alternatives(known) << ")";
}

/// The words of an enumeration that is numbered from 0, for messages.
template <typename E> std::string keywords() {
  llvm::SmallVector<llvm::StringRef> words;
  for (uint32_t i = 0; !stringifyEnum(E(i)).empty(); ++i)
    words.push_back(stringifyEnum(E(i)));
  return alternatives(words);
}

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_IR_KEYWORDS_H
