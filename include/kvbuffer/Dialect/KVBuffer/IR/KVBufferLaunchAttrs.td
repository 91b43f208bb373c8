//===----------------------------------------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a launch knows of a kernel: its sizes, tensors and arguments, the problem
// that it computes, and its memory.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAUNCHATTRS_TD
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAUNCHATTRS_TD

include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrBase.td"
include "kvbuffer/Dialect/KVBuffer/IR/KVBufferEnums.td"

def KVBuffer_SizeAttr : KVBuffer_Attr<"Size", "size"> {
  let summary = "An expression over the sizes of a launch";
  let description = [{
    What grids, shapes and conditions of launches are made of: `product`, `sum`,
    `min` and `max` of one or more operands, and `ceildiv` and `floordiv` of two,
    quotients that are rounded up and down. Operands are integers, names of sizes
    and other expressions. Names that are no words stand in quotes. `sms` is the
    device's number of multiprocessors.

    An integer and a name alone are an integer and a string, wherever a size is
    expected.

    Example:

    ```mlir
    #kvbuffer.size<max(1, floordiv(sms, product(batch, 8)))>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::kvbuf::SizeOperator", "what is made of the operands">:$operation,
    ArrayRefParameter<"::mlir::Attribute", "integers, names and expressions">:$operands);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What messages call a size.
    static constexpr ::llvm::StringLiteral kExpected =
        "an integer, the name of a size or #kvbuffer.size<...>";
    /// Whether an attribute is a size: an integer, a name, or one of these.
    static bool isSize(::mlir::Attribute attr);
    /// An operator, by its name, of sizes.
    static SizeAttr of(::mlir::MLIRContext *context, ::llvm::StringRef operation,
                       ::llvm::ArrayRef<::mlir::Attribute> operands);
    /// What evaluates a size.
    static ::kvbuf::SizeExpr getExpr(::mlir::Attribute size);
  }];
}

def KVBuffer_TensorAttr : KVBuffer_Attr<"Tensor", "tensor"> {
  let summary = "A tensor that a launch is given, or gives";
  let description = [{
    An entry of a kernel's `kvbuffer.tensors`: the tensor's name, the type of its
    elements, a size for each dimension, and what the kernel does with it: it may
    `read`, `write` or `read_write` what the caller gives, or the launch provides
    it, a `workspace` or a `counter`. A tensor with `cache` holds a cache's rows.

    Example:

    ```mlir
    #kvbuffer.tensor<"k" : bf16[num_blocks, 16, 8, 128], read, cache>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::StringAttr", "what arguments call it">:$name,
    AttrOrTypeParameter<"::mlir::Type", "of an element">:$elementType,
    ArrayRefParameter<"::mlir::Attribute", "sizes of its dimensions">:$shape,
    EnumParameter<KVBuffer_TensorAccess>:$access,
    AttrOrTypeParameter<"bool", "whether it holds a cache's rows">:$cache);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether the launch provides it, and not its caller.
    bool isScratch() const {
      return getAccess() == TensorAccess::Workspace ||
             getAccess() == TensorAccess::Counter;
    }
    /// What manifests call a type of elements, and that of this tensor's.
    static std::string getDTypeOf(::mlir::Type element);
    std::string getDType() const { return getDTypeOf(getElementType()); }
    /// Bytes of an element.
    int64_t getElementBytes() const {
      return getElementType().getIntOrFloatBitWidth() / 8;
    }
    /// The same tensor with something else.
    TensorAttr withName(::mlir::StringAttr name) const;
    TensorAttr withShape(::llvm::ArrayRef<::mlir::Attribute> shape) const;
    TensorAttr withAccess(TensorAccess access) const;
  }];
}

def KVBuffer_ArgumentAttr : KVBuffer_Attr<"Argument", "argument"> {
  let summary = "A parameter of a kernel, as a launch fills it in";
  let description = [{
    An entry of `args` of `#kvbuffer.launch`:

    | text | parameter |
    |---|---|
    | `<pointer "q">` | the tensor's address, 64 bits; `alignment`: bytes that it and the strides are multiples of, in place of the launch's |
    | `<stride "q", dim = 1>` | elements between neighbours along a dimension, 64 bits; `limit`: the largest that the kernel takes |
    | `<size seq_q>` | a size, 32 bits |
    | `<launch_counter>` | the address of 32 bits that are 0 when the launch starts, and its own |
    | `<tensor_map "k", box = [64, 128], dims = [1, 0], swizzle = 128>` | 128 bytes by value, for copy engines; also `columns`, `flat`, `interleave`, `l2_promotion`, `oob_fill` |

    `include/kvbuffer/Runtime/Manifest.h` says more of each.

    Example:

    ```mlir
    #kvbuffer.argument<stride "q", dim = 1>
    ```
  }];
  let parameters = (ins
    EnumParameter<KVBuffer_ArgumentKind>:$kind,
    OptionalParameter<"::mlir::StringAttr", "of which tensor">:$tensor,
    OptionalParameter<"::mlir::Attribute", "which size">:$size,
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "what is said besides">:$details);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static ArgumentAttr pointer(::mlir::StringAttr tensor,
                                std::optional<int64_t> alignment = {});
    /// `limit`: the largest stride that the kernel takes, 0 for any.
    static ArgumentAttr stride(::mlir::StringAttr tensor, int64_t dim,
                               int64_t limit = 0);
    /// Of a size: an integer, a name or an expression.
    static ArgumentAttr sizeOf(::mlir::Attribute size);
    static ArgumentAttr launchCounter(::mlir::MLIRContext *context);
    /// The same with another tensor.
    ArgumentAttr withTensor(::mlir::StringAttr tensor) const;

    /// A number that is said besides.
    std::optional<int64_t> getNumber(::llvm::StringRef name) const;
    /// A list of numbers that is said besides; empty if it is not.
    ::llvm::ArrayRef<int64_t> getNumbers(::llvm::StringRef name) const;
    /// The manifest's entry.
    ::mlir::DictionaryAttr getEntry() const;
  }];
}

