// SPDX-License-Identifier: Apache-2.0
// Patterns with a name: what a backend takes over.
#pragma once
#include "tvm/relax/dpl.h"

namespace tvm::relax {

/// What a check sees of a match.
struct PatternCheckContextObj : NodeObj {
  Expr matched_expr;
  Map<String, Expr> annotated_expr;   ///< What the annotated parts stand for.
  Map<Var, Expr> matched_bindings;    ///< The bindings that would be taken over.
  Map<Var, Array<Var>> var_usages;    ///< Who uses each variable of the block.
  Map<Expr, Var> value_to_bound_var;  ///< The variable of each value of the block.
  static void Fields(auto&& def) {
    def("matched_expr", &PatternCheckContextObj::matched_expr);
    def("annotated_expr", &PatternCheckContextObj::annotated_expr);
    def("matched_bindings", &PatternCheckContextObj::matched_bindings);
    def("var_usages", &PatternCheckContextObj::var_usages);
    def("value_to_bound_var", &PatternCheckContextObj::value_to_bound_var);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.transform.PatternCheckContext", PatternCheckContextObj,
                                    NodeObj);
};
TVM_NODE_REF(PatternCheckContext, ObjectRef, PatternCheckContextObj);

/// "backend.what": its parts that have names, `check(PatternCheckContext) -> bool` that may refuse
/// a match, and `attrs_getter({name: expression}) -> {name: value}`, attributes of the function
/// made.
struct FusionPatternObj : NodeObj {
  String name;
  DFPattern pattern;
  Map<String, DFPattern> annotation_patterns;
  Optional<ffi::Function> check, attrs_getter;
  static void Fields(auto&& def) {
    def("name", &FusionPatternObj::name);
    def("pattern", &FusionPatternObj::pattern);
    def("annotation_patterns", &FusionPatternObj::annotation_patterns,
        Default(Map<String, DFPattern>()));
    def("check", &FusionPatternObj::check, Default(nullptr));
    def("attrs_getter", &FusionPatternObj::attrs_getter, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.transform.FusionPattern", FusionPatternObj, NodeObj);
};
TVM_NODE_REF(FusionPattern, ObjectRef, FusionPatternObj);

/// "backend" of "backend.what".
std::string BackendOf(const String& pattern_name);

}  // namespace tvm::relax
