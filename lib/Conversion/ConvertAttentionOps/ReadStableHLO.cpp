//===- ReadStableHLO.cpp - Attention in StableHLO -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GivenAttention.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace kvbuf::named;

//===----------------------------------------------------------------------===//
// XLA's calls of cuDNN
//===----------------------------------------------------------------------===//

/// The part of the call's configuration that is about attention.
static std::optional<llvm::json::Object> parseConfig(GivenAttention &given) {
  auto text = given.get<StringAttr>("backend_config");
  if (!text)
    text = given.get<StringAttr>("mhlo.backend_config");
  if (!text)
    return std::nullopt;
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return std::nullopt;
  }
  llvm::json::Object *config = parsed->getAsObject();
  if (!config || !(config = config->getObject("cudnn_fmha_backend_config")))
    return std::nullopt;
  return std::move(*config);
}

/// Whether Q, K and V have their heads inside of tokens: these are the
/// dimensions that the first product has in common.
static std::optional<Layout> layoutOf(const llvm::json::Object &config) {
  const llvm::json::Object *product =
      config.getObject("bmm1_dot_dimension_numbers");
  const llvm::json::Array *shared =
      product ? product->getArray("lhs_batch_dimensions") : nullptr;
  if (!shared || shared->size() != 2)
    return std::nullopt;
  std::optional<StringRef> second = (*shared)[1].getAsString();
  if (second == "1")
    return Layout::HeadsTokens;
  if (second == "2")
    return Layout::TokensHeads;
  return std::nullopt;
}

LogicalResult kvbuf::named::readCudnnCall(GivenAttention &given) {
  Operation *op = given.op;
  StringRef target = given.get<StringAttr>("call_target_name").getValue();
  bool hasBias = target.contains("ScaleBias");
  if (target.contains("Backward") || target.contains("F8"))
    return given.refuse("'" + target +
                        "' is not the attention of 16-bit floats "
                        "alone");
  std::optional<llvm::json::Object> config = parseConfig(given);
  std::optional<Layout> layout;
  if (!config || !(layout = layoutOf(*config)))
    return given.refuse("its backend_config does not say what it computes");
  if (config->getNumber("dropout_rate").value_or(0.0) != 0.0)
    return given.refuse("it drops weights");
  if (config->getInteger("max_seg_per_batch").value_or(1) != 1)
    return given.refuse("its sequences are packed in segments");
  if (config->getBoolean("is_paged_attention").value_or(false))
    return given.refuse("its keys and values lie in pages");
  StringRef mask = config->getString("mask_type").value_or("NO_MASK");
  bool isPadded = mask == "PADDING" || mask == "PADDING_CAUSAL";
  bool isCausal = mask == "CAUSAL" || mask == "PADDING_CAUSAL";
  if (!isPadded && !isCausal && mask != "NO_MASK")
    return given.refuse("its mask is '" + mask + "'");
  unsigned expected = 3 + hasBias + 2 * isPadded;
  if (op->getNumOperands() != expected)
    return given.refuse(llvm::formatv("expected {0} operands, got {1}",
                                      expected, op->getNumOperands()));
  for (Value operand : op->getOperands())
    if (!isa<RankedTensorType>(operand.getType()))
      return given.refuse("an operand is no tensor");
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  std::optional<double> scale = config->getNumber("fmha_scale");
  if (!type || !scale)
    return given.refuse("its backend_config does not say what it computes");
  if (failed(given.setOperands(op->getOperand(0), op->getOperand(1),
                               op->getOperand(2), *layout)) ||
      failed(given.setResult(type, Layout::HeadsTokens)))
    return failure();
  given.setScale(*scale);
  if (hasBias && failed(given.addMask(op->getOperand(3), given.maskCoords())))
    return failure();
  if (isPadded &&
      (failed(
           given.addLengths(op->getOperand(3 + hasBias), given.match.rows)) ||
       failed(given.addLengths(op->getOperand(4 + hasBias), given.match.keys))))
    return failure();
  if (isCausal)
    given.addCausal();
  // The window counts the query's own key.
  if (int64_t window =
          config->getInteger("sliding_window_length").value_or(0)) {
    Expr *before = given.subtract(given.graph.index(given.match.rows), window);
    given.hideUnless(given.graph.compare(arith::CmpIPredicate::sgt,
                                         given.graph.index(given.match.keys),
                                         before));
  }
  // The output, perhaps the log-sum-exp, and a workspace of no bytes.
  if (op->getNumResults() == 3) {
    given.lse = 1;
    given.match.lseCoords.emplace(given.sequences);
    llvm::append_range(*given.match.lseCoords,
                       ArrayRef<Coord>{given.heads, given.match.rows});
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Composites
//===----------------------------------------------------------------------===//

LogicalResult kvbuf::named::readComposite(GivenAttention &given) {
  Operation *op = given.op;
  StringRef name = given.get<StringAttr>("name").getValue();
  if (name != "odml.scaled_dot_product_attention")
    return given.refuse(
        "composite '" + name +
        "' is none that is known here; "
        "stablehlo-legalize-composite-to-call and inlining leave "
        "what kvbuf-raise-attention reads");
  unsigned count = op->getNumOperands();
  if (count != 4)
    return given.refuse(
        llvm::formatv("expected Q, K, V and a mask, got {0} operands", count));
  for (Value operand : op->getOperands())
    if (!isa<RankedTensorType>(operand.getType()))
      return given.refuse("an operand is no tensor");
  std::optional<double> scale;
  double cap = 0.0;
  if (auto attributes = given.get<DictionaryAttr>("composite_attributes"))
    for (NamedAttribute attribute : attributes) {
      auto number = dyn_cast<FloatAttr>(attribute.getValue());
      if (!number)
        return given.refuse("its attribute '" + attribute.getName().strref() +
                            "' is no float");
      if (attribute.getName() == "scale")
        scale = number.getValueAsDouble();
      else if (attribute.getName() == "logit_cap")
        cap = number.getValueAsDouble();
      else
        return given.refuse("its attribute '" + attribute.getName().strref() +
                            "' is not known here");
    }
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type ||
      failed(given.setOperands(op->getOperand(0), op->getOperand(1),
                               op->getOperand(2), Layout::TokensHeads)) ||
      failed(given.setResult(type, Layout::TokensHeads)))
    return failure();
  given.setScale(scale);
  given.match.score.cap = cap;
  return given.addMask(op->getOperand(3), given.maskCoords());
}
