//===- ReadTorch.cpp - Attention of torch-mlir's dialects -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GivenAttention.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace kvbuf::named;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

RankedTensorType kvbuf::named::getBuiltinType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor;
  // !torch.vtensor<[2,?,64],bf16>, whether the dialect is there or not.
  std::string text;
  llvm::raw_string_ostream(text) << type;
  StringRef rest = text;
  if (!rest.consume_front("!torch.vtensor<[") || !rest.consume_back(">"))
    return {};
  auto [sizes, element] = rest.split("],");
  SmallVector<StringRef> parts;
  sizes.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  SmallVector<int64_t> shape;
  for (StringRef part : parts) {
    int64_t size = ShapedType::kDynamic;
    if (part != "?" && part.getAsInteger(10, size))
      return {};
    shape.push_back(size);
  }
  // Torch's integers have signs, MLIR's have none.
  if (element.starts_with("si") || element.starts_with("ui"))
    element = element.drop_front();
  Type elementType = parseType(element, type.getContext());
  if (!elementType || !RankedTensorType::isValidElementType(elementType))
    return {};
  return RankedTensorType::get(shape, elementType);
}

Value kvbuf::named::asBuiltinTensor(Operation *op, Value value) {
  if (isa<RankedTensorType>(value.getType()))
    return value;
  RankedTensorType type = getBuiltinType(value.getType());
  if (!type)
    return {};
  Operation *def = value.getDefiningOp();
  if (def && def->getName().getStringRef() == "torch_c.from_builtin_tensor" &&
      def->getNumOperands() == 1 && def->getOperand(0).getType() == type)
    return def->getOperand(0);
  OperationState state(op->getLoc(), "torch_c.to_builtin_tensor");
  if (!state.name.isRegistered() &&
      !op->getContext()->allowsUnregisteredDialects())
    return {};
  state.addOperands(value);
  state.addTypes(type);
  return OpBuilder(op).create(state)->getResult(0);
}

/// The number or truth value of one of torch's constants.
template <typename Attr> static Attr constantOf(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || !def->getName().getStringRef().starts_with("torch.constant."))
    return {};
  return dyn_cast_or_null<Attr>(def->getAttr("value"));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult kvbuf::named::readTorchSDPA(GivenAttention &given) {
  Operation *op = given.op;
  if (op->getNumOperands() != 7 && op->getNumOperands() != 8)
    return given.refuse(
        llvm::formatv("expected 8 operands, got {0}", op->getNumOperands()));
  auto dropout = constantOf<FloatAttr>(op->getOperand(4));
  if (!dropout || dropout.getValueAsDouble() != 0.0)
    return given.refuse("it drops weights");
  auto causal = constantOf<BoolAttr>(op->getOperand(5));
  if (!causal)
    return given.refuse("whether it is causal is not known here");
  std::optional<double> scale;
  if (Value operand = op->getOperand(6); !isNone(operand)) {
    auto number = constantOf<FloatAttr>(operand);
    if (!number)
      return given.refuse("the scale is not known here");
    scale = number.getValueAsDouble();
  }
  BoolAttr shares;
  if (op->getNumOperands() == 8 &&
      !(shares = constantOf<BoolAttr>(op->getOperand(7))))
    return given.refuse("whether heads share keys is not known here");
  SmallVector<Value, 4> tensors;
  bool hasMask = !isNone(op->getOperand(3));
  for (Value operand : op->getOperands().take_front(hasMask ? 4 : 3))
    if (Value tensor = asBuiltinTensor(op, operand))
      tensors.push_back(tensor);
    else
      return given.refuse("an operand is no tensor of a known type");
  RankedTensorType type = getBuiltinType(op->getResult(0).getType());
  if (!type)
    return given.refuse("the result is no tensor of a known type");
  if (failed(given.setOperands(tensors[0], tensors[1], tensors[2],
                               Layout::HeadsTokens)) ||
      failed(given.setResult(type, Layout::HeadsTokens)))
    return failure();
  // Without the flag one head of keys may be for all, as broadcasts are.
  int64_t rank = type.getRank();
  if (rank >= 3 && !(shares && shares.getValue())) {
    int64_t q = cast<ShapedType>(tensors[0].getType()).getDimSize(rank - 3);
    int64_t k = cast<ShapedType>(tensors[1].getType()).getDimSize(rank - 3);
    if (q != k && k != 1 && !ShapedType::isDynamic(q) &&
        !ShapedType::isDynamic(k))
      return given.refuse(llvm::formatv(
          "{0} heads of queries share {1} of keys without enable_gqa", q, k));
  }
  given.setScale(scale);
  if (causal.getValue())
    given.addCausal();
  if (hasMask)
    return given.addMask(tensors[3], given.maskCoords());
  return success();
}

LogicalResult kvbuf::named::readTMTensor(GivenAttention &given) {
  Operation *op = given.op;
  unsigned count = op->getNumOperands();
  if (count != 4 && count != 5)
    return given.refuse(llvm::formatv(
        "expected Q, K, V, perhaps a mask, and the output, got {0} operands",
        count));
  for (Value operand : op->getOperands())
    if (!isa<RankedTensorType>(operand.getType()))
      return given.refuse("an operand is no tensor");
  if (op->getNumResults() != 1)
    return given.refuse(
        llvm::formatv("expected one result, got {0}", op->getNumResults()));
  if (failed(given.setOperands(op->getOperand(0), op->getOperand(1),
                               op->getOperand(2), Layout::HeadsTokens)) ||
      failed(given.setResult(cast<RankedTensorType>(op->getResult(0).getType()),
                             Layout::HeadsTokens)))
    return failure();
  std::optional<double> scale;
  if (auto number = given.get<FloatAttr>("scale"))
    scale = number.getValueAsDouble();
  given.setScale(scale);
  if (count == 5)
    return given.addMask(op->getOperand(3), given.maskCoords());
  return success();
}
