// SPDX-License-Identifier: Apache-2.0
// Operators that are made of others, a row each. Programs have them as they were exported; when
// PyTorch decomposes one, it does the same.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>
#include <unordered_map>

#include "complex.h"
#include "network.h"

namespace tvm::frontend::torch {
namespace {

// A definition is statements "name = value;" and a value at its end. Values are parameters,
// numbers, lists, operators of PyTorch (without an overload the default one), items x[0], + - * /
// //, and "x ? a : b" where a is for an x that is given and not False. Functions of ours: `reduced`
// by a loss's reduction, `others` the axes of a tensor but one, `along` a vector on one axis of a
// tensor.
struct Row {
  const char *overloads, *schema, *value;
};
// clang-format off
constexpr Row kRows[] = {
    // ---- other names
    {"multiply.Tensor multiply.Scalar", "self, other", "self * other"},
    {"divide.Tensor divide.Scalar true_divide.Scalar", "self, other", "self / other"},
    {"divide.Tensor_mode divide.Scalar_mode", "self, other, rounding_mode=None", "div.Tensor_mode(self, other, rounding_mode)"},
    {"subtract.Tensor subtract.Scalar", "self, other, alpha=1", "sub.Tensor(self, other, alpha)"},
    {"greater.Tensor greater.Scalar", "self, other", "gt.Tensor(self, other)"},
    {"greater_equal.Tensor greater_equal.Scalar", "self, other", "ge.Tensor(self, other)"},
    {"less.Tensor less.Scalar", "self, other", "lt.Tensor(self, other)"},
    {"less_equal.Tensor less_equal.Scalar", "self, other", "le.Tensor(self, other)"},
    {"not_equal.Tensor not_equal.Scalar", "self, other", "ne.Tensor(self, other)"},
    {"arccos.default", "self", "acos(self)"},
    {"arccosh.default", "self", "acosh(self)"},
    {"arcsin.default", "self", "asin(self)"},
    {"arcsinh.default", "self", "asinh(self)"},
    {"arctan.default", "self", "atan(self)"},
    {"arctanh.default", "self", "atanh(self)"},
    {"arctan2.default", "self, other", "atan2(self, other)"},
    {"special_expit.default", "self", "sigmoid(self)"},
    {"special_softmax.default", "self, dim, dtype=None", "softmax.int(self, dim, dtype)"},
    {"special_log_softmax.default", "self, dim, dtype=None", "log_softmax.int(self, dim, dtype)"},
    {"special_logsumexp.default", "self, dim, keepdim=False", "logsumexp(self, dim, keepdim)"},
    {"unsafe_split.Tensor", "self, split_size, dim=0", "split.Tensor(self, split_size, dim)"},
    {"unsafe_split_with_sizes.default", "self, split_sizes, dim=0", "split_with_sizes(self, split_sizes, dim)"},
    {"_reshape_alias.default", "self, size, stride", "reshape(self, size)"},
    {"linalg_matmul.default", "self, other", "matmul(self, other)"},
    {"cdist.default", "x1, x2, p=2.0, compute_mode=None", "_cdist_forward(x1, x2, p, compute_mode)"},
    {"pdist.default", "self, p=2.0", "_pdist_forward(self, p)"},
    {"embedding_bag.default embedding_bag.padding_idx", "weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=-1",
     "_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx ? padding_idx : -1)"},
    // ---- element by element
    {"addcmul.default", "self, tensor1, tensor2, value=1", "self + value * tensor1 * tensor2"},
    {"addcdiv.default", "self, tensor1, tensor2, value=1", "self + value * (tensor1 / tensor2)"},
    {"lerp.Scalar lerp.Tensor", "self, end, weight", "self + weight * (end - self)"},
    {"logit.default special_logit.default", "self, eps=None", "p = eps ? clamp(self, eps, 1 - eps) : self; log(p / (1 - p))"},
    {"xlogy.Tensor special_xlogy.default", "self, other", "p = where.ScalarSelf(eq.Tensor(self, 0), 0.0, self * log(other)); where.self(isnan(other), other, p)"},
    {"isposinf.default", "self", "eq.Tensor(self, inf)"},
    {"isneginf.default", "self", "eq.Tensor(self, -inf)"},
    {"isclose.default", "self, other, rtol=1e-05, atol=1e-08, equal_nan=False",
     "d = abs(self - other); near = logical_and(isfinite(d), le.Tensor(d, abs(other) * rtol + atol)); same = logical_or(eq.Tensor(self, other), near);"
     "equal_nan ? logical_or(same, logical_and(isnan(self), isnan(other))) : same"},
    {"isin.Tensor_Tensor", "elements, test_elements, assume_unique=False, invert=False",
     "found = any.dim(eq.Tensor(unsqueeze(elements, -1), reshape(test_elements, [-1])), -1); invert ? logical_not(found) : found"},
    {"deg2rad.default", "self", "self * 0.017453292519943295"},
    {"rad2deg.default", "self", "self * 57.29577951308232"},
    {"sinc.default special_sinc.default", "self", "x = self * 3.141592653589793; where.ScalarSelf(eq.Tensor(self, 0), 1.0, sin(x) / x)"},
    {"logaddexp2.default", "self, other", "logaddexp(self * 0.6931471805599453, other * 0.6931471805599453) / 0.6931471805599453"},
    {"glu.default", "self, dim=-1", "parts = chunk(self, 2, dim); parts[0] * sigmoid(parts[1])"},
    {"rrelu.default", "self, lower=0.125, upper=0.3333333333333333, training=False", "leaky_relu(self, (lower + upper) / 2)"},
    {"fake_quantize_per_tensor_affine.default fake_quantize_per_tensor_affine.tensor_qparams", "self, scale, zero_point, quant_min, quant_max",
     "fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max)[0]"},
    {"fake_quantize_per_tensor_affine_cachemask.default", "self, scale, zero_point, quant_min, quant_max",
     "q = round(self * (1 / scale) + zero_point); [(clamp(q, quant_min, quant_max) - zero_point) * scale, logical_and(ge.Tensor(q, quant_min), le.Tensor(q, quant_max))]"},
    {"fake_quantize_per_channel_affine.default", "self, scale, zero_point, axis, quant_min, quant_max",
     "fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis, quant_min, quant_max)[0]"},
    {"fake_quantize_per_channel_affine_cachemask.default", "self, scale, zero_point, axis, quant_min, quant_max",
     "fake_quantize_per_tensor_affine_cachemask(self, along(scale, self, axis), along(zero_point, self, axis), quant_min, quant_max)"},
    // ---- reductions
    {"logsumexp.default", "self, dim, keepdim=False",
     "m = amax(self, dim, True); m = where.ScalarSelf(isinf(m), 0.0, m); l = log(sum.dim_IntList(exp(self - m), dim, True)) + m; keepdim ? l : squeeze.dims(l, dim)"},
    {"std.default", "self, unbiased=True", "std.correction(self, None, unbiased ? 1 : 0)"},
    {"var.default", "self, unbiased=True", "var.correction(self, None, unbiased ? 1 : 0)"},
    {"var_mean.default", "self, unbiased=True", "[var.default(self, unbiased), mean(self)]"},
    {"var_mean.dim", "self, dim, unbiased=True, keepdim=False", "var_mean.correction(self, dim, unbiased ? 1 : 0, keepdim)"},
    {"std_mean.correction", "self, dim=None, correction=None, keepdim=False", "r = var_mean.correction(self, dim, correction, keepdim); [sqrt(r[0]), r[1]]"},
    {"std_mean.default", "self, unbiased=True", "std_mean.correction(self, None, unbiased ? 1 : 0)"},
    {"std_mean.dim", "self, dim, unbiased=True, keepdim=False", "std_mean.correction(self, dim, unbiased ? 1 : 0, keepdim)"},
    {"nansum.default", "self, dim=None, keepdim=False, dtype=None", "sum.dim_IntList(where.ScalarSelf(isnan(self), 0.0, self), dim, keepdim, dtype)"},
    {"nanmean.default", "self, dim=None, keepdim=False, dtype=None", "nansum(self, dim, keepdim, dtype) / sum.dim_IntList(logical_not(isnan(self)), dim, keepdim)"},
    {"count_nonzero.default count_nonzero.dim_IntList", "self, dim=None", "sum.dim_IntList(ne.Tensor(self, 0), dim)"},
    {"aminmax.default", "self, dim=None, keepdim=False", "axes = dim ? dim : []; [amin(self, axes, keepdim), amax(self, axes, keepdim)]"},
    {"frobenius_norm.dim", "self, dim, keepdim=False", "linalg_vector_norm(self, 2, dim, keepdim)"},
    {"trace.default", "self", "sum(diagonal(self))"},
    {"pairwise_distance.default", "x1, x2, p=2, eps=1e-06, keepdim=False", "linalg_vector_norm(x1 - x2 + eps, p, -1, keepdim)"},
    {"cosine_similarity.default", "x1, x2, dim=1, eps=1e-08",
     "a = clamp_min(linalg_vector_norm(x1, 2, dim, True), eps); b = clamp_min(linalg_vector_norm(x2, 2, dim, True), eps); sum.dim_IntList(x1 / a * (x2 / b), dim)"},
    // ---- places
    {"mT.default", "self", "transpose.int(self, -2, -1)"},
    {"fliplr.default", "self", "flip(self, [1])"},
    {"flipud.default", "self", "flip(self, [0])"},
    {"hann_window.default", "window_length, dtype=None", "hamming_window.periodic_alpha_beta(window_length, True, 0.5, 0.5, dtype)"},
    {"hann_window.periodic", "window_length, periodic, dtype=None", "hamming_window.periodic_alpha_beta(window_length, periodic, 0.5, 0.5, dtype)"},
    // ---- products
    {"vdot.default", "self, other", "sum(conj(self) * other)"},
    {"linalg_vecdot.default", "x, y, dim=-1", "sum.dim_IntList(conj(x) * y, dim)"},
    {"linalg_cross.default", "self, other, dim=-1", "roll(self, -1, dim) * roll(other, 1, dim) - roll(self, 1, dim) * roll(other, -1, dim)"},
    {"linalg_inv.default inverse.default", "self", "linalg_inv_ex(self)[0]"},
    {"linalg_cholesky.default", "self, upper=False", "linalg_cholesky_ex(self, upper)[0]"},
    {"linalg_solve.default", "A, B, left=True", "_linalg_solve_ex(A, B, left)[0]"},
    {"linalg_det.default det.default", "self", "_linalg_det(self)[0]"},
    {"_weight_norm.default", "v, g, dim=0", "v * (g / linalg_vector_norm(v, 2, others(v, dim), True))"},
    {"_weight_norm_interface.default", "v, g, dim=0", "n = linalg_vector_norm(v, 2, others(v, dim), True); [v * (g / n), n]"},
    // ---- losses
    {"mse_loss.default", "self, target, reduction=1", "reduced(square(self - target), reduction)"},
    {"l1_loss.default", "self, target, reduction=1", "reduced(abs(self - target), reduction)"},
    {"smooth_l1_loss.default", "self, target, reduction=1, beta=1.0",
     "d = abs(self - target); reduced(where.self(lt.Tensor(d, beta), d * d * (0.5 / beta), d - 0.5 * beta), reduction)"},
    {"huber_loss.default", "self, target, reduction=1, delta=1.0",
     "d = abs(self - target); reduced(where.self(le.Tensor(d, delta), d * d * 0.5, delta * (d - 0.5 * delta)), reduction)"},
    {"kl_div.default", "self, target, reduction=1, log_target=False",
     "reduced(log_target ? exp(target) * (target - self) : xlogy.Tensor(target, target) - target * self, reduction)"},
    {"binary_cross_entropy.default", "self, target, weight=None, reduction=1",
     "l = (target - 1) * clamp_min(log1p(neg(self)), -100) - target * clamp_min(log(self), -100); reduced(weight ? l * weight : l, reduction)"},
    {"binary_cross_entropy_with_logits.default", "self, target, weight=None, pos_weight=None, reduction=1",
     "s = log_sigmoid(self); l = (1 - target) * self - (pos_weight ? ((pos_weight - 1) * target + 1) * s : s); reduced(weight ? l * weight : l, reduction)"},
    {"soft_margin_loss.default", "self, target, reduction=1", "reduced(log1p(exp(neg(self) * target)), reduction)"},
    {"margin_ranking_loss.default", "input1, input2, target, margin=0.0, reduction=1", "reduced(clamp_min(neg(target) * (input1 - input2) + margin, 0), reduction)"},
    {"hinge_embedding_loss.default", "self, target, margin=1.0, reduction=1",
     "far = where.ScalarOther(ne.Tensor(target, 1), clamp_min(margin - self, 0), 0.0); reduced(far + where.ScalarOther(ne.Tensor(target, -1), self, 0.0), reduction)"},
    {"poisson_nll_loss.default", "input, target, log_input, full, eps, reduction",
     "l = log_input ? exp(input) - target * input : input - target * log(input + eps);"
     "rest = where.ScalarOther(gt.Tensor(target, 1), target * log(target) - target + 0.5 * log(target * 6.283185307179586), 0.0); reduced(full ? l + rest : l, reduction)"},
    {"triplet_margin_loss.default", "anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, reduction=1",
     "a = pairwise_distance(anchor, positive, p, eps); b = pairwise_distance(anchor, negative, p, eps);"
     "b = swap ? minimum(b, pairwise_distance(positive, negative, p, eps)) : b; reduced(clamp_min(margin + a - b, 0), reduction)"},
    // ---- cells and layers
    {"lstm_cell.default", "input, hx, w_ih, w_hh, b_ih=None, b_hh=None",
     "g = chunk(linear(input, w_ih, b_ih) + linear(hx[0], w_hh, b_hh), 4, 1); c = sigmoid(g[1]) * hx[1] + sigmoid(g[0]) * tanh(g[2]); [sigmoid(g[3]) * tanh(c), c]"},
    {"gru_cell.default", "input, hx, w_ih, w_hh, b_ih=None, b_hh=None",
     "i = chunk(linear(input, w_ih, b_ih), 3, 1); h = chunk(linear(hx, w_hh, b_hh), 3, 1);"
     "n = tanh(i[2] + sigmoid(i[0] + h[0]) * h[2]); n + sigmoid(i[1] + h[1]) * (hx - n)"},
    {"rnn_tanh_cell.default", "input, hx, w_ih, w_hh, b_ih=None, b_hh=None", "tanh(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))"},
    {"rnn_relu_cell.default", "input, hx, w_ih, w_hh, b_ih=None, b_hh=None", "relu(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))"},
    {"_transformer_encoder_layer_fwd.default",
     "src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, w1, b1, w2, b2, up, up_bias, down, down_bias, mask=None, mask_type=None",
     "n = norm_first ? layer_norm(src, [embed_dim], w1, b1, eps) : src;"
     "qkv = unflatten.int(linear(n, qkv_weight, qkv_bias), -1, [3, num_heads, embed_dim // num_heads]); qkv = permute(qkv, [2, 0, 3, 1, 4]);"
     "seen = mask ? logical_not(heads_of(mask, mask_type)) : None;"
     "a = scaled_dot_product_attention(select.int(qkv, 0, 0), select.int(qkv, 0, 1), select.int(qkv, 0, 2), seen);"
     "x = src + linear(flatten.using_ints(transpose.int(a, 1, 2), 2, 3), proj_weight, proj_bias);"
     "x = norm_first ? x : layer_norm(x, [embed_dim], w1, b1, eps);"
     "f = linear(norm_first ? layer_norm(x, [embed_dim], w2, b2, eps) : x, up, up_bias);"
     "y = x + linear(use_gelu ? gelu(f) : relu(f), down, down_bias); norm_first ? y : layer_norm(y, [embed_dim], w2, b2, eps)"},
};
// Of complex arguments, from real operators on their parts or complex ones that have a converter.
// Those of kRows serve complex arguments, too, where all that they are made of does.
constexpr Row kComplexRows[] = {
    {"_assert_tensor_metadata.default", "a, size=None, stride=None, dtype=None, device=None, layout=None", "None"},
    {"acos.default", "self", "w = asinh(complex(neg(imag(self)), real(self))); complex(1.5707963267948966 - imag(w), real(w))"},
    {"acosh.default", "self", "log(self + sqrt(self + 1) * sqrt(self - 1))"},
    {"addmm.default addmv.default", "self, mat1, mat2, beta=1, alpha=1", "self * beta + matmul(mat1, mat2) * alpha"},
    {"baddbmm.default", "self, batch1, batch2, beta=1, alpha=1", "self * beta + matmul(batch1, batch2) * alpha"},
    {"asin.default", "self", "w = asinh(complex(neg(imag(self)), real(self))); complex(imag(w), neg(real(w)))"},
    {"asinh.default", "self", "log(self + sqrt(self * self + 1))"},
    {"atan.default", "self", "w = atanh(complex(neg(imag(self)), real(self))); complex(imag(w), neg(real(w)))"},
    {"atanh.default", "self", "(log(1 + self) - log(1 - self)) / 2"},
    {"cos.default", "self", "a = real(self); b = imag(self); complex(cos(a) * cosh(b), neg(sin(a) * sinh(b)))"},
    {"cosh.default", "self", "a = real(self); b = imag(self); complex(cosh(a) * cos(b), sinh(a) * sin(b))"},
    {"expm1.default", "self", "exp(self) - 1"},
    {"full_like.default", "self, fill_value, dtype=None", "complex(full_like(real(self), fill_value), zeros_like(real(self)))"},
    {"isfinite.default", "self", "logical_and(isfinite(real(self)), isfinite(imag(self)))"},
    {"isinf.default", "self", "logical_or(isinf(real(self)), isinf(imag(self)))"},
    {"isnan.default", "self", "logical_or(isnan(real(self)), isnan(imag(self)))"},
    {"linalg_vector_norm.default", "self, ord=2, dim=None, keepdim=False, dtype=None", "linalg_vector_norm(abs(self), ord, dim, keepdim)"},
    {"log.default", "self", "complex(log(abs(self)), angle(self))"},
    {"log10.default", "self", "log(self) / 2.302585092994046"},
    {"log1p.default", "self", "log(self + 1)"},
    {"log2.default", "self", "log(self) / 0.6931471805599453"},
    {"logical_not.default", "self", "logical_and(eq.Tensor(real(self), 0), eq.Tensor(imag(self), 0))"},
    {"ones_like.default", "self, dtype=None", "full_like(self, 1)"},
    {"pow.Tensor_Scalar", "self, exponent", "r = pow.Tensor_Scalar(abs(self), exponent); turned = angle(self) * exponent; complex(r * cos(turned), r * sin(turned))"},
    {"reciprocal.default", "self", "1 / self"},
    {"rsqrt.default", "self", "1 / sqrt(self)"},
    {"sigmoid.default", "self", "1 / (1 + exp(neg(self)))"},
    {"silu.default", "self", "self * sigmoid(self)"},
    {"sin.default", "self", "a = real(self); b = imag(self); complex(sin(a) * cosh(b), cos(a) * sinh(b))"},
    {"sinh.default", "self", "a = real(self); b = imag(self); complex(sinh(a) * cos(b), cosh(a) * sin(b))"},
    {"sqrt.default", "self", "r = sqrt(abs(self)); half = angle(self) / 2; complex(r * cos(half), r * sin(half))"},
    {"square.default", "self", "self * self"},
    {"tan.default", "self", "sin(self) / cos(self)"},
    {"tanh.default", "self", "sinh(self) / cosh(self)"},
};
// clang-format on

/// Computes a definition as it is read.
class Composite {
 public:
  Composite(Conversion& c, const Row& row) : c_(c), row_(row), at_(row.value) {
    size_t i = 0;
    for (const char* p = row.schema; *p != '\0'; ++i) {
      while (*p == ' ') ++p;
      const char* begin = p;
      while (IsName(*p)) ++p;
      values_[std::string(begin, p)] = c[i];
      while (*p != '\0' && *p++ != ',') {
      }
    }
  }
  Any Result() {
    for (;;) {
      const char* begin = at_;
      std::string name = Name();
      if (name.empty() || !Take('=')) {
        at_ = begin;
        return Value();
      }
      Any value = Value();
      values_[name] = value;
      Expect(';');
    }
  }

