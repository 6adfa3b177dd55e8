// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions that are in no blocks of channels as plain ones.
#include "relax/transform/sub_pixel.h"
#include "tvm/ir/machine.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class SubPixelApplier : public ExprMutator {
 public:
  explicit SubPixelApplier(const IRModule& mod) : ExprMutator(mod) {}
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto call = visited.as<Call>();
    auto sub = call ? SubPixel::Of(*call) : std::nullopt;
    if (!sub) return visited;
    Ints ones;
    for (size_t i = 0; i < sub->dims(); ++i) ones.push_back(IntImm::Int64(1));
    std::string name = "relax.nn.conv" + std::to_string(sub->dims()) + "d";
    Expr plain =
        builder_->Emit(CallOperator(name.c_str(), {sub->data(), sub->Filters(builder_), ones,
                                                   sub->Padding(), ones, sub->groups()}));
    return sub->Shuffled(builder_, plain, 1);
  }
};
IRModule ApplySubPixel(IRModule mod) {
  Target target = Target::Current();
  if (!target.defined() || !Machine::Of(target)->is_host) return mod;
  return OnDeepStack([&] { return SubPixelApplier(mod).VisitFunctions(); });
}
}  // namespace
TVM_RELAX_PASS(
    ApplySubPixel, 0,
    R"(Transposed convolutions of floats become plain ones of stride 1, with filters for each place
between two elements of the data, whose results are put in between: no zeros are multiplied. For
processors, where sizes but that of the batch are known, and without dilation.

y = R.nn.conv2d_transpose(x, w, strides=2, padding=1)  # x: (n, 64, 16, 16), w: (64, 32, 4, 4)
->
f = R.reshape(R.permute_dims(<w with its taps turned round>, …), R.shape([128, 64, 2, 2]))
p = R.nn.conv2d(x, f, padding=1)                       # (n, 128, 17, 17)
y = R.strided_slice(<p in its places>, axes=[2, 3], begin=[1, 1], end=[33, 33]))");
}  // namespace tvm::relax
