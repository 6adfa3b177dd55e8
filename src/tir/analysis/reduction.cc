// SPDX-License-Identifier: Apache-2.0
// Recognising init and update of a reduction block as a reducer.
#include "reduction.h"

#include <optional>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
/// Matches an expression against a pattern in which some variables stand for anything.
class Unifier {
 public:
  explicit Unifier(const Array<Var>& wildcards) : bound_(wildcards.size()) {
    for (size_t i = 0; i < wildcards.size(); ++i) position_[wildcards[i].get()] = i;
  }
  bool Match(const ObjectRef& pattern, const ObjectRef& e) {
    if (auto it = position_.find(pattern.get()); it != position_.end()) {
      PrimExpr& bound = bound_[it->second];
      auto value = e.as<PrimExpr>();
      if (!value || value->dtype() != Any(pattern).cast<PrimExpr>().dtype()) return false;
      if (bound.defined()) return ExprDeepEqual(bound, *value);
      bound = *value;
      return true;
    }
    if (pattern.same_as(e)) return true;
    if (pattern->type_index() != e->type_index()) return false;
    auto a = pattern.as<PrimExpr>(), b = e.as<PrimExpr>();
    if (!a || !b || a->dtype() != b->dtype()) return false;
    bool has_wildcard = UsesVar(pattern, [&](const VarObj* v) { return position_.count(v) > 0; });
    if (!has_wildcard) return ExprDeepEqual(*a, *b);
    std::vector<ObjectRef> below, below_e;
    VisitChildren(pattern.get(), [&](const ObjectRef& c) { below.push_back(c); });
    VisitChildren(e.get(), [&](const ObjectRef& c) { below_e.push_back(c); });
    if (below.size() != below_e.size()) return false;
    for (size_t i = 0; i < below.size(); ++i) {
      if (!Match(below[i], below_e[i])) return false;
    }
    return true;
  }
  /// What the wildcards stand for, when each was found.
  std::optional<Array<PrimExpr>> Values() const {
    for (const PrimExpr& e : bound_) {
      if (!e.defined()) return {};
    }
    return Array<PrimExpr>(bound_.begin(), bound_.end());
  }

 private:
  std::unordered_map<const Object*, size_t> position_;
  std::vector<PrimExpr> bound_;
};

using Values = Array<PrimExpr>;
PrimExpr Bits(const Op& op, const PrimExpr& a, const PrimExpr& b) {
  return Call(a.dtype(), op, {a, b});
}
/// One value: how two combine, and the identity where doing it twice with the start matters.
struct Single {
  PrimExpr (*combine)(const PrimExpr&, const PrimExpr&);
  std::optional<int> identity;  // none: combining a value with itself gives itself
};
const Single kSingle[] = {
    {[](const PrimExpr& a, const PrimExpr& b) -> PrimExpr { return Add(a, b); }, 0},
    {[](const PrimExpr& a, const PrimExpr& b) -> PrimExpr { return Mul(a, b); }, 1},
    {[](const PrimExpr& a, const PrimExpr& b) -> PrimExpr { return Min(a, b); }, {}},
    {[](const PrimExpr& a, const PrimExpr& b) -> PrimExpr { return Max(a, b); }, {}},
    {[](const PrimExpr& a, const PrimExpr& b) -> PrimExpr { return And(a, b); }, {}},
    {[](const PrimExpr& a, const PrimExpr& b) -> PrimExpr { return Or(a, b); }, {}},
    {[](const PrimExpr& a, const PrimExpr& b) { return Bits(builtin::bitwise_and(), a, b); }, {}},
    {[](const PrimExpr& a, const PrimExpr& b) { return Bits(builtin::bitwise_or(), a, b); }, {}},
    {[](const PrimExpr& a, const PrimExpr& b) { return Bits(builtin::bitwise_xor(), a, b); }, 0},
};
bool Fits(const Single& kind, DataType t) {
  // The rows with And and Or are for bool alone, those on bits for integers.
  bool is_logical = &kind == &kSingle[4] || &kind == &kSingle[5];
  bool is_bits = &kind >= &kSingle[6];
  return is_logical ? t.is_bool() : is_bits ? t.is_int() || t.is_uint() : !t.is_bool();
}
bool IsValue(const PrimExpr& e, int value) {
  if (auto* f = e.as<FloatImmObj>()) return f->value == value;
  return IsConstInt(e, value);
}

