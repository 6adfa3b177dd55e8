// SPDX-License-Identifier: Apache-2.0
// Matching of patterns, evaluation of conditions, building of replacements.
#include "arith/rewrite/match.h"

#include <atomic>
#include <deque>
#include <memory>
#include <numeric>

#include "arith/rewrite/tables.h"

namespace tvm::arith {

// ---- node types -------------------------------------------------------------------------------
namespace {
using MakeFn = PrimExpr (*)(PrimExpr, PrimExpr);
template <class N>
PrimExpr MakeFolded(PrimExpr a, PrimExpr b) {
  if (auto folded = TryFold<N>(a, b)) return *folded;
  return N(std::move(a), std::move(b));
}
/// By type index; null for what is no binary node.
const std::vector<MakeFn>& Makers() {
  static const std::vector<MakeFn> makers = [] {
    std::vector<MakeFn> table;
    auto add = [&](int32_t type, MakeFn make) {
      if (table.size() <= static_cast<size_t>(type)) table.resize(type + 1);
      table[type] = make;
    };
#define ROW(Name) add(Name##Obj::RuntimeTypeIndex(), &MakeFolded<Name>)
    ROW(Add), ROW(Sub), ROW(Mul), ROW(Div), ROW(Mod), ROW(FloorDiv), ROW(FloorMod), ROW(Min),
        ROW(Max), ROW(EQ), ROW(NE), ROW(LT), ROW(LE), ROW(GT), ROW(GE), ROW(And), ROW(Or);
#undef ROW
    return table;
  }();
  return makers;
}
template <class... N>
bool IsOneOf(int32_t type) {
  return ((type == N::RuntimeTypeIndex()) || ...);
}
}  // namespace

const BinaryOpFields* AsBinary(const PrimExpr& e) {
  static const std::vector<MakeFn>& makers = Makers();
  size_t type = e->type_index();
  return type < makers.size() && makers[type] ? static_cast<const BinaryOpFields*>(e.get())
                                              : nullptr;
}
bool IsCommutative(int32_t type) {
  return IsOneOf<AddObj, MulObj, MinObj, MaxObj, EQObj, NEObj, AndObj, OrObj>(type);
}
PrimExpr MakeBinaryNode(int32_t type, PrimExpr a, PrimExpr b) {
  if (IsCommutative(type) && AsConstInt(a) && !AsConstInt(b)) std::swap(a, b);
  return Makers()[type](std::move(a), std::move(b));
}

// ---- wildcards and tables ---------------------------------------------------------------------
namespace {
struct WildcardInfo {
  Var var;
  WildKind kind;
};
const std::vector<WildcardInfo>& Infos() {
  static const auto* infos = [] {
    auto* list = new std::vector<WildcardInfo>;
    auto add = [&](const char* name, WildKind kind) {
      list->push_back({Var(name, kind == kCond ? DataType::Bool() : DataType::Int(64)), kind});
    };
    for (auto* name : {"x", "y", "z", "w"}) add(name, kInt);
    add("n", kNoConst);
    for (auto* name : {"c1", "c2", "c3"}) add(name, kConst);
    for (auto* name : {"p", "q", "r"}) add(name, kCond);
    for (auto* name : {"u", "v"}) add(name, kAnyValue);
    return list;
  }();
  return *infos;
}
}  // namespace
const Wildcards& TheWildcards() {
  auto at = [](int i) { return Pat(Infos()[i].var); };
  static const auto* wildcards = new Wildcards{at(0), at(1), at(2), at(3),  at(4),  at(5), at(6),
                                               at(7), at(8), at(9), at(10), at(11), at(12)};
  return *wildcards;
}
int WildcardNumber(const VarObj* var) {
  for (int i = 0; i < kWildcards; ++i) {
    if (Infos()[i].var.get() == var) return i;
  }
  return -1;
}
WildKind WildcardKind(int number) { return Infos()[number].kind; }

const std::vector<RuleTable>& RuleTables() {
  static const std::vector<RuleTable> tables = {{"add", &AddRules},
                                                {"sub", &SubRules},
                                                {"mul", &MulRules},
                                                {"floordiv", &FloorDivRules},
                                                {"floormod", &FloorModRules},
                                                {"trunc", &TruncRules},
                                                {"min", &MinRules},
                                                {"max", &MaxRules},
                                                {"equal", &EqualRules},
                                                {"less", &LessRules},
                                                {"less_equal", &LessEqualRules},
                                                {"not", &NotRules},
                                                {"and", &AndRules},
                                                {"or", &OrRules},
                                                {"select", &SelectRules}};
  return tables;
}

// ---- compilation ------------------------------------------------------------------------------
namespace {
struct Compiler {
  std::deque<Template> arena;
  std::vector<std::vector<CompiledRule>> by_type;  // by type index

