// SPDX-License-Identifier: Apache-2.0
// The pattern language: what a graph must look like to be matched, and rewriting what matches.
//
//   DFPattern x = Wildcard(), w = IsConst();
//   DFPattern dense = IsOp("relax.matmul")(x, w);
//   Function after = RewriteValues(func, "MyPass", [&](const Expr& e, const Bindings& values) {
//     PatternMatch match(values);
//     if (!match.Find(dense, e)) return Optional<Expr>();
//     …match[x]…
//   });
//
// A variable is looked through to its value where a pattern wants more than a variable. One pattern
// object stands for one expression in a match: IsOp("relax.add")(x, x) wants the same x.
#pragma once
#include <functional>
#include <unordered_map>

#include "tvm/relax/attrs.h"

namespace tvm::relax {

// ---- patterns ---------------------------------------------------------------------------------
struct DFPatternObj : NodeObj {
  static constexpr uint32_t _type_child_slots = 32;
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO("relax.dpl.DFPattern", DFPatternObj, NodeObj);
};
struct DFPattern : ObjectRef {
  /// A call of what this pattern matches.
  template <class... P>
  DFPattern operator()(const P&... args) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DFPattern, ObjectRef, DFPatternObj);
};
DFPattern CallOf(DFPattern callee, Array<DFPattern> args);
template <class... P>
DFPattern DFPattern::operator()(const P&... args) const {
  return CallOf(*this, {args...});
}

/// A variable, of this name unless it is empty.
struct VarPatternObj : DFPatternObj {
  String name;
  static constexpr uint32_t _type_child_slots = 1;
  static void Fields(auto&& def) { def("name", &VarPatternObj::name); }
  TVM_FFI_DECLARE_OBJECT_INFO("relax.dpl.VarPattern", VarPatternObj, DFPatternObj);
};
TVM_NODE_REF(VarPattern, DFPattern, VarPatternObj);
struct DataflowVarPatternObj : VarPatternObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.DataflowVarPattern", DataflowVarPatternObj,
                                    VarPatternObj);
};
TVM_NODE_REF(DataflowVarPattern, VarPattern, DataflowVarPatternObj);
struct ConstantPatternObj : DFPatternObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.ConstantPattern", ConstantPatternObj, DFPatternObj);
};
TVM_NODE_REF(ConstantPattern, DFPattern, ConstantPatternObj);
struct WildcardPatternObj : DFPatternObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.WildcardPattern", WildcardPatternObj, DFPatternObj);
};
TVM_NODE_REF(WildcardPattern, DFPattern, WildcardPatternObj);

#define ROW(Name, ...)                                                                          \
  struct Name##Obj : DFPatternObj {                                                             \
    using Self = Name##Obj;                                                                     \
    TVM_EACH(TVM_ATTRS_MEMBER, __VA_ARGS__)                                                     \
    static void Fields(auto&& def){                                                             \
        TVM_EACH(TVM_ATTRS_DEF,                                                                 \
                 __VA_ARGS__)} TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl." #Name, Name##Obj, \
                                                                 DFPatternObj);                 \
  };                                                                                            \
  TVM_NODE_REF(Name, DFPattern, Name##Obj);
// clang-format off
/// This expression: compared by structure.
ROW(ExprPattern, (Expr, expr))
/// A function of the module, or an external one, of this name unless it is empty.
ROW(GlobalVarPattern, (String, name))
ROW(ExternFuncPattern, (String, global_symbol))
/// A call. With `varg_default_wildcard` it may have more arguments.
ROW(CallPattern, (DFPattern, op), (Array<DFPattern>, args), (bool, varg_default_wildcard))
ROW(FunctionPattern, (Array<DFPattern>, params), (DFPattern, body))
ROW(TuplePattern, (Array<DFPattern>, fields))
/// A tuple of these fields in any order.
ROW(UnorderedTuplePattern, (Array<DFPattern>, fields))
/// An item of a tuple; any for the index -1.
ROW(TupleGetItemPattern, (DFPattern, tuple), (int64_t, index))
ROW(OrPattern, (DFPattern, left), (DFPattern, right))
ROW(AndPattern, (DFPattern, left), (DFPattern, right))
ROW(NotPattern, (DFPattern, reject))
/// Of a kind that `struct_info` is a base of. Symbolic variables that stand alone in it are bound
/// to what is in their places; all their places must agree.
ROW(StructInfoPattern, (DFPattern, pattern), (StructInfo, struct_info))
ROW(DataTypePattern, (DFPattern, pattern), (DataType, dtype))
/// A tensor, or a shape, whose dimensions are provably these.
ROW(ShapePattern, (DFPattern, pattern), (Array<PrimExpr>, shape))
ROW(PrimArrPattern, (Array<PrimExpr>, fields))
/// A call, an operator or a function with these attributes.
ROW(AttrPattern, (DFPattern, pattern), (Kwargs, attrs))
// clang-format on
#undef ROW

