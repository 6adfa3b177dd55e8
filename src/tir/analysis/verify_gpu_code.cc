// SPDX-License-Identifier: Apache-2.0
// Whether kernels keep within the limits of a GPU.
#include <map>

#include "../threads.h"
#include "tvm/expr/op.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
constexpr const char* kLimits[] = {"max_local_memory_per_block",
                                   "max_shared_memory_per_block",
                                   "max_threads_per_block",
                                   "max_thread_x",
                                   "max_thread_y",
                                   "max_thread_z",
                                   "max_vthread",
                                   "max_vector_bytes",
                                   "max_kernels"};

/// Sums up what each kernel asks for and compares it with the limits.
struct GpuChecker : Visitor<GpuChecker, AttrStmtObj, ForObj, AllocateObj, BlockObj, BufferLoadObj,
                            BufferStoreObj> {
  std::map<std::string, int64_t> limits;
  std::vector<std::string> complaints;
  // Of the kernel that is visited.
  std::map<std::string, int64_t> extents;
  int64_t local = 0, shared = 0, kernels = 0;
  int depth = 0;

  void Check(const char* limit, int64_t got, const std::string& what) {
    auto it = limits.find(limit);
    if (it == limits.end() || got <= it->second) return;
    complaints.push_back("expected at most " + std::to_string(it->second) + " " + what + " (" +
                         limit + "), got " + std::to_string(got));
  }
  template <class F>
  void Launch(const String& tag, const PrimExpr& size, F&& body) {
    if (depth == 0) {
      extents.clear();
      local = shared = 0;
      ++kernels;
    }
    int64_t extent = AsConstInt(size).value_or(1);  // unknown before it runs
    auto [it, is_new] = extents.emplace(std::string(tag), extent);
    if (!is_new && it->second != extent) {
      complaints.push_back("expected one extent of " + std::string(tag) + " in a kernel, got " +
                           std::to_string(it->second) + " and " + std::to_string(extent));
    }
    ++depth;
    body();
    if (--depth > 0) return;
    int64_t threads = 1, virtual_threads = 1;
    for (const auto& [name, n] : extents) {
      ThreadTag t{String(name)};
      if (t.kind == ThreadTag::kThread) threads *= n;
      if (t.kind == ThreadTag::kVirtual) virtual_threads *= n;
      if (t.kind == ThreadTag::kThread) Check(kLimits[3 + t.dim], n, "threads of " + name);
    }
    Check("max_threads_per_block", threads, "threads in a block");
    Check("max_vthread", virtual_threads, "virtual threads");
    Check("max_local_memory_per_block", local, "bytes of local memory");
    Check("max_shared_memory_per_block", shared, "bytes of shared memory in a block");
  }
  void Visit(const AttrStmtObj* op) {
    auto iv = op->node.as<IterVar>();
    bool launches =
        iv && (op->attr_key == attr::kThreadExtent || op->attr_key == attr::kVirtualThread);
    if (!launches) return VisitChildren(op, *this);
    Launch((*iv)->thread_tag, op->value, [&] { (*this)(op->body); });
  }
  void Visit(const ForObj* op) {
    if (op->kind == ForKind::kVectorized) Vectors(op);
    if (op->kind != ForKind::kThreadBinding) return VisitChildren(op, *this);
    Launch(op->thread_binding.value()->thread_tag, op->extent, [&] { (*this)(op->body); });
  }
  /// A loop that becomes vectors of its extent.
  void Vectors(const ForObj* op) {
    struct Widest : Visitor<Widest, BufferLoadObj, BufferStoreObj> {
      int64_t bytes = 0;
      void Add(const Buffer& b) { bytes = std::max<int64_t>(bytes, b->dtype.bytes()); }
      void Visit(const BufferLoadObj* op) { Add(op->buffer), VisitChildren(op, *this); }
      void Visit(const BufferStoreObj* op) { Add(op->buffer), VisitChildren(op, *this); }
    } widest;
    widest(op->body);
    Check("max_vector_bytes", AsConstInt(op->extent).value_or(0) * widest.bytes,
          "bytes in a vector");
  }
  void Allocated(const VarObj* data, DataType t, const Array<PrimExpr>& shape) {
    int64_t bytes = int64_t{t.bytes()} * t.lanes();
    for (const PrimExpr& e : shape) bytes *= AsConstInt(e).value_or(0);
    String scope = ScopeOf(data);
    if (scope == "local") local += bytes;
    if (IsSharedScope(scope)) shared += bytes;
    if (t.lanes() > 1)
      Check("max_vector_bytes", int64_t{t.bytes()} * t.lanes(), "bytes in a vector");
  }
  void Visit(const AllocateObj* op) {
    Allocated(op->buffer_var.get(), op->dtype, op->extents);
    VisitChildren(op, *this);
  }
  void Visit(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) Allocated(b->data.get(), b->dtype, b->shape);
    VisitChildren(op, *this);
  }
  void Access(const Buffer& buffer, const Array<PrimExpr>& indices) {
    int64_t lanes = buffer->dtype.lanes();
    if (!indices.empty() && !indices.back().dtype().is_scalable())
      lanes *= indices.back().dtype().lanes();
    if (lanes > 1) Check("max_vector_bytes", lanes * buffer->dtype.bytes(), "bytes in a vector");
  }
  void Visit(const BufferLoadObj* op) {
    Access(op->buffer, op->indices);
    VisitChildren(op, *this);
  }
  void Visit(const BufferStoreObj* op) {
    Access(op->buffer, op->indices);
    VisitChildren(op, *this);
  }
};

