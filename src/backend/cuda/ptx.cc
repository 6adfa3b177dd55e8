// SPDX-License-Identifier: Apache-2.0
// Instructions of PTX that operators name: asynchronous copies and matrix units.
#include "backend/cuda/ptx.h"

#include <cstdio>

#include "backend/cuda/ptx.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::codegen::cuda {

std::string KernelText::Offset(const PrimExpr& pointer, const PrimExpr& offset) {
  // The address of an element has no type that could be counted in.
  auto* call = pointer.as<CallObj>();
  auto* load =
      call && call->Is(tir::builtin::address_of()) ? call->args[0].as<BufferLoadObj>() : nullptr;
  if (load && load->indices.size() == 1) {
    PrimExpr index = load->indices[0] + cast(load->indices[0].dtype(), offset);
    BufferLoad moved(load->buffer, {index}, load->predicate, load->span);
    return Gen(Call(call->dtype, call->op, {moved}, call->span)).At(source::kUnary);
  }
  std::vector<Value> v = GenAll({pointer, offset});
  return "(" + v[0].At(source::kSum) + " + " + v[1].At(source::kProduct) + ")";
}
std::string KernelText::SharedAddress(const PrimExpr& pointer, const PrimExpr& offset) {
  if (pointer.as<VarObj>()) {
    // Shared memory has addresses of 32 bits.
    std::vector<Value> v = GenAll({pointer, offset});
    return "(uint32_t)__cvta_generic_to_shared(" + v[0].text + ") + (uint32_t)" +
           v[1].At(source::kUnary) + " * (uint32_t)sizeof(*" + v[0].At(source::kUnary) + ")";
  }
  return "(uint32_t)__cvta_generic_to_shared(" + Offset(pointer, offset) + ")";
}

