// SPDX-License-Identifier: Apache-2.0
// Padding: with a value, by reflection, by the edge, around a ring; zeros between elements.
#include <algorithm>

#include "topi/nn/spatial.h"
#include "tvm/topi/nn.h"

namespace tvm::topi::nn {
using namespace tir;

Tensor pad(const Tensor& data, const Array<PrimExpr>& pad_before, const Array<PrimExpr>& pad_after,
           const PrimExpr& pad_value, String name, Map<String, Any> attrs) {
  size_t ndim = data->shape.size();
  for (const Array<PrimExpr>& list : {pad_before, pad_after}) {
    if (list.size() != ndim)
      Complain("pad", "a number per axis of " + Text(data->shape), std::to_string(list.size()));
  }
  Shape shape;
  Index before(ndim);
  for (size_t d = 0; d < ndim; ++d) {
    DataType t = data->shape[d].dtype();
    before[d] = tvm::cast(t, pad_before[d]);
    shape.push_back(Simplified(before[d] + data->shape[d] + tvm::cast(t, pad_after[d])));
  }
  PrimExpr value = tvm::cast(data->dtype, pad_value);
  auto element = [&](const Index& i) -> PrimExpr {
    Index source;
    PrimExpr inside = const_true();
    for (size_t d = 0; d < ndim; ++d) {
      if (IsZero(before[d]) && SameDim(shape[d], data->shape[d])) {
        source.push_back(i[d]);
        continue;
      }
      auto from = AsConstInt(before[d]);
      source.push_back(IsZero(before[d]) ? i[d] : i[d] - before[d]);
      if (!from || *from > 0) inside = inside && before[d] <= i[d];
      auto behind = AsConstInt(pad_after[d]);
      if (!behind || *behind > 0) inside = inside && i[d] < data->shape[d] + before[d];
    }
    PrimExpr read = At(data, source);
    return IsTrue(inside) ? read : if_then_else(inside, read, value);
  };
  return Compute(shape, element, std::string(name), kInjective, std::move(attrs));
}
Tensor dilate(const Tensor& data, const Array<PrimExpr>& strides, double dilation_value,
              String name) {
  size_t ndim = data->shape.size();
  if (strides.size() != ndim)
    Complain("dilate", "a stride per axis of " + Text(data->shape), std::to_string(strides.size()));
  Shape shape;
  Index steps(ndim);
  for (size_t d = 0; d < ndim; ++d) {
    DataType t = data->shape[d].dtype();
    PrimExpr one = MakeConst(t, 1);
    steps[d] = tvm::cast(t, strides[d]);
    PrimExpr spread = (data->shape[d] - one) * steps[d] + one;
    // Nothing stays nothing.
    shape.push_back(Simplified(IsZero(data->shape[d]) ? data->shape[d] : spread));
  }
  auto element = [&](const Index& i) -> PrimExpr {
    Index source;
    PrimExpr filled = const_true();
    for (size_t d = 0; d < ndim; ++d) {
      if (IsOne(steps[d])) {
        source.push_back(i[d]);
        continue;
      }
      source.push_back(floordiv(i[d], steps[d]));
      filled = filled && equal(floormod(i[d], steps[d]), MakeZero(i[d].dtype()));
    }
    PrimExpr read = At(data, source);
    if (IsTrue(filled)) return read;
    return if_then_else(filled, read, MakeConst(data->dtype, dilation_value));
  };
  return Compute(shape, element, std::string(name));
}

// ---- spatial axes -------------------------------------------------------------------------------
SpatialAxes::SpatialAxes(const char* op, const String& layout, const std::string& others,
                         const Tensor& t, bool may_have_blocks)
    : letters(layout) {
  size_t blocks = 0;
  if (may_have_blocks) {
    std::erase_if(letters, [](unsigned char c) { return std::isdigit(c); });
    for (char letter : others) blocks += Has(static_cast<char>(std::tolower(letter)));
  }
  bool valid = letters.size() == t->shape.size();
  for (char letter : others) valid = valid && letters.find(letter) != std::string::npos;
  for (char letter : std::string("DHW")) {
    size_t at = letters.find(letter);
    if (at != std::string::npos) axes.push_back(at);
  }
  if (!valid || axes.size() + others.size() + blocks != letters.size()) {
    Complain(op, "a layout of " + others + " and D, H, W for " + Text(t->shape),
             '"' + std::string(layout) + '"');
  }
}
Padding::Padding(const char* op, const Any& padding, const Index& kernel) {
  size_t count = kernel.size();
  if (auto name = padding.try_cast<String>()) {
    for (const PrimExpr& size : kernel) {
      PrimExpr zero = MakeZero(size.dtype()), one = MakeConst(size.dtype(), 1);
      if (*name == "VALID") {
        before.push_back(zero);
        after.push_back(zero);
      } else if (*name == "SAME") {
        PrimExpr all = size - one, first = floordiv(all + one, MakeConst(size.dtype(), 2));
        before.push_back(Simplified(first));
        after.push_back(Simplified(all - first));
      } else {
        Complain(op, "padding \"VALID\" or \"SAME\"", '"' + std::string(*name) + '"');
      }
    }
    return;
  }
  auto list = padding.as<Array<Any>>();
  bool both = list && list->size() == 2 * count && !(list->size() == count);
  Index numbers = Exprs(op, "padding", padding, both ? 2 * count : count);
  before.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count));
  after =
      both ? Index(numbers.begin() + static_cast<std::ptrdiff_t>(count), numbers.end()) : before;
}
bool Padding::IsNone() const {
  auto zero = [](const PrimExpr& e) { return IsZero(e); };
  return std::all_of(before.begin(), before.end(), zero) &&
         std::all_of(after.begin(), after.end(), zero);
}
Tensor PadSpatial(const Tensor& data, const SpatialAxes& axes, const Padding& padding,
                  const PrimExpr& value, const char* name) {
  Array<PrimExpr> before, after;
  for (const PrimExpr& extent : data->shape) {
    before.push_back(MakeZero(extent.dtype()));
    after.push_back(MakeZero(extent.dtype()));
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    before.Set(axes.axes[k], padding.before[k]);
    after.Set(axes.axes[k], padding.after[k]);
  }
  return pad(data, before, after, value, name);
}

