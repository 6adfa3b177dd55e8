// SPDX-License-Identifier: Apache-2.0
// A scan becomes a loop over time whose step runs everything that depends on the state.
//
//   s = te.scan(init, update, state)    # update[t, i] = state[t - 1, i] + X[t, i]
//   -->
//   copy init into s[0:1]
//   for t in range(1, T): for i in range(n): s[t, i] = s[t - 1, i] + X[t, i]
#include "te/lowering.h"
#include "tvm/expr/substitute.h"

namespace tvm::te {
using namespace tir;
namespace {

/// In the step, a tensor that depends on the state exists for this moment only.
struct MomentChecker : Visitor<MomentChecker, ProducerLoadObj> {
  const ComputeOpObj* op;
  const std::unordered_map<const Object*, const ScanOpObj*>& step_of;
  MomentChecker(const ComputeOpObj* op,
                const std::unordered_map<const Object*, const ScanOpObj*>& step_of)
      : op(op), step_of(step_of) {}
  void Visit(const ProducerLoadObj* load) {
    Tensor tensor = Any(load->producer).cast<Tensor>();
    bool in_step = step_of.count(tensor->op.get()) && !tensor->op.as<PlaceholderOpObj>();
    if (in_step && !load->indices[0].same_as(op->axis[0]->var)) {
      TVM_FFI_THROW(ValueError) << op->name << ": expected " << tensor->GetNameHint()
                                << ", which depends on the state of a scan, to be read at ["
                                << op->axis[0]->var->name_hint
                                << ", ...]; read earlier moments through the state placeholder";
    }
    VisitChildren(load, *this);
  }
};

/// dst[t, ...] = src[t, ...] over all of src, as an operation.
Operation CopyOp(const Tensor& source, const String& name) {
  return compute(source->shape, [&](const Array<Var>& i) { return source(i); }, name)->op;
}

}  // namespace

void Lowering::PlanScans() {
  for (const Operation& op : ops_) {
    if (const auto* scan = op.as<ScanOpObj>()) {
      for (const Tensor& state : scan->state_placeholder) step_of_[state->op.get()] = scan;
    }
  }
  if (step_of_.empty()) return;
  for (const Operation& op : ops_) {  // producers first: dependence spreads in one go
    for (const Tensor& input : InputTensors(op)) {
      auto it = step_of_.find(input->op.get());
      if (it == step_of_.end() || it->second == op.get()) continue;
      const auto* compute = op.as<ComputeOpObj>();
      if (!compute || compute->axis.empty()) {
        TVM_FFI_THROW(ValueError) << op->name << ": expected te.compute over time for what depends "
                                  << "on the state of the scan " << it->second->name;
      }
      auto [mine, is_new] = step_of_.emplace(op.get(), it->second);
      if (!is_new && mine->second != it->second) {
        TVM_FFI_THROW(ValueError) << op->name << ": expected the state of one scan, got those of "
                                  << mine->second->name << " and " << it->second->name;
      }
    }
  }
  for (const Operation& op : ops_) {
    const auto* scan = op.as<ScanOpObj>();
    if (!scan) continue;
    for (size_t i = 0; i < scan->update.size(); ++i) {
      Buffer output = Output(op, static_cast<int64_t>(i));
      BufferOf(scan->state_placeholder[i]) = output;
      // An update is computed in place, unless it is no step of this scan or gives two states.
      const Tensor& update = scan->update[i];
      Buffer& buffer = BufferOf(update);
      auto it = step_of_.find(update->op.get());
      bool in_step = it != step_of_.end() && it->second == scan;
      if (in_step && !buffer.defined() && !update->op.as<PlaceholderOpObj>()) buffer = output;
    }
  }
}

Stmt Lowering::LowerScan(const ScanOpObj* op) {
  // Not run elsewhere: a step's tensors exist during the scan only.
  Array<Stmt> result, step;
  Operation self = ffi::GetRef<Operation>(op);
  Var time(op->scan_axis->var->name_hint, index_type_);
  for (size_t i = 0; i < op->init.size(); ++i) {
    Operation copy = CopyOp(op->init[i], std::string(op->name) + ".init");
    BufferOf(copy.output(0)) = Output(self, static_cast<int64_t>(i));
    result.push_back(LowerCompute(copy.as<ComputeOpObj>()));
  }
  for (const Operation& inner : ops_) {
    auto it = step_of_.find(inner.get());
    const auto* compute = inner.as<ComputeOpObj>();
    if (it == step_of_.end() || it->second != op || !compute) continue;
    MomentChecker checker(compute, step_of_);
    for (const PrimExpr& e : compute->body) checker(e);
    current_ = inner->name;
    step.push_back(LowerCompute(compute, time));
  }
  for (size_t i = 0; i < op->update.size(); ++i) {
    Buffer output = Output(self, static_cast<int64_t>(i));
    if (BufferOf(op->update[i]).same_as(output)) continue;
    Operation copy = CopyOp(op->update[i], std::string(op->name) + ".update");
    BufferOf(copy.output(0)) = output;
    step.push_back(LowerCompute(copy.as<ComputeOpObj>(), time));
  }
  Range range = IndexRange(op->scan_axis->dom.value());
  result.push_back(For(time, range->min, range->extent, ForKind::kSerial, SeqStmt::Flatten(step)));
  return SeqStmt::Flatten(result);
}

}  // namespace tvm::te
