// SPDX-License-Identifier: Apache-2.0
// Kernels replaced by others, which want their tensors in other layouts.
#include <algorithm>

#include "tir/text.h"
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
using Separators = Map<String, Array<Optional<Array<IntImm>>>>;
struct Alterations {
  Map<String, tir::PrimFunc> kernels;
  Map<String, Array<Optional<tir::IndexMap>>> transforms;
  Separators separators, input_separators;
};
template <class T>
T AtBuffer(const Map<String, Array<T>>& table, const String& name, size_t i) {
  auto row = table.Get(name);
  return row && i < row.value().size() ? row.value()[i] : T();
}

class KernelReplacer : public ExprMutator {
 public:
  KernelReplacer(const IRModule& mod, const Alterations& altered)
      : ExprMutator(mod), mod_(mod), altered_(altered) {}
  Expr VisitExpr_(const CallObj* op) final {
    static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* args = call && call->Is(call_tir) ? call->args[1].as<TupleObj>() : nullptr;
    if (!args) return visited;
    auto callee = Any(call->args[0]).cast<GlobalVar>();
    auto func = mod_->Lookup(callee).as<tir::PrimFunc>();
    auto name = func ? (*func)->GetAttr<String>("operator_name") : Optional<String>();
    auto kernel = name ? altered_.kernels.Get(name.value()) : Optional<tir::PrimFunc>();
    if (!kernel) return visited;
    // A kernel that was put in says what it is, too: it is not replaced again.
    if (StructuralEqual(*func, kernel.value())) return visited;
    return Replaced(call, args->fields, name.value(), kernel.value());
  }

