// SPDX-License-Identifier: Apache-2.0
// Variables that a program uses and does not define.
#include "scoped_visitor.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
struct UndefinedFinder : ScopedVisitor<UndefinedFinder> {
  std::unordered_map<const VarObj*, int> defined;
  std::unordered_set<const Object*> seen;
  Array<Var> result;

  bool IsDefined(const VarObj* v) const {
    auto it = defined.find(v);
    return it != defined.end() && it->second > 0;
  }
  void Begin(const Array<Var>& vars, const char*) {
    for (const Var& v : vars) ++defined[v.get()];
  }
  void End(const Array<Var>& vars, const char*) {
    for (const Var& v : vars) --defined[v.get()];
  }
  void Use(const VarObj* op) {
    if (!IsDefined(op) && seen.insert(op).second) result.push_back(ffi::GetRef<Var>(op));
  }
  void Declare(const BufferObj*, int) {}
  /// An access needs the data pointer and what locates the element: strides or, for compact
  /// buffers, the inner extents.
  void UseBuffer(const BufferObj* op) {
    Go(op->data);
    for (size_t i = 1; op->strides.empty() && i < op->shape.size(); ++i) Go(op->shape[i]);
    GoAll(op->strides);
    Go(op->elem_offset);
  }
  void UseDeclared(const BufferObj* op) { UseBuffer(op); }
};
}  // namespace

Array<Var> UndefinedVars(const ObjectRef& node, const Array<Var>& defined) {
  UndefinedFinder find;
  find.With(defined, "", [&] {
    auto* func = node.as<PrimFuncObj>();
    if (!func) return find(node);
    find.With(find.Parameters(func), "", [&] { find(func->body); });
  });
  return find.result;
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.analysis.undefined_vars",
      [](ObjectRef node, Optional<Array<Var>> defs) {
        return OnDeepStack([&] { return UndefinedVars(node, defs.value_or(Array<Var>())); });
      },
      "Variables that the node uses and neither it nor defs define, in the order of their first "
      "use.",
      Arg("node"), Arg("defs", nullptr));
}
}  // namespace
}  // namespace tvm::tir
