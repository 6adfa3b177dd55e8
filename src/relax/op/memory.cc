// SPDX-License-Identifier: Apache-2.0
// Operators about tensors as such: type, device, memory, shape, and what is known of them at run
// time; collectives.
#include "tvm/relax/distributed.h"
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

StructInfo InferAstype(Infer& in) { return in.WithType(0, in.attrs<AstypeAttrsObj>()->dtype); }
StructInfo InferWrapParam(Infer& in) {
  return in.WithType(0, in.attrs<WrapParamAttrsObj>()->dtype);
}
StructInfo InferToVDevice(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  const VDevice& device = in.attrs<ToVDeviceAttrsObj>()->dst_vdevice;
  if (x->shape.has_value()) return TensorStructInfo(*x->shape, x->dtype, device);
  return TensorStructInfo(x->dtype, x->ndim, device);
}

// ---- memory -----------------------------------------------------------------------------------
/// A new tensor of the shape and the dtype given by arguments.
template <size_t shape_arg>
StructInfo InferAlloc(Infer& in) {
  auto* dtype = in.call->args[shape_arg + 1].as<DataTypeImmObj>();
  if (!dtype) {
    TVM_RAISE_TYPE(in) << "expected a dtype, got " << in.call->args[shape_arg + 1]->GetTypeKey();
  }
  auto device = in.size() > shape_arg + 2 ? in.ConstPrim(shape_arg + 2) : std::nullopt;
  return in.OfShape(shape_arg, dtype->value, in.DeviceAt(device.value_or(-1)));
}
bool IsVoid(Infer& in, size_t i) { return IsVoidStructInfo(in.Of(i)); }
StructInfo InferView(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  Shape shape = IsVoid(in, 1) ? Shape(x) : in.ShapeOf(1);
  DataType dtype = x->dtype;
  if (!IsVoid(in, 2)) {
    auto* given = in.call->args[2].as<DataTypeImmObj>();
    if (!given && !in.call->args[2].as<VarObj>())
      TVM_RAISE_TYPE(in) << "expected a dtype, got " << in.call->args[2]->GetTypeKey();
    dtype = given ? given->value : DataType::Void();
  }
  PrimExpr offset = Dim(0);
  bool known_offset = true;
  if (!IsVoid(in, 3)) {
    auto value = in.Prim(3);
    known_offset = value.has_value();
    if (value) offset = cast(DataType::Int(64), *value);
    if (auto bytes = in.ConstPrim(3); bytes && *bytes < 0)
      TVM_RAISE(in) << "expected a relative_byte_offset of at least 0, got " << *bytes;
  }
  if (known_offset && shape.known() && DimsOf(x) && !dtype.is_void() && !x->dtype.is_void()) {
    PrimExpr has = in.Product(*DimsOf(x)) * Dim(x->dtype.bytes());
    PrimExpr needs = in.Simplify(offset + in.Product(*shape.dims) * Dim(dtype.bytes()));
    has = in.Simplify(has);
    bool outside = IsConst(has) && IsConst(needs) ? *AsConstInt(needs) > *AsConstInt(has)
                                                  : in.analyzer().CanProve(needs > has);
    if (outside) {
      TVM_RAISE(in) << "expected a view inside the " << TextOf(has) << " bytes of " << ShowShape(x)
                    << " of " << x->dtype << ", got one that needs " << TextOf(needs);
    }
  }
  return IsVoid(in, 1) ? in.WithType(0, dtype) : in.OfShape(1, dtype, x->vdevice);
}

