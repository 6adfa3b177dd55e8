// SPDX-License-Identifier: Apache-2.0
// The search for a match of one expression.
#include "relax/analysis/match.h"

#include <algorithm>

#include "relax/analysis/dims.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attribute.h"
#include "tvm/relax/dpl.h"

namespace tvm::relax {

Bindings BindingsOf(const Map<Any, Any>& var2val) {
  return [var2val](const Var& var) -> Optional<Expr> {
    auto it = var2val.find(var);
    return it == var2val.end() ? Optional<Expr>() : (*it).second.cast<Expr>();
  };
}

namespace {
/// The operator that the pattern of a callee names, or null.
const OpObj* NamedOp(const DFPattern& pattern) {
  auto* named = pattern.as<ExprPatternObj>();
  return named ? named->expr.as<OpObj>() : nullptr;
}
struct Arithmetic {
  Op add = Op::Get("relax.add"), multiply = Op::Get("relax.multiply"),
     divide = Op::Get("relax.divide");
  static const Arithmetic& Ops() {
    static const Arithmetic& ops = *new Arithmetic();
    return ops;
  }
};
bool IsCallPatternOf(const DFPattern& pattern, const Op& op) {
  auto* call = pattern.as<CallPatternObj>();
  return call && NamedOp(call->op) == op.get();
}

std::optional<double> AsNumber(const Any& value) {
  switch (value.type_index()) {
    case kTVMFFIBool:
    case kTVMFFIInt:
      return static_cast<double>(value.cast<int64_t>());
    case kTVMFFIFloat:
      return value.cast<double>();
    default:
      break;
  }
  if (auto* number = value.as<IntImmObj>()) return static_cast<double>(number->value);
  if (auto* number = value.as<FloatImmObj>()) return number->value;
  return std::nullopt;
}
/// Numbers are equal whatever holds them, and a type is equal to its name.
bool IsAttribute(const Any& wanted, const Any& got) {
  if (wanted == nullptr || got == nullptr) return wanted == nullptr && got == nullptr;
  auto a = AsNumber(wanted), b = AsNumber(got);
  if (a || b) return a && b && *a == *b;
  if (got.type_index() == kTVMFFIDataType) {
    auto type = wanted.try_cast<DataType>();
    return type && *type == got.cast<DataType>();
  }
  auto *list = wanted.as<ffi::ArrayObj>(), *items = got.as<ffi::ArrayObj>();
  if (list && items)
    return std::equal(list->begin(), list->end(), items->begin(), items->end(), &IsAttribute);
  return StructuralEqual(wanted, got);
}
bool HasAttributes(const Map<String, Any>& wanted, const Expr& expr) {
  auto* op = expr.as<OpObj>();
  auto* call = expr.as<CallObj>();
  auto* func = expr.as<BaseFuncObj>();
  if (!op && !call && !func) return false;
  Optional<Attrs> own;
  if (call) own = call->attrs;
  if (func && func->attrs.defined()) own = func->attrs;
  if (call) op = call->op.as<OpObj>();
  for (const auto& [key, value] : wanted) {
    Any got;
    bool found = own && FindAttribute(own.value(), View(key), &got);
    if (!found && op) {
      got = ffi::GetRef<Op>(op).GetAttr(key);
      found = got != nullptr;
    }
    if (!found || !IsAttribute(value, got)) return false;
  }
  return true;
}
/// Expressions small enough to be compared by what they hold.
bool IsScalarOrShape(const Expr& expr) {
  if (auto* constant = expr.as<ConstantObj>()) return constant->IsScalar();
  return expr.as<ShapeExprObj>() || expr.as<PrimValueObj>() || expr.as<StringImmObj>() ||
         expr.as<DataTypeImmObj>();
}
bool HasDims(const Array<PrimExpr>& wanted, const Optional<Array<PrimExpr>>& got) {
  return got && DimProver(nullptr).Compare(wanted, got.value()) == DimsAre::kEqual;
}
bool HasShape(const Array<PrimExpr>& wanted, const Expr& expr) {
  if (auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr))
    return HasDims(wanted, tensor->Dims());
  auto* shape = GetStructInfoAs<ShapeStructInfoObj>(expr);
  return shape && HasDims(wanted, shape->values);
}
bool HasType(DataType wanted, const Expr& expr) {
  if (auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr)) return tensor->dtype == wanted;
  auto* scalar = GetStructInfoAs<PrimStructInfoObj>(expr);
  return scalar && scalar->dtype == wanted;
}
bool IsNamed(const String& wanted, const String& name) { return wanted.empty() || wanted == name; }
}  // namespace

