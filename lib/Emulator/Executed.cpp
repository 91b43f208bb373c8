//===- Executed.cpp - What the emulator executes --------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/Executed.h"

#include "Decoder.h"
#include "HostMath.h"
#include "Machine.h"
#include "RaisePtx.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {
struct Family {
  StringRef front;
  bool (*takes)(StringRef rest);
};
} // namespace

static bool isNumber(StringRef text) {
  unsigned n;
  return !text.getAsInteger(10, n);
}

static const llvm::StringSet<> &exactNames() {
  static const llvm::StringSet<> names = {
#define EXECUTES(Class) Class::getOperationName(),
#define EXECUTES_NAME(Name) Name,
#define EXECUTES_FAMILY(Front, Is)
#include "Executed.def"
  };
  return names;
}

static constexpr Family families[] = {
#define EXECUTES(Class)
#define EXECUTES_NAME(Name)
#define EXECUTES_FAMILY(Front, Is) {Front, Is},
#include "Executed.def"
};

bool kvbuf::emu::executesOperation(StringRef name) {
  return exactNames().contains(name) ||
         llvm::any_of(families, [&](const Family &f) {
           return name.starts_with(f.front) &&
                  f.takes(name.drop_front(f.front.size()));
         });
}

static llvm::json::Array sorted(SmallVector<std::string> names) {
  llvm::sort(names);
  return llvm::json::Array(names);
}

llvm::json::Value kvbuf::emu::listExecuted(MLIRContext &context) {
  llvm::json::Object operations;
  for (StringRef dialect : {"llvm", "nvvm", "rocdl", "gpu", "kvbuffer"}) {
    SmallVector<std::string> executed, refused;
    for (RegisteredOperationName op : context.getRegisteredOperations())
      // Functions and the like hold what is executed.
      if (op.getDialectNamespace() == dialect &&
          !op.hasInterface<SymbolOpInterface>())
        (executesOperation(op.getStringRef()) ? executed : refused)
            .push_back(op.getStringRef().str());
    llvm::json::Object lists{{"executed", sorted(executed)}};
    // Of the others most belong to earlier stages.
    if (dialect != "gpu" && dialect != "kvbuffer")
      lists["refused"] = sorted(refused);
    operations[dialect] = std::move(lists);
  }
  // Names that this LLVM does not have would be executed by nobody.
  SmallVector<std::string> unknown;
  for (const auto &name : exactNames())
    if (!RegisteredOperationName::lookup(name.getKey(), &context))
      unknown.push_back(name.getKey().str());
  SmallVector<std::string> statements;
  for (StringRef s : knownStatements())
    statements.push_back(s.str());
  SmallVector<std::string> functions;
  for (const std::string &name : libraryFunctions())
    functions.push_back(name);
  llvm::json::Array faults;
  for (unsigned k = 0; k <= static_cast<unsigned>(FaultKind::Limit); ++k)
    faults.push_back(faultName(static_cast<FaultKind>(k)));
  return llvm::json::Object{{"operations", std::move(operations)},
                            {"unknown", sorted(unknown)},
                            {"ptx", sorted(statements)},
                            {"functions", sorted(functions)},
                            {"detectors", std::move(faults)}};
}
