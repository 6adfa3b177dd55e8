// SPDX-License-Identifier: Apache-2.0
// Files and kernels: thread indices, memory of threads and blocks, vectors.
#include "backend/cuda/codegen.h"

#include <algorithm>

#include "backend/cuda/rounded_math.h"
#include "tir/threads.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::cuda {
using source::Identifier, source::MemoryName, source::PointerType, source::TypeName;
using source::kUnary;
namespace {
/// What a file begins with: NVRTC has neither headers nor these names.
constexpr const char* kPreamble = R"(#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807ll - 1)
#define NULL nullptr
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
#else
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#endif
)";
constexpr const char* kReserved[] = {
    "threadIdx", "blockIdx", "blockDim",  "gridDim",    "warpSize",   "printf",     "uint2",
    "uint4",     "half",     "atomicAdd", "__shared__", "__global__", "__device__", "assert"};

/// Threads of a block, where their number is known.
struct BlockSize : Visitor<BlockSize, AttrStmtObj> {
  int64_t extents[3] = {1, 1, 1};
  bool is_known = true;
  void Visit(const AttrStmtObj* op) {
    if (const IterVarObj* iv = LaunchedThread(op)) {
      ThreadTag tag(iv->thread_tag);
      auto extent = AsConstInt(op->value);
      if (tag.kind == ThreadTag::kThread) {
        is_known &= extent.has_value();
        extents[tag.dim] = extent.value_or(1);
      }
    }
    VisitChildren(op, *this);
  }
};
}  // namespace

// ---- the file -----------------------------------------------------------------------------------
KernelFile::KernelFile(const FunctionList& kernels)
    : FileWriter("CUDA", DeviceHelpers(), "static __device__ __forceinline__") {
  for (const char* name : kReserved) Reserve(name);
  for (const auto& [var, info] : kernels) {
    ReserveExterns(info.func->body);
    if (info.symbol != Identifier(info.symbol) || !Reserve(info.symbol)) {
      TVM_FFI_THROW(ValueError) << "CUDA code generation: expected kernels with names of their own "
                                   "that are identifiers, got '"
                                << info.symbol << "'";
    }
  }
  std::string definitions;
  for (const auto& [var, info] : kernels) {
    FunctionInfo own = info;
    own.func = WithRoundedMath(source::Scalarize(info.func, *this, {.moves = true}));
    std::string definition = KernelText(*this, own).Define();
    definitions += std::exchange(body_, {}) + definition;
  }
  body_ = definitions;
}
std::string KernelFile::Source() const {
  return kPreamble + (helper_text_.empty() ? "" : "\n" + helper_text_) + body_;
}

// ---- the kernel ---------------------------------------------------------------------------------
std::string KernelText::Define() {
  bool noalias = info_.func->HasNonzeroAttr(tir::attr::kNoAlias);
  std::vector<std::string> params, names;
  for (const Var& var : info_.func->params) {
    if (var.dtype().is_vector()) Unsupported("a vector as a parameter of a kernel");
    bool is_size = shape_vars_.count(var.get()) && var.dtype().is_index();
    std::string name = Bind(var, is_size, nonnegative_vars_.count(var.get()));
    bool is_map = var->type_annotation.as<TensorMapTypeObj>();
    std::string type =
        is_map ? "const __grid_constant__ " + file_.Helper("tensor_map") : PointerType(var);
    names.push_back(name);
    params.push_back(
        type + (noalias && var.dtype().is_handle() && !is_map ? " __restrict__ " : " ") + name);
  }
  BlockSize block;
  block(info_.func->body);
  int64_t threads = block.extents[0] * block.extents[1] * block.extents[2];
  Gen(info_.func->body);
  std::string bounds = block.is_known ? "__launch_bounds__(" + std::to_string(threads) +
                                            (has_roles_ ? ", 1) " : ") ")
                                      : std::string();
  std::string kernel = "\nextern \"C\" __global__ void " + bounds + info_.symbol + "(" +
                       source::Joined(params) + ") {\n";
  if (aligned_.empty()) return kernel + code_ + "}\n";
  std::string bits, flag = "const bool " + aligned_name_;
  for (const std::string& pointer : aligned_)
    bits += (bits.empty() ? "(uint64_t)" : " | (uint64_t)") + pointer;
  std::string test = "((" + bits + ") & " + std::to_string(source::kMoveBytes - 1) + ") == 0";
  if (is_product_) return kernel + "  " + flag + " = " + test + ";\n" + code_ + "}\n";
  // Asked once, it costs nothing: the kernel is there twice.
  std::string body = file_.UniqueGlobal(info_.symbol + "_body"), args = source::Joined(names);
  params.insert(params.begin(), flag);
  return "\nstatic __device__ __forceinline__ void " + body + "(" + source::Joined(params) +
         ") {\n" + code_ + "}" + kernel + "  if (" + test + ")\n    " + body + "(true, " + args +
         ");\n  else\n    " + body + "(false, " + args + ");\n}\n";
}
void KernelText::Emit(const AttrStmtObj* op) {
  if (const IterVarObj* iv = LaunchedThread(op)) {
    ThreadTag tag(iv->thread_tag);
    if (!tag.IsLaunched()) Unsupported("the thread index " + std::string(iv->thread_tag), op->span);
    bool in_cluster = tag.kind == ThreadTag::kCluster;
    Value index;
    index.text = "(" + TypeName(iv->var.dtype()) + ")" +
                 (in_cluster ? file_.Helper(std::string("cluster_index_") + "xyz"[tag.dim]) + "()"
                             : std::string(iv->thread_tag));
    index.level = kUnary;
    index.index = index.nonnegative = true;
    vars_[iv->var.get()] = index;
  } else if (View(op->attr_key) == "pragma_import_c") {
    auto* text = op->value.as<StringImmObj>();
    if (!text) Unsupported("expected a text as value of pragma_import_c", op->span);
    file_.AddTop("\n" + std::string(text->value) + "\n");
  }
  FunctionWriter::Emit(op);
}
void KernelText::Emit(const LetStmtObj* op) {
  if (op->var.dtype().is_index()) analyzer_.Bind(op->var, op->value);
  FunctionWriter::Emit(op);
}
void KernelText::BeforeLoop(const ForObj* op) {
  if (op->kind == ForKind::kUnrolled) Line("#pragma unroll");
}
void KernelText::Emit(const AssertStmtObj* op) {
  auto* text = op->message.as<StringImmObj>();
  if (!text) Unsupported("expected a text as the message of an assertion", op->span);
  Value ok = Gen(op->condition);
  Line("if (!" + ok.At(kUnary) + ") {");
  ++indent_;
  Line("printf(\"%s\\n\", " + source::Quoted(View(text->value)) + ");");
  Line("__trap();");
  --indent_;
  Line("}");
  Gen(op->body);
}