Expr PatternMatch::LookThrough(Expr expr) const {
  constexpr int kMostHops = 1 << 16;  // bindings that users give may go in circles
  for (int hops = 0; hops < kMostHops; ++hops) {
    if (auto* seq = expr.as<SeqExprObj>()) {
      for (const BindingBlock& block : seq->blocks) {
        for (const Binding& binding : block->bindings)
          locals_[binding->var->vid.get()] = ValueOf(binding);
      }
      expr = seq->body;
      continue;
    }
    auto* var = expr.as<VarObj>();
    if (!var) break;
    Optional<Expr> value = bindings_(ffi::GetRef<Var>(var));
    if (!value) {
      auto it = locals_.find(var->vid.get());
      if (it == locals_.end()) break;
      value = it->second;
    }
    expr = value.value();
  }
  return expr;
}
bool PatternMatch::IsSame(const Expr& a, const Expr& b) const {
  if (a.same_as(b)) return true;
  Expr x = LookThrough(a), y = LookThrough(b);
  if (x.same_as(y)) return true;
  auto *u = x.as<VarObj>(), *v = y.as<VarObj>();
  if (u && v) return u->vid.same_as(v->vid);
  return IsScalarOrShape(x) && x->type_index() == y->type_index() && StructuralEqual(x, y);
}

bool PatternMatch::Find(const DFPattern& pattern, const Expr& expr) {
  auto accept = [&] { return ShapesHold(); };
  return Find(pattern, expr, accept);
}
bool PatternMatch::ShapesHold() const {
  return std::all_of(open_.begin(), open_.end(), [&](const auto& pair) {
    return IsBaseOf(SubstituteStructInfo(pair.first, symbolic_), pair.second);
  });
}
bool PatternMatch::Find(const DFPattern& pattern, const Expr& expr, MatchRest rest) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { return Find(pattern, expr, rest); });
  if (auto it = found_.find(pattern.get()); it != found_.end())
    return IsSame(it->second, expr) && rest();
  auto remember = [&] {
    found_.emplace(pattern.get(), expr);
    trail_.push_back(pattern);
    if (rest()) return true;
    found_.erase(pattern.get());
    trail_.pop_back();
    return false;
  };
  return FindNew(pattern, expr, remember);
}
/// Whether a pattern matches, without what it finds on the way.
bool PatternMatch::Matches(const DFPattern& pattern, const Expr& expr) {
  size_t mark = trail_.size(), open = open_.size();
  Map<tir::Var, PrimExpr> symbolic = symbolic_;
  bool matches = Find(pattern, expr);
  for (; trail_.size() > mark; trail_.pop_back()) found_.erase(trail_.back().get());
  open_.resize(open);
  symbolic_ = symbolic;
  return matches;
}