def KVBuffer_LaunchAttr : KVBuffer_Attr<"Launch", "launch"> {
  let summary = "How a kernel is launched";
  let description = [{
    A kernel's `kvbuffer.kernel`, from the thread stage on; the manifest's entry
    (`include/kvbuffer/Runtime/Manifest.h`):

    | field | what it is |
    |---|---|
    | `alignment` | bytes that addresses and strides of 16-bit tensors are multiples of |
    | `ahead` | names of the kernels that every launch of this one runs before it |
    | `args` | an argument for each parameter, see `#kvbuffer.argument` |
    | `beside` | names of the kernels that are launched after this one |
    | `block` | threads of a block, in each dimension |
    | `copies` | the tensor that the kernel copies for others, into a workspace, or out of it if they write it |
    | `copies_if` | a size: where it is 1 or more, tensors that this kernel cannot take are copied for it |
    | `defaults` | sizes that callers need not say, and what they are then |
    | `dynamic_shared_bytes` | what a block takes of LDS besides what the code says |
    | `entry` | the kernel's name |
    | `grid` | blocks of a launch, a size for each dimension |
    | `instead` | the kernel for other launches |
    | `launch_if` | a size: launches that make it 1 or more are this kernel's |
    | `requires` | `"tensor_maps"` where it has such arguments |

    Example:

    ```mlir
    #kvbuffer.launch<args = [<pointer "x">, <size rows>], block = [128, 1, 1], dynamic_shared_bytes = 0, grid = [ceildiv(rows, 128), 1, 1]>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "by their names">:$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The launch of a kernel; null if it has none.
    static LaunchAttr of(::mlir::Operation *kernel);
    /// The same with another value of a field.
    LaunchAttr with(::llvm::StringRef field, ::mlir::Attribute value) const;

    /// Threads of a block; empty if nothing says how many.
    ::llvm::ArrayRef<int64_t> getBlock() const;
    /// Those of all dimensions; 1 if nothing says.
    int64_t getThreads() const;
    /// Blocks of a launch.
    ::llvm::ArrayRef<::mlir::Attribute> getGrid() const;
    /// The arguments, each an `ArgumentAttr`; null if nothing says.
    ::mlir::ArrayAttr getArgs() const;
    /// A number of these names; 0 if nothing says.
    int64_t getDynamicSharedBytes() const;
    std::optional<int64_t> getAlignment() const;
    /// The field of this name; null if nothing says.
    ::mlir::Attribute getField(::llvm::StringRef name) const {
      return getFields().get(name);
    }
    /// Whether an argument is a tensor map.
    bool takesTensorMaps() const;
  }];
}

def KVBuffer_ProblemAttr : KVBuffer_Attr<"Problem", "problem"> {
  let summary = "What a kernel computes";
  let description = [{
    A kernel's `kvbuffer.problem`, for tools that check results; the manifest's
    entry. `op` is the problem's name in `Problems.def`, `tensors` says which
    tensors play its parts where those have other names. The other fields are the
    problem's own; those of `attention` are verified.

    Example:

    ```mlir
    #kvbuffer.problem<op = "attention", heads = 16, kv_heads = 4, tensors = {q = "queries"}>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "by their names">:$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The problem of a kernel; null if it has none.
    static ProblemAttr of(::mlir::Operation *kernel);
    /// The problem's name.
    ::llvm::StringRef getOp() const;
    /// The field of this name and kind; null if nothing says.
    template <typename AttrT>
    AttrT getField(::llvm::StringRef name) const {
      return getFields().getAs<AttrT>(name);
    }
  }];
}

def KVBuffer_LdsAttr : KVBuffer_Attr<"Lds", "lds"> {
  let summary = "What lies in a part of a kernel's LDS";
  let description = [{
    An entry of `kvbuffer.lds`, from the thread stage on: a buffer of the stages
    before. For messages and pictures alone: no code follows from it.

    | field | what it is |
    |---|---|
    | `name` | what the buffer is called |
    | `offset` | its first byte |
    | `slots`, `slot_bytes` | how many slots it has, and of how many bytes |
    | `element_bytes` | of an element |
    | `rows`, `row_bytes`, `cols` | of a block: a slot is blocks of so many rows, one after the other |
    | `swizzle` | as buffers list it; absent: none |
    | `keys`, `depth`, `key_bits`, `folds`, `banks` | in place of rows and swizzle, of a tile that was transposed on its way; `folds` absent: none |

    Example:

    ```mlir
    #kvbuffer.lds<cols = 64, element_bytes = 2, name = "k", offset = 0, row_bytes = 128, rows = 64, slot_bytes = 16384, slots = 2, swizzle = [3, 0, 3]>
    ```
  }];
  let parameters = (ins
    AttrOrTypeParameter<"::mlir::DictionaryAttr", "by their names">:$fields);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What the buffer is called.
    ::llvm::StringRef getName() const;
    /// A number, and a list of them, that the attribute has.
    std::optional<int64_t> getNumber(::llvm::StringRef field) const;
    std::optional<::llvm::ArrayRef<int64_t>>
    getNumbers(::llvm::StringRef field) const;
  }];
}

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFERLAUNCHATTRS_TD