 private:
  static bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  bool Take(char wanted) {
    while (*at_ == ' ') ++at_;
    if (*at_ != wanted) return false;
    ++at_;
    return true;
  }
  void Expect(char wanted) {
    if (!Take(wanted)) {
      TVM_FFI_THROW(InternalError)
          << "expected '" << wanted << "' at '" << at_ << "' of " << row_.overloads;
    }
  }
  std::string Name() {
    while (*at_ == ' ') ++at_;
    const char* begin = at_;
    while (IsName(*at_) || (*at_ == '.' && at_ != begin)) ++at_;
    return std::string(begin, at_);
  }
  Any Value() {
    Any value = Sum();
    if (!Take('?')) return value;
    bool holds = value != nullptr && !(value.type_index() == kTVMFFIBool && !value.cast<bool>());
    Any first = Chosen(holds);
    Expect(':');
    Any second = Chosen(!holds);
    return holds ? first : second;
  }
  /// What is not chosen is read only.
  Any Chosen(bool is_chosen) {
    skipped_ += !is_chosen;
    Any value = Value();
    skipped_ -= !is_chosen;
    return value;
  }
  Any Sum() {
    Any value = Product();
    for (;;) {
      if (Take('+')) {
        value = Arithmetic('+', value, Product());
      } else if (Take('-')) {
        value = Arithmetic('-', value, Product());
      } else {
        return value;
      }
    }
  }
  Any Product() {
    Any value = Item();
    for (;;) {
      if (Take('*')) {
        value = Arithmetic('*', value, Item());
      } else if (Take('/')) {
        bool is_floor = Take('/');
        value = Arithmetic(is_floor ? '%' : '/', value, Item());
      } else {
        return value;
      }
    }
  }
  Any Arithmetic(char op, const Any& a, const Any& b) {
    if (skipped_) return nullptr;
    auto x = a.try_cast<double>(), y = b.try_cast<double>();
    if (x && y) {
      auto m = a.try_cast<int64_t>(), n = b.try_cast<int64_t>();
      if (op == '%') return static_cast<int64_t>(std::floor(*x / *y));
      double number = op == '+' ? *x + *y : op == '-' ? *x - *y : op == '*' ? *x * *y : *x / *y;
      return m && n && op != '/' ? Any(static_cast<int64_t>(number)) : Any(number);
    }
    bool is_one = op == '*' && a.try_cast<int64_t>() == 1 && IsTensor(b);
    if (is_one && TypeOf(b.cast<Expr>()).is_float()) return b;
    const char* target = op == '+'   ? "aten.add.Tensor"
                         : op == '-' ? "aten.sub.Tensor"
                         : op == '*' ? "aten.mul.Tensor"
                                     : "aten.div.Tensor";
    return c_.importer()->Apply(target, {a, b});
  }
  Any Item() {
    Any value = Atom();
    while (*at_ == '[') {
      ++at_;
      int64_t i = std::stoll(Name());
      Expect(']');
      if (!skipped_) value = c_.importer()->Apply("_operator.getitem", {value, i});
    }
    return value;
  }
  Array<Any> List(char end) {
    Array<Any> items;
    while (!Take(end)) {
      items.push_back(Value());
      Take(',');
    }
    return items;
  }
  Any Atom() {
    if (Take('(')) {
      Any value = Value();
      Expect(')');
      return value;
    }
    if (Take('[')) return List(']');
    bool is_negative = Take('-');
    std::string name = Name();
    if (name == "inf" || std::isdigit(static_cast<unsigned char>(name[0]))) {
      // 1e-05 goes on behind its sign.
      if (name.back() == 'e' && *at_ == '-') {
        ++at_;
        name += '-' + Name();
      }
      double number = name == "inf" ? std::numeric_limits<double>::infinity() : std::stod(name);
      if (is_negative) number = -number;
      bool is_int = name.find_first_of(".ei") == name.npos;
      return is_int ? Any(static_cast<int64_t>(number)) : Any(number);
    }
    if (name == "None") return nullptr;
    if (name == "True" || name == "False") return name == "True";
    if (*at_ == '(') {
      ++at_;
      Array<Any> args = List(')');
      return skipped_ ? Any(nullptr) : Call(name, args);
    }
    auto it = values_.find(name);
    if (it == values_.end()) {
      TVM_FFI_THROW(InternalError)
          << "expected a parameter of " << row_.overloads << ", got " << name;
    }
    return it->second;
  }
  Any Call(const std::string& name, const Array<Any>& args) {
    auto apply = [&](const std::string& target, const Array<Any>& operands) {
      return c_.importer()->Apply(target.c_str(), operands);
    };
    auto rank_of = [&](size_t i) { return RankOf(args[i].cast<Expr>()); };
    if (name == "reduced") {
      int64_t kind = args[1].cast<int64_t>();
      if (kind == 0) return args[0];
      return apply(kind == 1 ? "aten.mean.default" : "aten.sum.default", {args[0]});
    }
    if (name == "others") {
      int64_t dim = args[1].cast<int64_t>();
      std::vector<int64_t> axes = Axes(rank_of(0));
      if (dim != -1) axes.erase(axes.begin() + dim);
      return AnyArray(axes);
    }
    if (name == "along") {
      Dims dims;
      for (int64_t i = 0; i < rank_of(1); ++i) dims.push_back(IntImm::Int64(1));
      dims.Set(c_.NormalAxis(args[2].cast<int64_t>(), rank_of(1)),
               ShapeOf(args[0].cast<Expr>())[0]);
      return c_.Reshape(args[0].cast<Expr>(), dims);
    }
    if (name == "heads_of") {  // a mask of (queries, keys), (batch, keys) or of all
      constexpr int64_t kOfKeys = 1;
      bool is_of_keys = args[1] != nullptr && args[1].cast<int64_t>() == kOfKeys;
      return is_of_keys ? Any(c_.Emit("expand_dims", args[0], Array<Any>{1, 2})) : args[0];
    }
    bool has_overload = name.find('.') != name.npos;
    return apply("aten." + name + (has_overload ? "" : ".default"), args);
  }