  const Template* Compile(const PrimExpr& e) {
    Template t;
    t.type = e->type_index();
    t.is_bool = e.dtype().is_bool();
    if (auto* var = e.as<VarObj>()) t.wildcard = WildcardNumber(var);
    if (t.wildcard >= 0) t.kind = WildcardKind(t.wildcard);
    if (auto* imm = e.as<IntImmObj>()) t.is_const = true, t.value = imm->value;
    if (auto* n = AsBinary(e)) t.kids = {Compile(n->a), Compile(n->b)};
    if (auto* n = e.as<NotObj>()) t.kids = {Compile(n->a)};
    if (auto* n = e.as<SelectObj>()) {
      t.kids = {Compile(n->condition), Compile(n->true_value), Compile(n->false_value)};
    }
    arena.push_back(t);
    return &arena.back();
  }
  static bool IsConstant(const Template* t) {
    return t->is_const || (t->wildcard >= 0 && t->kind == kConst);
  }
  /// `t` with the operands of its commutative nodes in every order; constants stay on the right.
  std::vector<const Template*> Variants(const Template* t) {
    std::vector<const Template*> result{t};
    for (int i = 0; i < 3 && t->kids[i]; ++i) {
      std::vector<const Template*> next;
      for (const Template* kid : Variants(t->kids[i])) {
        for (const Template* base : result) {
          Template copy = *base;
          copy.kids[i] = kid;
          arena.push_back(copy);
          next.push_back(&arena.back());
        }
      }
      result = next;
    }
    bool both_plain = t->kids[0] && t->kids[1] && t->kids[0]->wildcard >= 0 &&
                      t->kids[1]->wildcard == t->kids[0]->wildcard;
    if (IsCommutative(t->type) && !IsConstant(t->kids[1]) && !both_plain) {
      for (size_t i = 0, n = result.size(); i < n; ++i) {
        Template copy = *result[i];
        std::swap(copy.kids[0], copy.kids[1]);
        arena.push_back(copy);
        result.push_back(&arena.back());
      }
    }
    return result;
  }
  Compiler() {
    for (const RuleTable& table : RuleTables()) {
      int row = 0;
      for (const Rule& rule : table.rows()) {
        bool always = IsTrue(rule.when.expr);
        const Template *to = Compile(rule.to.expr),
                       *when = always ? nullptr : Compile(rule.when.expr);
        for (const Template* from : Variants(Compile(rule.from.expr))) {
          if (by_type.size() <= static_cast<size_t>(from->type)) by_type.resize(from->type + 1);
          by_type[from->type].push_back({table.name, row, rule.needs, from, to, when});
        }
        ++row;
      }
    }
  }
};
}  // namespace

namespace {
/// Whether a node of this type may be what `t` stands for.
bool MayBe(const Template* t, int32_t type) {
  if (Compiler::IsConstant(t)) return IsOneOf<IntImmObj, BroadcastObj>(type);
  return t->wildcard >= 0 || t->type == type;
}
/// The rules sorted by the type of a node and, for binary ones, of its operands: most nodes have
/// operands for which only a few of the hundred rules of their type are written.
struct RuleIndex {
  Compiler compiled;
  std::vector<int32_t> kinds;    // a type of each kind; kind 0: no rule names its type
  std::vector<uint8_t> kind_of;  // by type index
  std::vector<std::vector<std::atomic<const Candidates*>>> found;  // by type, then by kinds

