// SPDX-License-Identifier: Apache-2.0
// What occurs in the body of a function, found in one walk.
#include "contents.h"

#include <array>
#include <memory>

#include "ir/each_function.h"
#include "ir/once.h"
#include "tvm/expr/expr.h"

namespace tvm::tir {
struct ContentsCollector {
  Contents* contents;
  // Much of a program is shared: what was met before is known, as far as this remembers.
  std::array<const Object*, 256> seen{};
  Once once;
  std::array<DataType, 16> seen_types{};

  explicit ContentsCollector(Contents* contents) : contents(contents) {
    contents->kinds_.reset();
    contents->types_.clear();
    contents->ops_.clear();
  }
  static void AddTo(auto* list, auto value) {
    if (std::find(list->begin(), list->end(), value) == list->end()) list->push_back(value);
  }
  void Add(DataType t) {
    DataType& place = seen_types[(t.code() + t.bits() + t.raw_lanes()) % seen_types.size()];
    if (t != place) AddTo(&contents->types_, place = t);
  }
  void operator()(const ObjectRef& node) {
    const Object*& place = seen[(reinterpret_cast<uintptr_t>(node.get()) >> 4) % seen.size()];
    if (place == node.get()) return;
    place = node.get();
    if (!once(node.get())) return;
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { VisitNode(node); });
    VisitNode(node);
  }
  void VisitNode(const ObjectRef& node) {
    int32_t kind = node->type_index();
    contents->kinds_[kind] = true;
    if (kind == IntImmObj::RuntimeTypeIndex()) {
      Add(static_cast<const IntImmObj*>(node.get())->dtype);
    } else if (kind == VarObj::RuntimeTypeIndex()) {
      auto* var = static_cast<const VarObj*>(node.get());
      Add(var->dtype);
      if (auto* pointer = var->type_annotation.as<PointerTypeObj>()) {
        if (auto* element = pointer->element_type.as<PrimTypeObj>()) Add(element->dtype);
      }
    } else if (kind == BufferObj::RuntimeTypeIndex()) {
      Add(static_cast<const BufferObj*>(node.get())->dtype);
      VisitChildren(node.get(), *this);
    } else {
      if (auto* e = node.as<PrimExprObj>()) Add(e->dtype);
      if (auto* call = node.as<CallObj>()) AddTo(&contents->ops_, call->op.get());
      VisitChildren(node.get(), *this);
    }
  }
};

namespace {
struct Last {
  Stmt body;  // held, so that nobody changes it in place
  Contents contents;
};
thread_local std::unique_ptr<Last> last;  // the loader has little room for what threads own
}  // namespace

const Contents& ContentsOf(const Stmt& body) {
  if (!last) last = std::make_unique<Last>();
  if (last->body.same_as(body)) return last->contents;
  last->body = Stmt();
  ContentsCollector collect(&last->contents);
  collect(body);
  last->body = body;
  return last->contents;
}

namespace {
TVM_REGISTER() {
  transform::OnFunctionsDone([] {
    if (last) last->body = Stmt();
  });
}
}  // namespace
}  // namespace tvm::tir
