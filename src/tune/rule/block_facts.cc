// SPDX-License-Identifier: Apache-2.0
// Facts about blocks, read off the schedule's state.
#include "tune/rule/block_facts.h"

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tune {
using namespace tir;

Var Choose(const Schedule& sch, const Array<int64_t>& values) {
  Array<double> even(values.size(), 1.0 / static_cast<double>(values.size()));
  return sch.SampleCategorical(values, even);
}

int64_t ConstantExtent(const ForObj* loop) { return AsConstInt(loop->extent).value_or(-1); }

BlockFacts::BlockFacts(const Schedule& sch, const BlockRV& rv) {
  const State& state = sch.state();
  BlockId id{sch.IdOf(rv)};
  realize = state.realize(id);
  block = realize->block.get();
  is_root = state.parent(id) == kNoNode;
  has_blocks = !state.ChildBlocks(id).empty();
  for (LoopId loop : state.LoopsAbove(id)) loops.push_back(state.loop(loop));
  has_reduction = block->init.has_value();
  is_spatial = !block->iter_vars.empty();
  for (const IterVar& iv : block->iter_vars) {
    is_spatial &= iv->iter_type == IterVarType::kDataPar;
    has_reduction |= iv->iter_type == IterVarType::kCommReduce;
  }
  for (const ForObj* loop : loops) {
    int use = UseOf(ffi::GetRef<For>(loop), ffi::GetRef<BlockRealize>(realize));
    uses.push_back(use & kOther ? (use & ~kOther) | kReduce : use);
  }
}
double BlockFacts::Iterations(LoopUse use) const {
  double n = 1;
  for (size_t i = 0; i < loops.size(); ++i)
    if (uses[i] == use) n *= static_cast<double>(std::max<int64_t>(1, ConstantExtent(loops[i])));
  return n;
}
bool BlockFacts::ConstantExtents() const {
  for (const ForObj* loop : loops)
    if (ConstantExtent(loop) < 1) return false;
  return true;
}
bool BlockFacts::HasReuse() const {
  if (!has_reduction) return false;
  for (const BufferRegion& read : block->reads) {
    bool written = false;
    for (const BufferRegion& write : block->writes) written |= write->buffer.same_as(read->buffer);
    if (written) continue;
    for (const IterVar& iv : block->iter_vars) {
      if (iv->iter_type != IterVarType::kDataPar || !iv->dom.has_value()) continue;
      if (AsConstInt(iv->dom.value()->extent).value_or(2) < 2) continue;
      auto is_iter = [&](const VarObj* v) { return v == iv->var.get(); };
      bool moves = false;
      for (const Range& r : read->region) moves |= UsesVar(r->min, is_iter);
      if (!moves) return true;
    }
  }
  return false;
}
bool BlockFacts::IsAlone(const Schedule& sch) const {
  const State& state = sch.state();
  for (const ForObj* loop : loops) {
    if (loop->kind != ForKind::kSerial || !loop->annotations.empty()) return false;
    if (state.ChildBlocks(state.Find(loop)).size() != 1) return false;
  }
  return true;
}

bool IsScheduled(const BlockFacts& facts) {
  for (const auto& [key, value] : facts.block->annotations) {
    if (View(key).substr(0, 14) == "meta_schedule.") return true;
  }
  for (const ForObj* loop : facts.loops)
    if (loop->kind != ForKind::kSerial) return true;
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
