//===- IsaLoops.cpp - Loops of a disassembled kernel ----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Isa.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace kvbuf;

namespace {

/// Instructions that are executed one after the other: [begin, end) of the
/// kernel's.
struct BasicBlock {
  size_t begin = 0, end = 0;
  llvm::SmallVector<unsigned, 2> successors, predecessors;
};

/// Blocks by address, with edges. Block 0 is the entry.
class FlowGraph {
public:
  explicit FlowGraph(llvm::ArrayRef<IsaInstruction> instructions);

  /// The blocks of each natural loop, by its header. Loops with one header are
  /// one loop.
  llvm::MapVector<unsigned, llvm::BitVector> naturalLoops() const;

  std::vector<BasicBlock> blocks;

private:
  /// For each block, the blocks that every path to it goes through.
  std::vector<llvm::BitVector> dominators() const;
};

} // namespace

FlowGraph::FlowGraph(llvm::ArrayRef<IsaInstruction> instructions) {
  llvm::DenseMap<uint64_t, size_t> byAddress;
  for (auto [index, instruction] : llvm::enumerate(instructions))
    byAddress[instruction.address] = index;
  llvm::BitVector leaders(instructions.size());
  if (!instructions.empty())
    leaders.set(0);
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    if (instruction.kind != IsaClass::Branch && instruction.fallsThrough)
      continue;
    if (index + 1 < instructions.size())
      leaders.set(index + 1);
    if (instruction.target)
      if (auto it = byAddress.find(*instruction.target); it != byAddress.end())
        leaders.set(it->second);
  }
  llvm::DenseMap<size_t, unsigned> blockAt;
  for (unsigned leader : leaders.set_bits()) {
    if (!blocks.empty())
      blocks.back().end = leader;
    blockAt[leader] = blocks.size();
    blocks.push_back({leader, instructions.size(), {}, {}});
  }
  for (auto [index, block] : llvm::enumerate(blocks)) {
    const IsaInstruction &last = instructions[block.end - 1];
    auto connect = [&](unsigned to) {
      block.successors.push_back(to);
      blocks[to].predecessors.push_back(index);
    };
    if (last.target)
      if (auto it = byAddress.find(*last.target); it != byAddress.end())
        connect(blockAt.lookup(it->second));
    if (last.fallsThrough && index + 1 < blocks.size())
      connect(index + 1);
  }
}

std::vector<llvm::BitVector> FlowGraph::dominators() const {
  std::vector<llvm::BitVector> result(blocks.size(),
                                      llvm::BitVector(blocks.size(), true));
  if (blocks.empty())
    return result;
  result[0].reset();
  result[0].set(0);
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned block = 1; block < blocks.size(); ++block) {
      llvm::BitVector next(blocks.size(), true);
      for (unsigned predecessor : blocks[block].predecessors)
        next &= result[predecessor];
      next.set(block);
      if (next != result[block]) {
        result[block] = std::move(next);
        changed = true;
      }
    }
  }
  return result;
}

llvm::MapVector<unsigned, llvm::BitVector> FlowGraph::naturalLoops() const {
  std::vector<llvm::BitVector> dominating = dominators();
  llvm::MapVector<unsigned, llvm::BitVector> loops;
  for (auto [latch, block] : llvm::enumerate(blocks))
    for (unsigned header : block.successors) {
      if (!dominating[latch].test(header))
        continue;
      llvm::BitVector &body =
          loops.try_emplace(header, llvm::BitVector(blocks.size()))
              .first->second;
      body.set(header);
      llvm::SmallVector<unsigned> pending = {static_cast<unsigned>(latch)};
      while (!pending.empty()) {
        unsigned member = pending.pop_back_val();
        if (body.test(member))
          continue;
        body.set(member);
        pending.append(blocks[member].predecessors);
      }
    }
  return loops;
}

/// The blocks [first, last] of the steady state of a loop. LLVM moves blocks
/// that it takes to be rare out of the way, after the loop. What stays lies
/// between the target of a backward branch and that branch; of all such ranges
/// that consist of the loop's blocks alone, the one with the most MFMAs is
/// taken, and of these the shortest. All blocks, if there is no such range.
static std::pair<unsigned, unsigned>
steadyState(const FlowGraph &graph, const llvm::BitVector &loop,
            llvm::ArrayRef<IsaInstruction> instructions) {
  std::pair<unsigned, unsigned> best = {loop.find_first(), loop.find_last()};
  int64_t bestMfmas = 0;
  size_t bestSize = 0;
  for (unsigned last : loop.set_bits())
    for (unsigned first : graph.blocks[last].successors) {
      if (first > last || !loop.test(first) ||
          loop.find_first_unset_in(first, last + 1) != -1)
        continue;
      size_t begin = graph.blocks[first].begin, end = graph.blocks[last].end;
      int64_t mfmas =
          llvm::count_if(instructions.slice(begin, end - begin),
                         [](const IsaInstruction &instruction) {
                           return instruction.kind == IsaClass::Mfma;
                         });
      if (mfmas > bestMfmas || (mfmas == bestMfmas && end - begin < bestSize)) {
        best = {first, last};
        bestMfmas = mfmas;
        bestSize = end - begin;
      }
    }
  return best;
}

std::vector<IsaLoop>
kvbuf::findLoops(llvm::ArrayRef<IsaInstruction> instructions,
                 const std::optional<IssueModel> &model, int64_t waveSize) {
  std::vector<IsaLoop> found;
  FlowGraph graph(instructions);
  auto loops = graph.naturalLoops();
  for (const auto &[header, loop] : loops) {
    // An inner loop has a report of its own.
    llvm::BitVector own = loop;
    for (const auto &[innerHeader, inner] : loops)
      if (innerHeader != header && loop.test(innerHeader))
        own.reset(inner);
    auto [first, last] = steadyState(graph, own, instructions);
    IsaLoop report;
    llvm::SmallVector<const IsaInstruction *> steady, outOfLine;
    for (unsigned index : own.set_bits()) {
      const BasicBlock &block = graph.blocks[index];
      for (const IsaInstruction &instruction :
           instructions.slice(block.begin, block.end - block.begin)) {
        if (index < first || index > last) {
          countInstruction(report.outOfLine, instruction);
          outOfLine.push_back(&instruction);
          continue;
        }
        countInstruction(report.counts, instruction);
        steady.push_back(&instruction);
        if (instruction.kind == IsaClass::Wait)
          report.waits.push_back(instruction.wait);
      }
    }
    if (!report.counts.mfma)
      continue;
    uint64_t start = instructions.front().address;
    report.begin = steady.front()->address - start;
    report.end = steady.back()->address + steady.back()->size - start;
    report.stages = modelStages(steady, model, waveSize);
    if (model)
      report.outOfLineCycles = issueCycles(outOfLine, *model);
    report.flight = flightOf(steady, waveSize);
    found.push_back(std::move(report));
  }
  llvm::sort(found, [](const IsaLoop &a, const IsaLoop &b) {
    return a.begin < b.begin;
  });
  return found;
}
