// SPDX-License-Identifier: Apache-2.0
// Constant factors of products of bytes and of bfloat16 lie as the words that an instruction
// multiplies at once, in panels as wide as the tiles that use them.
//
// A matrix (K, N) in words of g numbers and panels of p columns is (N/p, K/g, p, g), a filter (O,
// H, W, I) is (O/p, H, W, I/g, p, g): kernels read both factors as they lie in memory.
#include <algorithm>

#include "relax/legalize/lowering.h"
#include "tvm/expr/dot.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// The types in which factors are multiplied and summed up, and how many numbers are a word.
struct Words {
  DataType data, weight;
  int64_t group;
  DataType sum = DataType::Int(32);
};
bool IsByte(DataType t) { return t.is_integer() && t.bits() == 8; }
/// Which words the machine multiplies; bytes of data with another sign are moved by 128. (Matrix
/// units read words in another layout, which their rule makes.)
std::optional<Words> WordsOf(DataType data, DataType weight, const Machine& machine) {
  DataType s = DataType::Int(32), u = DataType::UInt(32);
  if (data.is_bfloat16() && weight.is_bfloat16()) {
    if (machine->Has("amx-bf16") || !HasDot(machine, tir::builtin::dot_bfloat16(), u, u))
      return std::nullopt;
    return Words{data, weight, 2, DataType::Float(32)};
  }
  if (!IsByte(data) || !IsByte(weight) || machine->Has("amx-int8")) return std::nullopt;
  auto word = [&](DataType t) { return t.is_uint() ? u : s; };
  auto has_bytes = [&](DataType a) {
    return HasDot(machine, tir::builtin::dot_bytes(), a, word(weight));
  };
  if (has_bytes(word(data))) return Words{data, weight, 4};
  if (has_bytes(data.is_uint() ? s : u))
    return Words{data.is_uint() ? DataType::Int(8) : DataType::UInt(8), weight, 4};
  if (HasDot(machine, tir::builtin::dot_shorts(), s, s))
    return Words{DataType::Int(16), DataType::Int(16), 2};
  return std::nullopt;
}