// ---- other modes --------------------------------------------------------------------------------
namespace {
Array<PrimExpr> After(const Array<PrimExpr>& before, const Optional<Array<PrimExpr>>& after) {
  return after ? *after : before;
}
/// A padded tensor where `inside(place, extent)` says which element a place along an axis has; the
/// place is relative to the first element and may be negative or behind the last.
Tensor PadBy(const char* op, const Tensor& data, const Array<PrimExpr>& before,
             const Array<PrimExpr>& after, const String& name,
             const std::function<PrimExpr(PrimExpr, PrimExpr)>& inside) {
  if (before.size() != data->shape.size() || after.size() != data->shape.size())
    Complain(op, "a number per axis of " + Text(data->shape), std::to_string(before.size()));
  Shape shape;
  for (size_t d = 0; d < before.size(); ++d) {
    DataType t = data->shape[d].dtype();
    shape.push_back(Simplified(tvm::cast(t, before[d]) + data->shape[d] + tvm::cast(t, after[d])));
  }
  auto element = [&](const Index& i) {
    Index source;
    for (size_t d = 0; d < i.size(); ++d) {
      bool plain = IsZero(before[d]) && IsZero(after[d]);
      source.push_back(plain ? i[d]
                             : inside(i[d] - tvm::cast(i[d].dtype(), before[d]), data->shape[d]));
    }
    return At(data, source);
  };
  return Compute(shape, element, std::string(name));
}
Tensor MirrorPad(const Tensor& data, const Array<PrimExpr>& before,
                 const Optional<Array<PrimExpr>>& after, String mode, String name) {
  if (mode != "SYMMETRIC" && mode != "REFLECT")
    Complain("mirror_pad", "mode \"SYMMETRIC\" or \"REFLECT\"", '"' + std::string(mode) + '"');
  int64_t edge = mode == "SYMMETRIC" ? 1 : 0;  // whether the edge itself is repeated
  return PadBy("mirror_pad", data, before, After(before, after), name,
               [&](const PrimExpr& at, const PrimExpr& extent) -> PrimExpr {
                 DataType t = at.dtype();
                 PrimExpr zero = MakeZero(t), two = MakeConst(t, 2), repeat = MakeConst(t, edge);
                 PrimExpr ahead = neg(at) - repeat, behind = two * extent - two + repeat - at;
                 return Select(at < zero, ahead, Select(at >= extent, behind, at));
               });
}
Tensor ReflectPad(const Tensor& data, const Array<PrimExpr>& before,
                  const Optional<Array<PrimExpr>>& after, String name) {
  return MirrorPad(data, before, after, "REFLECT", name);
}
Tensor ReplicatePad(const Tensor& data, const Array<PrimExpr>& before,
                    const Optional<Array<PrimExpr>>& after, String name) {
  return PadBy("replicate_pad", data, before, After(before, after), name,
               [](const PrimExpr& at, const PrimExpr& extent) {
                 DataType t = at.dtype();
                 return tvm::max(tvm::min(at, extent - MakeConst(t, 1)), MakeZero(t));
               });
}
Tensor CircularPad(const Tensor& data, const Array<PrimExpr>& before,
                   const Optional<Array<PrimExpr>>& after, String name) {
  return PadBy("circular_pad", data, before, After(before, after), name,
               [](const PrimExpr& at, const PrimExpr& extent) { return floormod(at, extent); });
}

TVM_REGISTER() {
  Def(
      "topi.nn.pad",
      [](Tensor data, Array<PrimExpr> before, Optional<Array<PrimExpr>> after, PrimExpr value,
         String name, Optional<Map<String, Any>> attrs) {
        return pad(data, before, After(before, after), value, name,
                   attrs ? *attrs : Map<String, Any>());
      },
      "The tensor with a value around it; negative numbers cut off.", Arg("data"),
      Arg("pad_before"), Arg("pad_after", nullptr), Arg("pad_value", 0.0), Arg("name", "PadInput"),
      Arg("attrs", nullptr));
  Def("topi.nn.mirror_pad", &MirrorPad, "The tensor with its mirror image around it.", Arg("data"),
      Arg("pad_before"), Arg("pad_after", nullptr), Arg("mode", "SYMMETRIC"),
      Arg("name", "MirrorPadInput"));
  Def("topi.nn.reflect_pad", &ReflectPad, "As mirror_pad, without repeating the edge.", Arg("data"),
      Arg("pad_before"), Arg("pad_after", nullptr), Arg("name", "ReflectPadInput"));
  Def("topi.nn.replicate_pad", &ReplicatePad, "The tensor with its edge repeated around it.",
      Arg("data"), Arg("pad_before"), Arg("pad_after", nullptr), Arg("name", "ReplicatePadInput"));
  Def("topi.nn.circular_pad", &CircularPad, "The tensor with itself around it.", Arg("data"),
      Arg("pad_before"), Arg("pad_after", nullptr), Arg("name", "CircularPadInput"));
  Def("topi.nn.dilate", &dilate, "A value between the elements.", Arg("data"), Arg("strides"),
      Arg("dilation_value", 0.0), Arg("name", "DilatedInput"));
}
}  // namespace
}  // namespace tvm::topi::nn