/// The better of (index, value) pairs; which of the tuple is the value.
struct Best {
  PrimExpr (*better)(const PrimExpr& v, const PrimExpr& w, const PrimExpr& i, const PrimExpr& j);
  bool any_order;  // equal values are told apart by their indices
};
const Best kBest[] = {
    {[](const PrimExpr& v, const PrimExpr& w, const PrimExpr&, const PrimExpr&) -> PrimExpr {
       return GE(v, w);
     },
     false},
    {[](const PrimExpr& v, const PrimExpr& w, const PrimExpr&, const PrimExpr&) -> PrimExpr {
       return LE(v, w);
     },
     false},
    {[](const PrimExpr& v, const PrimExpr& w, const PrimExpr&, const PrimExpr&) -> PrimExpr {
       return GT(v, w);
     },
     false},
    {[](const PrimExpr& v, const PrimExpr& w, const PrimExpr&, const PrimExpr&) -> PrimExpr {
       return LT(v, w);
     },
     false},
    {[](const PrimExpr& v, const PrimExpr& w, const PrimExpr& i, const PrimExpr& j) -> PrimExpr {
       return Or(GT(v, w), And(EQ(v, w), LT(i, j)));
     },
     true},
    {[](const PrimExpr& v, const PrimExpr& w, const PrimExpr& i, const PrimExpr& j) -> PrimExpr {
       return Or(LT(v, w), And(EQ(v, w), LT(i, j)));
     },
     true},
};

/// The first form of the table that gives `combined` for some sources.
struct Matcher {
  Values current, combined, identities;
  std::optional<Values> sources;
  Array<PrimExpr> result;  // over lhs and rhs
  Array<Var> lhs, rhs;
  bool any_order = true;

  Matcher(Values current, Values combined, Values identities)
      : current(current), combined(combined), identities(identities) {
    for (size_t i = 0; i < current.size(); ++i) {
      lhs.push_back(Var("x" + std::to_string(i), current[i].dtype()));
      rhs.push_back(Var("y" + std::to_string(i), current[i].dtype()));
    }
  }
  /// Tries a combination given as a function of two tuples, in both orders.
  template <class F>
  bool Try(F&& form) {
    Values wildcards(rhs.begin(), rhs.end()), vars(lhs.begin(), lhs.end());
    for (bool swapped : {false, true}) {
      Values pattern = swapped ? form(wildcards, current) : form(current, wildcards);
      Unifier unify(rhs);
      bool matches = true;
      for (size_t i = 0; matches && i < pattern.size(); ++i)
        matches = unify.Match(pattern[i], combined[i]);
      if (!matches || !(sources = unify.Values())) continue;
      result = swapped ? form(wildcards, vars) : form(vars, wildcards);
      return true;
    }
    return false;
  }
  bool Best2(const Best& kind, int value) {
    int index = 1 - value;
    any_order = kind.any_order;
    return Try([&](const Values& a, const Values& b) {
      PrimExpr first = kind.better(a[value], b[value], a[index], b[index]);
      return Values{Select(first, a[0], b[0]), Select(first, a[1], b[1])};
    });
  }
  bool Run() {
    if (current.size() == 1) {
      for (const Single& kind : kSingle) {
        if (!Fits(kind, current[0].dtype())) continue;
        if (kind.identity && !IsValue(identities[0], *kind.identity)) continue;
        if (Try([&](const Values& a, const Values& b) { return Values{kind.combine(a[0], b[0])}; }))
          return true;
      }
    }
    if (current.size() == 2) {
      for (const Best& kind : kBest) {
        for (int value : {1, 0}) {
          if (Best2(kind, value)) return true;
        }
      }
      any_order = true;
    }
    return current.size() > 1 && EachAlone();
  }
  /// Values that do not look at each other are reducers side by side.
  bool EachAlone() {
    Values all_sources;
    result = {};
    for (size_t i = 0; i < current.size(); ++i) {
      Matcher one({current[i]}, {combined[i]}, {identities[i]});
      one.lhs = {lhs[i]};
      one.rhs = {rhs[i]};
      if (!one.Run()) return false;
      all_sources.push_back((*one.sources)[0]);
      result.push_back(one.result[0]);
    }
    sources = all_sources;
    return true;
  }
};

