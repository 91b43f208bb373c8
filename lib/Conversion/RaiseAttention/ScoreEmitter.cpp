//===- ScoreEmitter.cpp - Functions of scores out of graphs -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreEmitter.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::raise;

Value ScoreEmitter::digitValue(Digit digit) {
  const Source &source = sources.at(digit);
  Value value = source.number;
  if (source.below != 1)
    value = arith::DivUIOp::create(b, value, constant(source.below));
  if (!source.isFirst)
    value = arith::RemUIOp::create(b, value, constant(graph.getExtent(digit)));
  return value;
}

Value ScoreEmitter::coordValue(ArrayRef<Digit> coord) {
  Value value;
  for (Digit digit : graph.resolve(coord)) {
    Value next = digitValue(digit);
    if (value)
      next = arith::AddIOp::create(
          b, arith::MulIOp::create(b, value, constant(graph.getExtent(digit))),
          next);
    value = next;
  }
  return value ? value : constant(0);
}

RankedTensorType ScoreEmitter::tensorTypeOf(Value capture) {
  if (auto type = dyn_cast<RankedTensorType>(capture.getType()))
    return type;
  Type element = capture.getType();
  if (element.isIndex())
    element = IntegerType::get(capture.getContext(), 64);
  return RankedTensorType::get({}, element);
}

Value ScoreEmitter::argumentOf(size_t capture) {
  for (size_t i = body->getNumArguments() - firstCapture; i <= capture; ++i)
    body->addArgument(tensorTypeOf(captures[i]), b.getLoc());
  return body->getArgument(firstCapture + capture);
}

Value ScoreEmitter::capture(Value tensor) {
  size_t i = llvm::find(captures, tensor) - captures.begin();
  if (i == captures.size())
    captures.push_back(tensor);
  return argumentOf(i);
}

Value ScoreEmitter::compute(Expr *e) {
  Value &known = computed[e];
  if (known)
    return known;
  Value value = computeOnce(e);
  return computed[e] = value;
}

Value ScoreEmitter::computeOnce(Expr *e) {
  switch (e->kind) {
  case Expr::Kind::Element: {
    unsigned steps = 0;
    if (Expr *definition = graph.define(e);
        definition && match.canCompute(definition, steps))
      return compute(definition);
    SmallVector<Value> indices;
    for (const Coord &coord : e->coords)
      indices.push_back(coordValue(coord));
    return tensor::ExtractOp::create(b, capture(e->value), indices);
  }
  case Expr::Kind::Scalar: {
    Value value = tensor::ExtractOp::create(b, capture(e->value), ValueRange());
    if (e->type.isIndex())
      value = arith::IndexCastOp::create(b, e->type, value);
    return value;
  }
  case Expr::Kind::Index:
    return coordValue(e->coords[0]);
  case Expr::Kind::Constant:
    return arith::ConstantOp::create(b, e->constant);
  case Expr::Kind::Op: {
    OperationState state(b.getLoc(), *e->name);
    for (Expr *operand : e->operands)
      state.operands.push_back(compute(operand));
    state.addTypes(e->type);
    state.addAttributes(e->attrs.getValue());
    return b.create(state)->getResult(0);
  }
  default:
    llvm_unreachable("the matcher takes no such expression");
  }
}

void ScoreEmitter::emit(const Hiding &hiding) {
  if (hiding.form == Hiding::Form::Computed)
    computed[match.scoreBefore] = result;
  Value x = compute(hiding.expr);
  if (hiding.form == Hiding::Form::Computed) {
    result = x;
    return;
  }
  auto number = [&](double value) -> Value {
    // What is finite in the graph is finite in f32.
    constexpr double kMost = std::numeric_limits<float>::max();
    if (std::isfinite(value))
      value = std::clamp(value, -kMost, kMost);
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  if (hiding.form == Hiding::Form::Added) {
    if (x.getType().getIntOrFloatBitWidth() < 32)
      x = arith::ExtFOp::create(b, b.getF32Type(), x);
    else if (x.getType().getIntOrFloatBitWidth() > 32)
      x = arith::TruncFOp::create(b, b.getF32Type(), x);
    if (hiding.value != 1.0)
      x = arith::MulFOp::create(b, x, number(hiding.value));
    result = arith::AddFOp::create(b, result, x);
    return;
  }
  Value hidden = number(hiding.value);
  bool whereTrue = hiding.form == Hiding::Form::WhereTrue;
  result = arith::SelectOp::create(b, x, whereTrue ? hidden : result,
                                   whereTrue ? result : hidden);
}

void ScoreEmitter::emitVisible(const Hiding &hiding) {
  Value x = compute(hiding.expr);
  if (hiding.form == Hiding::Form::WhereTrue)
    x = arith::XOrIOp::create(
        b, x, arith::ConstantIntOp::create(b, /*value=*/1, /*width=*/1));
  result = result ? arith::AndIOp::create(b, result, x).getResult() : x;
}