 private:
  Array<StructInfo> Outputs(const StructInfo& info) const {
    auto* tuple = info.as<TupleStructInfoObj>();
    return tuple ? tuple->fields : Array<StructInfo>{info};
  }
  Expr Replaced(const CallObj* call, const Array<Expr>& args, const String& name,
                const tir::PrimFunc& kernel) {
    Array<StructInfo> outputs = Outputs(call->sinfo_args[0]), changed;
    CheckCount(name, args.size() + outputs.size());
    Array<Expr> moved;
    for (size_t i = 0; i < args.size(); ++i) moved.push_back(ToLayout(args[i], name, i));
    for (size_t i = 0; i < outputs.size(); ++i)
      changed.push_back(InLayout(outputs[i], name, args.size() + i));
    std::string hint = name + "_replacement";
    std::replace(hint.begin(), hint.end(), '.', '_');
    GlobalVar callee = builder_->AddFunction(kernel, hint);
    Array<Expr> call_args = call->args;
    call_args.Set(0, callee);
    call_args.Set(1, Tuple(moved));
    bool is_tuple = call->sinfo_args[0].as<TupleStructInfoObj>();
    Call replaced(call->op, call_args, call->attrs,
                  {is_tuple ? StructInfo(TupleStructInfo(changed)) : changed[0]}, call->span);
    bool is_moved = false;
    for (size_t i = 0; i < outputs.size(); ++i)
      is_moved |= MapAt(name, args.size() + i).has_value();
    if (!is_moved) return replaced;
    Expr result = builder_->Emit(replaced);
    if (!is_tuple) return FromLayout(result, outputs[0], name, args.size());
    Array<Expr> items;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Expr item = builder_->Emit(TupleGetItem(result, static_cast<int64_t>(i)));
      items.push_back(
          builder_->NormalizeArgument(FromLayout(item, outputs[i], name, args.size() + i)));
    }
    return Tuple(items);
  }
  void CheckCount(const String& name, size_t buffers) const {
    auto transforms = altered_.transforms.Get(name);
    if (transforms && transforms.value().size() != buffers) {
      TVM_FFI_THROW(ValueError) << "AlterOpImpl: expected a transform for each of the " << buffers
                                << " tensors of " << name << ", got " << transforms.value().size();
    }
  }
  Optional<tir::IndexMap> MapAt(const String& name, size_t i) const {
    return AtBuffer(altered_.transforms, name, i);
  }
  const TensorStructInfoObj* Tensor(const StructInfo& info, const String& name, size_t i) const {
    auto* tensor = info.as<TensorStructInfoObj>();
    auto map = MapAt(name, i);
    size_t rank = map.value()->initial_indices.size();
    if (!tensor || !tensor->Dims() || tensor->Dims().value().size() != rank) {
      TVM_FFI_THROW(ValueError) << "AlterOpImpl: expected tensor " << i << " of " << name
                                << " to have the " << rank
                                << " dimensions that its transform takes, got "
                                << tir::TextOf(info);
    }
    return tensor;
  }
  /// To the kernel's layout, whose separators are known, or back.
  Expr Transformed(const Expr& value, const tir::IndexMap& map, const String& name, size_t i,
                   bool back) {
    auto list = [](const Optional<Array<IntImm>>& l) { return l ? Any(l.value()) : Any(); };
    Any outside = list(AtBuffer(altered_.input_separators, name, i));
    Any inside = list(AtBuffer(altered_.separators, name, i));
    return CallOperator("relax.layout_transform",
                        {value, map, nullptr, back ? outside : inside, back ? inside : outside});
  }
  Expr ToLayout(const Expr& value, const String& name, size_t i) {
    auto map = MapAt(name, i);
    if (!map) return value;
    Tensor(GetStructInfo(value), name, i);
    return builder_->Emit(Transformed(value, map.value(), name, i, false));
  }
  StructInfo InLayout(const StructInfo& info, const String& name, size_t i) {
    auto map = MapAt(name, i);
    if (!map) return info;
    auto* tensor = Tensor(info, name, i);
    return TensorStructInfo(
        ShapeExpr(map.value().MapShape(tensor->Dims().value(), builder_->analyzer())),
        tensor->dtype, tensor->vdevice);
  }
  /// What the kernel gives, back in the layout in which the rest expects it; padding is cut off.
  Expr FromLayout(const Expr& value, const StructInfo& wanted, const String& name, size_t i) {
    auto map = MapAt(name, i);
    if (!map) return value;
    Array<PrimExpr> dims = Tensor(wanted, name, i)->Dims().value();
    Array<Range> ranges;
    for (const PrimExpr& dim : dims)
      ranges.push_back(Range::FromMinExtent(MakeZero(dim.dtype()), dim));
    auto [inverse, is_padding] = map.value().NonSurjectiveInverse(ranges, builder_->analyzer());
    Expr back = Transformed(value, inverse, name, i, true);
    if (builder_->analyzer()->CanProve(logical_not(is_padding))) return back;
    Array<int64_t> axes;
    Array<PrimExpr> zeros;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      axes.push_back(static_cast<int64_t>(axis));
      zeros.push_back(IntImm::Int64(0));
    }
    return CallOperator("relax.strided_slice",
                        {builder_->Emit(back), axes, zeros, dims, nullptr, true});
  }

  IRModule mod_;
  const Alterations& altered_;
};

IRModule AlterOpImpl(IRModule mod, Map<String, tir::PrimFunc> op_impl_map,
                     Map<String, Array<Optional<tir::IndexMap>>> op_buffer_transforms,
                     Separators op_buffer_axis_separators,
                     Separators op_buffer_input_axis_separators) {
  for (const auto& [name, transforms] : op_buffer_transforms) {
    if (!op_impl_map.count(name)) {
      TVM_FFI_THROW(ValueError) << "AlterOpImpl: expected a kernel for " << name
                                << ", whose tensors are transformed, got none";
    }
  }
  return KernelReplacer(mod, {op_impl_map, op_buffer_transforms, op_buffer_axis_separators,
                              op_buffer_input_axis_separators})
      .VisitFunctions();
}
}  // namespace
TVM_RELAX_PASS(
    AlterOpImpl, 0,
    "y = R.call_tir(cls.f, (x,), ...), where f has the attribute operator_name: \"k\"  ->  x1 = "
    "layout_transform(x, m0); y1 = R.call_tir(cls.g, (x1,), ...); y = layout_transform(y1, inverse "
    "of m1), with {\"k\": g} and {\"k\": [m0, m1]}: a map or None for each tensor, results last.",
    Arg("op_impl_map"), Arg("op_buffer_transforms"), Arg("op_buffer_axis_separators", Separators()),
    Arg("op_buffer_input_axis_separators", Separators()));
}  // namespace tvm::relax
