// SPDX-License-Identifier: Apache-2.0
// Rules that say how an operator works on tensors whose dimensions are in another order.
#pragma once
#include <functional>

#include "relax/layout/order.h"
#include "tvm/relax/block_builder.h"

namespace tvm::relax {

/// A call whose arguments may be at hand in other layouts.
struct LayoutCall {
  const CallObj* call;
  /// The layout in which an argument is at hand, and the argument in a layout.
  std::function<Order(const Expr&)> order_of;
  std::function<Expr(const Expr&, const Order&)> get;
  /// Whether it can be brought into a layout: blocks must divide a dimension, or, of what is
  /// broadcast, it may be 1.
  std::function<bool(const Expr&, const Order&, bool is_broadcast)> fits;
  /// What the user wants for this operator: layouts of data, weight, and maybe the result.
  Array<String> desired;
  const BlockBuilder& builder;

  template <class Obj>
  const Obj* attrs() const {
    return static_cast<const Obj*>(call->attrs.value().get());
  }
  int64_t ndim(size_t i) const;
};
/// The layout of the first of some arguments that is at hand in another one, or none.
Order FirstOrder(const LayoutCall& c, const Array<Expr>& args);
/// The call in a layout, and the layout of its result: of all items of a tuple.
struct LayoutResult {
  Expr value;
  Order order;
};
using LayoutRule = std::optional<LayoutResult> (*)(LayoutCall& c);

/// The rule of an operator, or nullptr.
LayoutRule FindLayoutRule(const OpObj* op);
/// Whether the user can say in which layouts an operator works.
bool HasLayoutChoice(const OpObj* op);
void RegisterLayoutRule(const char* op, LayoutRule rule, bool has_choice = false);

/// A call of the same operator with other arguments and attributes.
Expr Again(const LayoutCall& c, Array<Expr> args, Optional<Attrs> attrs);
/// A copy of attributes that `change` changes.
template <class Obj, class F>
Attrs ChangedAttrs(const LayoutCall& c, F&& change) {
  auto node = ffi::make_object<Obj>(*c.attrs<Obj>());
  change(node.get());
  return Attrs(ObjectRef(std::move(node)).template as<Attrs>().value());
}

}  // namespace tvm::relax