DFPattern Wildcard();
DFPattern IsConst();
DFPattern IsOp(const String& name);
DFPattern IsTuple(Array<DFPattern> fields);
DFPattern operator|(DFPattern a, DFPattern b);

// ---- constraints of contexts ------------------------------------------------------------------
struct DFConstraintObj : NodeObj {
  static constexpr uint32_t _type_child_slots = 4;
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO("relax.dpl.DFConstraint", DFConstraintObj, NodeObj);
};
TVM_NODE_REF(DFConstraint, ObjectRef, DFConstraintObj);
/// All are tensors whose shapes are provably equal. Added to the innermost context when made.
struct SameShapeConstraintObj : DFConstraintObj {
  Array<DFPattern> args;
  static void Fields(auto&& def) { def("args", &SameShapeConstraintObj::args); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.SameShapeConstraint", SameShapeConstraintObj,
                                    DFConstraintObj);
};
TVM_NODE_REF(SameShapeConstraint, DFConstraint, SameShapeConstraintObj);

/// `consumer` uses `producer`, as the argument `index` (-1: any); `only` it does.
struct UseConstraintObj : DFConstraintObj {
  DFPattern producer, consumer;
  int64_t index = -1;
  bool only = false;
  static void Fields(auto&& def) {
    def("producer", &UseConstraintObj::producer);
    def("consumer", &UseConstraintObj::consumer);
    def("index", &UseConstraintObj::index, Default(-1));
    def("only", &UseConstraintObj::only, Default(false));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.UseConstraint", UseConstraintObj, DFConstraintObj);
};
struct UseConstraint : DFConstraint {
  UseConstraint(DFPattern producer, DFPattern consumer, int64_t index, bool only);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(UseConstraint, DFConstraint, UseConstraintObj);
};

/// Patterns of which each is used by the next.
struct PatternSeqObj : NodeObj {
  Array<DFPattern> patterns;
  Array<UseConstraint> pair_constraints;
  static void Fields(auto&& def) {
    def("patterns", &PatternSeqObj::patterns);
    def("pair_constraints", &PatternSeqObj::pair_constraints, Default(Array<UseConstraint>()));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.PatternSeq", PatternSeqObj, NodeObj);
};
TVM_NODE_REF(PatternSeq, ObjectRef, PatternSeqObj);

/// Patterns of several bindings, by the constraints between them.
struct PatternContextObj : NodeObj {
  Array<DFConstraint> constraints;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  static void Fields(auto&& def) {
    def("constraints", &PatternContextObj::constraints, Default(Array<DFConstraint>()));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.PatternContext", PatternContextObj, NodeObj);
};
struct PatternContext : ObjectRef {
  static PatternContext Create();
  void Add(const DFConstraint& constraint) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PatternContext, ObjectRef, PatternContextObj);
};

// ---- matching ---------------------------------------------------------------------------------
/// The value of a variable, or nothing where it is not known.
using Bindings = std::function<Optional<Expr>(const Var&)>;
/// Those of a map from variables to expressions, which is not looked through before it is asked.
Bindings BindingsOf(const Map<Any, Any>& var2val);

/// A part of a match that still has to succeed.
class MatchRest {
 public:
  template <class F>
    requires(!std::is_same_v<F, MatchRest>)
  MatchRest(F& fn)  // NOLINT(*)
      : call_([](void* f) { return (*static_cast<F*>(f))(); }), fn_(&fn) {}
  bool operator()() const { return call_(fn_); }

