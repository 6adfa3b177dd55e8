// SPDX-License-Identifier: Apache-2.0
// A product with a transposed matrix as one kernel.
#include "relax/transform/products.h"
#include "tvm/relax/call_te.h"
#include "tvm/relax/dpl.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"
#include "tvm/topi/product.h"

namespace tvm::relax {
namespace {
class TransposeMatmulFuser : public ExprMutator {
 public:
  explicit TransposeMatmulFuser(const IRModule& mod) : ExprMutator(mod) {}
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    Function changed = ExprMutator::VisitFunction(var, func);
    return changed.same_as(func) ? func : RemoveAllUnused(changed);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    PatternMatch match([this](const Var& var) { return LookupBinding(var); });
    if (!match.Find(product_, visited)) return visited;
    Expr permute = match.LookThrough(match[turned_]);
    bool known = DimsOfTensor(match[x_]) && DimsOfTensor(match[w_]) && RankOf(match[x_]) > 0;
    if (!known || !SwapsLastTwo(permute.as<CallObj>())) return visited;
    DataType type = OutTypeOf(visited.as<CallObj>());
    TEArguments args = TEArguments::Create();
    te::Tensor x = args->Tensor(match[x_]), w = args->Tensor(match[w_]);
    te::Tensor result = topi::broadcast_matmul(
        x, w, type.is_void() ? Optional<DataType>() : Optional<DataType>(type), true);
    return args->CallTIR(builder_, "NT_matmul", {result});
  }

 private:
  DFPattern x_ = Wildcard(), w_ = Wildcard(), turned_ = IsOp("relax.permute_dims")(w_),
            product_ = IsOp("relax.matmul")(x_, turned_);
};
IRModule FuseTransposeMatmul(IRModule mod) { return TransposeMatmulFuser(mod).VisitFunctions(); }
}  // namespace
TVM_RELAX_PASS(
    FuseTransposeMatmul, 0,
    "matmul(x, permute_dims(w)), where the matrices of w are transposed  ->  one call_tir "
    "of a PrimFunc NT_matmul");
}  // namespace tvm::relax
