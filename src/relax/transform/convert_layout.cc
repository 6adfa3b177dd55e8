// SPDX-License-Identifier: Apache-2.0
// Convolutions in other layouts, and what is between them.
#include "relax/layout/mutator.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
using DesiredLayouts = Map<String, Array<String>>;

class LayoutConverter : public LayoutMutator {
 public:
  LayoutConverter(const IRModule& mod, DesiredLayouts desired, Optional<ffi::Function> layout_cb)
      : LayoutMutator(mod), desired_(std::move(desired)), layout_cb_(std::move(layout_cb)) {}

 private:
  Array<String> DesiredFor(const CallObj* call, const String& name) final {
    DesiredLayouts desired = desired_;
    Any answer = layout_cb_ ? CallBack(layout_cb_.value(), ffi::GetRef<Call>(call)) : Any(nullptr);
    if (answer != nullptr) {
      auto layouts = answer.try_cast<DesiredLayouts>();
      if (!layouts) {
        TVM_FFI_THROW(TypeError) << "ConvertLayout: expected layouts by names of operators from "
                                    "the call-back for "
                                 << name << ", got " << answer.GetTypeKey();
      }
      desired = *layouts;
    }
    return desired.Get(name).value_or(Array<String>());
  }

  DesiredLayouts desired_;
  Optional<ffi::Function> layout_cb_;
};

Function ConvertLayout(Function func, IRModule mod, DesiredLayouts desired_layouts,
                       Optional<ffi::Function> layout_cb) {
  for (const auto& [name, layouts] : desired_layouts) {
    if (!HasLayoutChoice(Op::Get(name).get())) {
      TVM_FFI_THROW(ValueError) << "ConvertLayout: expected an operator whose layouts can be "
                                   "chosen (a convolution, a pool, resize2d), got "
                                << name;
    }
  }
  return As<Function>(LayoutConverter(mod, desired_layouts, layout_cb).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    ConvertLayout, 0,
    "y = conv2d(x, w) in NCHW  ->  y1 = conv2d(permute_dims(x), permute_dims(w)) in NHWC; y = "
    "permute_dims(y1), with {\"relax.nn.conv2d\": [\"NHWC\", \"OHWI\"]}, in dataflow blocks; what "
    "is between convolutions stays in their layout. Layouts may have blocks, \"NCHW16c\" and "
    "\"OIHW16i16o\", into which layout_transform brings the tensors; convolutions whose channels "
    "they do not divide stay. layout_cb(call) may give the layouts for a call.",
    Arg("desired_layouts"), Arg("layout_cb", nullptr));
}  // namespace tvm::relax