bool PatternMatch::FindNew(const DFPattern& pattern, const Expr& expr, MatchRest rest) {
  if (pattern.as<WildcardPatternObj>()) return rest();
  if (auto* p = pattern.as<CallPatternObj>()) return FindCall(p, expr, rest);
  if (auto* p = pattern.as<VarPatternObj>()) {
    auto* var = expr.as<VarObj>();
    bool is_kind = var && (!pattern.as<DataflowVarPatternObj>() || expr.as<DataflowVarObj>());
    return is_kind && IsNamed(p->name, var->name_hint()) && rest();
  }
  if (auto* p = pattern.as<OrPatternObj>())
    return Find(p->left, expr, rest) || Find(p->right, expr, rest);
  if (auto* p = pattern.as<AndPatternObj>()) {
    auto right = [&] { return Find(p->right, expr, rest); };
    return Find(p->left, expr, right);
  }
  if (auto* p = pattern.as<NotPatternObj>()) return !Matches(p->reject, expr) && rest();
  if (auto* p = pattern.as<StructInfoPatternObj>()) return FindStructInfo(p, expr, rest);
  if (auto* p = pattern.as<DataTypePatternObj>())
    return HasType(p->dtype, expr) && Find(p->pattern, expr, rest);
  if (auto* p = pattern.as<ShapePatternObj>())
    return HasShape(p->shape, expr) && Find(p->pattern, expr, rest);

  Expr value = LookThrough(expr);
  if (auto* p = pattern.as<ExprPatternObj>()) {
    bool same = p->expr.same_as(expr) || p->expr.same_as(value);
    if (!same && !p->expr.as<OpObj>()) same = StructuralEqual(p->expr, value);
    return same && rest();
  }
  if (pattern.as<ConstantPatternObj>()) return value.as<ConstantObj>() && rest();
  if (auto* p = pattern.as<AttrPatternObj>())
    return HasAttributes(p->attrs, value) && Find(p->pattern, expr, rest);
  if (auto* p = pattern.as<GlobalVarPatternObj>()) {
    auto* global = value.as<GlobalVarObj>();
    return global && IsNamed(p->name, global->name_hint) && rest();
  }
  if (auto* p = pattern.as<ExternFuncPatternObj>()) {
    auto* func = value.as<ExternFuncObj>();
    return func && IsNamed(p->global_symbol, func->global_symbol) && rest();
  }
  if (auto* p = pattern.as<TuplePatternObj>()) {
    auto* tuple = value.as<TupleObj>();
    return tuple && tuple->fields.size() == p->fields.size() &&
           FindAll(p->fields, tuple->fields, 0, rest);
  }
  if (auto* p = pattern.as<UnorderedTuplePatternObj>()) {
    auto* tuple = value.as<TupleObj>();
    if (!tuple || tuple->fields.size() != p->fields.size()) return false;
    std::vector<bool> taken(tuple->fields.size());
    return FindUnordered(p->fields, tuple->fields, &taken, 0, rest);
  }
  if (auto* p = pattern.as<TupleGetItemPatternObj>()) {
    auto* item = value.as<TupleGetItemObj>();
    return item && (p->index == -1 || p->index == item->index) &&
           Find(p->tuple, item->tuple_value, rest);
  }
  if (auto* p = pattern.as<PrimArrPatternObj>()) {
    auto* shape = value.as<ShapeExprObj>();
    return shape && HasDims(p->fields, shape->values) && rest();
  }
  auto* p = pattern.as<FunctionPatternObj>();
  auto* func = p ? value.as<FunctionObj>() : nullptr;
  if (!func || func->params.size() != p->params.size()) return false;
  auto body = [&] { return Find(p->body, func->body, rest); };
  return FindAll(p->params, Array<Expr>(func->params.begin(), func->params.end()), 0, body);
}

bool PatternMatch::FindAll(const Array<DFPattern>& patterns, const Array<Expr>& exprs, size_t begin,
                           MatchRest rest) {
  if (begin == patterns.size()) return rest();
  auto next = [&] { return FindAll(patterns, exprs, begin + 1, rest); };
  return Find(patterns[begin], exprs[begin], next);
}
bool PatternMatch::FindUnordered(const Array<DFPattern>& patterns, const Array<Expr>& exprs,
                                 std::vector<bool>* taken, size_t begin, MatchRest rest) {
  if (begin == patterns.size()) return rest();
  auto next = [&] { return FindUnordered(patterns, exprs, taken, begin + 1, rest); };
  for (size_t i = 0; i < exprs.size(); ++i) {
    if ((*taken)[i]) continue;
    (*taken)[i] = true;
    if (Find(patterns[begin], exprs[i], next)) return true;
    (*taken)[i] = false;
  }
  return false;
}
bool PatternMatch::FindStructInfo(const StructInfoPatternObj* pattern, const Expr& expr,
                                  MatchRest rest) {
  if (!expr->struct_info_) return false;
  const StructInfo& info = expr->struct_info_.value();
  Map<tir::Var, PrimExpr> before = symbolic_;
  BindSymbolic(pattern->struct_info, info, &symbolic_);
  BaseCheckResult fits =
      StructInfoBaseCheck(SubstituteStructInfo(pattern->struct_info, symbolic_), info);
  // n + 1 may be seen before n.
  bool waits = fits == BaseCheckResult::kFailL2;
  if (waits) open_.emplace_back(pattern->struct_info, info);
  if ((waits || fits == BaseCheckResult::kPass) && Find(pattern->pattern, expr, rest)) return true;
  if (waits) open_.pop_back();
  symbolic_ = before;
  return false;
}