// ---- shapes as values -------------------------------------------------------------------------
StructInfo InferShapeOf(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (DimsOf(x)) return ShapeStructInfo(*DimsOf(x));
  return ShapeStructInfo(x->ndim);
}
StructInfo InferSize(Infer& in) { return in.Result(Dims{}, DataType::Int(64)); }
StructInfo InferTensorToShape(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  in.ExpectRank(x, 1, "the tensor");
  in.ExpectInteger(x, "the tensor");
  auto length = DimsOf(x) ? AsConstInt((*DimsOf(x))[0]) : std::nullopt;
  return ShapeStructInfo(length.value_or(-1));
}
StructInfo InferShapeToTensor(Infer& in) {
  int64_t ndim = in.ShapeOf(0).ndim;
  return in.Result(ndim < 0 ? Shape::Rank(1) : Shape(Dims{Dim(ndim)}), DataType::Int(64));
}

// ---- inspection -------------------------------------------------------------------------------
template <int code, int bits>
StructInfo InferPrim(Infer& in) {
  if (in.size() == 2) {
    const TensorStructInfoObj* x = in.Tensor(0);
    auto axis = in.ConstPrim(1);
    if (axis && (*axis < 0 || (x->ndim >= 0 && *axis >= x->ndim))) {
      TVM_RAISE(in) << "expected an axis in [0, "
                    << (x->ndim < 0 ? "ndim" : std::to_string(x->ndim)) << "), got " << *axis;
    }
  }
  return PrimStructInfo(DataType(code, bits));
}
Expr Known(DataType dtype, int64_t value) { return PrimValue(IntImm(dtype, value)); }
using NormalizeFn = Expr (*)(const BlockBuilder&, const Call&);
/// What is known of the tensor replaces the call.
template <Expr (*value)(const TensorStructInfoObj*)>
Expr ByType(const BlockBuilder&, const Call& call) {
  auto* x = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  return x && !x->dtype.is_void() ? value(x) : Expr(call);
}
Expr Code(const TensorStructInfoObj* x) { return Known(DataType::UInt(8), x->dtype.code()); }
Expr Bits(const TensorStructInfoObj* x) { return Known(DataType::UInt(8), x->dtype.bits()); }
Expr Lanes(const TensorStructInfoObj* x) { return Known(DataType::UInt(16), x->dtype.lanes()); }
Expr NDim(const BlockBuilder&, const Call& call) {
  auto* x = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  return x && x->ndim >= 0 ? Known(DataType::Int(32), x->ndim) : Expr(call);
}
Expr ShapeAt(const BlockBuilder&, const Call& call) {
  auto* x = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  auto* axis = GetStructInfoAs<PrimStructInfoObj>(call->args[1]);
  if (!x || !DimsOf(x) || !axis || !axis->value.has_value()) return call;
  auto i = AsConstInt(*axis->value);
  bool inside = i && *i >= 0 && *i < x->ndim;
  return inside ? Expr(PrimValue((*DimsOf(x))[*i])) : Expr(call);
}

// ---- collectives ------------------------------------------------------------------------------
StructInfo InferAllReduce(Infer& in) {
  in.ExpectOneOf(in.attrs<AllReduceAttrsObj>()->op_type, {"sum", "prod", "min", "max", "avg"},
                 "op_type");
  return in.Of(0);
}
void CheckWorkers(Infer& in, int64_t workers) {
  if (workers <= 0) TVM_RAISE(in) << "expected a positive num_workers, got " << workers;
}
StructInfo InferAllGather(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  int64_t workers = in.attrs<AllGatherAttrsObj>()->num_workers;
  CheckWorkers(in, workers);
  if (!DimsOf(x) || x->ndim == 0) return in.Result(Shape(x), x->dtype);
  Dims dims = *DimsOf(x);
  dims.Set(0, in.Simplify(dims[0] * Dim(workers)));
  return in.Result(dims, x->dtype);
}
StructInfo InferScatter(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<ScatterCollectiveAttrsObj>();
  CheckWorkers(in, attrs->num_workers);
  if (x->ndim < 0) return in.Of(0);
  int64_t axis = in.Axis(attrs->axis, x->ndim);
  if (!DimsOf(x)) return in.Of(0);
  Dims dims = *DimsOf(x);
  if (auto n = AsConstInt(dims[axis]); n && *n % attrs->num_workers != 0) {
    TVM_RAISE(in) << "expected a dimension that num_workers = " << attrs->num_workers
                  << " divides, got " << *n;
  }
  dims.Set(axis, in.Simplify(floordiv(dims[axis], Dim(attrs->num_workers))));
  return in.Result(dims, x->dtype);
}
StructInfo InferRedistribute(Infer& in) {
  auto* attrs = in.attrs<DistributionAttrsObj>();
  auto* x = in.Of(0).as<distributed::DTensorStructInfoObj>();
  if (!x) TVM_RAISE_TYPE(in) << "expected a tensor on a mesh, got " << TextOf(in.Of(0));
  return distributed::DTensorStructInfo(x->tensor_sinfo,
                                        As<distributed::DeviceMesh>(attrs->device_mesh),
                                        As<distributed::Placement>(attrs->placement));
}

