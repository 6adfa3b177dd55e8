// SPDX-License-Identifier: Apache-2.0
// Parsing layouts and mapping indices and shapes between them.
#include "tvm/tir/data_layout.h"

#include <cctype>
#include <map>

#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {

bool IsPrimal(char c) { return c >= 'A' && c <= 'Z'; }
char PrimalOf(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }
int64_t BlockOf(const IterVar& axis) { return *AsConstInt(axis->dom.value()->extent); }

Array<IterVar> ParseAxes(const String& name, DataType dtype) {
  auto fail = [&](const std::string& why) {
    TVM_FFI_THROW(ValueError) << "layout: expected axes such as NCHW or NCHW16c, got '" << name
                              << "': " << why;
  };
  Array<IterVar> axes;
  std::map<char, bool> primal;  // letter in upper case -> is its axis there
  int64_t factor = 0;
  auto add = [&](char c, const PrimExpr& extent) {
    axes.push_back(IterVar(Range::FromMinExtent(MakeZero(dtype), extent),
                           Var(std::string(1, c), dtype), IterVarType::kDataPar));
  };
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name.data()[i];
    if (c >= '0' && c <= '9') {
      factor = factor * 10 + (c - '0');
      if (factor > INT32_MAX) fail("a block is too large");
    } else if (IsPrimal(c)) {
      if (factor != 0) fail(std::string("a number goes before a lower-case letter, not ") + c);
      if (primal[c]) fail(std::string("the axis ") + c + " occurs twice");
      primal[c] = true;
      add(c, Var(std::string(1, c) + "_shape", dtype));
    } else if (c >= 'a' && c <= 'z') {
      if (factor == 0) fail(std::string("the block ") + c + " needs a size such as 16" + c);
      primal.emplace(PrimalOf(c), false);
      add(c, MakeConst(dtype, factor));
      factor = 0;
    } else {
      fail(std::string("'") + c + "' is neither a letter nor a digit");
    }
  }
  if (factor != 0) fail("it ends with a number");
  for (const auto& [c, present] : primal) {
    if (!present) fail(std::string("there are blocks of ") + c + ", but no axis " + c);
  }
  return axes;
}

/// The product of the blocks of axis `c` in dimensions from `begin` on.
int64_t BlocksFrom(const Layout& layout, char c, size_t begin) {
  int64_t product = 1;
  for (size_t i = begin; i < layout.ndim(); ++i) {
    char letter = layout.letter(i);
    if (!IsPrimal(letter) && PrimalOf(letter) == c) product *= BlockOf(layout->axes[i]);
  }
  return product;
}

void CheckSize(const Layout& layout, const Array<PrimExpr>& values, const char* what) {
  if (values.size() != layout.ndim()) {
    TVM_FFI_THROW(ValueError) << what << ": expected " << layout.ndim() << " values for the layout "
                              << layout->name << ", got " << values.size();
  }
}

/// The index in `dst` of the element at `index` in `src`: blocks are put together to an index along
/// the whole axis, which is split again.
Array<PrimExpr> MapIndex(const Layout& src, const Layout& dst, const Array<PrimExpr>& index) {
  CheckSize(src, index, "BijectiveLayout");
  std::map<char, PrimExpr> whole;
  for (size_t i = 0; i < src.ndim(); ++i) {
    char c = PrimalOf(src.letter(i));
    // The axis itself counts all blocks behind and before it.
    int64_t scale = IsPrimal(src.letter(i)) ? BlocksFrom(src, c, 0) : BlocksFrom(src, c, i + 1);
    PrimExpr part = scale == 1 ? index[i] : index[i] * MakeConst(index[i].dtype(), scale);
    auto [it, is_new] = whole.emplace(c, part);
    if (!is_new) it->second = it->second + part;
  }
  Array<PrimExpr> result;
  for (size_t i = 0; i < dst.ndim(); ++i) {
    bool primal = IsPrimal(dst.letter(i));
    char c = PrimalOf(dst.letter(i));
    PrimExpr value = whole.at(c);
    int64_t scale = primal ? BlocksFrom(dst, c, 0) : BlocksFrom(dst, c, i + 1);
    if (scale != 1) value = floordiv(value, MakeConst(value.dtype(), scale));
    if (!primal) value = floormod(value, MakeConst(value.dtype(), BlockOf(dst->axes[i])));
    result.push_back(value);
  }
  return result;
}

Array<PrimExpr> MapShape(const Layout& src, const Layout& dst, const Array<PrimExpr>& shape) {
  CheckSize(src, shape, "BijectiveLayout");
  std::map<char, PrimExpr> whole;
  for (size_t i = 0; i < src.ndim(); ++i) {
    char c = src.letter(i);
    if (IsPrimal(c)) {
      int64_t blocks = BlocksFrom(src, c, 0);
      whole[c] = blocks == 1 ? shape[i] : shape[i] * MakeConst(shape[i].dtype(), blocks);
      continue;
    }
    auto got = AsConstInt(shape[i]);
    if (int64_t want = BlockOf(src->axes[i]); got && *got != want) {
      TVM_FFI_THROW(ValueError) << "BijectiveLayout: expected " << want << " elements in dimension "
                                << i << " of the layout " << src->name << ", got " << *got;
    }
  }
  Array<PrimExpr> result;
  for (size_t i = 0; i < dst.ndim(); ++i) {
    char c = dst.letter(i);
    const PrimExpr& total = whole.at(PrimalOf(c));
    if (!IsPrimal(c)) {
      result.push_back(MakeConst(total.dtype(), BlockOf(dst->axes[i])));
    } else if (int64_t blocks = BlocksFrom(dst, c, 0); blocks != 1) {
      result.push_back(ceildiv(total, MakeConst(total.dtype(), blocks)));
    } else {
      result.push_back(total);
    }
  }
  return result;
}

}  // namespace

