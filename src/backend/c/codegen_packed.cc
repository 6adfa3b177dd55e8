// SPDX-License-Identifier: Apache-2.0
// The C structures of tvm-ffi and DLPack, and calls through that interface.
#include <algorithm>

#include "backend/c/codegen.h"

namespace tvm::codegen::c {
namespace bi = tvm::tir::builtin;
namespace {
struct Field {
  int number;
  const char* structure;
  const char* name;
  DataType type;
};
const Field* FindField(int number) {
  constexpr DataType i32 = DataType::Int(32), i64 = DataType::Int(64), p = DataType::Handle();
  static const Field fields[] = {
      {bi::kDLTensorData, "DLTensor", "data", p},
      {bi::kDLTensorShape, "DLTensor", "shape", p},
      {bi::kDLTensorStrides, "DLTensor", "strides", p},
      {bi::kDLTensorNDim, "DLTensor", "ndim", i32},
      {bi::kDLTensorTypeCode, "DLTensor", "dtype.code", DataType::UInt(8)},
      {bi::kDLTensorTypeBits, "DLTensor", "dtype.bits", DataType::UInt(8)},
      {bi::kDLTensorTypeLanes, "DLTensor", "dtype.lanes", DataType::UInt(16)},
      {bi::kDLTensorByteOffset, "DLTensor", "byte_offset", DataType::UInt(64)},
      {bi::kDLTensorDeviceId, "DLTensor", "device.device_id", i32},
      {bi::kDLTensorDeviceType, "DLTensor", "device.device_type", i32},
      {bi::kFFIAnyTypeIndex, "TVMFFIAny", "type_index", i32},
      {bi::kFFIAnyZeroPadding, "TVMFFIAny", "zero_padding", DataType::UInt(32)},
      {bi::kFFIAnyUnionValue, "TVMFFIAny", "v_int64", i64},
      {bi::kInt64ArrayElem, "int64_t", "", i64},
      {bi::kDLTensorAddr, "DLTensor", "", p},
  };
  for (const Field& f : fields) {
    if (f.number == number) return &f;
  }
  return nullptr;
}
}  // namespace

Value FunctionText::StructField(const CallObj* op, bool set) {
  auto* kind = op->args[2].as<IntImmObj>();
  if (!kind) Unsupported("expected a constant field of a structure", op->span);
  const Field* field = FindField(static_cast<int>(kind->value));
  if (!field) {
    Unsupported("a structure field of the number " + std::to_string(kind->value), op->span);
  }
  std::vector<PrimExpr> operands = {op->args[0], op->args[1]};
  if (set) operands.push_back(op->args[3]);
  std::vector<Value> v = GenAll(operands);
  std::string structure = field->structure;
  auto typed = any_arrays_.find(op->args[0].get());
  std::string base = typed != any_arrays_.end() && structure == "TVMFFIAny"
                         ? typed->second
                         : "((" + structure + "*)" + v[0].At(kUnary) + ")";
  bool single = v[1].literal && v[1].text == "0";
  Value result;
  result.reads = true;
  if (field->number == bi::kDLTensorAddr) {
    result.text = "(void*)(" + base + " + " + v[1].text + ")";
    result.level = kUnary;
    return result;
  }
  std::string name = field->name;
  DataType held = field->type, type = set ? op->args[3].dtype() : op->dtype;
  if (field->number == bi::kFFIAnyUnionValue) {
    // The union holds int64, double or a pointer; what is narrower is widened first.
    if (type.is_handle()) {
      name = "v_ptr";
      held = type;
    }
    if (type.is_float()) {
      name = "v_float64";
      held = DataType::Float(64);
    }
  }
  std::string place = name.empty() ? base + "[" + v[1].text + "]"
                      : single     ? base + "->" + name
                                   : base + "[" + v[1].text + "]." + name;
  if (!set) {
    result.text = place;
    // shape and strides are not void*
    if (held.is_handle() && name != "data" && name != "v_ptr") {
      result.text = "(void*)" + place;
      result.level = kUnary;
    }
    return Convert(result, held, type);
  }
  ++effects_;
  if (name == "v_ptr") Line(place.substr(0, place.size() - 5) + "v_int64 = 0;");  // 32-bit pointers
  Value value = Convert(v[2], type, held);
  std::string cast = name == "shape" || name == "strides" ? "(int64_t*)"
                     : name == "device.device_type"       ? "(DLDeviceType)"
                                                          : "";
  Line(place + " = " + (cast.empty() ? value.text : cast + value.At(kUnary)) + ";");
  return Number(DataType::Int(32), int64_t{0});
}
Value FunctionText::StackAlloca(const CallObj* op) {
  auto* kind = op->args[0].as<StringImmObj>();
  auto* count = op->args[1].as<IntImmObj>();
  if (!kind || !count || count->value < 0)
    Unsupported("expected a constant kind and count of stack memory", op->span);
  static const std::map<std::string, const char*> types = {
      {"shape", "int64_t"},       {"arg_int64", "int64_t"},     {"array", "DLTensor"},
      {"arg_value", "TVMFFIAny"}, {"tvm_ffi_any", "TVMFFIAny"}, {"arg_tcode", "int32_t"},
      {"tensormap", "uint64_t"}};
  auto type = types.find(std::string(kind->value));
  if (type == types.end()) {
    Unsupported(
        "expected shape, array, arg_value, tvm_ffi_any, arg_tcode or tensormap as kind of stack "
        "memory, got " +
            std::string(kind->value),
        op->span);
  }
  // At the beginning of the function: it may be used after the block that asks for it.
  Value v;
  v.text = Name("stack");
  bool is_map = type->first == "tensormap";  // 128 bytes, aligned to 64
  locals_ += std::string("  ") + type->second + " " + v.text + "[" +
             std::to_string(std::max<int64_t>(count->value, 1) * (is_map ? 16 : 1)) + "]" +
             (is_map ? " TVM_ALIGNED(64)" : "") + ";\n";
  return v;
}
// tvm_call_packed_lowered(name, stack, begin, end): arguments stack[begin .. end), result
// stack[end].
Value FunctionText::CallPackedLowered(const CallObj* op, bool by_symbol) {
  auto* name = op->args[0].as<StringImmObj>();
  auto *begin = op->args[2].as<IntImmObj>(), *end = op->args[3].as<IntImmObj>();
  if (!name || !begin || !end)
    Unsupported("expected (name, stack, begin, end) in a lowered packed call", op->span);
  std::string function(name->value);
  std::vector<PrimExpr> operands = {op->args[1]};
  if (op->args.size() > 4) operands.push_back(op->args[4]);
  std::vector<Value> v = GenAll(operands);
  std::string stack = Name("args"), result = Name("result");
  Line("TVMFFIAny* " + stack + " = (TVMFFIAny*)" + v[0].At(kUnary) + " + " +
       std::to_string(begin->value) + ";");
  int64_t count = end->value - begin->value;
  Line("TVMFFIAny* " + result + " = " + stack + " + " + std::to_string(count) + ";");
  Line("memset(" + result + ", 0, sizeof(*" + result + "));");
  std::string rest = stack + ", " + std::to_string(count) + ", " + result + ")";
  ++effects_;
  if (by_symbol) {
    std::string symbol = "__tvm_ffi_" + function;
    if (!module_.IsReserved(symbol)) {
      module_.DeclareExtern(symbol, "int", {"void*", "const TVMFFIAny*", "int32_t", "TVMFFIAny*"});
    }
    Propagate(symbol + "(" + (v.size() > 1 ? v[1].text : "NULL") + ", " + rest);
  } else {
    std::string handle = Name("function");
    Line("void* " + handle + ";");
    Propagate(module_.Helper("find_packed") + "(&" + module_.PackedSlot(function) + ", " +
              Quoted(function) + ", &" + handle + ")");
    Propagate("TVMFFIFunctionCall(" + handle + ", " + rest);
  }
  if (op->dtype.is_void()) return Number(DataType::Int(32), int64_t{0});
  DataType t = op->dtype;
  if (op->Is(bi::tvm_call_trace_packed_lowered()) && count > 0) {
    // The traced value, unless the function gives another one.
    Line("if (" + result + "->type_index == kTVMFFINone) --" + result + ";");
  }
  DataType held = t.is_handle() ? t : t.is_float() ? DataType::Float(64) : DataType::Int(64);
  Value value;
  value.text = result + "->" + (t.is_handle() ? "v_ptr" : t.is_float() ? "v_float64" : "v_int64");
  value.reads = true;
  return Keep(Convert(value, held, t), t, "returned");
}

}  // namespace tvm::codegen::c