/// The stores of init or body as values computed at once: buffer -> value. Lets are replaced.
std::string CollectStores(Stmt body, std::vector<BufferStore>* stores) {
  Map<Var, PrimExpr> lets;
  while (auto let = body.as<LetStmt>()) {
    lets.Set((*let)->var, Substitute((*let)->value, lets));
    body = (*let)->body;
  }
  Array<Stmt> seq = {body};
  if (auto* s = body.as<SeqStmtObj>()) seq = s->seq;
  for (const Stmt& stmt : seq) {
    auto* store = stmt.as<BufferStoreObj>();
    if (!store || store->predicate.has_value())
      return "expected only stores in its body and its init";
    PrimExpr value = store->value;
    for (const BufferStore& earlier : *stores) {
      bool reads = false;
      PostOrderVisit(value, [&](const ObjectRef& n) {
        auto* load = n.as<BufferLoadObj>();
        reads |= load && load->buffer.same_as(earlier->buffer);
      });
      if (reads) return "expected all values to be computed before the first is stored";
    }
    stores->push_back(
        BufferStore(store->buffer, Substitute(value, lets), Substitute(store->indices, lets)));
  }
  return "";
}
}  // namespace

std::string WhyNoReducer(const BlockObj* block, Reduction* out) {
  std::string who = "block " + std::string(block->name_hint) + ": ";
  if (!block->init.has_value()) return who + "expected an init";
  std::vector<BufferStore> init, update;
  if (std::string why = CollectStores(block->init.value(), &init); !why.empty()) return who + why;
  if (std::string why = CollectStores(block->body, &update); !why.empty()) return who + why;
  Values current, combined, identities;
  out->buffers = {};
  for (const BufferStore& store : update) {
    const BufferStoreObj* start = nullptr;
    for (const BufferStore& i : init) {
      if (i->buffer.same_as(store->buffer)) start = i.get();
    }
    if (!start || init.size() != update.size())
      return who + "expected its init and its body to store to the same buffers";
    for (size_t i = 0; i < store->indices.size(); ++i) {
      if (!ExprDeepEqual(store->indices[i], start->indices[i]))
        return who + "expected its init and its body to store to the same elements";
    }
    if (store->indices.size() != update[0]->indices.size())
      return who + "expected buffers of one rank";
    for (size_t i = 0; i < store->indices.size(); ++i) {
      if (!ExprDeepEqual(store->indices[i], update[0]->indices[i]))
        return who + "expected all stores to have the same indices";
    }
    current.push_back(BufferLoad(store->buffer, store->indices));
    combined.push_back(store->value);
    identities.push_back(arith::Analyzer().Simplify(start->value));  // casts of constants
    out->buffers.push_back(store->buffer);
  }
  Matcher match(current, combined, identities);
  if (!match.Run()) {
    return who +
           "expected a known combination with its identity as init (sum, product, min, max, "
           "and, or, xor, argmax, argmin, or several of them)";
  }
  for (const PrimExpr& source : *match.sources) {
    bool reads_result = false;
    PostOrderVisit(source, [&](const ObjectRef& n) {
      auto* load = n.as<BufferLoadObj>();
      for (const Buffer& b : out->buffers) reads_result |= load && load->buffer.same_as(b);
    });
    if (reads_result) return who + "expected what is combined not to read the result";
  }
  out->reducer = CommReducer(match.lhs, match.rhs, match.result, identities);
  out->any_order = match.any_order;
  out->indices = update[0]->indices;
  out->sources = *match.sources;
  return "";
}

}  // namespace tvm::tir