  RuleIndex() : kinds{0} {
    auto add = [&](int32_t type) {
      if (kind_of.size() <= static_cast<size_t>(type)) kind_of.resize(type + 1);
      if (kind_of[type]) return;
      kind_of[type] = static_cast<uint8_t>(kinds.size());
      kinds.push_back(type);
    };
    for (const Template& t : compiled.arena) {
      if (t.wildcard < 0) add(t.type);
    }
    add(IntImmObj::RuntimeTypeIndex());
    add(BroadcastObj::RuntimeTypeIndex());
    found.resize(compiled.by_type.size());
    for (auto& cells : found) {
      cells = std::vector<std::atomic<const Candidates*>>(kinds.size() * kinds.size());
    }
  }
  size_t KindOf(const PrimExpr& e) const {
    size_t type = e->type_index();
    return type < kind_of.size() ? kind_of[type] : 0;
  }
  const Candidates& Of(const PrimExpr& e) {
    static const Candidates none;
    size_t type = e->type_index();
    if (type >= found.size() || compiled.by_type[type].empty()) return none;
    auto* n = AsBinary(e);
    size_t a = n ? KindOf(n->a) : 0, b = n ? KindOf(n->b) : 0;
    std::atomic<const Candidates*>& cell = found[type][a * kinds.size() + b];
    if (const Candidates* known = cell.load(std::memory_order_acquire)) return *known;
    auto made = std::make_unique<Candidates>();
    for (const CompiledRule& rule : compiled.by_type[type]) {
      if (!n || (MayBe(rule.from->kids[0], kinds[a]) && MayBe(rule.from->kids[1], kinds[b])))
        made->push_back(&rule);
    }
    const Candidates* expected = nullptr;
    return cell.compare_exchange_strong(expected, made.get()) ? *made.release() : *expected;
  }
};
}  // namespace
const Candidates& RulesFor(const PrimExpr& e) {
  static auto* index = new RuleIndex;
  return index->Of(e);
}

// ---- matching ---------------------------------------------------------------------------------
namespace {
/// A constant whose value int64 can say.
std::optional<int64_t> ExactConstant(const PrimExpr& e) {
  auto c = AsConstInt(e);
  return c && e.dtype().is_uint() && *c < 0 ? std::nullopt : c;
}
}  // namespace

bool Match::Bind(const Template* t, const PrimExpr& e) {
  if (t->wildcard >= 0) {
    const PrimExpr*& slot = bound_[t->wildcard];
    if (slot) return ExprDeepEqual(*slot, e);
    WildKind kind = t->kind;
    if (kind == kConst && !ExactConstant(e)) return false;
    if (kind == kNoConst && AsConstInt(e)) return false;
    if (kind == kInt || kind == kNoConst || kind == kConst) {
      if (!e.dtype().is_integer()) return false;
      type_ = e.dtype();
    } else if (kind == kCond) {
      if (!e.dtype().is_bool()) return false;
    }
    slot = &e;
    return true;
  }
  if (t->is_const) {
    return e.dtype().is_bool() == t->is_bool && !e.dtype().is_float() &&
           ExactConstant(e) == t->value;
  }
  if (e->type_index() != t->type) return false;
  if (auto* n = AsBinary(e)) {
    // The cheaper side first: constants and kinds of nodes reject most candidates.
    return Bind(t->kids[0], n->a) && Bind(t->kids[1], n->b);
  }
  if (auto* n = e.as<NotObj>()) return Bind(t->kids[0], n->a);
  if (auto* n = e.as<SelectObj>()) {
    return Bind(t->kids[0], n->condition) && Bind(t->kids[1], n->true_value) &&
           Bind(t->kids[2], n->false_value);
  }
  return false;
}

bool Match::Try(const CompiledRule& rule, const PrimExpr& e) {
  bound_.fill(nullptr);
  type_ = DataType::Void();
  lanes_ = e.dtype().raw_lanes();
  if (!Bind(rule.from, e)) return false;
  if (rule.when && !Holds(rule.when)) return false;
  for (const PrimExpr* slot : bound_) {
    if (slot && !facts_->TraitsOf(*slot).pure) return false;
  }
  if (rule.needs != kIndex) return true;
  if (type_.is_index()) {
    bool index = true;
    for (const PrimExpr* slot : bound_) index = index && (!slot || facts_->TraitsOf(*slot).index);
    if (index) return true;
  }
  return StaysInType(rule.from) && StaysInType(rule.to);
}

// ---- conditions -------------------------------------------------------------------------------
namespace {
template <class T>
std::optional<T> Compute(int32_t type, T a, T b) {
  if (IsOneOf<AddObj>(type)) return a + b;
  if (IsOneOf<SubObj>(type)) return a - b;
  if (IsOneOf<MulObj>(type)) return a * b;
  if (IsOneOf<FloorDivObj>(type)) return FloorDivInt<T>(a, b);
  if (IsOneOf<FloorModObj>(type)) return FloorModInt<T>(a, b);
  if (IsOneOf<DivObj>(type)) return b == 0 ? T{0} : a / b;
  if (IsOneOf<ModObj>(type)) return b == 0 ? T{0} : a % b;
  if (IsOneOf<MinObj>(type)) return std::min(a, b);
  if (IsOneOf<MaxObj>(type)) return std::max(a, b);
  return std::nullopt;
}
}  // namespace

/// The value of a template of constants. Products of three 64-bit numbers do not occur in the
/// tables.
std::optional<Wide> Match::Constant(const Template* t) {
  if (t->wildcard >= 0) {
    if (t->kind != kConst) return std::nullopt;
    return ExactConstant(*bound_[t->wildcard]);
  }
  if (t->is_const) return t->value;
  if (!t->kids[1] || t->kids[2]) return std::nullopt;
  auto a = Constant(t->kids[0]), b = Constant(t->kids[1]);
  if (!a || !b) return std::nullopt;
  auto huge = [](Wide v) { return v > (Wide{1} << 63) || v < -(Wide{1} << 63); };
  if (huge(*a) || huge(*b)) return std::nullopt;
  return Compute<Wide>(t->type, *a, *b);
}
Interval Match::Range(const Template* t) {
  if (auto c = Constant(t)) return Interval::Make(*c, *c);
  if (t->wildcard >= 0) return facts_->BoundOf(*bound_[t->wildcard]);
  if (!t->kids[1]) return {};
  if (t->kids[2]) return Range(t->kids[1]).Union(Range(t->kids[2]));
  Interval a = Range(t->kids[0]), b = Range(t->kids[1]);
  if (IsOneOf<AddObj>(t->type)) return a + b;
  if (IsOneOf<SubObj>(t->type)) return a - b;
  if (IsOneOf<MulObj>(t->type)) return a * b;
  if (IsOneOf<FloorDivObj>(t->type)) return FloorDivOf(a, b);
  if (IsOneOf<FloorModObj>(t->type)) return FloorModOf(a, b);
  if (IsOneOf<DivObj>(t->type)) return TruncDivOf(a, b);
  if (IsOneOf<ModObj>(t->type)) return TruncModOf(a, b);
  if (IsOneOf<MinObj>(t->type)) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  if (IsOneOf<MaxObj>(t->type)) return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  return {};
}
bool Match::Holds(const Template* t) {
  if (t->is_const) return t->value != 0;
  if (IsOneOf<AndObj>(t->type)) return Holds(t->kids[0]) && Holds(t->kids[1]);
  if (IsOneOf<OrObj>(t->type)) return Holds(t->kids[0]) || Holds(t->kids[1]);
  const Template *a = t->kids[0], *b = t->kids[1];
  auto x = Constant(a), y = Constant(b);
  if (x && y) {
    return IsOneOf<LTObj>(t->type)   ? *x < *y
           : IsOneOf<LEObj>(t->type) ? *x <= *y
           : IsOneOf<GTObj>(t->type) ? *x > *y
           : IsOneOf<GEObj>(t->type) ? *x >= *y
           : IsOneOf<EQObj>(t->type) ? *x == *y
                                     : *x != *y;
  }
  // Two plain wildcards: the facts may know their difference.
  bool plain = a->wildcard >= 0 && b->wildcard >= 0;
  Interval d = plain ? facts_->BoundOfDifference(*bound_[a->wildcard], *bound_[b->wildcard])
                     : Range(a) - Range(b);
  if (IsOneOf<LTObj>(t->type)) return d.hi < 0;
  if (IsOneOf<LEObj>(t->type)) return d.hi <= 0;
  if (IsOneOf<GTObj>(t->type)) return d.lo > 0;
  if (IsOneOf<GEObj>(t->type)) return d.lo >= 0;
  if (IsOneOf<EQObj>(t->type)) {
    if (d == Interval::Point(0)) return true;
    bool is_remainder = IsOneOf<FloorModObj>(a->type);
    const Template* sub = is_remainder ? a->kids[0] : a;
    if (!IsOneOf<SubObj>(sub->type) || !y) return false;
    const Template *m = sub->kids[0], *n = sub->kids[1];
    if (m->wildcard < 0 || n->wildcard < 0) return false;
    if (is_remainder) {  // (x - y) % c == 0
      auto c = Constant(a->kids[1]);
      return c && *y == 0 &&
             facts_->DifferByMultiple(*bound_[m->wildcard], *bound_[n->wildcard], *c);
    }
    Interval e = facts_->BoundOfDifference(*bound_[m->wildcard], *bound_[n->wildcard]);
    return e.IsPoint() && e.lo == *y;  // x - y == c
  }
  if (!d.Contains(0)) return true;  // !=
  if (a->wildcard >= 0 && y) {
    Residue r = facts_->ResidueOf(*bound_[a->wildcard]);
    if (r.coeff > 1 && FloorModInt<Wide>(*y, r.coeff) != r.base) return true;
    for (const PrimExpr& truth : facts_->truths) {
      if (auto* ne = truth.as<NEObj>(); ne && ExprDeepEqual(ne->a, *bound_[a->wildcard]) &&
                                        AsConstInt(ne->b) == static_cast<int64_t>(*y))
        return true;
    }
  }
  return false;
}
/// Whether no arithmetic in `t` leaves the type, by bounds.
bool Match::StaysInType(const Template* t) {
  if (t->wildcard >= 0) return true;
  if (!t->is_bool) {
    Interval domain = Interval::OfType(type_), range = Range(t);
    if (!range.Within(domain) || (type_.bits() >= 63 && !range.Bounded())) return false;
  }
  return std::all_of(t->kids.begin(), t->kids.end(),
                     [&](auto* kid) { return !kid || StaysInType(kid); });
}

// ---- replacements -----------------------------------------------------------------------------
PrimExpr Match::MakeConstant(Wide value, bool is_bool, bool wraps) {
  if (is_bool) return MakeConst(DataType::Bool(lanes_), value != 0 ? 1 : 0);
  Interval domain = Interval::OfType(type_);
  bool fits = value >= domain.lo && value <= domain.hi;
  if (!fits && !wraps) return PrimExpr();
  return fits ? MakeConst(type_, static_cast<int64_t>(value))
              : cast(type_, IntImm::Int64(static_cast<int64_t>(value)));
}
PrimExpr Match::BuildNode(const Template* t, const CompiledRule& rule,
                          const std::function<PrimExpr(const PrimExpr&)>& make) {
  if (t->wildcard >= 0) return *bound_[t->wildcard];
  if (t->is_const) return MakeConstant(t->value, t->is_bool, rule.needs == kWraps);
  if (!t->is_bool) {
    if (auto c = Constant(t)) return MakeConstant(*c, false, rule.needs == kWraps);
  }
  std::array<PrimExpr, 3> kids;
  for (int i = 0; i < 3 && t->kids[i]; ++i) {
    kids[i] = BuildNode(t->kids[i], rule, make);
    if (!kids[i].defined()) return PrimExpr();
  }
  if (IsOneOf<NotObj>(t->type)) return make(Not(kids[0]));
  if (IsOneOf<SelectObj>(t->type)) {
    if (kids[1].dtype() != kids[2].dtype()) return PrimExpr();
    int lanes = kids[0].dtype().raw_lanes();
    if (lanes != 1 && lanes != kids[1].dtype().raw_lanes()) return PrimExpr();
    return make(Select(kids[0], kids[1], kids[2]));
  }
  if (kids[0].dtype() != kids[1].dtype()) return PrimExpr();  // a scalar and a vector condition
  return make(MakeBinaryNode(t->type, kids[0], kids[1]));
}
PrimExpr Match::Build(const CompiledRule& rule,
                      const std::function<PrimExpr(const PrimExpr&)>& make) {
  return BuildNode(rule.to, rule, make);
}

}  // namespace tvm::arith
