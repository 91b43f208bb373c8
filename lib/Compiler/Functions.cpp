//===- Functions.cpp - The functions of a module --------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace kvbuf;

/// The problems of a function are one: an attention may have an append before
/// it that is a part of it.
static LogicalResult checkOneProblem(Operation *function,
                                     ArrayRef<Operation *> problems) {
  Operation *first = nullptr;
  for (Operation *op : problems) {
    if (!first || first == cast<ProblemInterface>(op).getPart()) {
      first = op;
      continue;
    }
    InFlightDiagnostic diag = op->emitOpError("is a second problem of ");
    if (auto symbol = SymbolTable::getSymbolName(function))
      diag << "@" << symbol.getValue();
    else
      diag << "its function";
    diag << "; a function computes one: write each in a function of its own";
    diag.attachNote(first->getLoc()) << "the first one is here";
    return failure();
  }
  return success();
}

static std::string nameOf(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
  return name ? name.getValue().str() : "";
}

llvm::FailureOr<SmallVector<ModuleFunction>>
kvbuf::findFunctions(ModuleOp module) {
  SmallVector<ModuleFunction> functions;
  Operation *withoutKernel = nullptr;
  for (Operation &op : *module.getBody()) {
    SmallVector<Operation *> problems;
    Operation *kernel = nullptr;
    op.walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (isa<ProblemInterface>(inner))
        problems.push_back(inner);
      else if (!kernel && inner->hasAttr(KVBufferDialect::kPhaseAttr))
        kernel = inner;
    });
    if (isa<FunctionOpInterface>(op) && failed(checkOneProblem(&op, problems)))
      return failure();
    if (kernel)
      functions.push_back({&op, kernel, nameOf(kernel)});
    else if (!problems.empty())
      functions.push_back({&op, &op, nameOf(&op)});
    else if (isa<gpu::GPUModuleOp>(op))
      withoutKernel = &op;
  }
  if (withoutKernel && !functions.empty())
    return withoutKernel->emitOpError()
               << "has no kernel that carries '" << KVBufferDialect::kPhaseAttr
               << "', so that nothing of it would be compiled",
           failure();
  llvm::MapVector<StringRef, Operation *> named;
  for (const ModuleFunction &function : functions) {
    auto [known, isNew] = named.insert({function.name, function.named});
    if (isNew)
      continue;
    InFlightDiagnostic diag =
        function.named->emitOpError()
        << "has the name '" << function.name
        << "' of another function of the module; an artifact finds its "
           "functions by their names: expected one for each";
    diag.attachNote(known->second->getLoc()) << "the other one is here";
    return failure();
  }
  return functions;
}

OwningOpRef<ModuleOp> kvbuf::extractFunction(ModuleOp module,
                                             const ModuleFunction &which) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  alone->getOperation()->setAttrs(module->getAttrDictionary());
  alone->push_back(which.op->clone());
  return alone;
}

/// "'a', 'b' and 'c'".
static std::string quotedNames(ArrayRef<ModuleFunction> functions) {
  std::string text;
  for (auto [i, function] : llvm::enumerate(functions)) {
    if (i > 0)
      text += i + 1 == functions.size() ? " and " : ", ";
    text += "'" + function.name + "'";
  }
  return text;
}

LogicalResult kvbuf::keepFunction(ModuleOp module,
                                  ArrayRef<ModuleFunction> functions,
                                  StringRef name) {
  auto wanted = llvm::find_if(functions, [&](const ModuleFunction &function) {
    return function.name == name;
  });
  if (wanted == functions.end())
    return module.emitError()
           << "has no function '" << name << "'; it has "
           << (functions.empty() ? "none" : quotedNames(functions));
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (&op != wanted->op)
      op.erase();
  return success();
}

LogicalResult kvbuf::failForSeveral(ArrayRef<ModuleFunction> functions,
                                    const Twine &what) {
  InFlightDiagnostic diag = functions[1].named->emitOpError()
                            << "is a second function of the module, which has "
                            << quotedNames(functions) << "; " << what
                            << " is of one: choose it by its name (--function)";
  diag.attachNote(functions[0].named->getLoc()) << "the first one is here";
  return diag;
}

Artifact kvbuf::joinArtifacts(ArrayRef<Artifact> functions, StringRef name) {
  Artifact joined;
  llvm::raw_string_ostream stream(joined.manifest);
  llvm::json::OStream os(stream, /*IndentSize=*/2);
  os.object([&] {
    os.attribute("kvbuf", 3);
    os.attribute("producer", "kvbuf " KVBUF_VERSION);
    os.attribute("name", name);
    os.attributeArray("functions", [&] {
      for (const Artifact &function : functions)
        os.object([&] {
          // Its manifest as it is alone.
          std::string text;
          for (char c : function.manifest)
            text += c == '\n' ? "\n      " : std::string(1, c);
          os.attributeBegin("manifest");
          os.rawValue(text);
          os.attributeEnd();
          os.attributeArray("sections", [&] {
            for (const ArtifactSection &section : function.sections) {
              os.value(static_cast<int64_t>(joined.sections.size()));
              joined.sections.push_back(section);
            }
          });
        });
    });
  });
  return joined;
}
