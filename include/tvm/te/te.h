// SPDX-License-Identifier: Apache-2.0
// Tensor expressions: what each element of a tensor is, without saying how to compute it.
//
//   Tensor A = te::placeholder({1024, 1024}, DataType::Float(32), "A");
//   Tensor B = te::compute({1024, 1024}, [&](const Array<Var>& i) { return exp(A(i[0], i[1])); });
//   PrimFunc func = te::CreatePrimFunc({A, B});
#pragma once
#include <functional>

#include "tvm/expr/op.h"
#include "tvm/tir/function.h"

namespace tvm::te {
using tir::IterVar, tir::IterVarType, tir::Var;
struct Tensor;

/// What produces one or more tensors. One object is one operation: tensors are the same when their
/// operation and their number in it are.
struct OperationObj : NodeObj {
  String name, tag;
  Map<String, Any> attrs;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindDAGNode;
  static constexpr uint32_t _type_child_slots = 5;
  virtual ~OperationObj() = default;
  virtual int64_t NumOutputs() const = 0;
  virtual DataType OutputType(int64_t i) const = 0;
  virtual Array<PrimExpr> OutputShape(int64_t i) const = 0;
  /// Calls `visit` on each tensor it reads, maybe more than once; see InputTensors.
  virtual void VisitInputs(const std::function<void(const Tensor&)>& visit) const = 0;
  static void Fields(auto&& def) {
    def("name", &OperationObj::name);
    def("tag", &OperationObj::tag);
    def("attrs", &OperationObj::attrs);
  }
  TVM_FFI_DECLARE_OBJECT_INFO("te.Operation", OperationObj, NodeObj);
};
struct Operation : ObjectRef {
  /// Output number `i`; IndexError when there is none.
  Tensor output(int64_t i) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Operation, ObjectRef, OperationObj);
};