 private:
  bool (*call_)(void*);
  void* fn_;
};

/// The search for one match. What was chosen for one part is taken back when another part cannot
/// match with it: of alternatives (a | b, operands of commutative operators, fields in any order)
/// every combination is tried.
class PatternMatch {
 public:
  /// `same_form`: products and quotients must be associated as the pattern is, so that every call
  /// that matches is one of the program.
  explicit PatternMatch(Bindings bindings, bool same_form = false)
      : bindings_(std::move(bindings)), same_form_(same_form) {}

  /// Whether the pattern matches, in agreement with what was found before.
  bool Find(const DFPattern& pattern, const Expr& expr);
  /// The same, and `rest` succeeds with it.
  bool Find(const DFPattern& pattern, const Expr& expr, MatchRest rest);

  bool Has(const DFPattern& pattern) const { return found_.count(pattern.get()); }
  /// What the pattern stands for, as the program has it: maybe a variable.
  const Expr& operator[](const DFPattern& pattern) const { return found_.at(pattern.get()); }
  /// The patterns of the match, in the order in which they matched.
  const std::vector<DFPattern>& Patterns() const { return trail_; }
  /// What symbolic variables of the patterns are bound to.
  const Map<tir::Var, PrimExpr>& symbolic() const { return symbolic_; }

  /// The value behind a variable, as far as it is known.
  Expr LookThrough(Expr expr) const;
  /// Whether both are the same value: the same variable, or equal scalars and shapes.
  bool IsSame(const Expr& a, const Expr& b) const;
  /// Whether shapes that were seen before their symbolic variables are as the patterns say.
  bool ShapesHold() const;

 private:
  bool FindNew(const DFPattern& pattern, const Expr& expr, MatchRest rest);
  bool FindCall(const CallPatternObj* pattern, const Expr& expr, MatchRest rest);
  bool FindReassociated(const CallPatternObj* pattern, const CallObj* call, MatchRest rest);
  bool FindAll(const Array<DFPattern>& patterns, const Array<Expr>& exprs, size_t begin,
               MatchRest rest);
  bool FindUnordered(const Array<DFPattern>& patterns, const Array<Expr>& exprs,
                     std::vector<bool>* taken, size_t begin, MatchRest rest);
  bool FindStructInfo(const StructInfoPatternObj* pattern, const Expr& expr, MatchRest rest);
  bool Matches(const DFPattern& pattern, const Expr& expr);

  Bindings bindings_;
  bool same_form_;
  std::unordered_map<const Object*, Expr> found_;
  std::vector<DFPattern> trail_;
  Map<tir::Var, PrimExpr> symbolic_;
  std::vector<std::pair<StructInfo, StructInfo>> open_;     // to be compared when all is bound
  mutable std::unordered_map<const Object*, Expr> locals_;  // bindings inside of functions
};

/// What each part of the pattern stands for, variables looked through, or nothing.
Optional<Map<DFPattern, Expr>> ExtractMatchedExpr(const DFPattern& pattern, const Expr& expr,
                                                  const Bindings& bindings);

/// The variables of the block that the patterns of the context stand for, or nothing.
Optional<Map<DFPattern, Var>> MatchDataflowBlock(const PatternContext& context,
                                                 const DataflowBlock& block);

// ---- rewriting --------------------------------------------------------------------------------
/// What the value of a binding becomes, or nothing. Variables that are in scope have bindings.
using RewriteRule = std::function<Optional<Expr>(const Expr& value, const Bindings& bindings)>;
/// Applies the rule to the value of every binding, and to what it gives, until it gives nothing.
/// One walk over the function is enough: a value is seen after all it is made of. Errors begin with
/// `name`; ValueError when the rule does not come to an end.
Function RewriteValues(const Function& func, const char* name, const RewriteRule& rule);

/// New values of variables, for a match of the context.
using RewriteBindingsFn =
    std::function<Map<Var, Expr>(const Map<DFPattern, Var>& matches, const Map<Var, Expr>& values)>;
/// Applies the function to matches in every dataflow block until there are none.
Function RewriteBindings(const PatternContext& context, const RewriteBindingsFn& rewriter,
                         const Function& func);

}  // namespace tvm::relax
