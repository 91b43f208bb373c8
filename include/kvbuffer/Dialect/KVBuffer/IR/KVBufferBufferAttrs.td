//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a buffer lies in shared memory, and how it is filled.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERBUFFERATTRS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERBUFFERATTRS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferEnums.td"

def KVBuffer_KVBufferAttr : KVBuffer_Attr<"KVBuffer", "kv_buffer"> {
  let summary = "The parameters of a buffer (seed page KVBuffer)";
  let description = [{
    There are two forms. The short one says what a buffer is in LDS, and nothing
    of what is read from it: rows x columns x type of a slot, then parameters.

    | parameter | unit | meaning | default |
    |---|---|---|---|
    | `BK` | columns | columns of a block, a power of two; of f32 that are one block without a swizzle any number | the slot's |
    | `stages` | slots | slots of the buffer | 1 |
    | `swizzle` | | [bits, base, shift], perhaps of two terms, perhaps with a unit, see below | none |
    | `policy` | | how it is filled, see below | `double_buffered` |
    | `order` | | `rows`: elements of a row lie side by side. `cols`: those of a column do, in the order in which the matrix unit contracts them; elements are turned in registers, so that the buffer is `register_staged` or `streaming`, or by a team that fills a ring of 8-bit elements | `rows` |
    | `cache_depth` | columns | elements of a row in DRAM | the slot's |
    | `head_dim_offset` | columns | the slot's first column in that row | 0 |
    | `full_kv` | | false: a slot holds one block of BK columns, and loads name it | true |
    | `reg_chunk_depth` | columns | columns of operand b that are in registers at a time, where they are contracted | the slot's |
    | `open` | | what of `BK`, `stages`, `swizzle`, `policy` and `order` the attribute does not name is the chip's to choose (`kvbuf-complete-program`), not the default | |

    Which dimension a product contracts is a property of the read
    (`kvbuffer.fragment_load`, `contracted`), so that one slot may be read both
    ways. Whoever fills and reads the buffer, and by which instruction, is the
    schedule's affair.

    ```mlir
    #kvbuffer.kv_buffer<128x64xbf16, stages = 4, swizzle = [3, 0, 3]>
    #kvbuffer.kv_buffer<128x64xbf16, open>
    ```

    The long form has the parameters of the seed's `KVBuffer`, under their names.
    Who reads a buffer it says as a whole (`mma_shape`, `num_threads`), or leaves
    to the schedule, as the lowering of attention does. The buffer
    takes `depth` columns from `head_dim_offset` on of rows of `cache_depth`. It
    has `stages` slots of LDS; a slot holds BN x `smem_cols` elements as blocks of
    BN x BK, block after block. The members that the seed derives are methods
    (`KVBufferAttr::getNumMmas` and so on).

    The first three parameters have no names. The operand that the buffer feeds:

    | operand | what its rows are to a product |
    |---|---|
    | `q` | rows of the product; its columns are contracted (operand a) |
    | `k` | columns of the product; its columns are contracted: `kvbuffer.mma` with `transpose_b` (the seed's `transpose = true`) |
    | `v` | contracted; its columns are the product's: `kvbuffer.mma` without `transpose_b` |
    | `o` | rows of the result on their way out; no operand of a product |

    the type of the elements, numbers of whole bytes; and how the buffer is
    filled:

    | policy | |
    |---|---|
    | `double_buffered` | from DRAM straight into LDS, slots in turn |
    | `streaming` | one strip of a tile at a time, through a single slot; the program meets (`kvbuffer.meet`) before it loads the next |
    | `register_staged` | from DRAM into registers, which `kvbuffer.lds_stage` stores into LDS before its barrier |

    The reads of what a slot held before have ended at a barrier when
    `kvbuffer.lds_stage` stores into it: that of another slot's wait, or a
    `kvbuffer.meet`.

    The other parameters are written `name = value`, in any order. Those with a
    default may be left out:

    | parameter | unit | meaning | default |
    |---|---|---|---|
    | `mma_shape` | elements | M, N, K of the matrix instruction that reads the buffer | the schedule's |
    | `swizzle` | | [bits, base, shift], perhaps of two terms, perhaps with a unit, see below | none |
    | `BN` | rows | rows of a slot: keys of a tile, or queries for `q` and `o` | |
    | `WN` | rows | rows that one warp reads; divides BN | BN |
    | `BK` | columns | columns of a block, a power of two | |
    | `num_threads` | threads | threads that fill and read the buffer together | the schedule's |
    | `depth` | columns | columns of the operand: the head size | |
    | `kv_num_heads` | heads | heads of the cache (of Q for `q` and `o`) | 1 |
    | `full_kv` | | true: a slot holds all columns; false: one block of BK | true |
    | `cache_depth` | columns | elements of a row in DRAM | `depth` |
    | `head_dim_offset` | columns | the operand's first element in that row | 0 |
    | `reg_chunk_depth` | columns | columns of K's fragments that are in registers at a time | `depth` |
    | `smem_depth` | columns | columns of a slot, zeros past `depth`: a multiple of BK | `depth`, rounded up |
    | `stages` | slots | slots of the buffer | 1 |
    | `warp_size` | lanes | lanes of a wave | 32; without `mma_shape` the chip's |

    A swizzle [bits, base, shift] says where the 16-byte vectors of a block lie,
    so that the lanes of a wave that read a column meet different banks; [bits,
    base, shift, 8] the same of its 8-byte vectors, where lanes read no more at
    once and no copy into LDS is wider. Vector x
    of a block (row by row) lies at place
    x XOR (((x >> (base + shift)) & (2^bits - 1)) << base): the `bits` bits from
    `base` on are changed by those that stand `shift` above them. With rows of
    128 bytes, 8 vectors, [3, 0, 3] turns the vectors of row r by r mod 8. The
    changed bits must be those of a vector in the block (in a row where BN is no
    power of two), the bits looked at must begin in the block, and `shift` is not
    0.

    A second term, three numbers more before the unit, is XORed to the first.
    With rows of 64 bytes, 4 vectors, [2, 0, 4] turns the vectors of row r by
    r / 4 mod 4: 0, 1, 2 and 3. [2, 0, 4, 1, 1, 3] turns them by 0, 3, 2 and 1:
    bit 1 of a vector's number is changed by the sum of two bits of its row.

    Example:

    ```mlir
    #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>
    ```
  }];
  let parameters = (ins
    EnumParameter<KVBuffer_Operand>:$operand,
    AttrOrTypeParameter<"::mlir::Type", "type of the elements">:$elementType,
    EnumParameter<KVBuffer_Policy>:$policy,
    ArrayRefParameter<"int64_t", "M, N, K of the matrix instruction">:$mma_shape,
    ArrayRefParameter<"int64_t", "bits, base, shift, perhaps a second term, perhaps a unit; empty for none">:$swizzle,
    AttrOrTypeParameter<"int64_t", "rows of a slot">:$BN,
    AttrOrTypeParameter<"int64_t", "rows that a warp reads">:$WN,
    AttrOrTypeParameter<"int64_t", "columns of a block">:$BK,
    AttrOrTypeParameter<"int64_t", "threads that fill and read">:$num_threads,
    AttrOrTypeParameter<"int64_t", "columns of the operand">:$depth,
    AttrOrTypeParameter<"int64_t", "heads of the tensor">:$kv_num_heads,
    AttrOrTypeParameter<"bool", "whether a slot holds all columns">:$full_kv,
    AttrOrTypeParameter<"int64_t", "elements of a row in DRAM">:$cache_depth,
    AttrOrTypeParameter<"int64_t", "first element in that row">:$head_dim_offset,
    AttrOrTypeParameter<"int64_t", "columns in registers at a time">:$reg_chunk_depth,
    AttrOrTypeParameter<"int64_t", "columns of a slot">:$smem_depth,
    AttrOrTypeParameter<"int64_t", "slots">:$stages,
    AttrOrTypeParameter<"int64_t", "lanes of a wave">:$warp_size,
    EnumParameter<KVBuffer_Dimension>:$order,
    AttrOrTypeParameter<"int64_t", "what the chip chooses: bits of Open">:$open);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What a buffer may leave to `kvbuf-complete-program`; until then it has the
    /// default.
    enum Open : int64_t {
      kOpenBK = 1, kOpenStages = 2, kOpenSwizzle = 4, kOpenPolicy = 8,
      kOpenOrder = 16
    };
    /// Whether the buffer says nothing of what is read from it (the short form).
    bool isNeutral() const { return getOperand() == Operand::Any; }
    /// The buffer in names and messages: "k"; empty if it is neutral.
    ::llvm::StringRef getLabel() const {
      return isNeutral() ? "" : stringifyOperand(getOperand());
    }

    // Members that the seed page derives; sizes in elements unless said
    // otherwise. Formulas: seed page KVBuffer.

    // What the long form's operands stand for; of a neutral buffer nothing.

    /// Whether products contract the buffer's rows.
    bool contractsRows() const { return getOperand() == Operand::V; }
    /// Whether the buffer's rows are those of a product, or of its result.
    bool hasRowsOfProduct() const {
      return getOperand() == Operand::Q || isResult();
    }
    /// Whether a result leaves through the buffer, which no product reads.
    bool isResult() const { return getOperand() == Operand::O; }
    /// The seed's `transpose`.
    bool isTranspose() const { return !contractsRows(); }
    int64_t getMmaM() const { return getMmaShape()[0]; }
    int64_t getMmaN() const { return getMmaShape()[1]; }
    int64_t getMmaK() const { return getMmaShape()[2]; }
    /// MMA tiles along the non-contracted axis: ceil((transpose ? WN : depth) / MMA_N).
    int64_t getNumMmas() const;
    /// MMA steps along the contraction in one BK strip: ceil(BK / MMA_K).
    int64_t getNumKMmas2() const;
    /// BK strips along the contraction: ceil((transpose ? depth : WN) / BK).
    int64_t getNumKTiles() const;
    /// Strips that are in registers at once: ceil(reg_chunk_depth / BK) for K.
    int64_t getRegKTiles() const;
    /// LDS blocks of a slot's full depth: smem_depth / BK.
    int64_t getNumRepeats() const;
    /// Columns of a slot: smem_depth if full_kv, else BK.
    int64_t getSmemCols() const;
    /// Columns of the operand in a slot, the rest is zero: all of `depth`, or
    /// what block `block` has of them if not full_kv.
    int64_t getColumnsOf(int64_t block) const;
    /// Elements of a slot: BN * smem_cols.
    int64_t getSmemStageSize() const;
    /// Bytes of a slot, and of all slots.
    int64_t getStageBytes() const;
    int64_t getBytes() const;
    /// Elements of a fragment in one lane: MMA_K * MMA_N / warp_size.
    int64_t getInputFragSize() const;
    /// How vectors of the slot's blocks change places.
    ::kvbuf::Swizzle getSwizzleOfBlocks() const;
    /// Elements of a 16-byte vector.
    int64_t getSimdWidth() const;
    /// Rows of a wave's DMA unit: 32.
    int64_t getWarpTileRows() const { return 32; }
    /// DMA units of one load, and of one wave's share (rounded up).
    int64_t getDmaUnits() const;
    /// Memory instructions that one wave issues for one load: the seed's
    /// 2 * ceil(units / waves), for units of two instructions.
    int64_t getVmInstrsPerLoad() const;
    /// wtile_dim0 and wtile_dim1: a warp's tile, WN x BK.
    int64_t getWtileDim0() const { return getWN(); }
    int64_t getWtileDim1() const { return getBK(); }
    /// Registers (elements a lane) of the operand's register tile:
    /// num_mmas * num_k_mmas2 * reg_k_tiles * input_frag_size.
    int64_t getRegTileSize() const;
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERBUFFERATTRS_TD