bool PatternMatch::FindCall(const CallPatternObj* pattern, const Expr& expr, MatchRest rest) {
  Expr value = LookThrough(expr);
  auto* call = value.as<CallObj>();
  if (!call) return false;
  const OpObj* named = NamedOp(pattern->op);
  if (named && call->op.get() != named) return !same_form_ && FindReassociated(pattern, call, rest);
  size_t wanted = pattern->args.size(), got = call->args.size();
  if (pattern->varg_default_wildcard ? got < wanted : got != wanted) return false;
  auto arguments = [&] {
    if (FindAll(pattern->args, call->args, 0, rest)) return true;
    const Arithmetic& ops = Arithmetic::Ops();
    bool commutes = (call->Is(ops.add) || call->Is(ops.multiply)) && wanted == 2 && got == 2;
    if (!commutes || pattern->args[0].same_as(pattern->args[1]) ||
        IsSame(call->args[0], call->args[1]))
      return false;
    return FindAll(pattern->args, {call->args[1], call->args[0]}, 0, rest);
  };
  return Find(pattern->op, call->op, arguments);
}
/// a * b / c is (a / c) * b and a * (b / c).
bool PatternMatch::FindReassociated(const CallPatternObj* pattern, const CallObj* call,
                                    MatchRest rest) {
  const auto& [add, multiply, divide] = Arithmetic::Ops();
  if (pattern->args.size() != 2 || call->args.size() != 2) return false;
  auto part = [&](const Expr& expr, const Op& op) -> Optional<Call> {
    Expr value = LookThrough(expr);
    auto* node = value.as<CallObj>();
    if (!node || !node->Is(op) || node->args.size() != 2) return std::nullopt;
    return ffi::GetRef<Call>(node);
  };
  auto try_as = [&](const Expr& a, const Expr& b) {
    return FindAll(pattern->args, {a, b}, 0, rest);
  };
  if (NamedOp(pattern->op) == divide.get() && call->Is(multiply)) {
    if (!IsCallPatternOf(pattern->args[0], multiply)) return false;
    for (int i = 0; i < 2; ++i) {
      if (auto inner = part(call->args[i], divide)) {
        const auto& [numerator, denominator] =
            std::pair(inner.value()->args[0], inner.value()->args[1]);
        Call product(multiply, {numerator, call->args[1 - i]});
        if (try_as(product, denominator)) return true;
      }
    }
    return false;
  }
  if (NamedOp(pattern->op) != multiply.get() || !call->Is(divide)) return false;
  auto inner = part(call->args[0], multiply);
  if (!inner) return false;
  for (int p = 0; p < 2; ++p) {
    if (!IsCallPatternOf(pattern->args[p], divide)) continue;
    for (int i = 0; i < 2; ++i) {
      Call quotient(divide, {inner.value()->args[i], call->args[1]});
      Expr factor = inner.value()->args[1 - i];
      if (p == 0 ? try_as(quotient, factor) : try_as(factor, quotient)) return true;
    }
  }
  return false;
}

Optional<Map<DFPattern, Expr>> ExtractMatchedExpr(const DFPattern& pattern, const Expr& expr,
                                                  const Bindings& bindings) {
  PatternMatch match(bindings);
  if (!match.Find(pattern, expr)) return std::nullopt;
  Map<DFPattern, Expr> found;
  for (const DFPattern& part : match.Patterns()) {
    bool is_var = part.as<VarPatternObj>();
    found.Set(part, is_var ? match[part] : match.LookThrough(match[part]));
  }
  return found;
}

namespace {
TVM_REGISTER() {
  Def(
      "relax.dpl.DFPattern._match",
      [](DFPattern pattern, Expr expr, Optional<Map<Any, Any>> var2val) {
        return PatternMatch(BindingsOf(var2val.value_or({}))).Find(pattern, expr);
      },
      "", Arg("self"), Arg("expr"), Arg("var2val"));
  Def(
      "relax.dpl.DFPattern._extract_matched_expr",
      [](DFPattern pattern, Expr expr, Optional<Map<Any, Any>> var2val) {
        return ExtractMatchedExpr(pattern, expr, BindingsOf(var2val.value_or({})));
      },
      "", Arg("self"), Arg("expr"), Arg("var2val"));
}
}  // namespace
}  // namespace tvm::relax
