//===- MatrixWork.cpp - How many products an instruction takes ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatrixJob.h"
#include "Program.h"

using namespace kvbuf::emu;

double kvbuf::emu::matrixProducts(const Program &p, const Inst &inst) {
  auto shape = [&](double m, double n, double k, unsigned bits) {
    return m * n * k * bits / 16;
  };
  auto high = static_cast<double>(inst.imm >> 16),
       low = static_cast<double>(inst.imm & 0xFFFF);
  switch (inst.op) {
  case Code::MmaSync: // m16n8, k
    return shape(16, 8, static_cast<double>(inst.imm), 16);
  case Code::Wgmma: // steps of m64, n, k16, a quarter of which is a warp's;
                    // k32 of 8 bits take as long
    return shape(64 / 4, wgmmaColumns(inst.imm), 16.0 * wgmmaSteps(inst.imm),
                 16);
  case Code::AmdMfma: // m by m, k
    return shape(high, high, low, inst.flags & mfmaFloat8 ? 8 : 16);
  case Code::WarpCall: {
    const WarpOp &op = p.warpOps[static_cast<size_t>(inst.imm)];
    bool isProduct =
        op.kind <= WarpOpKind::Wmma || op.kind >= WarpOpKind::AmdWmma;
    return isProduct ? op.blocks * shape(op.m, op.n, op.k, bitsOf(op.a)) : 0;
  }
  default:
    return 0;
  }
}
