//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_CONVERSION_PASSES_TD
#define KVBUFFER_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertKVBufferToGPU
    : Pass<"convert-kvbuffer-to-gpu", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower tile programs to per-lane code";
  let description = [{
    Scheduled to thread. A fragment becomes the vectors that the matrix
    instruction's layouts give to a lane, a cache or tensor its pointer, strides
    and sizes as kernel parameters, a buffer a range of dynamic shared memory.
    Every address and every lane exchange is read off a linear layout; the
    target's description says which layouts, and which instructions move data.
    Teams become branches on the warp's number, rings and mailboxes slots
    with barriers in LDS; what copies, waits and multiplies there are
    instructions of the vendor's dialect, or `kvbuffer.wgmma`.

    Kernels assume that addresses and strides of 16-bit tensors are multiples of
    `alignment` bytes. With less than 16, the code for a tile looks at the tensor
    at hand: rows that begin at multiples of 16 bytes move as ever, others in
    pieces of 4 or 2 bytes. On AMD's chips lanes load all pieces from addresses of
    their own, whatever these are, and tiles' rows may lie any distance apart. The
    launch description (`kvbuffer.kernel`) repeats the number, and the runtime holds
    tensors to it.
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "16",
           "Bytes that addresses and strides of 16-bit tensors are multiples "
           "of: 2, 4, 8 or 16">];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::amdgpu::AMDGPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::nvgpu::NVGPUDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def CarryValues : Pass<"kvbuf-carry-values", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Carry through loops what the next iteration computes again";
  let description = [{
    Thread to thread. Where a loop carries x, and both x and its next value go
    through the same pure op, whose other operands do not change, the result of
    the second is carried and takes the place of the first: the product of a row's
    maximum and the scale, which is a tile's offset and part of the next tile's
    rescaling factor. Floating-point results alone.
  }];
}

