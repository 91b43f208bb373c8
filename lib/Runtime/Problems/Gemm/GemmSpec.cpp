//===- GemmSpec.cpp - What a product asks of a manifest -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../ManifestReader.h"
#include "GemmProblem.h"

using namespace kvbuf::rt;

std::shared_ptr<const ProblemSpec>
kvbuf::rt::parseGemm(const std::string &op, const Reader &r, Manifest &m) {
  if (op != "gemm")
    return nullptr;
  GemmSpec p;
  p.transposeB = r.boolean("transpose_b", false);
  parseRoles(r, {"a", "b", "c"}, p);
  for (const char *role : {"a", "b", "c"}) {
    std::string name = p.tensor(role);
    const TensorSpec *t = m.findTensor(name);
    if (!t)
      throw Error("manifest: the product needs a tensor '" + name + "'");
    bool fits = t->dtype == DType::F16 || t->dtype == DType::BF16 ||
                t->dtype == DType::F32;
    if (t->shape.size() != 2 || !fits)
      throw Error("manifest: tensor '" + name + "' is " + nameOf(t->dtype) +
                  " of rank " + std::to_string(t->shape.size()) +
                  "; the product needs f16, bf16 or f32 of rank 2");
  }
  return std::make_shared<GemmSpec>(std::move(p));
}

std::string GemmSpec::describe() const {
  return std::string("product of matrices") +
         (transposeB ? ", the second one transposed" : "");
}

std::string GemmSpec::facts() const {
  return nlohmann::ordered_json{{"op", "gemm"}, {"transpose_b", transposeB}}
      .dump();
}

std::unique_ptr<Problem> GemmSpec::fill(const Manifest &manifest,
                                        const WorkloadOptions &options) const {
  return std::make_unique<GemmProblem>(manifest, options);
}
