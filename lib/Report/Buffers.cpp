//===- Buffers.cpp - Places in LDS, and registers -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/IR/LdsMap.h"
#include "kvbuffer/Report/Report.h"
#include "mlir/Analysis/CFGLoopInfo.h"
#include "mlir/Analysis/Liveness.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Dominance.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kvbuf;
namespace json = llvm::json;

/// Larger tiles are no tiles of a kernel.
static constexpr int64_t kMostVectors = 1 << 16;

//===----------------------------------------------------------------------===//
// LDS
//===----------------------------------------------------------------------===//

json::Array kvbuf::describeLds(Operation *kernel) {
  json::Array list;
  auto buffers = kernel->getAttrOfType<ArrayAttr>(kLdsAttr);
  if (!buffers)
    return list;
  for (auto entry : buffers.getAsRange<LdsAttr>()) {
    std::optional<LdsBuffer> buffer = readLdsBuffer(entry);
    if (!buffer)
      continue;
    bool turned = buffer->turned.has_value();
    int64_t vectorBytes = buffer->unitBytes();
    int64_t inVector = vectorBytes / buffer->elementBytes;
    // A transposed tile has a row in LDS for each of its columns.
    int64_t rows = turned ? buffer->cols() : buffer->rows();
    int64_t groups = (turned ? buffer->rows() : buffer->cols()) / inVector;
    if (rows * groups > kMostVectors)
      continue;
    json::Array vectors;
    for (int64_t row = 0; row < rows; ++row) {
      json::Array line;
      for (int64_t group = 0; group < groups; ++group) {
        int64_t byte;
        if (turned) {
          // The key that stands first in the group.
          int64_t key = 0;
          const auto &bits = buffer->turned->keyBits;
          for (unsigned bit = 0; (int64_t(1) << bit) < buffer->rows(); ++bit) {
            unsigned position = bit < bits.size() ? bits[bit] : bit;
            if ((group * inVector) >> position & 1)
              key |= int64_t(1) << bit;
          }
          byte = buffer->byteOf(key, row);
        } else {
          byte = buffer->byteOf(row, group * inVector);
        }
        line.push_back(byte / vectorBytes);
      }
      vectors.push_back(std::move(line));
    }
    json::Object object{{"name", buffer->name},
                        {"offset", buffer->offset},
                        {"slots", buffer->slots},
                        {"slot_bytes", buffer->slotBytes},
                        {"rows", buffer->rows()},
                        {"cols", buffer->cols()},
                        {"element_bytes", buffer->elementBytes},
                        {"turned", turned},
                        {"vector_bytes", vectorBytes},
                        {"vectors", std::move(vectors)}};
    if (const Swizzle &s = buffer->tile.swizzle; s.movesVectors())
      object["swizzle"] = json::Array(swizzleList(s));
    list.push_back(std::move(object));
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// Registers of 32 bits that a value of this type takes in a lane.
static int64_t registersOf(Type type) {
  return llvm::TypeSwitch<Type, int64_t>(type)
      .Case([](VectorType vector) {
        int64_t bits = vector.getElementType().isIntOrFloat()
                           ? vector.getElementType().getIntOrFloatBitWidth()
                           : 64;
        return bits == 1 ? 0 : (vector.getNumElements() * bits + 31) / 32;
      })
      .Case([](LLVM::LLVMPointerType pointer) {
        // Shared and private memory have addresses of 32 bits.
        unsigned space = pointer.getAddressSpace();
        return space == 3 || space == 5 ? 1 : 2;
      })
      .Case([](LLVM::LLVMStructType record) {
        int64_t sum = 0;
        for (Type member : record.getBody())
          sum += registersOf(member);
        return sum;
      })
      .Case([](LLVM::LLVMArrayType array) {
        return static_cast<int64_t>(array.getNumElements()) *
               registersOf(array.getElementType());
      })
      .Default([](Type other) -> int64_t {
        if (!other.isIntOrFloat() || other.isInteger(1))
          return 0;
        return (other.getIntOrFloatBitWidth() + 31) / 32;
      });
}

/// Whether a value is made anew wherever it is used.
static bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->hasTrait<OpTrait::ConstantLike>();
}

json::Array
kvbuf::describeRegisters(Operation *kernel,
                         llvm::function_ref<int64_t(Operation *)> lineOf) {
  json::Array points;
  if (kernel->getNumRegions() != 1 || kernel->getRegion(0).hasOneBlock() ||
      kernel->getRegion(0).empty())
    return points;
  Region &body = kernel->getRegion(0);
  DominanceInfo dominance(kernel);
  CFGLoopInfo loops(dominance.getDomTree(&body));
  const CFGLoop *hot = nullptr;
  size_t most = 0;
  for (CFGLoop *loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost())
      continue;
    size_t count = 0;
    for (Block *block : loop->getBlocks())
      count += block->getOperations().size();
    if (count > most) {
      most = count;
      hot = loop;
    }
  }
  if (!hot)
    return points;
  Liveness liveness(kernel);
  for (Block &block : body) {
    if (!hot->contains(&block))
      continue;
    llvm::DenseSet<Value> live;
    int64_t count = 0;
    auto begin = [&](Value value) {
      if (!isConstant(value) && live.insert(value).second)
        count += registersOf(value.getType());
    };
    for (Value value : liveness.getLiveOut(&block))
      begin(value);
    SmallVector<std::pair<int64_t, int64_t>> reversed;
    for (Operation &op : llvm::reverse(block)) {
      for (Value result : op.getResults())
        if (live.erase(result))
          count -= registersOf(result.getType());
      for (Value operand : op.getOperands())
        begin(operand);
      reversed.push_back({lineOf(&op), count});
    }
    for (auto [line, registers] : llvm::reverse(reversed))
      points.push_back(json::Array{line, registers});
  }
  return points;
}