Value KernelText::Instruction(const CallObj* op, const std::string& name) {
  auto constraint = [&](DataType t) {
    bool is_known = t.is_scalar() && (t.is_integer() || t.is_float()) &&
                    (t.bits() == 16 || t.bits() == 32 || t.bits() == 64);
    if (!is_known) Unsupported("an operand of type " + t.str() + " for " + name, op->span);
    if (t.is_float() && t.bits() > 16) return t.bits() == 32 ? "f" : "d";
    return t.bits() == 16 ? "h" : t.bits() == 32 ? "r" : "l";
  };
  std::string function = "ptx_" + source::Identifier(name), text = name + " %0", inputs, params;
  for (size_t i = 1; i < op->args.size(); ++i) {
    DataType t = op->args[i].dtype();
    std::string operand = "x" + std::to_string(i), comma = i > 1 ? ", " : "";
    text += ", %" + std::to_string(i);
    inputs += comma + "\"" + constraint(t) + "\"(" + operand + ")";
    params += comma + source::TypeName(t) + " " + operand;
    function += "_" + t.str();
  }
  std::string type = source::TypeName(op->dtype);
  std::string definition = "\nstatic __device__ __forceinline__ " + type + " " + function + "(" +
                           params + ") {\n  " + type + " y;\n  asm(\"" + text +
                           ";\" : \"=" + constraint(op->dtype) + "\"(y) : " + inputs +
                           ");\n  return y;\n}\n";
  if (file_.Reserve(function)) file_.AddTop(definition);
  return source::Apply(function, GenAll({op->args.begin() + 1, op->args.end()}));
}
/// (shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, a, a_index, b, b_index, c, c_index,
/// saturate[, operator]); of a sparse one (…, c_index, metadata, meta_index, selector, saturate):
/// half of the elements of the left matrix are there.
Value KernelText::Mma(const CallObj* op) {
  bool is_sparse = op->Is(tir::builtin::ptx_mma_sp());
  std::string shape = TextOf(op->args[0]);
  int m = 0, n = 0, k = 0;
  const MatrixType *a = FindType(TextOf(op->args[3])), *b = FindType(TextOf(op->args[4])),
                   *c = FindType(TextOf(op->args[5]));
  if (std::sscanf(shape.c_str(), "m%dn%dk%d", &m, &n, &k) != 3 || !a || !b || !c)
    Unsupported("ptx_mma of the shape '" + shape + "' and these types", op->span);
  // A warp has 32 threads, a register 32 bits; those of float64 hold one number.
  auto count = [](int rows, int columns, const MatrixType& t) {
    return rows * columns / 32 * t.bits / (t.bits == 64 ? 64 : 32);
  };
  auto holder = [](const MatrixType& t) {
    return t.bits == 64 ? "double" : std::string_view(t.ptx) == "f32" ? "float" : "uint32_t";
  };
  auto constraint = [](const MatrixType& t) {
    return std::string(t.bits == 64 ? "d" : std::string_view(t.ptx) == "f32" ? "f" : "r");
  };
  is_product_ = true;
  Registers registers;
  std::string pa = Offset(op->args[6], op->args[7]), pb = Offset(op->args[8], op->args[9]),
              pc = Offset(op->args[10], op->args[11]);
  std::string sum = registers.Add(pc, holder(*c), "+" + constraint(*c), count(m, n, *c));
  std::string left =
      registers.Add(pa, holder(*a), constraint(*a), count(m, is_sparse ? k / 2 : k, *a));
  std::string right = registers.Add(pb, holder(*b), constraint(*b), count(k, n, *b));
  bool saturate = !IsZero(op->args[is_sparse ? 15 : 12]);
  std::string bits = !is_sparse && op->args.size() > 13 ? "." + TextOf(op->args[13]) + ".popc" : "";
  std::string sparse;
  if (is_sparse) {
    auto selector = AsConstInt(op->args[14]);
    if (!selector) Unsupported("expected a constant sparse_selector in ptx_mma_sp", op->span);
    sparse = ", " +
             registers.AddInput("((uint32_t*)" + Offset(op->args[12], op->args[13]) + ")[0]", "r") +
             ", " + std::to_string(*selector);
  }
  return Statement(registers.Asm(std::string("mma") + (is_sparse ? ".sp" : "") + ".sync.aligned." +
                                     shape + "." + TextOf(op->args[1]) + "." + TextOf(op->args[2]) +
                                     (saturate ? ".satfinite" : "") + "." + c->ptx + "." + a->ptx +
                                     "." + b->ptx + "." + c->ptx + bits + " " + sum + ", " + left +
                                     ", " + right + ", " + sum + sparse + ";",
                                 /*on_memory=*/false));
}
/// (trans, num, type, local_ptr, local_offset, smem_ptr, smem_offset)
Value KernelText::LoadMatrix(const CallObj* op) {
  auto trans = AsConstInt(op->args[0]), num = AsConstInt(op->args[1]);
  std::string type = TextOf(op->args[2]);
  if (!trans || !num || (*num != 1 && *num != 2 && *num != 4) || type != ".b16")
    Unsupported("ptx_ldmatrix of other than 1, 2 or 4 matrices of .b16", op->span);
  Registers registers;
  std::string to =
      registers.Add(Offset(op->args[3], op->args[4]), "uint32_t", "=r", static_cast<int>(*num));
  std::string from = registers.AddInput(SharedAddress(op->args[5], op->args[6]), "r");
  return Statement(registers.Asm("ldmatrix.sync.aligned.m8n8.x" + std::to_string(*num) +
                                 (*trans ? ".trans" : "") + ".shared" + type + " " + to + ", [" +
                                 from + "];"));
}
/// (shared_ptr, shared_offset, global_ptr, global_offset, bytes[, predicate])
Value KernelText::CopyAsync(const CallObj* op) {
  auto bytes = AsConstInt(op->args[4]);
  if (!bytes || (*bytes != 4 && *bytes != 8 && *bytes != 16))
    Unsupported("ptx_cp_async of other than 4, 8 or 16 bytes", op->span);
  is_product_ = true;
  Registers registers;
  std::string to = registers.AddInput(SharedAddress(op->args[0], op->args[1]), "r");
  std::string from = registers.AddInput(Offset(op->args[2], op->args[3]), "l");
  std::string text = std::string("cp.async.") + (*bytes == 16 ? "cg" : "ca") + ".shared.global [" +
                     to + "], [" + from + "], " + std::to_string(*bytes);
  // With fewer bytes to read than to write, the rest is 0.
  if (op->args.size() > 5) {
    Value predicate = Gen(op->args[5]);
    text += ", " + registers.AddInput(
                       predicate.At(source::kEqual) + " ? " + std::to_string(*bytes) + " : 0", "r");
  }
  return Statement(registers.Asm(text + ";"));
}
/// (guard, address)
Value KernelText::CachedLoad(const CallObj* op) {
  DataType t = op->dtype;
  if (!t.is_scalar() || t.bits() != 32 || t.is_handle())
    Unsupported("ptx_ldg32 of " + t.str(), op->span);
  Value word = source::Apply(file_.Helper("cached_load"), GenAll({op->args[0], op->args[1]}));
  if (t.is_float()) return source::Apply("__uint_as_float", {word});
  return Convert(word, DataType::UInt(32), t);
}
// ---- fragments ----------------------------------------------------------------------------------
namespace {
/// The type of a fragment's elements as PTX spells it; null where there is none.
const char* PtxName(DataType t) {
  const MatrixType* known = FindType(t.str());
  return known ? known->ptx : nullptr;
}
}  // namespace

