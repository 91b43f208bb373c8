//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Words of attributes and types.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERENUMS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERENUMS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"
include "mlir/IR/EnumAttr.td"

def KVBuffer_Phase : I32Enum<"Phase", "A stage of the lowering", [
    I32EnumCase<"Tile", 0, "tile">,
    I32EnumCase<"Scheduled", 1, "scheduled">,
    I32EnumCase<"Thread", 2, "thread">,
    I32EnumCase<"Target", 3, "target">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_CacheKind : I32Enum<"CacheKind", "How a cache lies in memory", [
    I32EnumCase<"Dense", 0, "dense">,
    I32EnumCase<"Ragged", 1, "ragged">,
    I32EnumCase<"Continuous", 2, "continuous">,
    I32EnumCase<"Paged", 3, "paged">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_TileOrder : I32Enum<"TileOrder", "How blocks come by tiles of queries", [
    I32EnumCase<"Grid", 0, "grid">, I32EnumCase<"Static", 1, "static">,
    I32EnumCase<"Dynamic", 2, "dynamic">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Accumulation : I32Enum<"Accumulation",
    "Where weighted values of 8-bit floats are added up", [
    I32EnumCase<"TwoLevel", 0, "two_level">,
    I32EnumCase<"Fast", 1, "fast">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Path : I32Enum<"Path", "How a tile comes into LDS", [
    I32EnumCase<"Direct", 0, "direct">,
    I32EnumCase<"Registers", 1, "registers">,
    I32EnumCase<"Streaming", 2, "streaming">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Operand : I32Enum<"Operand", "The operand that a buffer feeds", [
    I32EnumCase<"Q", 0, "q">, I32EnumCase<"K", 1, "k">,
    I32EnumCase<"V", 2, "v">, I32EnumCase<"O", 3, "o">,
    I32EnumCase<"Any", 4, "any">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Dimension : I32Enum<"Dimension", "A dimension of a matrix", [
    I32EnumCase<"Rows", 0, "rows">, I32EnumCase<"Cols", 1, "cols">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Policy : I32Enum<"Policy", "How a buffer is filled", [
    I32EnumCase<"DoubleBuffered", 0, "double_buffered">,
    I32EnumCase<"Streaming", 1, "streaming">,
    I32EnumCase<"RegisterStaged", 2, "register_staged">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Role : I32Enum<"Role", "What a fragment is to the matrix unit", [
    I32EnumCase<"A", 0, "a">, I32EnumCase<"B", 1, "b">,
    I32EnumCase<"Acc", 2, "acc">, I32EnumCase<"Row", 3, "row">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Reduction
    : I32Enum<"Reduction", "What becomes of the elements of a row",
              [I32EnumCase<"Sum", 0, "sum">,
               I32EnumCase<"Maximum", 1, "maximum">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_ArgumentKind
    : I32Enum<"ArgumentKind", "What a kernel's parameter is", [
    I32EnumCase<"Pointer", 0, "pointer">, I32EnumCase<"Stride", 1, "stride">,
    I32EnumCase<"Size", 2, "size">,
    I32EnumCase<"LaunchCounter", 3, "launch_counter">,
    I32EnumCase<"TensorMap", 4, "tensor_map">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_StageSpan
    : I32Enum<"StageSpan", "For which iterations an op runs ahead", [
    I32EnumCase<"Own", 0, "own">, I32EnumCase<"OneMore", 1, "one_more">,
    I32EnumCase<"All", 2, "all">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_Pipeline
    : I32Enum<"Pipeline", "How the iterations of a loop are made to overlap", [
    I32EnumCase<"Predicated", 0, "predicated">,
    I32EnumCase<"PeeledAhead", 1, "peeled_ahead">,
    I32EnumCase<"PeeledNow", 2, "peeled_now">,
    I32EnumCase<"Turns", 3, "turns">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_PipelineStart
    : I32Enum<"PipelineStart", "Where what runs ahead of a loop stands", [
    I32EnumCase<"AtLoop", 0, "at_loop">,
    I32EnumCase<"BeforeWait", 1, "before_wait">]> {
  let cppNamespace = "::kvbuf";
}

def KVBuffer_TensorAccess
    : I32Enum<"TensorAccess", "What a kernel does with a tensor", [
    I32EnumCase<"Read", 0, "read">, I32EnumCase<"Write", 1, "write">,
    I32EnumCase<"ReadWrite", 2, "read_write">,
    I32EnumCase<"Workspace", 3, "workspace">,
    I32EnumCase<"Counter", 4, "counter">]> {
  let cppNamespace = "::kvbuf";
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERENUMS_TD
