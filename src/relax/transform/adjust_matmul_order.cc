// SPDX-License-Identifier: Apache-2.0
// Products of three matrices in the cheaper order.
#include <unordered_map>

#include "relax/transform/products.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/relax/dpl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// The shape of a product, and how many multiplications it and its operands take.
struct Cost {
  Array<PrimExpr> dims;
  PrimExpr operations = IntImm::Int64(0);
};
class MatmulReorder {
 public:
  explicit MatmulReorder(const Function& func) : compile_time_(func) {
    auto bounds = func->GetAttr<Map<String, int64_t>>("tir_var_upper_bound").value_or({});
    for (const Var& param : func->params) {
      for (const tir::Var& var : TIRVarsInStructInfo(GetStructInfo(param))) {
        int64_t most = bounds.Get(var->name_hint).value_or(int64_t{1} << 31);
        analyzer_.Bind(var, Range::FromMinExtent(IntImm::Int64(1), IntImm::Int64(most)));
      }
    }
    auto count = [&](const Expr& expr) {
      for (const Var& used : UsedVars(expr)) ++uses_[used->vid.get()];
    };
    VisitBindings(func, [&](const Binding& binding) {
      Expr value = ValueOf(binding);
      auto* branch = value.as<IfObj>();
      if (!branch) return count(value);
      // The bindings of branches are visited as well.
      for (const Expr& part : {branch->cond, branch->true_branch->body, branch->false_branch->body})
        count(part);
    });
  }
  Optional<Expr> operator()(const Expr& value, const Bindings& bindings) {
    for (bool inner_is_left : {true, false}) {
      for (bool turned : {false, true}) {
        if (Optional<Expr> better = Try(value, bindings, inner_is_left, turned)) return better;
      }
    }
    return std::nullopt;
  }

 private:
  Optional<Expr> Try(const Expr& value, const Bindings& bindings, bool inner_is_left, bool turned) {
    DFPattern p = Wildcard(), q = Wildcard(), other = Wildcard();
    DFPattern inner = IsOp("relax.matmul")(p, q);
    DFPattern side = turned ? IsOp("relax.permute_dims")(inner) : inner;
    DFPattern whole =
        inner_is_left ? IsOp("relax.matmul")(side, other) : IsOp("relax.matmul")(other, side);
    PatternMatch match(bindings);
    if (!match.Find(whole, value)) return std::nullopt;
    for (const DFPattern& part : {p, q, other}) {
      if (RankOf(match[part]) < 2 || !DimsOfTensor(match[part])) return std::nullopt;
    }
    auto* var = match[inner].as<VarObj>();
    if (var && uses_[var->vid.get()] > 1) return std::nullopt;  // it is computed anyway
    Expr inner_call = match.LookThrough(match[inner]);
    DataType type = OutTypeOf(value.as<CallObj>());
    if (OutTypeOf(inner_call.as<CallObj>()) != type) return std::nullopt;
    Expr left = match[p], right = match[q];
    if (turned) {
      Expr permute = match.LookThrough(match[side]);
      if (!SwapsLastTwo(permute.as<CallObj>())) return std::nullopt;
      left = match[q];
      right = match[p];
    }
    // (a b) c or a (b c), where the operands of the inner product may be transposed.
    Cost l = Of(left, turned), r = Of(right, turned), o = Of(match[other], false);
    bool inner_known = compile_time_.Knows(match[p]) && compile_time_.Knows(match[q]);
    Cost now, then;
    bool outer_known = compile_time_.Knows(match[other]);
    if (inner_is_left) {
      now = Times(Times(l, r, inner_known), o, inner_known && outer_known);
      bool known = compile_time_.Knows(right) && outer_known;
      then = Times(l, Times(r, o, known), known && compile_time_.Knows(left));
    } else {
      now = Times(o, Times(l, r, inner_known), inner_known && outer_known);
      bool known = outer_known && compile_time_.Knows(left);
      then = Times(Times(o, l, known), r, known && compile_time_.Knows(right));
    }
    if (!analyzer_.CanProve(tir::LT(then.operations, now.operations))) return std::nullopt;
    auto matrix = [&](const Expr& e) { return turned ? Transposed(e) : e; };
    const Expr& third = match[other];
    if (inner_is_left) return Product(matrix(left), Product(matrix(right), third, type), type);
    return Product(Product(third, matrix(left), type), matrix(right), type);
  }
  static Cost Of(const Expr& expr, bool turned) {
    Cost cost{DimsOfTensor(expr).value()};
    if (!turned) return cost;
    size_t n = cost.dims.size();
    PrimExpr last = cost.dims[n - 1];
    cost.dims.Set(n - 1, cost.dims[n - 2]);
    cost.dims.Set(n - 2, last);
    return cost;
  }
  static Cost Times(const Cost& a, const Cost& b, bool is_free) {
    Cost result;
    size_t n = a.dims.size() - 2, m = b.dims.size() - 2, batch = std::max(n, m);
    PrimExpr count = a.dims[n + 1];
    for (size_t i = 0; i < batch; ++i) {
      bool of_a = i + n >= batch, of_b = i + m >= batch;
      PrimExpr dim = of_a ? a.dims[i + n - batch] : b.dims[i + m - batch];
      auto* one = dim.as<IntImmObj>();
      if (of_a && of_b && one && one->value == 1) dim = b.dims[i + m - batch];
      result.dims.push_back(dim);
    }
    result.dims.push_back(a.dims[n]);
    result.dims.push_back(b.dims[m + 1]);
    for (const PrimExpr& dim : result.dims) count = count * dim;
    result.operations = a.operations + b.operations;
    if (!is_free) result.operations = result.operations + count;
    return result;
  }
  CompileTime compile_time_;
  arith::Analyzer analyzer_;
  std::unordered_map<const Object*, int> uses_;
};
Function AdjustMatmulOrder(Function func, IRModule) {
  if (!CallsMatmul(func)) return func;
  MatmulReorder reorder(func);
  return RewriteValues(func, "AdjustMatmulOrder", [&](const Expr& e, const Bindings& bindings) {
    return reorder(e, bindings);
  });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    AdjustMatmulOrder, 1,
    "matmul(x, matmul(a, b))  ->  matmul(matmul(x, a), b), and back, where that provably takes "
    "fewer "
    "multiplications; also through a transposition of the inner product. Products of weights only "
    "(attribute num_input) cost nothing.");
}  // namespace tvm::relax