/// One output of an operation.
struct TensorObj : tir::DataProducerObj {
  Array<PrimExpr> shape;
  DataType dtype;
  Operation op;
  int64_t value_index = 0;
  Array<PrimExpr> GetShape() const final { return shape; }
  DataType GetDataType() const final { return dtype; }
  /// The name of the operation; with ".v0", ".v1", … when it has several outputs.
  String GetNameHint() const final;
  static void Fields(auto&& def) {
    def("shape", &TensorObj::shape);
    def("dtype", &TensorObj::dtype);
    def("op", &TensorObj::op);
    def("value_index", &TensorObj::value_index);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("te.Tensor", TensorObj, tir::DataProducerObj);
};
struct Tensor : tir::DataProducer {
  /// The element at `indices`. ValueError for a wrong number of them, TypeError for one that is no
  /// integer, IndexError for a constant outside of the shape.
  PrimExpr operator()(const Array<PrimExpr>& indices) const;
  PrimExpr operator()(const Array<Var>& indices) const {
    return (*this)(Array<PrimExpr>(indices.begin(), indices.end()));
  }
  template <class... Index>
    requires(std::is_convertible_v<Index, PrimExpr> && ...)
  PrimExpr operator()(const Index&... indices) const {
    return (*this)(Array<PrimExpr>{PrimExpr(indices)...});
  }
  bool operator==(const Tensor& other) const {
    return get()->op.same_as(other->op) && get()->value_index == other->value_index;
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Tensor, tir::DataProducer, TensorObj);
};

/// The tensors `op` reads, each once, in the order of their first use.
Array<Tensor> InputTensors(const Operation& op);

/// An input: its elements come from the caller.
struct PlaceholderOpObj : OperationObj {
  Array<PrimExpr> shape;
  DataType dtype;
  int64_t NumOutputs() const final { return 1; }
  DataType OutputType(int64_t) const final { return dtype; }
  Array<PrimExpr> OutputShape(int64_t) const final { return shape; }
  void VisitInputs(const std::function<void(const Tensor&)>&) const final {}
  static constexpr std::string_view kParamOrder = "name,shape,dtype,tag,attrs";
  static void Fields(auto&& def) {
    def("name", &OperationObj::name);
    def("tag", &OperationObj::tag, Default(String()));
    def("attrs", &OperationObj::attrs, Default(Map<String, Any>()));
    def("shape", &PlaceholderOpObj::shape);
    def("dtype", &PlaceholderOpObj::dtype);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("te.PlaceholderOp", PlaceholderOpObj, OperationObj);
};
TVM_NODE_REF(PlaceholderOp, Operation, PlaceholderOpObj);

/// Element by element over `axis`, reducing over `reduce_axis`.
struct BaseComputeOpObj : OperationObj {
  Array<IterVar> axis, reduce_axis;
  static constexpr uint32_t _type_child_slots = 1;
  Array<PrimExpr> OutputShape(int64_t) const final;
  static void Fields(auto&& def) {
    def("axis", &BaseComputeOpObj::axis, Binds());
    // Computed from the reductions in the body, which bind it themselves.
    def("reduce_axis", &BaseComputeOpObj::reduce_axis, Computed(), Ignored());
  }
  TVM_FFI_DECLARE_OBJECT_INFO("te.BaseComputeOp", BaseComputeOpObj, OperationObj);
};
TVM_NODE_REF(BaseComputeOp, Operation, BaseComputeOpObj);

/// Each element is given by an expression: one per output. A reduction stands alone as the whole
/// expression; several outputs with reductions are the values of one reduction.
struct ComputeOpObj : BaseComputeOpObj {
  Array<PrimExpr> body;
  int64_t NumOutputs() const final { return static_cast<int64_t>(body.size()); }
  DataType OutputType(int64_t i) const final { return body[i].dtype(); }
  void VisitInputs(const std::function<void(const Tensor&)>& visit) const final;
  static constexpr std::string_view kParamOrder = "name,tag,attrs,axis,body";
  static void Fields(auto&& def) { def("body", &ComputeOpObj::body); }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("te.ComputeOp", ComputeOpObj, BaseComputeOpObj);
};
struct ComputeOp : BaseComputeOp {
  ComputeOp(String name, String tag, Map<String, Any> attrs, Array<IterVar> axis,
            Array<PrimExpr> body);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ComputeOp, BaseComputeOp, ComputeOpObj);
};

/// A recurrence along the first axis: `init` gives the first elements, `update` each further one
/// from those before it, which it reads through `state_placeholder`.
struct ScanOpObj : OperationObj {
  IterVar scan_axis;
  Array<Tensor> init, update, state_placeholder, inputs;
  Array<IterVar> spatial_axis_;  // the other axes of all states, one after the other
  int64_t NumOutputs() const final { return static_cast<int64_t>(state_placeholder.size()); }
  DataType OutputType(int64_t i) const final { return state_placeholder[i]->dtype; }
  Array<PrimExpr> OutputShape(int64_t i) const final { return state_placeholder[i]->shape; }
  void VisitInputs(const std::function<void(const Tensor&)>& visit) const final;
  static constexpr std::string_view kParamOrder =
      "name,tag,attrs,scan_axis,init,update,state_placeholder,inputs";
  static void Fields(auto&& def) {
    def("scan_axis", &ScanOpObj::scan_axis, Binds());
    def("init", &ScanOpObj::init);
    def("update", &ScanOpObj::update);
    def("state_placeholder", &ScanOpObj::state_placeholder);
    def("inputs", &ScanOpObj::inputs, Default(Array<Tensor>()));
    def("spatial_axis_", &ScanOpObj::spatial_axis_, Computed(), Ignored());
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("te.ScanOp", ScanOpObj, OperationObj);
};
TVM_NODE_REF(ScanOp, Operation, ScanOpObj);

/// A statement that fills the outputs; it names inputs and outputs by buffers that stand for them.
struct ExternOpObj : OperationObj {
  Array<Tensor> inputs;
  Array<tir::Buffer> input_placeholders, output_placeholders;
  tir::Stmt body;
  int64_t NumOutputs() const final { return static_cast<int64_t>(output_placeholders.size()); }
  DataType OutputType(int64_t i) const final { return output_placeholders[i]->dtype; }
  Array<PrimExpr> OutputShape(int64_t i) const final { return output_placeholders[i]->shape; }
  void VisitInputs(const std::function<void(const Tensor&)>& visit) const final;
  static constexpr std::string_view kParamOrder =
      "name,tag,attrs,inputs,input_placeholders,output_placeholders,body";
  static void Fields(auto&& def) {
    def("inputs", &ExternOpObj::inputs);
    def("input_placeholders", &ExternOpObj::input_placeholders, Binds());
    def("output_placeholders", &ExternOpObj::output_placeholders, Binds());
    def("body", &ExternOpObj::body);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("te.ExternOp", ExternOpObj, OperationObj);
};
TVM_NODE_REF(ExternOp, Operation, ExternOpObj);

// ---- building ---------------------------------------------------------------------------------
Tensor placeholder(Array<PrimExpr> shape, DataType dtype = DataType::Float(32),
                   String name = "placeholder");

/// The value of one element, given the variables of its axes.
using ElementFn = std::function<PrimExpr(const Array<Var>&)>;
/// The values of several outputs.
using ElementsFn = std::function<Array<PrimExpr>(const Array<Var>&)>;
/// Axes are named i0, i1, … unless `axis_names` says otherwise.
Tensor compute(Array<PrimExpr> shape, const ElementFn& element, String name = "compute",
               String tag = "", Map<String, Any> attrs = {}, const Array<String>& axis_names = {});
Array<Tensor> compute_tuple(Array<PrimExpr> shape, const ElementsFn& elements,
                            String name = "compute", String tag = "", Map<String, Any> attrs = {},
                            const Array<String>& axis_names = {});

/// An iterator over `dom` to reduce over.
IterVar reduce_axis(Range dom, String name = "rv");
PrimExpr sum(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init = {});
PrimExpr prod(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init = {});
PrimExpr min(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init = {});
PrimExpr max(PrimExpr source, Array<IterVar> axis, Array<PrimExpr> init = {});

Array<Tensor> scan(Array<Tensor> init, Array<Tensor> update, Array<Tensor> state_placeholder,
                   Array<Tensor> inputs = {}, String name = "scan", String tag = "",
                   Map<String, Any> attrs = {});

/// The function that computes the tensors among `args` which are no placeholders from those which
/// are. Further arguments are scalar variables. All tensors between get buffers of their own.
/// `index_dtype` gives loop variables, shapes and indices this type; otherwise it is the widest of
/// those that occur.
tir::PrimFunc CreatePrimFunc(const Array<Variant<Tensor, Var>>& args,
                             Optional<DataType> index_dtype = std::nullopt);

}  // namespace tvm::te
