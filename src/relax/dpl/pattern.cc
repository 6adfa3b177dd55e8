// SPDX-License-Identifier: Apache-2.0
// Patterns and how they are made.
#include "tvm/relax/dpl.h"

namespace tvm::relax {

DFPattern CallOf(DFPattern callee, Array<DFPattern> args) {
  return New<CallPattern>([&](CallPatternObj* n) {
    n->op = std::move(callee);
    n->args = std::move(args);
  });
}
DFPattern Wildcard() {
  return New<WildcardPattern>([](WildcardPatternObj*) {});
}
DFPattern IsConst() {
  return New<ConstantPattern>([](ConstantPatternObj*) {});
}
DFPattern IsOp(const String& name) {
  return New<ExprPattern>([&](ExprPatternObj* n) { n->expr = Op::Get(name); });
}
DFPattern IsTuple(Array<DFPattern> fields) {
  return New<TuplePattern>([&](TuplePatternObj* n) { n->fields = std::move(fields); });
}
DFPattern operator|(DFPattern a, DFPattern b) {
  return New<OrPattern>([&](OrPatternObj* n) {
    n->left = std::move(a);
    n->right = std::move(b);
  });
}

namespace {
/// New patterns throughout, shared as they were.
struct PatternCopier : Mutator<PatternCopier, DFPatternObj> {
  std::unordered_map<const Object*, ObjectRef> copies;
  ObjectRef Rewrite(const DFPatternObj* pattern) {
    auto it = copies.find(pattern);
    if (it != copies.end()) return it->second;
    ObjectRef copy = MapChildren(pattern, *this);
    if (copy.get() == pattern) copy = CopyNode(pattern);
    return copies.emplace(pattern, copy).first->second;
  }
};
TVM_REGISTER() {
  RegisterBase<DFPatternObj>("What an expression must look like to be matched.");
  RegisterNode<ExprPatternObj>("This expression, compared by structure.");
  RegisterNode<VarPatternObj>("A variable, of this name unless it is empty.");
  RegisterNode<DataflowVarPatternObj>("A variable of a dataflow block.");
  RegisterNode<GlobalVarPatternObj>("A function of the module.");
  RegisterNode<ExternFuncPatternObj>("An external function.");
  RegisterNode<ConstantPatternObj>("A constant.");
  RegisterNode<WildcardPatternObj>("Anything.");
  RegisterNode<CallPatternObj>("A call.");
  RegisterNode<FunctionPatternObj>("A local function.");
  RegisterNode<TuplePatternObj>("A tuple of these fields.");
  RegisterNode<UnorderedTuplePatternObj>("A tuple of these fields in any order.");
  RegisterNode<TupleGetItemPatternObj>("An item of a tuple; any for the index -1.");
  RegisterNode<OrPatternObj>("One of two patterns.");
  RegisterNode<AndPatternObj>("Both of two patterns.");
  RegisterNode<NotPatternObj>("What another pattern does not match.");
  RegisterNode<StructInfoPatternObj>("An expression of a kind.");
  RegisterNode<DataTypePatternObj>("An expression of a dtype.");
  RegisterNode<ShapePatternObj>("An expression of a shape.");
  RegisterNode<PrimArrPatternObj>("A shape of these dimensions.");
  RegisterNode<AttrPatternObj>("A call, an operator or a function with these attributes.");
  Def(
      "relax.dpl.DFPattern._dup",
      [](DFPattern pattern) {
        return OnDeepStack([&] { return PatternCopier().Mutate(pattern); });
      },
      "", Arg("self"));
}
}  // namespace
}  // namespace tvm::relax
