// SPDX-License-Identifier: Apache-2.0
// Unpacking and checking the arguments of a packed function.
#include "packed_arguments.h"

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/target.h"

namespace tvm::tir {
namespace {
constexpr DataType kInt32 = DataType::Int(32), kInt64 = DataType::Int(64),
                   kHandle = DataType::Handle();

PrimExpr IsNull(const PrimExpr& handle) {
  return Call(DataType::Bool(), builtin::isnullptr(), {handle});
}
PrimExpr AddBytes(const PrimExpr& handle, const PrimExpr& bytes) {
  return Call(kHandle, builtin::handle_add_byte_offset(), {handle, bytes});
}
std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}
/// Types whose memory a CPU can read, beside that of the target.
PrimExpr IsDevice(const PrimExpr& type, int64_t expected) {
  PrimExpr ok = equal(type, PrimExpr(static_cast<int>(expected)));
  if (expected != kDLCPU) return ok;
  for (int host : {kDLCUDAHost, kDLROCMHost, kDLCUDAManaged})
    ok = ok || equal(type, PrimExpr(host));
  return ok;
}
}  // namespace

PackedArguments::PackedArguments(const PrimFunc& func, std::string name,
                                 GlobalVar raise_wrong_dtype, GlobalVar raise_wrong_kind)
    : func_(func),
      name_(Escaped(name)),
      raise_wrong_dtype_(std::move(raise_wrong_dtype)),
      raise_wrong_kind_(std::move(raise_wrong_kind)),
      self_("self_handle", kHandle),
      args_("args", kHandle),
      num_args_("num_args", kInt32),
      result_("result", PointerType(PrimType(DataType::Void()))) {
  int n = static_cast<int>(func->params.size());
  auto is_buffer = [&](int i) { return func.BufferOf(func->params[i]).defined(); };
  CheckCount();
  // Scalars first: shapes may be given in terms of them.
  for (int i = 0; i < n; ++i) {
    if (!is_buffer(i)) UnpackScalar(i);
  }
  for (int i = 0; i < n; ++i) {
    if (is_buffer(i)) {
      UnpackTensor(i);
      BindShape(i);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (is_buffer(i)) {
      CheckShape(i);
      CheckStrides(i);
      BindData(i);
    }
  }
}

// ---- building blocks --------------------------------------------------------------------------
PrimExpr PackedArguments::Get(const PrimExpr& structure, int index, int field, DataType t) const {
  return Call(t, builtin::tvm_struct_get(), {structure, PrimExpr(index), PrimExpr(field)});
}
PrimExpr PackedArguments::Bind(const Var& var, PrimExpr value) {
  Var copy = var.CopyWithSuffix("");
  values_[var.get()] = copy;
  steps_.push_back(LetStmt(copy, std::move(value), Evaluate::Nothing()));
  return copy;
}
PrimExpr PackedArguments::Let(const std::string& name, PrimExpr value) {
  Var var(name, value.dtype());
  steps_.push_back(LetStmt(var, std::move(value), Evaluate::Nothing()));
  return var;
}
void PackedArguments::Check(const PrimExpr& cond, const char* error, const std::string& format,
                            const Array<PrimExpr>& values) {
  if (IsTrue(cond)) return;
  Array<PrimExpr> args{StringImm(error), StringImm(name_ + ": " + format)};
  for (const PrimExpr& v : values) args.push_back(v);
  Stmt raise = Evaluate(Call(kInt32, builtin::tvm_raise_error(), args));
  steps_.push_back(IfThenElse(logical_not(likely(cond)), raise));
}
void PackedArguments::CheckKind(int i, const PrimExpr& cond, const char* expected) {
  PrimExpr type = Get(args_, i, builtin::kFFIAnyTypeIndex, kInt32);
  Buffer buffer = func_.BufferOf(func_->params[i]);
  String shown = buffer.defined() ? buffer->name : func_->params[i]->name_hint;
  PrimExpr raise = Call(kInt32, raise_wrong_kind_,
                        {StringImm(name_), StringImm(shown), StringImm(expected), type});
  steps_.push_back(
      IfThenElse(logical_not(likely(cond)), Evaluate(Call(kInt32, builtin::ret(), {raise}))));
}
PrimExpr PackedArguments::ValueOf(const Var& var) const {
  auto it = values_.find(var.get());
  return it == values_.end() ? PrimExpr() : it->second;
}
PrimExpr PackedArguments::Resolve(const PrimExpr& e, const Buffer& buffer) const {
  return Substitute(
      e, [&](const Var& v) {
        PrimExpr value = ValueOf(v);
        if (!value.defined()) {
          TVM_FFI_THROW(ValueError)
              << "MakePackedAPI: expected the arguments of " << name_ << " to determine "
              << v->name_hint << ", which buffer " << buffer->name << " uses: it must be a scalar "
              << "parameter or be a dimension, stride or offset of a buffer by itself";
        }
        return value;
      });
}
int64_t PackedArguments::CheckedAlignment(const Buffer& buffer) {
  // Tensors of other libraries are aligned as their elements are; only a buffer that says otherwise
  // than the default asks for more.
  constexpr int64_t kDefault = 64;
  if (buffer->data_alignment != kDefault) return buffer->data_alignment;
  int64_t bytes = buffer->dtype.element().bytes();
  return bytes & (bytes - 1) ? 1 : bytes;
}
Stmt PackedArguments::Wrap(Stmt body) const {
  for (auto it = steps_.rbegin(); it != steps_.rend(); ++it) {
    if (auto* let = it->as<LetStmtObj>())
      body = LetStmt(let->var, let->value, body);
    else
      body = SeqStmt::Flatten({*it, body});
  }
  return body;
}

// ---- arguments --------------------------------------------------------------------------------
void PackedArguments::CheckCount() {
  int n = static_cast<int>(func_->params.size());
  std::string plural = n == 1 ? " argument" : " arguments";
  Check(equal(num_args_, PrimExpr(n)), "TypeError",
        "expected " + std::to_string(n) + plural + ", got %d", {num_args_});
}
void PackedArguments::UnpackScalar(int i) {
  const Var& param = func_->params[i];
  std::string name = param->name_hint;
  DataType t = param.dtype();
  PrimExpr type = Let(name + ".type_index", Get(args_, i, builtin::kFFIAnyTypeIndex, kInt32));
  auto is = [&](int index) { return equal(type, PrimExpr(index)); };
  auto value = [&](DataType as) { return Get(args_, i, builtin::kFFIAnyUnionValue, as); };
  if (t.is_handle()) {
    // Objects are passed as their addresses, tensors as DLTensor*.
    CheckKind(i,
              is(kTVMFFINone) || is(kTVMFFIOpaquePtr) || is(kTVMFFIDLTensorPtr) ||
                  is(kTVMFFIRawStr) || type >= PrimExpr(static_cast<int>(kTVMFFIStaticObjectBegin)),
              "a pointer or a tensor");
    Bind(param,
         if_then_else(is(kTVMFFITensor),
                      AddBytes(value(kHandle), PrimExpr(static_cast<int>(sizeof(TVMFFIObject)))),
                      value(kHandle)));
    return;
  }
  if (t.is_float()) {
    CheckKind(i, is(kTVMFFIFloat) || is(kTVMFFIInt) || is(kTVMFFIBool), "float");
    Bind(param, cast(t, if_then_else(is(kTVMFFIFloat), value(DataType::Float(64)),
                                     cast(DataType::Float(64), value(kInt64)))));
    return;
  }
  if (!t.is_scalar() || !(t.is_integer() || t.is_bool())) {
    TVM_FFI_THROW(TypeError) << "MakePackedAPI: expected parameters of " << name_
                             << " that are scalars, handles or buffers, got " << name << " of type "
                             << t;
  }
  CheckKind(i, is(kTVMFFIInt) || is(kTVMFFIBool), t.is_bool() ? "bool" : "int");
  PrimExpr wide = Let(name + ".value", value(kInt64));
  if (t.is_bool()) {
    Bind(param, not_equal(wide, IntImm::Int64(0)));
    return;
  }
  if (t.bits() < 64) {
    PrimExpr low = cast(kInt64, min_value(t)), high = cast(kInt64, max_value(t));
    Check(low <= wide && wide <= high, "ValueError",
          "expected argument " + Escaped(name) + " to fit " + t.str() + ", got %lld", {wide});
  }
  Bind(param, cast(t, wide));
}
void PackedArguments::UnpackTensor(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  std::string name = buffer->name, shown = Escaped(name);
  PrimExpr type = Let(name + ".type_index", Get(args_, i, builtin::kFFIAnyTypeIndex, kInt32));
  PrimExpr is_object = equal(type, PrimExpr(static_cast<int>(kTVMFFITensor)));
  CheckKind(i, is_object || equal(type, PrimExpr(static_cast<int>(kTVMFFIDLTensorPtr))),
            "a tensor");
  PrimExpr raw = Get(args_, i, builtin::kFFIAnyUnionValue, kHandle);
  Tensor t;
  t.handle =
      Let(name + ".tensor",
          if_then_else(is_object, AddBytes(raw, PrimExpr(static_cast<int>(sizeof(TVMFFIObject)))),
                       raw));
  Check(logical_not(IsNull(t.handle)), "ValueError",
        "expected argument " + shown + " to be a tensor, got a null pointer");
  values_[func_->params[i].get()] = t.handle;

  int ndim = static_cast<int>(buffer->shape.size());
  PrimExpr got = Get(t.handle, 0, builtin::kDLTensorNDim, kInt32);
  Check(equal(got, PrimExpr(ndim)), "ValueError",
        "expected argument " + shown + " with " + std::to_string(ndim) +
            (ndim == 1 ? " dimension" : " dimensions") + ", got %d",
        {got});

  DataType dt = buffer->dtype;
  PrimExpr code = cast(kInt32, Get(t.handle, 0, builtin::kDLTensorTypeCode, DataType::UInt(8)));
  PrimExpr bits = cast(kInt32, Get(t.handle, 0, builtin::kDLTensorTypeBits, DataType::UInt(8)));
  PrimExpr lanes = cast(kInt32, Get(t.handle, 0, builtin::kDLTensorTypeLanes, DataType::UInt(16)));
  PrimExpr same = equal(code, PrimExpr(dt.code())) && equal(bits, PrimExpr(dt.bits())) &&
                  equal(lanes, PrimExpr(dt.lanes()));
  PrimExpr raise =
      Call(kInt32, raise_wrong_dtype_,
           {StringImm(name_), StringImm(name), StringImm(dt.str()), code, bits, lanes});
  steps_.push_back(
      IfThenElse(logical_not(likely(same)), Evaluate(Call(kInt32, builtin::ret(), {raise}))));

  auto target = func_->GetAttr<Target>(::tvm::attr::kTarget);
  int64_t device = kDLCPU;
  if (target.has_value()) device = target.value()->DeviceType();
  PrimExpr device_type = Get(t.handle, 0, builtin::kDLTensorDeviceType, kInt32);
  Check(IsDevice(device_type, device), "ValueError",
        "expected argument " + shown + " on device type " + std::to_string(device) + ", got %d",
        {device_type});
  if (device != kDLCPU) {
    PrimExpr id = Get(t.handle, 0, builtin::kDLTensorDeviceId, kInt32);
    if (device_id_.defined()) {
      Check(equal(id, device_id_), "ValueError",
            "expected argument " + shown + " on device %d like those before, got %d",
            {device_id_, id});
    } else {
      device_id_ = Let("device_id", id);
    }
  }

  t.shape = Let(name + ".shape", Get(t.handle, 0, builtin::kDLTensorShape, kHandle));
  t.strides = Let(name + ".strides", Get(t.handle, 0, builtin::kDLTensorStrides, kHandle));
  tensors_[i] = t;
}
void PackedArguments::BindShape(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  std::string name = buffer->name;
  Tensor& t = tensors_[i];
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    std::string dim = name + ".shape[" + std::to_string(d) + "]";
    PrimExpr extent = Let(dim, Get(t.shape, static_cast<int>(d), builtin::kInt64ArrayElem, kInt64));
    t.extents.push_back(extent);
    const PrimExpr& expected = buffer->shape[d];
    auto* var = expected.as<VarObj>();
    if (!var || values_.count(var)) continue;
    if (var->dtype.bits() < 64) {
      Check(extent <= cast(kInt64, max_value(var->dtype)), "ValueError",
            "expected " + Escaped(dim) + " to fit " + var->dtype.str() + ", got %lld", {extent});
    }
    Bind(ffi::GetRef<Var>(var), cast(var->dtype, extent));
  }
}
void PackedArguments::CheckShape(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  Tensor& t = tensors_[i];
  t.has_elements = const_true();
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    PrimExpr expected = cast(kInt64, Resolve(buffer->shape[d], buffer));
    // What the tensor's own extent was bound to is equal by definition.
    std::string dim = Escaped(buffer->name) + ".shape[" + std::to_string(d) + "]";
    Check(equal(t.extents[d], expected), "ValueError", "expected " + dim + " to be %lld, got %lld",
          {expected, t.extents[d]});
    if (AsConstInt(expected)) t.extents[d] = expected;
    t.has_elements = t.has_elements && not_equal(t.extents[d], IntImm::Int64(0));
  }
}
void PackedArguments::CheckStrides(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  Tensor& t = tensors_[i];
  size_t ndim = buffer->shape.size();
  if (ndim == 0) return;
  std::vector<PrimExpr> compact(ndim, IntImm::Int64(1));
  for (size_t d = ndim - 1; d > 0; --d) compact[d - 1] = compact[d] * t.extents[d];
  PrimExpr no_strides = IsNull(t.strides);
  auto stride = [&](size_t d) {
    return Get(t.strides, static_cast<int>(d), builtin::kInt64ArrayElem, kInt64);
  };
  auto name = [&](size_t d) {
    return Escaped(buffer->name) + ".strides[" + std::to_string(d) + "]";
  };
  // The stride of a dimension of one element is never used.
  auto is_used = [&](size_t d) {
    return not_equal(t.extents[d], IntImm::Int64(1)) && t.has_elements;
  };
  if (buffer->strides.empty()) {
    size_t first = steps_.size();
    for (size_t d = 0; d < ndim; ++d) {
      Check(equal(stride(d), compact[d]) || logical_not(is_used(d)), "ValueError",
            "expected " + name(d) + " of a compact tensor to be %lld, got %lld",
            {compact[d], stride(d)});
    }
    Array<Stmt> checks(steps_.begin() + first, steps_.end());
    steps_.resize(first);
    if (!checks.empty())
      steps_.push_back(IfThenElse(logical_not(no_strides), SeqStmt::Flatten(checks)));
    return;
  }
  for (size_t d = 0; d < ndim; ++d) {
    PrimExpr actual = if_then_else(no_strides, compact[d], stride(d));
    if (buffer->buffer_type == BufferType::kAutoBroadcast) {
      actual = if_then_else(equal(t.extents[d], IntImm::Int64(1)), IntImm::Int64(0), actual);
    }
    const PrimExpr& expected = buffer->strides[d];
    if (auto* var = expected.as<VarObj>(); var && !values_.count(var)) {
      Bind(ffi::GetRef<Var>(var), cast(var->dtype, actual));
      continue;
    }
    PrimExpr value = cast(kInt64, Resolve(expected, buffer));
    actual = Let(std::string(buffer->name) + ".stride" + std::to_string(d), actual);
    Check(equal(actual, value) || logical_not(is_used(d)), "ValueError",
          "expected " + name(d) + " to be %lld, got %lld", {value, actual});
  }
}
void PackedArguments::BindData(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  std::string name = buffer->name, shown = Escaped(name);
  Tensor& t = tensors_[i];
  PrimExpr offset =
      cast(kInt64, Get(t.handle, 0, builtin::kDLTensorByteOffset, DataType::UInt(64)));
  PrimExpr data = Get(t.handle, 0, builtin::kDLTensorData, kHandle);
  int64_t element_bits = int64_t{buffer->dtype.bits()} * buffer->dtype.lanes();
  if (IsZero(buffer->elem_offset)) {
    data = AddBytes(data, offset);
  } else {
    PrimExpr bytes = IntImm::Int64(std::max<int64_t>(1, element_bits / 8));
    offset = Let(name + ".byte_offset", offset);
    PrimExpr factor = bytes * IntImm::Int64(std::max<int64_t>(1, buffer->offset_factor));
    Check(equal(floormod(offset, factor), IntImm::Int64(0)), "ValueError",
          "expected the byte offset of " + shown + " to be a multiple of %lld, got %lld",
          {factor, offset});
    PrimExpr elements = floordiv(offset, bytes);
    auto* var = buffer->elem_offset.as<VarObj>();
    if (var && !values_.count(var)) {
      Bind(ffi::GetRef<Var>(var), cast(var->dtype, elements));
    } else {
      PrimExpr expected = cast(kInt64, Resolve(buffer->elem_offset, buffer));
      Check(equal(elements, expected), "ValueError",
            "expected the offset of " + shown + " to be %lld elements, got %lld",
            {expected, elements});
    }
  }
  PrimExpr bound = Bind(buffer->data, data);
  Check(logical_not(IsNull(Get(t.handle, 0, builtin::kDLTensorData, kHandle)) && t.has_elements),
        "ValueError", "expected argument " + shown + " with data, got a null data pointer");
  int64_t alignment = CheckedAlignment(buffer);
  if (alignment <= 1) return;
  PrimExpr address = reinterpret(DataType::UInt(64), bound);
  PrimExpr rest = floormod(address, MakeConst(DataType::UInt(64), alignment));
  Check(equal(rest, MakeConst(DataType::UInt(64), 0)), "ValueError",
        "expected the data of " + shown + " aligned to " + std::to_string(alignment) +
            " bytes, got an address %lld beyond that",
        {cast(kInt64, rest)});
}

}  // namespace tvm::tir
