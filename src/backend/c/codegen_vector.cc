// SPDX-License-Identifier: Apache-2.0
// Vectors as GCC and Clang have them: B[ramp(8*j, 1, 8)] = A[ramp(8*j, 1, 8)] * broadcast(x, 8) ->
//   *(tvm_f32x8*)&B[8 * j] = *(tvm_f32x8*)&A[8 * j] * (x - (tvm_f32x8){0});
#include "backend/c/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::c {
namespace {
DataType WithoutSign(DataType t) {
  return t.is_integer() ? DataType::UInt(t.bits(), t.lanes()) : t;
}
std::string VectorName(DataType t) {
  return source::ShortName(WithoutSign(t).element()) + "x" + std::to_string(t.lanes());
}
}  // namespace

std::string ModuleText::VectorType(DataType t) {
  std::string name = "tvm_" + VectorName(t);
  if (vectors_.insert(name).second) {
    int bytes = t.bits() / 8;
    helper_text_ += "typedef " + MemoryName(WithoutSign(t).element()) + " " + name +
                    " __attribute__((vector_size(" + std::to_string(bytes * t.lanes()) +
                    "), aligned(" + std::to_string(bytes) + "), may_alias));\n";
  }
  return name;
}
std::string ModuleText::VectorExtremum(DataType t, bool is_max) {
  std::string name = (is_max ? "tvm_max_" : "tvm_min_") + VectorName(t);
  if (vectors_.insert(name).second) {
    std::string type = VectorType(t), bits = VectorType(DataType::UInt(t.bits(), t.lanes()));
    helper_text_ += "static inline " + type + " " + name + "(" + type + " a, " + type +
                    " b) {\n  " + bits + " mask = (" + bits + ")((b " + (is_max ? ">" : "<") +
                    " a) | (b != b));\n  return (" + type + ")(((" + bits + ")b & mask) | ((" +
                    bits + ")a & ~mask));\n}\n";
  }
  return name;
}

std::string FunctionText::VectorAt(const Buffer& buffer, const PrimExpr& index) {
  auto* ramp = index.as<RampObj>();
  Place place = ElementOf(buffer, Gen(ramp->base));
  DataType t = buffer->dtype.with_lanes(ramp->dtype.lanes());
  return "*(" + module_.VectorType(t) + "*)" +
         (place.lvalue.empty() ? "(" + place.address + ")" : "&" + place.lvalue);
}
Value FunctionText::GenVector(const PrimExpr& e) {
  DataType t = e.dtype();
  Value v;
  if (auto* load = e.as<BufferLoadObj>()) {
    v.text = VectorAt(load->buffer, load->indices[0]);
    v.level = kUnary;
    return v;
  }
  if (auto* broadcast = e.as<BroadcastObj>()) {
    std::string zero = "(" + module_.VectorType(t) + "){0}";
    if (IsZero(broadcast->value) && !t.is_float()) return source::Made(zero, kPrimary, {});
    Value scalar = Gen(broadcast->value);
    if (t.is_integer()) scalar = source::CastTo(MemoryName(WithoutSign(t).element()), scalar);
    // x - 0 is x, also where x is -0.
    return source::Made(scalar.At(kProduct) + (t.is_float() ? " - " : " + ") + zero, kSum,
                        {scalar});
  }
  auto infix = [&](const BinaryOpFields* op, const char* symbol, source::Level level) {
    Value a = GenVector(op->a), b = GenVector(op->b);
    return source::Infix(a, symbol, b, level);
  };
  if (auto* op = e.as<AddObj>()) return infix(op, "+", kSum);
  if (auto* op = e.as<SubObj>()) return infix(op, "-", kSum);
  if (auto* op = e.as<MulObj>()) return infix(op, "*", kProduct);
  if (auto* op = e.as<DivObj>()) return infix(op, "/", kProduct);
  auto extremum = [&](const BinaryOpFields* op, bool is_max) {
    Value a = GenVector(op->a), b = GenVector(op->b);
    return Apply(module_.VectorExtremum(t, is_max), {a, b});
  };
  if (auto* op = e.as<MinObj>()) return extremum(op, false);
  if (auto* op = e.as<MaxObj>()) return extremum(op, true);
  Unsupported("a vector of the form " + std::string(String(e->GetTypeKey())), e->span);
}
void FunctionText::Emit(const BufferStoreObj* op) {
  if (!op->value.dtype().is_vector()) return FunctionWriter::Emit(op);
  Value value = GenVector(op->value);
  std::string place = VectorAt(op->buffer, op->indices[0]);
  Line(place + " = " + value.text + ";");
  ++effects_;
}

}  // namespace tvm::codegen::c
