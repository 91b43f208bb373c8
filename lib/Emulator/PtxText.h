//===- PtxText.h - Instructions in the text of assembly -----------*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_PTXTEXT_H
#define KVBUFFER_LIB_EMULATOR_PTXTEXT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <vector>

namespace kvbuf::emu {

/// An operand of an instruction: "$3", a name or a number, "[...]" or "{...}";
/// "d|p" is a list, too.
struct PtxOperand {
  enum Kind { Number, Word, Memory, List } kind = Word;
  unsigned number = 0;
  llvm::StringRef word;
  /// "[$1 + 16]": of an operand in brackets.
  int64_t offset = 0;
  std::vector<PtxOperand> parts;
};

struct PtxInstruction {
  std::optional<unsigned> predicate; // "@$5"
  llvm::StringRef predicateName;     // "@p"
  bool negated = false;              // "@!p"
  llvm::StringRef opcode;
  std::vector<PtxOperand> operands;
};

/// Reads instructions, one after the other.
class PtxParser {
public:
  explicit PtxParser(llvm::StringRef text) : rest(text) {}

  /// False: not of the simple kind.
  bool run(llvm::SmallVectorImpl<PtxInstruction> &instructions);

private:
  void skipSpace() { rest = rest.ltrim(); }
  static bool isWord(char c) {
    return llvm::isAlnum(c) || llvm::StringRef("_.:%-$").contains(c);
  }
  llvm::StringRef word() {
    llvm::StringRef w = rest.take_while(isWord);
    rest = rest.drop_front(w.size());
    return w;
  }
  bool operand(PtxOperand &o, unsigned depth);
  bool second(PtxOperand &o, unsigned depth);
  bool operands(std::vector<PtxOperand> &list, char end, unsigned depth);

  llvm::StringRef rest;
};

} // namespace kvbuf::emu

#endif // KVBUFFER_LIB_EMULATOR_PTXTEXT_H
