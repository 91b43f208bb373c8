//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How fragments lie over warps, lanes and registers.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLayoutInterfaces.td"

def KVBuffer_MmaLayoutAttr : KVBuffer_Attr<"MmaLayout", "mma", [
    DeclareAttrInterfaceMethods<KVBuffer_FragmentLayoutInterface>]> {
  let summary = "The layout of a matrix instruction's operand or accumulators";
  let description = [{
    A fragment is a grid of atoms, each one operand of one matrix instruction
    (`unit`, of `shape` M, N, K; `group` of them along K where one read of LDS
    feeds several; of `wgmma`, which four warps execute, one warp's rows of it).
    `operand` says which: `a`, `b` or `acc`. With `swapped` the
    instruction computes the transposed product: a and b change places and the
    accumulators are the transposed result. With `transpose_b` the rows of the
    fragment are columns of the product.

    `warps` is a grid, rows by columns of the result. Operand a is cut by rows
    (each column of warps has all of them), b by the result's columns,
    accumulators by both: warp w of the team has part w mod rows of the rows and
    part w / rows of the columns.

    `order` lists, for each bit of the position along the contraction, the
    element that stands there. A product adds up in the order of its operands,
    which must be one. Without it elements stand in their natural order.
    `columns` says the same of the product's columns: of operand b and of the
    accumulators, which share it. Elements of other types than the instruction's
    lie side by side in a lane where these orders say so.

    Examples:

    ```mlir
    #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4, 1]>
    #kvbuffer.mma<wgmma, acc, shape = [64, 8, 16], warps = [8, 1]>
    #kvbuffer.mma<mfma, b, shape = [32, 32, 16], warps = [8, 1], swapped = true, order = [1, 2, 8, 4]>
    ```
  }];
  let parameters = (ins
    "::kvbuf::MatrixUnit":$unit,
    "::kvbuf::Role":$operand,
    ArrayRefParameter<"int64_t">:$shape,
    "int64_t":$group,
    "int64_t":$warpRows,
    "int64_t":$warpCols,
    "bool":$transposeB,
    "bool":$swapped,
    ArrayRefParameter<"int64_t">:$order,
    ArrayRefParameter<"int64_t">:$columns);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The layout of another operand of the same products, whose columns are in
    /// the same order.
    MmaLayoutAttr forOperand(::kvbuf::Role operand, bool transposeB = false,
                             ::llvm::ArrayRef<int64_t> order = {}) const;
    /// The same with the product's columns in another order.
    MmaLayoutAttr withColumns(::llvm::ArrayRef<int64_t> columns) const;
    /// The atom in the coordinates of the product: a is [M][K], b is [K][N],
    /// whichever way the fragment lies.
    ::kvbuf::LinearLayout getProductAtom() const;
  }];
}

def KVBuffer_SliceLayoutAttr : KVBuffer_Attr<"SliceLayout", "slice", [
    DeclareAttrInterfaceMethods<KVBuffer_FragmentLayoutInterface>]> {
  let summary = "The layout of values for each row of a fragment";
  let description = [{
    Every lane has the value of each row that it holds elements of; lanes that
    share a row have the same.

    Example:

    ```mlir
    #kvbuffer.slice<row of #kvbuffer.mma<mma_sync, acc, shape = [16, 8, 16], warps = [4, 1]>>
    ```
  }];
  let parameters = (ins "::kvbuf::FragmentLayoutInterface":$parent);
  let assemblyFormat = "`<` `row` `of` $parent `>`";
}

def KVBuffer_BlockedLayoutAttr : KVBuffer_Attr<"BlockedLayout", "blocked", [
    DeclareAttrInterfaceMethods<KVBuffer_FragmentLayoutInterface>]> {
  let summary = "The layout of rows that a wave's lanes share evenly";
  let description = [{
    `lanes` is a grid of a wave's lanes, rows by lanes of a row, neighbours
    first along the row. A lane has `width` columns side by side, the next lane
    the next ones. Each of `warps` warps has as many of the rows; one, if it is
    not said: then the warps of a team hold all of the fragment each.

    `columns` lists, for each bit of a column's place in the row, the column that
    stands there; without it columns stand in their natural order. Where it is of
    more columns than the lanes of a row have, a lane has all that is between
    them, too.

    Four rows of 32 columns each, in which columns 0, 8, 16 and 24 stand side by
    side in the first lane:

    ```mlir
    #kvbuffer.blocked<lanes = [4, 8], width = 4, columns = [8, 16, 1, 2, 4]>
    ```

    Rows of 128 columns, of which four warps have a quarter each:

    ```mlir
    #kvbuffer.blocked<warps = 4, lanes = [2, 16], width = 8>
    ```
  }];
  let parameters = (ins
    "int64_t":$rowLanes,
    "int64_t":$colLanes,
    "int64_t":$width,
    DefaultValuedParameter<"int64_t", "1">:$warps,
    OptionalArrayRefParameter<"int64_t">:$columns);
  let assemblyFormat = [{
    `<` (`warps` `=` $warps^ `,` ` `)? `lanes` `=` `[` $rowLanes `,` $colLanes `]`
    `,` `width` `=` $width (`,` `columns` `=` `[` $columns^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAYOUTS_TD