  Conversion& c_;
  const Row& row_;
  const char* at_;
  int skipped_ = 0;
  std::unordered_map<std::string, Any> values_;
};
Any Compose(Conversion& c) {
  for (std::span<const Row> rows :
       {std::span<const Row>(kRows), std::span<const Row>(kComplexRows)}) {
    for (const Row& row : rows) {
      if (row.value == c.op) return Composite(c, row).Result();
    }
  }
  TVM_FFI_THROW(InternalError) << "expected a definition, got " << c.op;
  TVM_FFI_UNREACHABLE();
}

// ---- those that go by ranks and sizes -----------------------------------------------------------
/// Infinities and NaN as numbers, by default the largest ones and 0.
Any NanToNum(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  if (!t.is_float() && !t.is_bfloat16()) return x;
  double most = max_value(t).as<FloatImmObj>()->value;
  double infinity = std::numeric_limits<double>::infinity();
  auto replaced = [&](double from, double by) {
    x = c.Emit("where", c.Emit("equal", x, c.Const(from, t)), c.Const(by, t), x);
  };
  Expr is_nan = c.Emit("isnan", x);
  replaced(infinity, c.Number(2, most));
  replaced(-infinity, c.Number(3, -most));
  return c.Emit("where", is_nan, c.Const(c.Number(1, 0), t), x);
}
/// With at least so many axes, as atleast_1d, 2d and 3d have them.
Expr AtLeast(Conversion& c, Expr x, int64_t rank) {
  if (RankOf(x) == 0) x = c.Reshape(x, {IntImm::Int64(1)});
  if (RankOf(x) < 2 && rank >= 2) x = c.Emit("expand_dims", x, 0);
  if (RankOf(x) < 3 && rank >= 3) x = c.Emit("expand_dims", x, 2);
  return x;
}
Any Stacked(Conversion& c, int64_t rank, int64_t axis) {
  Array<Expr> parts = c.Tensors(0).Map([&](const Expr& x) { return AtLeast(c, x, rank); });
  return c.Emit("concat", relax::Tuple(parts), axis);
}
Any HStack(Conversion& c) {
  Array<Expr> xs = c.Tensors(0);
  bool are_vectors = xs.empty() || RankOf(xs[0]) < 2;
  return Stacked(c, 1, are_vectors ? 0 : 1);
}
Any VStack(Conversion& c) { return Stacked(c, 2, 0); }
Any DStack(Conversion& c) { return Stacked(c, 3, 2); }
Any ColumnStack(Conversion& c) {
  Array<Expr> columns = c.Tensors(0).Map(
      [&](const Expr& x) { return RankOf(x) < 2 ? c.Emit("reshape", x, Array<Any>{-1, 1}) : x; });
  return c.Emit("concat", relax::Tuple(columns), 1);
}
Any BroadcastTensors(Conversion& c) {
  Array<Any> spread;
  auto metas = ListOf(c.meta());
  for (const Expr& x : c.Tensors(0)) {
    StructInfo info = c.importer()->StructInfoOf((*metas)[spread.size()]);
    spread.push_back(c.BroadcastTo(x, *DimsOf(info.as<TensorStructInfoObj>())));
  }
  return spread;
}
/// The sum over products along pairs of axes: one product of matrices.
Any TensorDot(Conversion& c) {
  Expr x = c.Tensor(0), y = c.Tensor(1);
  Dims of_x = ShapeOf(x), of_y = ShapeOf(y), result;
  std::vector<int64_t> summed_x = c.NormalAxes(c.Ints(2), RankOf(x)),
                       summed_y = c.NormalAxes(c.Ints(3), RankOf(y)), order_x, order_y = summed_y;
  auto free_axes = [&](const Dims& dims, const std::vector<int64_t>& summed, auto&& take) {
    for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
      if (std::find(summed.begin(), summed.end(), i) != summed.end()) continue;
      take(i);
      result.push_back(dims[i]);
    }
  };
  PrimExpr depth = IntImm::Int64(1), rows = depth, columns = depth;
  for (int64_t axis : summed_x) depth = depth * of_x[axis];
  free_axes(of_x, summed_x, [&](int64_t i) {
    order_x.push_back(i);
    rows = rows * of_x[i];
  });
  free_axes(of_y, summed_y, [&](int64_t i) {
    order_y.push_back(i);
    columns = columns * of_y[i];
  });
  order_x.insert(order_x.end(), summed_x.begin(), summed_x.end());
  Expr a = c.Reshape(c.Permute(x, order_x), {c.Simplify(rows), c.Simplify(depth)});
  Expr b = c.Reshape(c.Permute(y, order_y), {c.Simplify(depth), c.Simplify(columns)});
  return c.Reshape(MatMul(c, a, b), result);
}

TVM_REGISTER() {
  for (const Row& row : kRows) Converter(row.overloads, row.schema, &Compose, row.value);
  Converter("nan_to_num.default", "self, nan=None, posinf=None, neginf=None", &NanToNum);
  Converter("hstack.default", "tensors", &HStack);
  Converter("vstack.default row_stack.default", "tensors", &VStack);
  Converter("dstack.default", "tensors", &DStack);
  Converter("column_stack.default", "tensors", &ColumnStack);
  Converter("broadcast_tensors.default", "tensors", &BroadcastTensors);
  Converter("tensordot.default", "self, other, dims_self, dims_other", &TensorDot);
}

}  // namespace

const ConverterInfo* FindComplexComposite(const std::string& target) {
  static const auto* own = [] {
    auto* table = new std::unordered_map<std::string, ConverterInfo>();
    for (const Row& row : kComplexRows) {
      std::stringstream names(row.overloads);
      for (std::string name; names >> name;)
        (*table)["aten." + name] = MakeConverter(row.schema, &Compose, row.value);
    }
    return table;
  }();
  auto it = own->find(target);
  if (it != own->end()) return &it->second;
  const ConverterInfo* info = FindConverter(target);
  return info && info->convert == &Compose ? info : nullptr;
}

}  // namespace tvm::frontend::torch