/// What kernels of the function ask for beyond the limits given by name.
std::vector<std::string> FindGPUExcess(const PrimFunc& func, const Map<String, PrimExpr>& limits) {
  GpuChecker check;
  for (const auto& [key, value] : limits) {
    std::vector<std::string_view> names(std::begin(kLimits), std::end(kLimits));
    if (std::find(names.begin(), names.end(), View(key)) == names.end()) {
      TVM_FFI_THROW(ValueError) << "verify_gpu_code: expected the name of a limit, got '" << key
                                << "'" << DidYouMean(View(key), names);
    }
    auto limit = AsConstInt(value);
    if (!limit) {
      TVM_FFI_THROW(TypeError) << "verify_gpu_code: expected a constant for " << key;
    }
    check.limits[std::string(key)] = *limit;
  }
  check(func->body);
  check.Check("max_kernels", check.kernels, "kernels");
  return check.complaints;
}
IRModule VerifyGPUCode(IRModule mod, Map<String, PrimExpr> constraints) {
  std::string all;
  for (const auto& [var, func] : mod->Sorted()) {
    auto* f = func.as<PrimFuncObj>();
    if (!f) continue;
    for (const std::string& text : FindGPUExcess(ffi::GetRef<PrimFunc>(f), constraints))
      all += "\n  " + std::string(var->name_hint) + ": " + text;
  }
  if (!all.empty())
    TVM_FFI_THROW(RuntimeError) << "VerifyGPUCode: expected kernels within the limits, got" << all;
  return mod;
}
TVM_REGISTER() {
  Def(
      "tir.analysis.verify_gpu_code",
      [](PrimFunc func, Map<String, PrimExpr> constraints) {
        return OnDeepStack([&] { return FindGPUExcess(func, constraints).empty(); });
      },
      "Whether the kernels of a function keep within limits, by name: max_local_memory_per_block, "
      "max_shared_memory_per_block (bytes), max_threads_per_block, max_thread_x, max_thread_y, "
      "max_thread_z, max_vthread, max_vector_bytes, max_kernels.",
      Arg("func"), Arg("constraints"));
}
TVM_PASS(
    tir, VerifyGPUCode,
    R"(Raises RuntimeError, with a list, unless kernels keep within limits: see analysis.verify_gpu_code.

options: constraints={"max_threads_per_block": 256}
before(A: T.Buffer((32,), "float32")):
    i = T.launch_thread("threadIdx.x", 32)
    A[i] = 1.0
after:
    i = T.launch_thread("threadIdx.x", 32)
    A[i] = 1.0)",
    Arg("constraints"))
}  // namespace
}  // namespace tvm::tir
