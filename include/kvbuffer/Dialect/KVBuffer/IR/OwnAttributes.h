//===- OwnAttributes.h - Refuse attributes that nobody reads ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// MLIR keeps an attribute that an op does not know as a discardable one: a
/// misspelt `softcap` would be kept, printed and ignored. Ops of this dialect
/// refuse it, in both syntaxes.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_OWNATTRIBUTES_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_OWNATTRIBUTES_H

#include "mlir/IR/OpDefinition.h"

namespace kvbuf {
namespace detail {

/// An error at `op` for an attribute that is neither the op's own nor has a
/// dialect's prefix; it names the op's own attribute of the nearest name.
mlir::LogicalResult verifyOwnAttributes(mlir::Operation *op);

/// The same for the keys of `properties`, the dictionary that the generic
/// syntax writes as `<{...}>`; `own` are the op's attributes.
mlir::LogicalResult
verifyPropertyKeys(llvm::ArrayRef<llvm::StringRef> own,
                   mlir::Attribute properties,
                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace detail

/// The trait of an op whose attributes are all known.
template <typename ConcreteType>
class OwnAttributes
    : public mlir::OpTrait::TraitBase<ConcreteType, OwnAttributes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyOwnAttributes(op);
  }
};

/// An op as the dialect registers it: the same op, to `isa` too, but reading
/// its properties refuses keys that the op lacks, which the generated code
/// ignores.
template <typename OpTy> struct WithKnownProperties : OpTy {
  using OpTy::OpTy;

  template <typename Properties>
  static mlir::LogicalResult setPropertiesFromAttr(
      Properties &properties, mlir::Attribute attr,
      llvm::function_ref<mlir::InFlightDiagnostic()> emitError) {
    if (failed(detail::verifyPropertyKeys(OpTy::getAttributeNames(), attr,
                                          emitError)))
      return mlir::failure();
    return OpTy::setPropertiesFromAttr(properties, attr, emitError);
  }
};

} // namespace kvbuf

namespace mlir::detail {
template <typename OpTy>
class TypeIDResolver<::kvbuf::WithKnownProperties<OpTy>, void> {
public:
  static TypeID resolveTypeID() { return TypeID::get<OpTy>(); }
};
} // namespace mlir::detail

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_OWNATTRIBUTES_H
