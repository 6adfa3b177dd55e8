// SPDX-License-Identifier: Apache-2.0
// Unpacking and checking the arguments of a packed function.
#include "packed_arguments.h"

#include <algorithm>

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
/// Puts texts that are known in the places of their %s; what is left of `values` is for run time.
std::string WithKnownTexts(const std::string& format, Array<PrimExpr>* values) {
  std::string out;
  Array<PrimExpr> rest;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    out += format[i];
    if (format[i] != '%') continue;
    out += format[++i];
    if (format[i] == '%') continue;
    PrimExpr value = (*values)[next++];
    auto* text = value.as<StringImmObj>();
    if (text)
      out.replace(out.size() - 2, 2, Escaped(text->value));
    else
      rest.push_back(value);
  }
  *values = rest;
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

EntryHelpers::EntryHelpers() {
  for (size_t ndim = 0; ndim <= kMostDims; ++ndim)
    unpack_tensor.push_back(GlobalVar("__tvm_unpack_tensor" + std::to_string(ndim)));
}

PackedArguments::PackedArguments(const PrimFunc& func, PrimExpr name, const EntryHelpers& helpers)
    : func_(func),
      name_(std::move(name)),
      helpers_(helpers),
      self_("self_handle", kHandle),
      args_("args", kHandle),
      num_args_("num_args", kInt32),
      result_("result", PointerType(PrimType(DataType::Void()))) {}
