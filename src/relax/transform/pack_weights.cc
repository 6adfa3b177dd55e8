// SPDX-License-Identifier: Apache-2.0
// Constant factors of products lie in panels as wide as the tiles that use them.
//
// A matrix (K, N) in panels of p columns is (N/p, K, p): a tile of the product reads one run of
// memory, whatever N is.
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "tvm/expr/op.h"
#include "tvm/ir/machine.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/call_te.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class WeightPacker : public ExprMutator {
 public:
  WeightPacker(const IRModule& mod, int64_t width) : ExprMutator(mod), width_(width) {}
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    Function changed = ExprMutator::VisitFunction(var, func);
    // Without transposes that nobody reads any more: folding would compute them.
    return changed.same_as(func) ? func : RemoveAllUnused(changed);
  }
  /// Panels are seen in the block in which they are made.
  void VisitBindingBlock(const BindingBlock& block) final {
    auto outside = std::exchange(panels_, {});
    ExprMutator::VisitBindingBlock(block);
    panels_ = std::move(outside);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    static const Op& matmul = *new Op(Op::Get("relax.matmul"));
    return call && call->Is(matmul) ? Packed(ffi::GetRef<Call>(call)) : visited;
  }

 private:
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  /// The constant matrix that is a factor, or whose transpose is.
  struct Factor {
    const ConstantObj* weight;
    bool is_transposed;
  };
  Factor FactorOf(const Expr& expr) const {
    static const Op& permute = *new Op(Op::Get("relax.permute_dims"));
    if (auto* weight = expr.as<ConstantObj>()) return {weight, false};
    auto* var = expr.as<VarObj>();
    auto value = var ? LookupBinding(ffi::GetRef<Var>(var)) : Optional<Expr>();
    auto* call = value ? value.value().as<CallObj>() : nullptr;
    if (!call || !call->Is(permute)) return {nullptr, false};
    auto* weight = call->args[0].as<ConstantObj>();
    // The other order of two axes, [0, 1], leaves a matrix as it is.
    const auto& axes = call->attrs.value().as<PermuteDimsAttrsObj>()->axes;
    bool swaps = !axes || axes.value()[0]->value % 2 != 0;
    return {swaps ? weight : nullptr, true};
  }
  Expr Packed(const Call& call) {
    auto [weight, is_transposed] = FactorOf(call->args[1]);
    auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
    if (!weight || weight->data.ndim() != 2 || !data || !data->Dims() || data->ndim < 2)
      return call;
    auto is_float = [](DataType t) { return t == DataType::Float(32); };
    DataType out = call->attrs.value().as<MatmulAttrsObj>()->out_dtype;
    if (!is_float(data->dtype) || !is_float(DataType(weight->data.dtype())) ||
        !(out.is_void() || is_float(out)))
      return call;
    int64_t depth = weight->data.size(is_transposed), columns = weight->data.size(!is_transposed);
    // A part of a panel that nobody uses has to be small beside the rest.
    int64_t panels = (columns + width_ - 1) / width_, all = panels * width_;
    if (columns < width_ || (all != columns && panels < kManyPanels)) return call;
    // A weight of many products, as of the steps of a recurrent network, is packed once.
    Expr& matrix = panels_[{weight->data.data_ptr(), depth, columns, is_transposed}];
    if (!matrix.defined()) matrix = Panels(ffi::GetRef<Expr>(weight), is_transposed);
    Expr product = Product(call->args[0], matrix, depth, all);
    if (all == columns) return product;
    Array<Any> axes{data->ndim - 1}, begin{int64_t{0}}, end{columns};
    return CallOperator("relax.strided_slice", {builder_->Emit(product), axes, begin, end});
  }
  Expr Panels(Expr matrix, bool is_transposed) {
    const auto& weight = matrix.as<ConstantObj>()->data;
    int64_t depth = weight.size(is_transposed), columns = weight.size(!is_transposed);
    int64_t panels = (columns + width_ - 1) / width_;
    if (panels * width_ != columns) return FilledUp(matrix, is_transposed, depth, columns);
    using Numbers = std::array<int64_t, 3>;
    Array<PrimExpr> split;
    Ints order;
    for (int64_t n :
         is_transposed ? Numbers{panels, width_, depth} : Numbers{depth, panels, width_})
      split.push_back(IntImm::Int64(n));
    for (int64_t axis : is_transposed ? Numbers{0, 2, 1} : Numbers{1, 0, 2})
      order.push_back(IntImm::Int32(axis));
    matrix = Make("relax.reshape", {matrix, ShapeExpr(split)});
    return Make("relax.permute_dims", {matrix, order});
  }
  /// The panels of a matrix whose columns do not fill them all, in one step: a matrix with zeros
  /// beside it would be as large once more.
  Expr FilledUp(const Expr& matrix, bool is_transposed, int64_t depth, int64_t columns) {
    TEArguments args = TEArguments::Create();
    te::Tensor w = args->Tensor(matrix);
    auto number = [](int64_t n) -> PrimExpr { return IntImm::Int64(n); };
    auto element = [&](const Array<tir::Var>& i) {
      PrimExpr column = i[0] * number(width_) + i[2], row = i[1];
      Array<PrimExpr> index{row, column};
      if (is_transposed) index = {column, row};
      PrimExpr value = w(index);
      return if_then_else(column < number(columns), value, MakeZero(value.dtype()));
    };
    Array<PrimExpr> shape{number((columns + width_ - 1) / width_), number(depth), number(width_)};
    return builder_->Emit(
        args->CallTIR(builder_, "pack_columns", {te::compute(shape, element, "panels")}));
  }
  Expr Product(const Expr& data, const Expr& panels, int64_t depth, int64_t columns) {
    TEArguments args = TEArguments::Create();
    te::Tensor x = args->Tensor(data), w = args->Tensor(panels);
    Array<PrimExpr> shape = x->shape;
    shape.Set(shape.size() - 1, IntImm::Int64(columns));
    DataType index = DataType::Int(64);
    tir::IterVar k =
        te::reduce_axis(Range::FromMinExtent(MakeZero(index), IntImm::Int64(depth)), "k");
    auto element = [&](const Array<tir::Var>& i) {
      Array<PrimExpr> row(i.begin(), i.end());
      row.Set(row.size() - 1, k->var);
      PrimExpr column = i.back(), width = IntImm::Int64(width_);
      return te::sum(x(row) * w({floordiv(column, width), k->var, floormod(column, width)}), {k});
    };
    return args->CallTIR(builder_, "matmul", {te::compute(shape, element, "matmul")});
  }
  static constexpr int64_t kManyPanels = 16;
  std::map<std::tuple<const void*, int64_t, int64_t, bool>, Expr> panels_;  // of a weight
  int64_t width_;
};

IRModule PackWeights(IRModule mod, Optional<int64_t> width) {
  int64_t columns = width.value_or(0);
  if (Target target = Target::Current(); !width && target.defined()) {
    Machine machine = Machine::Of(target);
    if (machine->is_host && machine->takes_vectors) columns = 2 * machine->Lanes(32);
  }
  if (columns < 2) return mod;
  return OnDeepStack([&] { return WeightPacker(mod, columns).VisitFunctions(); });
}
}  // namespace
TVM_RELAX_PASS(
    PackWeights, 0,
    R"(Products of float32 by a constant matrix, or the transpose of one, become calls of a
kernel that reads the matrix in panels of `width` columns, by default two vectors of the processor.
The panels are made by operators that FoldConstant computes.

y = R.matmul(x, w)  # w: (K, N)
->
p = R.permute_dims(R.reshape(w, R.shape([K, N // 32, 32])), axes=[1, 0, 2])
y = R.call_tir(cls.matmul, (x, p), out_sinfo=…))",
    Arg("width", nullptr));
}  // namespace tvm::relax