std::string KernelText::Fragment::Shape() const {
  return "m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
}
void KernelText::DeclareFragments(const AllocateObj* op, const std::string& scope) {
  Fragment& f = fragments_[op->buffer_var.get()];
  f.type = op->dtype.element();
  f.part = scope == "wmma.matrix_a" ? 'a' : scope == "wmma.matrix_b" ? 'b' : 'c';
  PostOrderVisit(op->body, [&](const ObjectRef& node) {  // what InferFragment found
    auto* attr = node.as<AttrStmtObj>();
    if (!attr || attr->node.as<VarObj>() != op->buffer_var.get()) return;
    int m = 0, n = 0, k = 0;
    if (attr->attr_key == "fragment_layout") f.layout = TextOf(attr->value).substr(0, 3);
    if (attr->attr_key == "fragment_shape" &&
        std::sscanf(TextOf(attr->value).c_str(), "%d, %d, %d", &m, &n, &k) == 3) {
      f.m = m;
      f.n = n;
      f.k = k;
    }
  });
  int64_t elements = (f.part == 'b' ? f.k : f.m) * (f.part == 'a' ? f.k : f.n);
  if (elements == 0 || !PtxName(f.type))
    Unsupported("fragments of " + f.type.str() + " whose size is not known", op->span);
  // Those of float16 that are multiplied are held twice.
  bool is_twice = f.part != 'c' && f.type.is_float16();
  f.registers = is_twice ? 8 : elements * f.type.bits() / 32 / 32;
  int64_t count = (op->ConstantSize() * op->dtype.lanes() + elements - 1) / elements;
  std::string name = Bind(op->buffer_var);
  Line(std::string(f.Holder()) + " " + name + "[" + std::to_string(count * f.registers) + "];");
  is_product_ = true;
  Gen(op->body);
}
const KernelText::Fragment& KernelText::FragmentOf(const PrimExpr& pointer,
                                                   const CallObj* op) const {
  auto found = fragments_.find(pointer.get());
  if (found == fragments_.end())
    Unsupported("expected memory of a scope such as wmma.matrix_a", op->span);
  return found->second;
}
std::string KernelText::FragmentAt(const PrimExpr& pointer, const PrimExpr& number,
                                   const CallObj* op) {
  int64_t registers = FragmentOf(pointer, op).registers;
  return Offset(pointer, number * MakeConst(number.dtype(), registers));
}
/// (fragment, m, n, k, number, pointer, stride, layout)
Value KernelText::LoadFragment(const CallObj* op) {
  const Fragment& f = FragmentOf(op->args[0], op);
  Registers registers;
  std::string to = registers.Add(FragmentAt(op->args[0], op->args[4], op), f.Holder(),
                                 std::string("=") + f.Constraint(), static_cast<int>(f.registers));
  std::vector<Value> v = GenAll({op->args[5], op->args[6]});
  std::string from = registers.AddInput(v[0].text, "l"),
              stride = registers.AddInput(v[1].text, "r");
  return Statement(registers.Asm(std::string("wmma.load.") + f.part + ".sync.aligned." +
                                 TextOf(op->args[7]).substr(0, 3) + "." + f.Shape() + "." +
                                 PtxName(f.type) + " " + to + ", [" + from + "], " + stride + ";"));
}
Value KernelText::StoreFragment(const CallObj* op) {
  const Fragment& f = FragmentOf(op->args[0], op);
  Registers registers;
  std::vector<Value> v = GenAll({op->args[5], op->args[6]});
  std::string to = registers.AddInput(v[0].text, "l");
  std::string from = registers.Add(FragmentAt(op->args[0], op->args[4], op), f.Holder(),
                                   f.Constraint(), static_cast<int>(f.registers));
  std::string stride = registers.AddInput(v[1].text, "r");
  return Statement(registers.Asm("wmma.store.d.sync.aligned." + TextOf(op->args[7]).substr(0, 3) +
                                 "." + f.Shape() + "." + PtxName(f.type) + " [" + to + "], " +
                                 from + ", " + stride + ";"));
}
/// (fragment, m, n, k, number, value)
Value KernelText::FillFragment(const CallObj* op) {
  const Fragment& f = FragmentOf(op->args[0], op);
  PrimExpr value = cast(f.type, op->args[5]);
  DataType word = DataType::UInt(f.type.bits());
  // Of small numbers a register has several.
  if (!f.IsFloat()) value = cast(DataType::UInt(32), reinterpret(word, value));
  for (int64_t bits = f.type.bits(); bits < 32; bits *= 2)
    value = bitwise_or(value, shift_left(value, MakeConst(DataType::UInt(32), bits)));
  std::string to = FragmentAt(op->args[0], op->args[4], op), text = Gen(value).text;
  for (int64_t i = 0; i < f.registers; ++i)
    Line(to + "[" + std::to_string(i) + "] = " + text + ";");
  ++effects_;
  return source::Nothing();
}
/// (d, number, a, number, b, number, c, number)
Value KernelText::MultiplyFragments(const CallObj* op) {
  const Fragment &d = FragmentOf(op->args[0], op), &a = FragmentOf(op->args[2], op),
                 &b = FragmentOf(op->args[4], op), &c = FragmentOf(op->args[6], op);
  Registers registers;
  auto add = [&](size_t i, const Fragment& f, const char* kind) {
    return registers.Add(FragmentAt(op->args[i], op->args[i + 1], op), f.Holder(),
                         std::string(kind) + f.Constraint(), static_cast<int>(f.registers));
  };
  std::string to = add(0, d, "="), left = add(2, a, ""), right = add(4, b, ""), sum = add(6, c, "");
  std::string types = std::string(".") + PtxName(d.type);
  if (!a.type.is_float16()) types += std::string(".") + PtxName(a.type) + "." + PtxName(b.type);
  return Statement(registers.Asm("wmma.mma.sync.aligned." + a.layout + "." + b.layout + "." +
                                     d.Shape() + types + "." + PtxName(c.type) + " " + to + ", " +
                                     left + ", " + right + ", " + sum + ";",
                                 /*on_memory=*/false));
}

