//===- kvbuf-opt.cpp - Runs passes on the kvbuffer dialect ----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UpstreamPasses.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVM/ROCDL/Target.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  llvm::setBugReportMsg("kvbuf-opt crashed, which is a bug of kvbuf; please "
                        "report it with the input and the command line:\n");
  llvm::cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "kvbuf " KVBUF_VERSION "\n"; });

  mlir::DialectRegistry registry;
  kvbuf::registerAllDialects(registry);
  kvbuf::registerAllPasses();
  kvbuf::registerPipelines();
  kvbuf::registerUpstreamPasses();
  kvbuf::registerUpstreamBufferization(registry);
  // What gpu-module-to-binary makes code with, as in mlir-opt.
  mlir::registerAllGPUToLLVMIRTranslations(registry);
  mlir::NVVM::registerNVVMTargetInterfaceExternalModels(registry);
  mlir::ROCDL::registerROCDLTargetInterfaceExternalModels(registry);

  // As with the other tools, 2 says that the input was bad.
  mlir::LogicalResult result = mlir::MlirOptMain(
      argc, argv, "kvbuf-opt: runs passes on kvbuffer modules\n", registry);
  return mlir::succeeded(result) ? 0 : 2;
}
