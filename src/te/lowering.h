// SPDX-License-Identifier: Apache-2.0
// The state of lowering tensor expressions to one PrimFunc: tensors to buffers, axes to iterators.
#pragma once
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/once.h"
#include "tvm/te/te.h"

namespace tvm::te {

/// The attribute of an operation that lists inputs whose layout may change.
inline constexpr const char* kLayoutFree = "layout_free_placeholders";

class Lowering
    : public Mutator<Lowering, tir::VarObj, tir::ProducerLoadObj, tir::LetObj, PrimExprObj> {
 public:
  Lowering(const std::vector<Operation>& ops, DataType index_type)
      : ops_(ops), index_type_(index_type) {}

  tir::PrimFunc Function(const Array<Variant<Tensor, Var>>& args);

  // Expressions of `te` become expressions over buffers and block iterators.
  ObjectRef Rewrite(const tir::VarObj* var);
  ObjectRef Rewrite(const tir::ProducerLoadObj* load);
  ObjectRef Rewrite(const tir::LetObj* let);
  ObjectRef Rewrite(const PrimExprObj* e);

 private:
  /// The result of `make()` for an expression, which is made once where the expression is used in
  /// many places. It holds as long as axes are bound to the same variables.
  template <class Obj, class F>
  ObjectRef Once(const Obj* e, F&& make) {
    if (ObjectRef* known = known_.Find(e)) return *known;
    ObjectRef result = make();
    known_.Keep(e, result);
    return result;
  }
  SharedMemo<ObjectRef> known_;

  using TensorKey = std::pair<const Object*, int64_t>;
  static TensorKey KeyOf(const Tensor& t) { return {t->op.get(), t->value_index}; }

  // ---- tensors and variables
  tir::Buffer& BufferOf(const Tensor& tensor) { return buffers_[KeyOf(tensor)]; }
  tir::Buffer Declare(const Tensor& tensor);
  /// The buffer of an output; allocated in the function unless it is a parameter.
  tir::Buffer Output(const Operation& op, int64_t i);
  /// Makes the variables in the shape of a parameter known, in the index type.
  void DefineShapeVars(const Tensor& tensor);
  PrimExpr Index(const PrimExpr& e);
  Array<PrimExpr> Indices(const Array<PrimExpr>& indices);
  Range IndexRange(const Range& range) {
    return Range::FromMinExtent(Index(range->min), Index(range->extent));
  }
  String BlockName(const String& name);
  Array<int64_t> LayoutFreeBuffers(const Array<Variant<Tensor, Var>>& args) const;

  // ---- operations
  tir::Stmt Lower(const Operation& op);
  /// In the step of a scan the first axis is bound to `time`, whose loop is outside.
  tir::Stmt LowerCompute(const ComputeOpObj* op, Optional<Var> time = std::nullopt);
  tir::Stmt LowerExtern(const ExternOpObj* op);
  tir::Stmt LowerScan(const ScanOpObj* op);
  /// Which operations run in the step of a scan, and which tensors live in its output.
  void PlanScans();

  const std::vector<Operation>& ops_;
  const DataType index_type_;
  std::map<TensorKey, tir::Buffer> buffers_;
  Array<tir::Buffer> allocated_;
  std::unordered_map<const Object*, PrimExpr> vars_;
  std::unordered_set<std::string> block_names_;
  String current_;  // the operation being lowered, for errors
  std::unordered_map<const Object*, const ScanOpObj*> step_of_;  // operation -> the scan it is in
};

}  // namespace tvm::te