/// (local_size, local_ptr, offset)
Value KernelText::FillMatrix(const CallObj* op) {
  auto size = AsConstInt(op->args[0]);
  if (!size) Unsupported("expected a constant size in mma_fill", op->span);
  std::string to = Offset(op->args[1], op->args[2]);
  for (int64_t i = 0; i < *size; ++i) Line(to + "[" + std::to_string(i) + "] = 0;");
  ++effects_;
  return source::Nothing();
}
/// (m, n, dst_ptr, src_ptr, src_offset, dst_stride): a thread of a warp has two elements next to
/// each other in each quarter of a tile of 16 x 16.
Value KernelText::StoreMatrix(const CallObj* op) {
  if (!IsConstInt(op->args[0], 16) || !IsConstInt(op->args[1], 16))
    Unsupported("mma_store of other than 16 x 16 elements", op->span);
  std::string type = source::MemoryName(op->dtype);
  Value to = source::CastTo(type + "*", Gen(op->args[2])), stride = Gen(op->args[5]);
  std::string from = Offset(op->args[3], op->args[4]);
  for (int i = 0; i < 8; ++i) {
    std::string row = "((int32_t)threadIdx.x % 32 / 4 + " + std::to_string(i / 2 % 2 * 8) + ")";
    std::string column = std::to_string(i / 4 * 8 + i % 2) + " + (int32_t)threadIdx.x % 4 * 2";
    Line(to.At(source::kPrimary) + "[" + row + " * " + stride.At(source::kUnary) + " + " + column +
         "] = " + from + "[" + std::to_string(i) + "];");
  }
  ++effects_;
  return source::Nothing();
}

}  // namespace tvm::codegen::cuda