void LayoutObj::Init() {
  if (axes.empty()) axes = ParseAxes(name, DataType::Int(32));
}
Layout::Layout(String name, DataType dtype) {
  *this = New<Layout>([&](LayoutObj* n) { n->axes = ParseAxes(name, dtype), n->name = name; });
}
int64_t Layout::IndexOf(char axis) const {
  for (size_t i = 0; i < ndim(); ++i) {
    if (letter(i) == axis) return static_cast<int64_t>(i);
  }
  return -1;
}
int64_t Layout::FactorOf(char axis) const {
  bool has_blocks = IndexOf(static_cast<char>(std::tolower(static_cast<unsigned char>(axis)))) >= 0;
  return has_blocks ? BlocksFrom(*this, PrimalOf(axis), 0) : -1;
}

BijectiveLayout::BijectiveLayout(Layout src_layout, Layout dst_layout) {
  *this = New<BijectiveLayout>([&](BijectiveLayoutObj* n) {
    n->src_layout = std::move(src_layout);
    n->dst_layout = std::move(dst_layout);
  });
}
void BijectiveLayoutObj::Init() {
  for (const auto& [a, b] :
       {std::pair(src_layout, dst_layout), std::pair(dst_layout, src_layout)}) {
    for (size_t i = 0; i < a.ndim(); ++i) {
      if (IsPrimal(a.letter(i)) && b.IndexOf(a.letter(i)) < 0) {
        TVM_FFI_THROW(ValueError) << "bijective_layout: expected layouts of the same axes, got "
                                  << src_layout->name << " and " << dst_layout->name << ": "
                                  << a.letter(i) << " is only in one";
      }
    }
  }
}
Array<PrimExpr> BijectiveLayout::ForwardIndex(const Array<PrimExpr>& index) const {
  return MapIndex(get()->src_layout, get()->dst_layout, index);
}
Array<PrimExpr> BijectiveLayout::BackwardIndex(const Array<PrimExpr>& index) const {
  return MapIndex(get()->dst_layout, get()->src_layout, index);
}
Array<PrimExpr> BijectiveLayout::ForwardShape(const Array<PrimExpr>& shape) const {
  return MapShape(get()->src_layout, get()->dst_layout, shape);
}
Array<PrimExpr> BijectiveLayout::BackwardShape(const Array<PrimExpr>& shape) const {
  return MapShape(get()->dst_layout, get()->src_layout, shape);
}

namespace {
char Letter(const String& axis) {
  if (axis.size() != 1) {
    TVM_FFI_THROW(ValueError) << "Layout: expected one letter as an axis, got '" << axis << "'";
  }
  return axis.data()[0];
}
template <Array<PrimExpr> (BijectiveLayout::*kMap)(const Array<PrimExpr>&) const>
Array<PrimExpr> Apply(BijectiveLayout self, Array<PrimExpr> values) {
  return (self.*kMap)(values);
}

TVM_REGISTER() {
  RegisterNode<LayoutObj>("Which dimension of a tensor is what: \"NCHW16c\".");
  RegisterNode<BijectiveLayoutObj>("Two layouts of the same axes and the maps between them.");
  Def(
      "tir.layout", [](String layout_str, DataType dtype) { return Layout(layout_str, dtype); },
      "The layout of a text such as NCHW16c.", Arg("layout_str"), Arg("dtype", String("int32")));
  Def(
      "tir.Layout.index_of", [](Layout self, String axis) { return self.IndexOf(Letter(axis)); },
      "The first dimension of the axis, or -1.", Arg("self"), Arg("axis"));
  Def(
      "tir.Layout.factor_of", [](Layout self, String axis) { return self.FactorOf(Letter(axis)); },
      "The product of the blocks of the axis, or -1 when it has none.", Arg("self"), Arg("axis"));
  Def("tir.BijectiveLayout.forward_index", &Apply<&BijectiveLayout::ForwardIndex>,
      "The index in the second layout of an element.", Arg("self"), Arg("index"));
  Def("tir.BijectiveLayout.backward_index", &Apply<&BijectiveLayout::BackwardIndex>,
      "The index in the first layout of an element.", Arg("self"), Arg("index"));
  Def("tir.BijectiveLayout.forward_shape", &Apply<&BijectiveLayout::ForwardShape>,
      "The shape in the second layout; an axis that its blocks do not divide is padded.",
      Arg("self"), Arg("shape"));
  Def("tir.BijectiveLayout.backward_shape", &Apply<&BijectiveLayout::BackwardShape>,
      "The shape in the first layout.", Arg("self"), Arg("shape"));
}
}  // namespace
}  // namespace tvm::tir
