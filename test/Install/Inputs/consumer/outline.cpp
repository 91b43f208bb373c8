// Another compiler: it builds functions on tensors with builders, attention
// among linalg ops, and has kvbuf make launches of it. It prints the module
// with the kernels' code: assembly, or, with the argument "offloading", bitcode
// that the emulator executes.
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVM/NVVM/Target.h"
#include "mlir/Target/LLVM/ROCDL/Target.h"

using namespace mlir;

/// func @layer(q, k, v) { attention; add q }
/// func @main() { print an element of layer(1.0, 1.0, 3.0) }
static OwningOpRef<ModuleOp> makeModule(MLIRContext *context) {
  ImplicitLocOpBuilder b(UnknownLoc::get(context), context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(b.getLoc());
  b.setInsertionPointToStart(module->getBody());
  auto type = RankedTensorType::get({2, 70, 4, 64}, b.getBF16Type());
  auto layer = func::FuncOp::create(
      b, "layer", b.getFunctionType({type, type, type}, {type}));
  b.setInsertionPointToStart(layer.addEntryBlock());
  Value q = layer.getArgument(0), k = layer.getArgument(1),
        v = layer.getArgument(2);
  Value init = tensor::EmptyOp::create(b, type.getShape(), b.getBF16Type());
  auto mask = kvbuf::MaskAttr::get(context, /*causal=*/true, -1, -1);
  auto attention = kvbuf::AttentionOp::create(
      b, TypeRange{type}, q, k, v, /*offsets=*/Value(), /*sink=*/Value(),
      /*captures=*/ValueRange(), init, /*lse=*/Value(), mask,
      /*block_mask=*/nullptr,
      /*scale=*/FloatAttr(), /*softcap=*/FloatAttr(),
      /*batch_invariant=*/nullptr, /*schedule=*/nullptr);
  Value into = tensor::EmptyOp::create(b, type.getShape(), b.getBF16Type());
  auto sum = linalg::AddOp::create(b, TypeRange{type},
                                   ValueRange{attention.getResult(0), q},
                                   ValueRange{into});
  func::ReturnOp::create(b, sum.getResult(0));

  b.setInsertionPointToEnd(module->getBody());
  auto main = func::FuncOp::create(b, "main", b.getFunctionType({}, {}));
  b.setInsertionPointToStart(main.addEntryBlock());
  auto filled = [&](float value) {
    Value number =
        arith::ConstantOp::create(b, b.getFloatAttr(b.getBF16Type(), value));
    Value empty = tensor::EmptyOp::create(b, type.getShape(), b.getBF16Type());
    return linalg::FillOp::create(b, number, empty).getResult(0);
  };
  Value ones = filled(1), threes = filled(3);
  auto result = func::CallOp::create(b, layer, ValueRange{ones, ones, threes});
  SmallVector<Value> at;
  for (int64_t i : {1, 69, 3, 63})
    at.push_back(arith::ConstantIndexOp::create(b, i));
  Value element = tensor::ExtractOp::create(b, result.getResult(0), at);
  vector::PrintOp::create(
      b, arith::ExtFOp::create(b, b.getF32Type(), element).getResult());
  func::ReturnOp::create(b);
  return module;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  kvbuf::registerAllDialects(registry);
  registry.insert<linalg::LinalgDialect, vector::VectorDialect>();
  // What bufferizes the other ops, and makes binaries.
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  NVVM::registerNVVMTargetInterfaceExternalModels(registry);
  ROCDL::registerROCDLTargetInterfaceExternalModels(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = makeModule(&context);

  PassManager pm(&context);
  kvbuf::OutlineKernelsOptions options;
  options.chip = argv[1];
  options.registerHost = true; // @main's tensors lie there
  kvbuf::buildLaunchPipeline(pm, options);
  GpuModuleToBinaryPassOptions binary;
  binary.compilationTarget = argc > 2 ? argv[2] : "isa";
  pm.addPass(createGpuModuleToBinaryPass(binary));
  if (failed(verify(*module)) || failed(pm.run(*module)))
    return 1;
  module->print(llvm::outs());
  return 0;
}