// ---- memory -------------------------------------------------------------------------------------
void KernelText::Emit(const AllocateObj* op) {
  std::string scope(ScopeOf(op->buffer_var.get()));
  if (scope.starts_with("wmma.")) return DeclareFragments(op, scope);
  DataType t = op->dtype.element();
  std::string type = MemoryName(t), name = Bind(op->buffer_var);
  element_[op->buffer_var.get()] = t;
  int64_t count = op->ConstantSize() * op->dtype.lanes();
  if (scope == "shared.dyn") {
    // The same for all kernels; the launch says how large it is.
    Line("extern __shared__ __align__(1024) unsigned char tvm_dynamic_shared[];");
    Line(type + "* " + name + " = (" + type + "*)tvm_dynamic_shared;");
    return Gen(op->body);
  }
  bool is_shared = scope == "shared";
  if (!is_shared && scope != "local" && scope != "global" && scope != "warp")
    Unsupported("memory of the scope " + scope, op->span);
  if (count <= 0) {
    Unsupported("expected memory of threads and blocks to have a size that is known, got that of " +
                    std::string(op->buffer_var->name_hint),
                op->span);
  }
  if (source::IsPacked(t)) count = (count * t.bits() + 7) / 8;
  Line(std::string(is_shared ? "__shared__ __align__(128) " : "__align__(16) ") + type + " " +
       name + "[" + std::to_string(count) + "];");
  Gen(op->body);
}
std::string KernelText::ConstantArray(const std::string& type, const std::string& name,
                                      const std::string& list) const {
  return "\nstatic __device__ const __align__(128) " + type + " " + name + "[] = {" + list +
         "\n};\n";
}
std::string KernelText::AddressOfFirst(const Buffer& buffer, const PrimExpr& index) {
  return "&" + ElementOf(buffer, Gen(index.as<RampObj>()->base)).lvalue;
}
bool KernelText::MayBeUnaligned(const Buffer& buffer) {
  const Array<Var>& params = info_.func->params;
  bool is_param = std::any_of(params.begin(), params.end(),
                              [&](const Var& p) { return p.same_as(buffer->data); });
  if (!is_param) return false;
  if (aligned_name_.empty()) aligned_name_ = Name("aligned");
  aligned_.insert(vars_.at(buffer->data.get()).text);
  return true;
}
void KernelText::Emit(const BufferStoreObj* op) {
  if (!op->value.dtype().is_vector()) return FunctionWriter::Emit(op);
  // What Scalarize leaves: a vector that is moved as a whole.
  auto* load = op->value.as<BufferLoadObj>();
  TVM_FFI_ICHECK(load) << "expected a moved vector";
  int64_t element = op->buffer->dtype.bits() / 8, lanes = op->value.dtype().lanes();
  int64_t bytes = std::min(source::MoveBytes(analyzer_, op->buffer, op->indices),
                           source::MoveBytes(analyzer_, load->buffer, load->indices));
  std::string to = AddressOfFirst(op->buffer, op->indices[0]);
  std::string from = AddressOfFirst(load->buffer, load->indices[0]);
  auto move = [&](int64_t piece) {
    std::string type = piece == 16  ? "uint4"
                       : piece == 8 ? "uint2"
                                    : "uint" + std::to_string(8 * piece) + "_t";
    for (int64_t i = 0; i < lanes * element / piece; ++i) {
      std::string at = "[" + std::to_string(i) + "]";
      Line("((" + type + "*)" + to + ")" + at + " = ((const " + type + "*)" + from + ")" + at +
           ";");
    }
  };
  // Tensors of other libraries may begin in the middle of a vector.
  bool to_param = MayBeUnaligned(op->buffer), from_param = MayBeUnaligned(load->buffer);
  bool is_asked = to_param || from_param;
  if (is_asked) {
    Line("if (" + aligned_name_ + ") {");
    ++indent_;
  }
  move(bytes);
  if (is_asked) {
    --indent_;
    Line("} else {");
    ++indent_;
    move(element);
    --indent_;
    Line("}");
  }
  ++effects_;
}

}  // namespace tvm::codegen::cuda