PackedArguments::PackedArguments(const PrimFunc& func, const std::string& name,
                                 const EntryHelpers& helpers)
    : PackedArguments(func, StringImm(name), helpers) {
  int n = static_cast<int>(func->params.size());
  auto is_buffer = [&](int i) { return func.BufferOf(func->params[i]).defined(); };
  CheckCount();
  // Scalars first: shapes may be given in terms of them.
  for (int i = 0; i < n; ++i) {
    if (!is_buffer(i)) UnpackScalar(i);
  }
  for (int i = 0; i < n; ++i) {
    if (is_buffer(i) && IsPlain(i)) {
      UnpackPlainTensor(i);
    } else if (is_buffer(i)) {
      UnpackTensor(i);
      BindShape(i);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (tensors_.count(i)) {
      CheckShape(i);
      CheckStrides(i);
      BindData(i);
    }
  }
}

PrimFunc PackedArguments::TensorUnpacker(int ndim, const EntryHelpers& helpers) {
  Var function("function", kHandle), tensor("tensor", kHandle);
  Array<PrimExpr> shape;
  for (int d = 0; d < ndim; ++d) shape.push_back(Var("extent" + std::to_string(d), kInt64));
  Buffer buffer = Buffer::Decl(shape);
  PrimFunc model({tensor}, Evaluate::Nothing(), PrimType(kInt32), {{tensor, buffer}});
  PackedArguments checks(model, function, helpers);
  auto number = [](const char* name) { return Var(name, kInt32); };
  auto text = [](const char* name) { return Var(name, kHandle); };
  Expected e{number("index"), text("name"),    text("dtype"),           number("code"),
             number("bits"),  number("lanes"), Var("alignment", kInt64)};
  Array<Var> params{checks.args_};
  for (const PrimExpr& p :
       {e.index, PrimExpr(function), e.name, e.dtype, e.code, e.bits, e.lanes, e.alignment})
    params.push_back(Any(p).cast<Var>());
  for (const PrimExpr& extent : shape) {
    params.push_back(Any(extent).cast<Var>());
    checks.values_[extent.as<VarObj>()] = extent;
  }
  checks.tensors_[0].expected = e;
  checks.UnpackTensor(0);
  checks.BindShape(0);
  checks.CheckShape(0);
  checks.CheckStrides(0);
  checks.BindData(0);
  Stmt give = Evaluate(Call(kInt32, builtin::ret(), {checks.ValueOf(buffer->data)}));
  return PrimFunc(params, checks.Wrap(give), PrimType(kHandle));
}

// ---- building blocks --------------------------------------------------------------------------
PrimExpr PackedArguments::Get(const PrimExpr& structure, const PrimExpr& index, int field,
                              DataType t) const {
  return Call(t, builtin::tvm_struct_get(), {structure, index, PrimExpr(field)});
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
  Array<PrimExpr> shown{name_};
  for (const PrimExpr& v : values) shown.push_back(v);
  std::string message = WithKnownTexts("%s: " + format, &shown);
  Array<PrimExpr> args{StringImm(error), StringImm(message)};
  for (const PrimExpr& v : shown) args.push_back(v);
  Stmt raise = Evaluate(Call(kInt32, builtin::tvm_raise_error(), args));
  steps_.push_back(IfThenElse(logical_not(likely(cond)), raise));
}
void PackedArguments::CheckKind(const PrimExpr& name, const PrimExpr& type, const PrimExpr& cond,
                                const char* expected) {
  PrimExpr raise = Call(kInt32, helpers_.wrong_kind, {name_, name, StringImm(expected), type});
  steps_.push_back(IfThenElse(logical_not(likely(cond)), Evaluate(raise)));
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
              << "MakePackedAPI: expected the arguments of " << name_.as<StringImmObj>()->value
              << " to determine " << v->name_hint << ", which buffer " << buffer->name
              << " uses: it must be a scalar "
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
  auto check = [&](const PrimExpr& cond, const char* expected) {
    CheckKind(StringImm(name), type, cond, expected);
  };
  auto value = [&](DataType as) { return Get(args_, i, builtin::kFFIAnyUnionValue, as); };
  if (t.is_handle()) {
    // Objects are passed as their addresses, tensors as DLTensor*.
    check(is(kTVMFFINone) || is(kTVMFFIOpaquePtr) || is(kTVMFFIDLTensorPtr) || is(kTVMFFIRawStr) ||
              type >= PrimExpr(static_cast<int>(kTVMFFIStaticObjectBegin)),
          "a pointer or a tensor");
    Bind(param,
         if_then_else(is(kTVMFFITensor),
                      AddBytes(value(kHandle), PrimExpr(static_cast<int>(sizeof(TVMFFIObject)))),
                      value(kHandle)));
    return;
  }
  if (t.is_float()) {
    check(is(kTVMFFIFloat) || is(kTVMFFIInt) || is(kTVMFFIBool), "float");
    Bind(param, cast(t, if_then_else(is(kTVMFFIFloat), value(DataType::Float(64)),
                                     cast(DataType::Float(64), value(kInt64)))));
    return;
  }
  if (!t.is_scalar() || !(t.is_integer() || t.is_bool())) {
    TVM_FFI_THROW(TypeError) << "MakePackedAPI: expected parameters of "
                             << name_.as<StringImmObj>()->value
                             << " that are scalars, handles or buffers, got " << name << " of type "
                             << t;
  }
  check(is(kTVMFFIInt) || is(kTVMFFIBool), t.is_bool() ? "bool" : "int");
  PrimExpr wide = Let(name + ".value", value(kInt64));
  if (t.is_bool()) {
    Bind(param, not_equal(wide, IntImm::Int64(0)));
    return;
  }
  if (t.bits() < 64) {
    PrimExpr low = cast(kInt64, min_value(t)), high = cast(kInt64, max_value(t));
    Check(low <= wide && wide <= high, "ValueError",
          "expected argument %s to fit " + t.str() + ", got %lld", {StringImm(name), wide});
  }
  Bind(param, cast(t, wide));
}
int64_t PackedArguments::DeviceType() const {
  auto target = func_->GetAttr<Target>(::tvm::attr::kTarget);
  return target.has_value() ? target.value()->DeviceType() : int64_t{kDLCPU};
}
PackedArguments::Expected PackedArguments::ExpectedOf(int i) const {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  DataType t = buffer->dtype;
  return {PrimExpr(i),
          StringImm(buffer->name),
          StringImm(t.str()),
          PrimExpr(t.code()),
          PrimExpr(t.bits()),
          PrimExpr(t.lanes()),
          IntImm::Int64(CheckedAlignment(buffer))};
}
bool PackedArguments::IsPlain(int i) const {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  int64_t alignment = CheckedAlignment(buffer);
  bool is_power = (alignment & (alignment - 1)) == 0;
  return is_power && DeviceType() == kDLCPU && buffer->shape.size() <= EntryHelpers::kMostDims &&
         buffer->strides.empty() && IsZero(buffer->elem_offset) &&
         std::all_of(buffer->shape.begin(), buffer->shape.end(),
                     [](const PrimExpr& extent) { return AsConstInt(extent).has_value(); });
}
void PackedArguments::UnpackPlainTensor(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  Expected e = ExpectedOf(i);
  Array<PrimExpr> args{args_,  e.index, name_,   e.name,     e.dtype,
                       e.code, e.bits,  e.lanes, e.alignment};
  for (const PrimExpr& extent : buffer->shape) args.push_back(cast(kInt64, extent));
  size_t ndim = buffer->shape.size();
  unpacked_dims_.insert(static_cast<int>(ndim));
  Bind(buffer->data, Call(kHandle, helpers_.unpack_tensor[ndim], args));
}
void PackedArguments::UnpackTensor(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  std::string name = buffer->name;
  Tensor& t = tensors_[i];
  if (!t.expected.index.defined()) t.expected = ExpectedOf(i);
  const Expected& e = t.expected;
  PrimExpr type = Let(name + ".type_index", Get(args_, e.index, builtin::kFFIAnyTypeIndex, kInt32));
  PrimExpr is_object = equal(type, PrimExpr(static_cast<int>(kTVMFFITensor)));
  CheckKind(e.name, type, is_object || equal(type, PrimExpr(static_cast<int>(kTVMFFIDLTensorPtr))),
            "a tensor");
  PrimExpr raw = Get(args_, e.index, builtin::kFFIAnyUnionValue, kHandle);
  t.handle =
      Let(name + ".tensor",
          if_then_else(is_object, AddBytes(raw, PrimExpr(static_cast<int>(sizeof(TVMFFIObject)))),
                       raw));
  Check(logical_not(IsNull(t.handle)), "ValueError",
        "expected argument %s to be a tensor, got a null pointer", {e.name});
  values_[func_->params[i].get()] = t.handle;

  int ndim = static_cast<int>(buffer->shape.size());
  PrimExpr got = Get(t.handle, 0, builtin::kDLTensorNDim, kInt32);
  Check(equal(got, PrimExpr(ndim)), "ValueError",
        "expected argument %s with " + std::to_string(ndim) +
            (ndim == 1 ? " dimension" : " dimensions") + ", got %d",
        {e.name, got});

  PrimExpr code = cast(kInt32, Get(t.handle, 0, builtin::kDLTensorTypeCode, DataType::UInt(8)));
  PrimExpr bits = cast(kInt32, Get(t.handle, 0, builtin::kDLTensorTypeBits, DataType::UInt(8)));
  PrimExpr lanes = cast(kInt32, Get(t.handle, 0, builtin::kDLTensorTypeLanes, DataType::UInt(16)));
  PrimExpr same = equal(code, e.code) && equal(bits, e.bits) && equal(lanes, e.lanes);
  PrimExpr raise = Call(kInt32, helpers_.wrong_dtype, {name_, e.name, e.dtype, code, bits, lanes});
  steps_.push_back(IfThenElse(logical_not(likely(same)), Evaluate(raise)));

  int64_t device = DeviceType();
  PrimExpr device_type = Get(t.handle, 0, builtin::kDLTensorDeviceType, kInt32);
  Check(IsDevice(device_type, device), "ValueError",
        "expected argument %s on device type " + std::to_string(device) + ", got %d",
        {e.name, device_type});
  if (device != kDLCPU) {
    PrimExpr id = Get(t.handle, 0, builtin::kDLTensorDeviceId, kInt32);
    if (device_id_.defined()) {
      Check(equal(id, device_id_), "ValueError",
            "expected argument %s on device %d like those before, got %d",
            {e.name, device_id_, id});
    } else {
      device_id_ = Let("device_id", id);
    }
  }

  t.shape = Let(name + ".shape", Get(t.handle, 0, builtin::kDLTensorShape, kHandle));
  t.strides = Let(name + ".strides", Get(t.handle, 0, builtin::kDLTensorStrides, kHandle));
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
            "expected %s to fit " + var->dtype.str() + ", got %lld", {StringImm(dim), extent});
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
    Check(equal(t.extents[d], expected), "ValueError",
          "expected %s.shape[" + std::to_string(d) + "] to be %lld, got %lld",
          {t.expected.name, expected, t.extents[d]});
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
  const PrimExpr& name = t.expected.name;
  auto shown = [](size_t d) { return "%s.strides[" + std::to_string(d) + "]"; };
  // The stride of a dimension of one element is never used.
  auto is_used = [&](size_t d) {
    return not_equal(t.extents[d], IntImm::Int64(1)) && t.has_elements;
  };
  if (buffer->strides.empty()) {
    size_t first = steps_.size();
    for (size_t d = 0; d < ndim; ++d) {
      Check(equal(stride(d), compact[d]) || logical_not(is_used(d)), "ValueError",
            "expected " + shown(d) + " of a compact tensor to be %lld, got %lld",
            {name, compact[d], stride(d)});
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
          "expected " + shown(d) + " to be %lld, got %lld", {name, value, actual});
  }
}
void PackedArguments::BindData(int i) {
  Buffer buffer = func_.BufferOf(func_->params[i]);
  std::string name = buffer->name;
  Tensor& t = tensors_[i];
  const PrimExpr& shown = t.expected.name;
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
          "expected the byte offset of %s to be a multiple of %lld, got %lld",
          {shown, factor, offset});
    PrimExpr elements = floordiv(offset, bytes);
    auto* var = buffer->elem_offset.as<VarObj>();
    if (var && !values_.count(var)) {
      Bind(ffi::GetRef<Var>(var), cast(var->dtype, elements));
    } else {
      PrimExpr expected = cast(kInt64, Resolve(buffer->elem_offset, buffer));
      Check(equal(elements, expected), "ValueError",
            "expected the offset of %s to be %lld elements, got %lld", {shown, expected, elements});
    }
  }
  PrimExpr bound = Bind(buffer->data, data);
  Check(logical_not(IsNull(Get(t.handle, 0, builtin::kDLTensorData, kHandle)) && t.has_elements),
        "ValueError", "expected argument %s with data, got a null data pointer", {shown});
  const PrimExpr& alignment = t.expected.alignment;
  if (IsConstInt(alignment, 1)) return;
  auto known = AsConstInt(alignment);
  PrimExpr address = reinterpret(kInt64, bound);
  PrimExpr rest =
      known ? floormod(address, alignment) : bitwise_and(address, alignment - IntImm::Int64(1));
  Array<PrimExpr> values{shown, rest};
  if (!known) values = {shown, alignment, rest};
  Check(equal(rest, IntImm::Int64(0)), "ValueError",
        "expected the data of %s aligned to " + (known ? std::to_string(*known) : "%lld") +
            " bytes, got an address %lld beyond that",
        values);
}

}  // namespace tvm::tir
