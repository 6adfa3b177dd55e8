// SPDX-License-Identifier: Apache-2.0
// Blocks that rules take up, read off the schedule's state.
#include "tune/rule/blocks.h"

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tune {
using namespace tir;

Var Choose(const Schedule& sch, const Array<int64_t>& values) {
  Array<double> even(values.size(), 1.0 / static_cast<double>(values.size()));
  return sch.SampleCategorical(values, even);
}

int64_t ConstantExtent(const ForObj* loop) { return AsConstInt(loop->extent).value_or(-1); }

bool IsScheduled(const BlockView& view) {
  for (const auto& [key, value] : view.block->annotations) {
    if (View(key).substr(0, 14) == "meta_schedule.") return true;
  }
  for (const Axis& axis : view.axes)
    if (axis.node->kind != ForKind::kSerial) return true;
  return false;
}
Any AnnotationOf(const Schedule& sch, const BlockRV& block, const char* key) {
  const BlockObj* b = sch.state().block(BlockId{sch.IdOf(block)});
  auto it = b->annotations.find(key);
  return it == b->annotations.end() ? Any(nullptr) : (*it).second;
}

bool IsComplete(const Schedule& sch) {
  for (const auto& [var, func] : sch.mod()->functions) {
    if (!func.as<PrimFuncObj>()) continue;
    BlockId root = sch.state().Root(var->name_hint);
    if (root != kNoNode && sch.state().block(root)->annotations.count(kComplete)) return true;
  }
  return false;
}

std::vector<BlockRV> BlocksWhere(const Schedule& sch,
                                 const std::function<bool(const BlockRV&)>& wanted) {
  struct Names : Visitor<Names, BlockObj> {
    std::vector<std::string> list;
    void Visit(const BlockObj* op) {
      list.emplace_back(op->name_hint);
      VisitChildren(op, *this);
    }
  };
  std::vector<BlockRV> blocks;
  for (const auto& [var, func] : sch.mod()->Sorted()) {
    auto* prim = func.as<PrimFuncObj>();
    if (!prim) continue;
    Names names;
    names(prim->body);
    for (const std::string& name : names.list) {
      auto found = sch.state().BlocksNamed(name, var->name_hint);
      if (found.size() == 1 && wanted(sch.NewBlockRV(found[0])))
        blocks.push_back(sch.GetBlock(name, var->name_hint));
    }
  }
  return blocks;
}

Machine MachineOf(const Optional<Target>& target) {
  return target.has_value() ? Machine::Of(target.value()) : New<Machine>([](MachineObj*) {});
}

}  // namespace tvm::tune
