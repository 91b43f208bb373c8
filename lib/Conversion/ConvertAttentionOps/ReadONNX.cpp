//===- ReadONNX.cpp - ONNX's attention ------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GivenAttention.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace kvbuf::named;

namespace {

/// The attributes of an ONNX op: of torch-mlir's `torch.operator` with a
/// prefix, of onnx-mlir's ops without.
class Attributes {
public:
  explicit Attributes(GivenAttention &given)
      : given(given),
        prefix(given.op->getName().getStringRef() == "torch.operator"
                   ? "torch.onnx."
                   : "") {}

  std::optional<int64_t> integer(StringRef name) {
    if (auto value = given.get<IntegerAttr>(prefix + name.str()))
      return value.getType().isUnsignedInteger() ? value.getUInt()
             : value.getType().isSignedInteger() ? value.getSInt()
                                                 : value.getInt();
    return std::nullopt;
  }
  std::optional<double> number(StringRef name) {
    if (auto value = given.get<FloatAttr>(prefix + name.str()))
      return value.getValueAsDouble();
    return std::nullopt;
  }

private:
  GivenAttention &given;
  std::string prefix;
};

} // namespace

LogicalResult kvbuf::named::readONNX(GivenAttention &given) {
  Operation *op = given.op;
  Attributes attributes(given);
  // Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen.
  SmallVector<Value, 7> operands;
  for (Value operand : op->getOperands()) {
    Value tensor = isNone(operand) ? Value() : asBuiltinTensor(op, operand);
    if (!tensor && !isNone(operand))
      return given.refuse("an operand is no tensor of a known type");
    operands.push_back(tensor);
  }
  operands.resize(std::max<size_t>(operands.size(), 7));
  if (operands.size() > 7 || !operands[0] || !operands[1] || !operands[2])
    return given.refuse("expected Q, K, V and up to four more operands");
  if (operands[4] || operands[5])
    return given.refuse("it puts keys and values behind earlier ones");
  bool isCausal = attributes.integer("is_causal").value_or(0) != 0;
  int64_t left = attributes.integer("left_window_size").value_or(-1);
  int64_t right = attributes.integer("right_window_size").value_or(-1);
  if (operands[6] && (isCausal || left >= 0 || right >= 0))
    return given.refuse("its window is about lengths of the sequences");
  RankedTensorType type = getBuiltinType(op->getResult(0).getType());
  if (!type)
    return given.refuse("the result is no tensor of a known type");
  int64_t rank = cast<RankedTensorType>(operands[0].getType()).getRank();
  Layout layout = rank == 3 ? Layout::Packed : Layout::HeadsTokens;
  int64_t heads = attributes.integer("q_num_heads").value_or(0);
  int64_t kvHeads = attributes.integer("kv_num_heads").value_or(0);
  if (rank == 3 && (heads <= 0 || kvHeads <= 0))
    return given.refuse("operands of 3 dimensions need q_num_heads and "
                        "kv_num_heads");
  if (failed(given.setOperands(operands[0], operands[1], operands[2], layout,
                               heads, kvHeads)) ||
      failed(given.setResult(type, layout)))
    return failure();
  given.setScale(attributes.number("scale"));
  given.match.score.cap = attributes.number("softcap").value_or(0.0);
  if (operands[3] && failed(given.addMask(operands[3], given.maskCoords())))
    return failure();
  if (isCausal)
    given.addCausal();
  auto &graph = given.graph;
  Expr *row = graph.index(given.match.rows),
       *key = graph.index(given.match.keys);
  if (left >= 0)
    given.hideUnless(graph.compare(arith::CmpIPredicate::sge, key,
                                   given.subtract(row, left)));
  if (right >= 0)
    given.hideUnless(graph.compare(arith::CmpIPredicate::sle, key,
                                   given.subtract(row, -right)));
  if (operands[6])
    return given.addLengths(operands[6], given.match.keys);
  return success();
}