class WordWeightPacker : public ExprMutator {
 public:
  WordWeightPacker(const IRModule& mod, Machine machine)
      : ExprMutator(mod), machine_(std::move(machine)) {}
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    Function changed = ExprMutator::VisitFunction(var, func);
    return changed.same_as(func) ? func : RemoveAllUnused(changed);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    if (!call || !call->attrs || call->args.size() != 2) return visited;
    auto* conv = call->attrs.value().as<Conv2DAttrsObj>();
    if (!conv && !call->attrs.value().as<MatmulAttrsObj>()) return visited;
    return Packed(call, conv).value_or(visited);
  }

 private:
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  static Ints IntsOf(const std::vector<int64_t>& values) {
    Ints ints;
    for (int64_t value : values) ints.push_back(IntImm::Int64(value));
    return ints;
  }
  static ShapeExpr ShapeOf(const std::vector<int64_t>& sizes) {
    Array<PrimExpr> dims;
    for (int64_t size : sizes) dims.push_back(IntImm::Int64(size));
    return ShapeExpr(dims);
  }
  /// The columns of a panel: two vectors, or one where that leaves less of the last panel unused.
  int64_t WidthFor(int64_t columns) const {
    int64_t lanes = machine_->Lanes(32);
    auto padded = [&](int64_t width) { return (columns + width - 1) / width * width; };
    return padded(2 * lanes) <= padded(lanes) ? 2 * lanes : lanes;
  }

  std::optional<Expr> Packed(const CallObj* call, const Conv2DAttrsObj* conv) {
    auto* weight = call->args[1].as<ConstantObj>();
    auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
    auto* result = GetStructInfoAs<TensorStructInfoObj>(ffi::GetRef<Call>(call));
    if (!weight || !data || !data->Dims() || !result || !result->Dims() || data->ndim < 2)
      return std::nullopt;
    auto words = WordsOf(data->dtype, DataType(weight->data.dtype()), machine_);
    if (!words || result->dtype != words->sum) return std::nullopt;
    if (conv ? View(conv->data_layout) != "NHWC" || View(conv->kernel_layout) != "OHWI" ||
                   View(conv->out_layout) != "NHWC" || conv->groups != 1
             : weight->data.ndim() != 2)
      return std::nullopt;
    int64_t columns = weight->data.size(conv ? 0 : 1), depth = weight->data.size(conv ? 3 : 0);
    int64_t width = WidthFor(columns), panels = (columns + width - 1) / width;
    int64_t all = panels * width, groups = (depth + words->group - 1) / words->group;
    // What nobody uses has to be small beside the rest.
    if (2 * all > 3 * columns || depth < words->group / 2) return std::nullopt;

    Expr matrix = PanelsOf(*weight, conv, *words, {panels, width, groups});
    Expr moved = DataOf(call->args[0], conv, *words, groups * words->group - depth);
    Array<PrimExpr> shape = result->Dims().value();
    shape.Set(shape.size() - 1, IntImm::Int64(all));
    Expr product = Product(moved, matrix, conv, shape, *words, width);
    if (words->group == 4 && words->data != data->dtype)
      product = CallOperator("relax.subtract",
                             {builder_->Emit(product), Moved(*weight, conv, all, words->data)});
    if (all == columns) return product;
    Array<Any> axes{static_cast<int64_t>(shape.size()) - 1}, begin{int64_t{0}}, end{columns};
    return CallOperator("relax.strided_slice", {builder_->Emit(product), axes, begin, end});
  }
  struct Sizes {
    int64_t panels, width, groups;
  };
  /// The weights as panels of words: by operators that FoldConstant computes.
  Expr PanelsOf(const ConstantObj& weight, bool is_filter, const Words& words, Sizes to) {
    Expr matrix = ffi::GetRef<Expr>(&weight);
    int64_t columns = weight.data.size(is_filter ? 0 : 1),
            depth = weight.data.size(is_filter ? 3 : 0);
    int64_t more_columns = to.panels * to.width - columns;
    int64_t more_depth = to.groups * words.group - depth;
    if (more_columns > 0 || more_depth > 0) {
      Ints margins = is_filter ? IntsOf({0, more_columns, 0, 0, 0, 0, 0, more_depth})
                               : IntsOf({0, more_depth, 0, more_columns});
      matrix = Make("relax.nn.pad", {matrix, margins});
    }
    if (words.weight != DataType(weight.data.dtype()))
      matrix = Make("relax.astype", {matrix, words.weight});
    if (!is_filter) {
      matrix =
          Make("relax.reshape", {matrix, ShapeOf({to.groups, words.group, to.panels, to.width})});
      return Make("relax.permute_dims", {matrix, IntsOf({2, 0, 3, 1})});
    }
    matrix =
        Make("relax.reshape", {matrix, ShapeOf({to.panels, to.width, weight.data.size(1),
                                                weight.data.size(2), to.groups, words.group})});
    return Make("relax.permute_dims", {matrix, IntsOf({0, 2, 3, 4, 1, 5})});
  }
  /// The data with its margins, filled up to whole words, in the type in which it is multiplied.
  Expr DataOf(Expr data, const Conv2DAttrsObj* conv, const Words& words, int64_t more_depth) {
    std::vector<int64_t> margins(2 * GetStructInfoAs<TensorStructInfoObj>(data)->ndim, 0);
    if (conv) {
      auto side = [&](size_t i) { return conv->padding[i]->value; };
      margins = {0, 0, side(0), side(2), side(1), side(3), 0, 0};
    }
    margins.back() = more_depth;
    if (std::any_of(margins.begin(), margins.end(), [](int64_t n) { return n != 0; }))
      data = Make("relax.nn.pad", {data, IntsOf(margins)});
    DataType type = GetStructInfoAs<TensorStructInfoObj>(data)->dtype;
    if (words.group != 4 || words.data == type) return data;
    // The sign bit is what 128 is added to, or taken from.
    Expr same_bits = Make("relax.astype", {data, words.data});
    return Make("relax.bitwise_xor",
                {same_bits, Number(words.data, words.data.is_uint() ? 128 : -128)});
  }
  static Constant Number(DataType type, double value) { return MakeConstant({value}, {}, type); }
  /// What data that was moved by 128 adds to the products of each column.
  Expr Moved(const ConstantObj& weight, bool is_filter, int64_t all, DataType data) {
    Expr wide = Make("relax.astype", {ffi::GetRef<Expr>(&weight), DataType::Int(32)});
    Expr sums = Make("relax.sum", {wide, is_filter ? IntsOf({1, 2, 3}) : IntsOf({0})});
    int64_t columns = weight.data.size(is_filter ? 0 : 1);
    if (all > columns) sums = Make("relax.nn.pad", {sums, IntsOf({0, all - columns})});
    return Make("relax.multiply", {sums, Number(DataType::Int(32), data.is_uint() ? 128 : -128)});
  }
  Expr Product(const Expr& data, const Expr& panels, const Conv2DAttrsObj* conv,
               Array<PrimExpr> shape, const Words& words, int64_t width) {
    TEArguments args = TEArguments::Create();
    te::Tensor x = args->Tensor(data), w = args->Tensor(panels);
    shape = shape.Map([&](const PrimExpr& dim) { return args->Inside(dim); });
    if (x->dtype != words.data) {
      te::Tensor bytes = x;
      x = te::compute(
          bytes->shape,
          [&](const Array<tir::Var>& i) {
            return cast(words.data, bytes(Array<PrimExpr>(i.begin(), i.end())));
          },
          "shorts");
    }
    auto axis = [&](size_t dim, const char* name) {
      return te::reduce_axis(Range::FromMinExtent(MakeZero(DataType::Int(64)), w->shape[dim]),
                             name);
    };
    size_t rank = w->shape.size();
    tir::IterVar word = axis(rank - 3, "k"), number = axis(rank - 1, "b");
    Array<tir::IterVar> reduced;
    if (conv) reduced = {axis(1, "ry"), axis(2, "rx")};
    reduced.push_back(word);
    reduced.push_back(number);
    auto element = [&](const Array<tir::Var>& i) {
      PrimExpr column = i.back(), by = IntImm::Int64(width);
      Array<PrimExpr> at(i.begin(), i.end()), of{floordiv(column, by)};
      for (size_t d = 0; conv && d < 2; ++d) {
        at.Set(1 + d, i[1 + d] * IntImm::Int64(conv->strides[d]->value) +
                          reduced[d]->var * IntImm::Int64(conv->dilation[d]->value));
        of.push_back(reduced[d]->var);
      }
      at.Set(at.size() - 1, word->var * IntImm::Int64(words.group) + number->var);
      for (const PrimExpr& e : {PrimExpr(word->var), floormod(column, by), PrimExpr(number->var)})
        of.push_back(e);
      return te::sum(cast(words.sum, x(at)) * cast(words.sum, w(of)), reduced);
    };
    const char* name = conv ? "conv2d" : "matmul";
    return args->CallTIR(builder_, name, {te::compute(shape, element, name)});
  }
  Machine machine_;
};

IRModule PackWordWeights(IRModule mod) {
  Target target = Target::Current();
  if (!target.defined()) return mod;
  Machine machine = Machine::Of(target);
  if (!machine->is_host || !machine->takes_vectors) return mod;
  return OnDeepStack([&] {
    IRModule after = WordWeightPacker(mod, machine).VisitFunctions();
    return after->functions.same_as(mod->functions) ? mod : after;
  });
}
}  // namespace
TVM_RELAX_PASS(
    PackWordWeights, 0,
    R"(Products of bytes or bfloat16 by a constant matrix, and convolutions in NHWC with constant
filters, become calls of kernels that read the weights as the target's processor multiplies them: in
words of four bytes, two int16 or two bfloat16, and panels as wide as its tiles. The panels are made
by operators that FoldConstant computes. Where an instruction takes only bytes of data of the other
sign, the data is moved by 128, which is taken back from the sums.

y = R.matmul(x, w, out_dtype="int32")  # x: uint8 (M, K), w: int8 (K, N)
->
p = R.permute_dims(R.reshape(w, R.shape([K // 4, 4, N // 32, 32])), axes=[2, 0, 3, 1])
y = R.call_tir(cls.matmul, (x, p), out_sinfo=…))");
}  // namespace tvm::relax
