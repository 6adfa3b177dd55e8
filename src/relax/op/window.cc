// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools share.
#include "window.h"

namespace tvm::relax {

std::string CanonicalLayout(const char* first, int64_t d) {
  return std::string(first) + (d == 3 ? "DHW" : d == 2 ? "HW" : "W");
}
void SpreadOne(Ints* values, int64_t d, const char* what) {
  if (values->size() == 1) {
    *values = Ints(d, (*values)[0]);
  } else if (static_cast<int64_t>(values->size()) != d) {
    TVM_FFI_THROW(OpValueError) << "expected 1 or " << d << " numbers for " << what << ", got "
                                << values->size();
  }
}
void SpreadPadding(Ints* values, int64_t d) {
  auto n = static_cast<int64_t>(values->size());
  if (n == 2 * d) return;
  if (n == 1) {
    *values = Ints(2 * d, (*values)[0]);
  } else if (n == d) {
    for (int64_t i = 0; i < d; ++i) values->push_back((*values)[i]);
  } else {
    TVM_FFI_THROW(OpValueError) << "expected 1, " << d << " or " << 2 * d
                                << " numbers for padding, got " << n;
  }
}
std::optional<Dims> Canonical(Infer& in, const TensorStructInfoObj* x, const String& layout,
                              const std::string& canonical, const char* what) {
  if (View(layout) == canonical) {
    in.ExpectRank(x, static_cast<int64_t>(canonical.size()), what);
    if (!DimsOf(x)) return std::nullopt;
    return *DimsOf(x);
  }
  tir::Layout from(layout, DataType::Int(64)), to(canonical, DataType::Int(64));
  tir::BijectiveLayout map(from, to);
  in.ExpectRank(x, static_cast<int64_t>(from.ndim()), what);
  if (!DimsOf(x)) return std::nullopt;
  Dims dims;
  for (const PrimExpr& dim : map.ForwardShape(*DimsOf(x))) dims.push_back(in.Simplify(dim));
  return dims;
}
StructInfo InLayout(Infer& in, const std::optional<Dims>& dims, const std::string& canonical,
                    const String& layout, DataType dtype) {
  if (View(layout) == canonical)
    return in.Result(dims ? Shape(*dims) : Shape::Rank(static_cast<int64_t>(canonical.size())),
                     dtype);
  tir::Layout from(canonical, DataType::Int(64)), to(layout, DataType::Int(64));
  tir::BijectiveLayout map(from, to);
  if (!dims) return in.Result(Shape::Rank(static_cast<int64_t>(to.ndim())), dtype);
  Dims result;
  for (const PrimExpr& dim : map.ForwardShape(*dims)) result.push_back(in.Simplify(dim));
  return in.Result(result, dtype);
}

}  // namespace tvm::relax
