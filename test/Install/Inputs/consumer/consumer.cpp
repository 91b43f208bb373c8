// Another compiler that lowers one problem with kvbuf's pipeline.
#include "kvbuffer/Compiler/Compiler.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  kvbuf::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  if (!module)
    return 2;
  kvbuf::CompileOptions options;
  options.target = argv[2];
  return failed(
      kvbuf::emitStage(*module, kvbuf::Stage::Asm, options, llvm::outs()));
}