TVM_REGISTER() {
  auto opaque = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kOpaque).Precision(kNever);
  };
  Operator("relax.astype", "x: Tensor, dtype", &InferAstype,
           "The elements as another type; floating-point numbers saturate as integers.")
      .Attrs<AstypeAttrsObj>()
      .Pattern(kElemWise)
      .Precision(kNever);
  opaque("relax.wrap_param", "data: Tensor, dtype='float32'", &InferWrapParam,
         "A parameter that is kept in another type.")
      .Attrs<WrapParamAttrsObj>();
  opaque("relax.to_vdevice", "data: Tensor, dst_vdevice", &InferToVDevice,
         "The tensor on another device.")
      .Attrs<ToVDeviceAttrsObj>();
  opaque("relax.hint_on_device", "data: Expr, device_type, index, memory_scope='global'",
         &InferSame, "The tensor, which shall be on that device.")
      .Attrs<HintOnDeviceAttrsObj>();
  opaque("relax.builtin.stop_lift_params", "x: Expr", &InferSame,
         "x, which is not computed ahead of time from the parameters.");

  opaque("relax.builtin.alloc_tensor",
         "shape: Shape, dtype: DType, runtime_device_index: Prim, storage_scope: Str = 'global'",
         &InferAlloc<0>, "A new tensor.")
      .Set("TAllocator", true);
  opaque("relax.memory.alloc_storage",
         "size: Shape, virtual_device_index: Prim, storage_scope: Str, dtype: DType", &InferObject,
         "Memory for tensors.")
      .Set("TAllocator", true);
  opaque("relax.memory.alloc_tensor",
         "storage: Expr, offset: Prim, shape: Shape, dtype: DType, runtime_device_ind: Prim = 0",
         &InferAlloc<2>, "A tensor in a storage.")
      .Set("TAllocator", true);
  opaque("relax.memory.kill_storage", "storage: Expr", &InferVoid, "Ends the life of a storage.")
      .Impure();
  opaque("relax.memory.kill_tensor", "tensor: Expr", &InferVoid, "Ends the life of a tensor.")
      .Impure();
  opaque("relax.vm.alloc_storage",
         "shape: Shape, runtime_device_index: Prim, dtype: DType, storage_scope: Str = 'global'",
         &InferObject, "Memory for tensors in the virtual machine.")
      .Set("TAllocator", true);
  opaque("relax.vm.alloc_tensor",
         "storage: Expr, offset: Prim, shape: Shape, dtype: DType, runtime_device_ind: Prim = 0",
         &InferAlloc<2>, "A tensor in a storage of the virtual machine.")
      .Set("TAllocator", true);
  opaque("relax.vm.kill_object", "obj: Expr", &InferVoid, "Ends the life of a value.").Impure();
  opaque("relax.memory.view",
         "data: Tensor, shape: Shape = (), dtype: DType = (), relative_byte_offset: Prim = ()",
         &InferView, "The same memory as another tensor.")
      .Set("RequiresArgumentShapes", false);
  opaque("relax.memory.ensure_zero_offset", "data: Tensor", &InferSame,
         "The tensor, copied if it does not begin where its memory does.")
      .Set("RequiresArgumentShapes", false);

  opaque("relax.shape_of", "expr: Tensor", &InferShapeOf, "The shape of a tensor.");
  opaque("relax.size", "expr: Tensor", &InferSize, "The number of elements.");
  opaque("relax.tensor_to_shape", "expr: Tensor", &InferTensorToShape,
         "The elements of a vector as a shape.");
  opaque("relax.shape_to_tensor", "expr: Shape", &InferShapeToTensor,
         "The dimensions of a shape as a vector of int64.")
      .Set("FCallPacked", String("relax.run.shape_to_tensor"));

  auto inspect = [](const char* name, bool has_axis, InferFn infer, NormalizeFn normalize,
                    const char* doc) {
    Operator op(name, has_axis ? "tensor: Tensor, axis: Prim" : "tensor: Tensor", infer, doc);
    op.Pattern(kOpaque).Precision(kNever).Set("RequiresArgumentShapes", false);
    if (normalize) FNormalize.Set(Op::Get(name), normalize);
  };
  inspect("relax.inspect.tensor_dtype_code", false, &InferPrim<kDLUInt, 8>, &ByType<&Code>,
          "The kind of the tensor's elements.");
  inspect("relax.inspect.tensor_dtype_bits", false, &InferPrim<kDLUInt, 8>, &ByType<&Bits>,
          "The bits of the tensor's elements.");
  inspect("relax.inspect.tensor_dtype_lanes", false, &InferPrim<kDLUInt, 16>, &ByType<&Lanes>,
          "The lanes of the tensor's elements.");
  inspect("relax.inspect.tensor_ndim", false, &InferPrim<kDLInt, 32>, &NDim,
          "The number of the tensor's dimensions.");
  inspect("relax.inspect.tensor_shape_i", true, &InferPrim<kDLInt, 64>, &ShapeAt,
          "A dimension of the tensor.");
  inspect("relax.inspect.tensor_stride_i", true, &InferPrim<kDLInt, 64>, nullptr,
          "A stride of the tensor.");
  inspect("relax.inspect.tensor_byte_offset", false, &InferPrim<kDLUInt, 64>, nullptr,
          "Where the tensor begins in its memory, in bytes.");
  inspect("relax.inspect.tensor_elem_offset", false, &InferPrim<kDLUInt, 64>, nullptr,
          "Where the tensor begins in its memory, in elements.");

  opaque("relax.ccl.allreduce", "x: Tensor, op_type='sum', in_group=True", &InferAllReduce,
         "The reduction over all workers.")
      .Attrs<AllReduceAttrsObj>();
  opaque("relax.ccl.allgather", "x: Tensor, num_workers, in_group=True", &InferAllGather,
         "The tensors of all workers, one behind the other.")
      .Attrs<AllGatherAttrsObj>();
  opaque("relax.ccl.broadcast_from_worker0", "x: Tensor", &InferSame, "The tensor of worker 0.");
  opaque("relax.ccl.scatter_from_worker0", "x: Tensor, num_workers, axis=0", &InferScatter,
         "A part of the tensor of worker 0 for each worker.")
      .Attrs<ScatterCollectiveAttrsObj>();
  opaque("relax.dist.annotate_sharding", "input: Expr, device_mesh, placement", &InferSame,
         "The tensor, which shall be spread like that.")
      .Attrs<DistributionAttrsObj>();
  opaque("relax.dist.redistribute", "input: Expr, device_mesh, placement", &InferRedistribute,
         "The tensor spread in another way.")
      .Attrs<DistributionAttrsObj>();
  opaque("relax.dist.redistribute_replica_to_shard", "input: Tensor, num_workers, axis",
         &InferScatter, "The worker's part of a tensor that all workers have.")
      .Attrs<ScatterCollectiveAttrsObj>();
}

}  // namespace
}  // namespace tvm::relax