def ConvertKVBufferToNVVM
    : Pass<"convert-kvbuffer-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower per-lane code to llvm and nvvm";
  let description = [{
    Thread to target on NVIDIA: upstream's conversions of gpu, nvgpu, vector,
    memref, arith and math in one step, with patterns of ours for
    `kvbuffer.lane_mma` and for base-2 exponentials and logarithms, which
    upstream lowers to calls of a library that is not there.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def ConvertKVBufferToROCDL
    : Pass<"convert-kvbuffer-to-rocdl", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower per-lane code to llvm and rocdl";
  let description = [{
    Thread to target on AMD: upstream's conversions of gpu, amdgpu, vector,
    memref, arith and math in one step, with patterns of ours for
    `kvbuffer.lane_mma` (MFMA), for ranges of DRAM and the copies out of them
    (buffer descriptors, loads into LDS), for base-2 exponentials and logarithms,
    and for LDS, which becomes a global of the module. Copies and reads of LDS
    get alias scopes, so that the backend adds no waits of its own.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect"];
}

def ConvertKVBufferToInlineAsm : Pass<"convert-kvbuffer-to-inline-asm"> {
  let summary = "Write what LLVM has no instruction for as inline assembly";
  let description = [{
    The last step before a translation to LLVM IR: the ops of this dialect that
    stay at the target stage, because LLVM 22 lacks forms of their instructions
    (`kvbuffer.wgmma`, `kvbuffer.wgmma_wait`, `kvbuffer.cluster_arrive`,
    `kvbuffer.cluster_store`), become `llvm.inline_asm`. `kvbuf-compile` runs it
    by itself; tools of MLIR run it, and `convert-nvvm-to-llvm` after it, before
    `gpu-module-to-binary`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def VerifyTarget : Pass<"kvbuf-verify-target", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Check that the chip can run what the target stage asks for";
  let description = [{
    Compares the kernels of a module at the target stage with the description of
    the chip that `kvbuffer.target` names: instructions that the chip lacks,
    widths of copies into LDS, shared memory, threads of a block. A backend would
    end compilation on some of these, and make code that cannot be launched of
    others. Changes nothing.
  }];
}

def ExpandFloat8 : Pass<"kvbuf-expand-float8"> {
  let summary = "Convert 8-bit floats by integer arithmetic";
  let description = [{
    `arith.extf` from 8-bit floats to f32, and `arith.truncf` back, rounding to
    nearest, ties to even: f8E4M3FN, f8E5M2 and their FNUZ forms. What exceeds the
    largest element becomes infinity, or no number in formats without one. Pairs
    that are bounded before are converted by an instruction, where the chip that
    `kvbuffer.target` names is NVIDIA's and has the format.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::NVVM::NVVMDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandMath : Pass<"kvbuf-expand-math"> {
  let summary = "Compute functions of the math dialect by arithmetic";
  let description = [{
    Upstream's conversions make calls of the vendors' libraries of most of the math
    dialect, and no kernel is linked with a library. Functions of f32, and of f16
    and bf16 by way of f32, become sums, products and divisions, square roots and
    exponentials in base 2: upstream's polynomials, and formulas where these are
    far off or upstream has none. docs/scores.md says how exact they are. What has
    an instruction on both vendors' chips stays; the rest, and functions of f64, are
    errors.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def RaiseAttention : Pass<"kvbuf-raise-attention"> {
  let summary = "Find attention in linalg on tensors";
  let description = [{
    Products of a softmax's weights with values become `kvbuffer.attention` on
    tensors. What the graph computes is read element by element, so named ops,
    generics, transposes, broadcasts and reshapes in any order are one: scales
    before or after the product, also as constants folded into it; soft caps;
    masks by comparisons of indices or constant tensors, selected or added, where
    the keys that they leave visible are a window; a softmax of max, sub, exp, sum
    and div or `linalg.softmax`, divided before or after the second product; heads
    that share keys by broadcast. Conversions between floats may stand anywhere.
    docs/raising.md says what is raised, and what is not.

    Operands are brought to [batch, rows, heads, head_size] by reshapes and
    `linalg.transpose`. A graph that is not such attention, or of which another op
    uses an intermediate result, stays; a remark says why.

    Numbers from -10000 hide a key from rows that see others. A row that sees no key
    has a value in the graph after all, the mean of the hidden keys' values perhaps;
    so such a mask is a window, or a region `visible`, where every row is known to see
    a key, and a change of scores elsewhere. `rows-see-keys` says that every row does.

    With `caches`, keys and values that the graph gathers by a table of pages are not
    gathered, but read from paged caches; and the comparison of a key with a number
    of its sequence becomes the lengths of the caches, so that what is hidden is not
    read.

    Where sizes are not known, exporters ask of each whether it is 1 and broadcast it
    then. That is followed where the graph shows that it is as large as what it would
    be broadcast to; `sizes-agree` says so of all sizes that are not known.

    With `round`, operands, weights and result are rounded to that type, where
    they are f32 in the graph. Without, only graphs are raised whose queries, keys,
    values and result are bf16, or f16.
  }];
  let options = [
    Option<"round", "round", "std::string", /*default=*/"",
           "Type to round operands and results to: bf16 or f16">,
    Option<"rowsSeeKeys", "rows-see-keys", "bool", /*default=*/"false",
           "No query is hidden from all keys: what masks hide by a finite "
           "number is hidden as by -inf">,
    Option<"sizesAgree", "sizes-agree", "bool", /*default=*/"false",
           "No dimension of unknown size is broadcast: it is as large as those "
           "that it meets">,
    Option<"caches", "caches", "bool", /*default=*/"false",
           "Keys and values that are gathered by a table of pages are paged "
           "caches, and what hides the keys from a number on is a length">];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ConvertAttentionOps : Pass<"kvbuf-convert-attention-ops"> {
  let summary = "Take attention of other compilers' dialects";
  let description = [{
    Ops that are attention by their names become `kvbuffer.attention` on tensors, in
    the form that `kvbuf-raise-attention` makes of graphs: `tm_tensor.attention`,
    `torch.aten.scaled_dot_product_attention`, `iree_linalg_ext.attention` and
    `online_attention`, `stablehlo.custom_call` of `__cudnn$fmhaSoftmax` and
    `__cudnn$fmhaScaleBiasSoftmax`, `stablehlo.composite` of
    `odml.scaled_dot_product_attention`, and ONNX's `Attention` as torch-mlir
    (`torch.operator`) and onnx-mlir (`onnx.Attention`, `onnx.Custom`) have it.

    Nothing depends on their dialects: names, operands and attributes are read, of
    registered ops and of unregistered ones in generic form. Masks, scales, causal
    flags, windows, lengths, score regions and heads that share keys are taken; a
    causal flag, which counts queries and keys from the first, is the mask attribute
    where sizes are known. Tensors of torch's are cast to builtin ones by
    `torch_c.to_builtin_tensor`, unless they come from one.

    An op that cannot be taken stays, with a remark that says why.
    docs/raising.md has what of each op is taken. `round`, `rows-see-keys` and
    `caches` are those of `kvbuf-raise-attention`.
  }];
  let options = [
    Option<"round", "round", "std::string", /*default=*/"",
           "Type to round operands and results to: bf16 or f16">,
    Option<"rowsSeeKeys", "rows-see-keys", "bool", /*default=*/"false",
           "No query is hidden from all keys: what masks hide by a finite "
           "number is hidden as by -inf">,
    Option<"caches", "caches", "bool", /*default=*/"false",
           "Lengths of keys are lengths of caches">];
  let dependentDialects = [
    "::kvbuf::KVBufferDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

#endif // KVBUFFER_CONVERSION_PASSES_TD
