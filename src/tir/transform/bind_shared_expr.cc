// SPDX-License-Identifier: Apache-2.0
// Gives names to the parts of an expression that are one object in many places: all passes that
// follow are then linear in the nodes that there are, and each part is computed once. It runs by
// itself before passes over functions.
#include <unordered_map>
#include <unordered_set>

#include "ir/each_function.h"
#include "tvm/expr/builtin.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Expressions of fewer nodes, written out, stay: names would only be in the way.
constexpr int kSmall = 1 << 12;

/// Whether an expression has more nodes than `left`, written out.
bool IsLarge(const ObjectRef& node, int* left) {
  if (--*left < 0) return true;
  bool is_large = false;
  VisitChildren(node.get(),
                [&](const ObjectRef& child) { is_large = is_large || IsLarge(child, left); });
  return is_large;
}
bool IsLarge(const PrimExpr& e) {
  int left = kSmall;
  return IsLarge(e, &left);
}

/// How many of the operands of a node are computed whatever the others are; the rest are chosen
/// between. -1: all of them.
int AlwaysComputed(const PrimExpr& e) {
  if (auto* call = e.as<CallObj>()) return call->Is(builtin::if_then_else()) ? 1 : -1;
  return e.as<SelectObj>() || e.as<AndObj>() || e.as<OrObj>() ? 1 : -1;
}

/// The distinct nodes of an expression, children first. Where `chosen` is false, without the
/// operands that are only computed if they are chosen.
struct Graph {
  struct Part {
    PrimExpr node;
    int uses = 0;
    bool may_move = true;  // it has one value wherever it stands in the expression
  };
  std::vector<Part> parts;
  std::unordered_map<const Object*, size_t> number;
  std::unordered_set<const VarObj*> bound;  // inside of the expression
  bool chosen, chooses = false, writes = false;

  Graph(const PrimExpr& root, bool chosen) : chosen(chosen) {
    Add(root);
    for (Part& part : parts) {
      if (auto* var = part.node.as<VarObj>()) part.may_move = !bound.count(var);
      if (part.node.as<BufferLoadObj>()) part.may_move = !chooses && !writes;
      if (auto* call = part.node.as<CallObj>())
        part.may_move = EffectOf(call->op) <= CallEffectKind::kPure;
      if (!chosen && AlwaysComputed(part.node) >= 0) {
        // What is not looked at may read, and use what is bound around it.
        part.may_move = bound.empty() && !writes;
      }
      EachChild(part.node, [&](Part& child) { part.may_move &= child.may_move; });
    }
  }
  template <class F>
  void EachChild(const PrimExpr& node, F&& visit) {
    VisitChildren(node.get(), [&](const ObjectRef& child) {
      if (auto it = number.find(child.get()); it != number.end()) visit(parts[it->second]);
    });
  }
  void Add(const PrimExpr& e) {
    if (auto it = number.find(e.get()); it != number.end()) return void(++parts[it->second].uses);
    Recurse([&] {
      int left = chosen ? -1 : AlwaysComputed(e);
      VisitChildren(e.get(), [&](const ObjectRef& child) {
        if (auto part = child.as<PrimExpr>(); part && left-- != 0) Add(*part);
      });
    });
    if (auto* let = e.as<LetObj>()) bound.insert(let->var.get());
    if (auto* call = e.as<CallObj>()) {
      writes |= EffectOf(call->op) > CallEffectKind::kReadState;
    }
    if (AlwaysComputed(e) >= 0) {
      chooses |= chosen;
      writes |= !chosen && SideEffect(e) > CallEffectKind::kReadState;
    }
    if (auto* reduce = e.as<ReduceObj>()) {
      for (const IterVar& iv : reduce->axis) bound.insert(iv->var.get());
    }
    number.emplace(e.get(), parts.size());
    parts.push_back({e, 1});
  }
};

PrimExpr BindParts(const PrimExpr& root, bool chosen) {
  if (!IsLarge(root)) return root;
  Graph graph(root, chosen);
  std::unordered_map<const Object*, ObjectRef> made;
  std::vector<std::pair<Var, PrimExpr>> lets;
  for (const Graph::Part& part : graph.parts) {
    auto now = [&](const ObjectRef& child) {
      auto it = made.find(child.get());
      return it == made.end() ? child : it->second;
    };
    PrimExpr value = As<PrimExpr>(MapChildren(part.node.get(), now));
    if (int left = chosen ? AlwaysComputed(value) : -1; left >= 0) {
      // What must not be computed before it is chosen is bound there.
      value = As<PrimExpr>(MapChildren(value.get(), [&](const ObjectRef& child) -> ObjectRef {
        auto operand = child.as<PrimExpr>();
        return operand && left-- <= 0 ? BindParts(*operand, false) : child;
      }));
    }
    bool is_leaf = part.node.as<VarObj>() || part.node.as<IntImmObj>() ||
                   part.node.as<FloatImmObj>() || part.node.as<StringImmObj>();
    if (part.uses > 1 && part.may_move && !is_leaf && !value.dtype().is_handle()) {
      Var name("shared", value.dtype());
      lets.emplace_back(name, chosen ? BindParts(value, false) : value);
      made[part.node.get()] = name;
    } else {
      made[part.node.get()] = value;
    }
  }
  PrimExpr result = As<PrimExpr>(made.at(root.get()));
  if (chosen) result = BindParts(result, false);
  for (auto it = lets.rbegin(); it != lets.rend(); ++it)
    result = Let(it->first, it->second, result);
  return result;
}

struct SharedBinder : Mutator<SharedBinder, PrimExprObj, BufferObj> {
  ObjectRef Rewrite(const PrimExprObj* op) { return BindParts(ffi::GetRef<PrimExpr>(op), true); }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
};
}  // namespace

PrimFunc BindSharedExpr(PrimFunc func) { return RewriteBody(std::move(func), SharedBinder()); }
TVM_REGISTER() {
  transform::BeforeFunctionPasses(PrimFuncObj::RuntimeTypeIndex(), [](BaseFunc func) -> BaseFunc {
    return BindSharedExpr(As<PrimFunc>(std::move(func)));
  });
}
TVM_PASS(
    tir, BindSharedExpr,
    R"(Binds the parts that a large expression has in many places, as one object, to variables; small expressions stay.

before(A: T.Buffer((16,), "float32")):
    for i in range(16):
        A[i] = A[i] + 1.0
after:
    for i in range(16):
        A[i] = A[i] + T.float32(1))")
}  // namespace tvm::tir
