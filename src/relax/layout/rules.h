// SPDX-License-Identifier: Apache-2.0
// Rules that say how an operator works on tensors whose dimensions are in another order.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tvm/relax/attrs.h"
#include "tvm/relax/block_builder.h"

namespace tvm::relax {

/// Dimension i of the tensor in this layout is dimension order[i] of the tensor as it was. Empty:
/// as it was.
using Order = std::vector<int64_t>;
bool IsIdentity(const Order& order);
Order Inverse(const Order& order);
/// From a layout of letters to another: from "NCHW" to "NHWC" it is {0, 2, 3, 1}. Nothing when they
/// are no permutations of each other.
std::optional<Order> OrderOf(const std::string& from, const std::string& to);
/// Where a dimension of the tensor as it was is now.
int64_t NewAxis(int64_t axis, const Order& order);
/// The letters of a layout in another order.
std::string Reordered(const std::string& layout, const Order& order);

/// A call whose arguments may be at hand in other layouts.
struct LayoutCall {
  const CallObj* call;
  /// The layout in which an argument is at hand, and the argument in a layout.
  std::function<Order(const Expr&)> order_of;
  std::function<Expr(const Expr&, const Order&)> get;
  /// What the user wants for this operator: layouts of data, weight, and maybe the result.
  Array<String> desired;
  const BlockBuilder& builder;

  template <class Obj>
  const Obj* attrs() const {
    return static_cast<const Obj*>(call->attrs.value().get());
  }
  int64_t ndim(size_t i) const;
};
/// The call in a layout, and the layout of its result: of all items of a tuple.
struct LayoutResult {
  Expr value;
  Order order;
};
using LayoutRule = std::optional<LayoutResult> (*)(LayoutCall& c);

/// The rule of an operator, or nullptr.
LayoutRule FindLayoutRule(const OpObj* op);
void RegisterLayoutRule(const char* op, LayoutRule rule);

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
