// SPDX-License-Identifier: Apache-2.0
// Moves what runs on a device into functions of their own.
#include <algorithm>

#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// The buffers that a region uses and whose memory comes from outside, once each.
std::vector<Buffer> OuterBuffers(const Stmt& body, const Array<Var>& outer) {
  std::vector<Buffer> result;
  std::unordered_map<const Object*, bool> seen;
  PostOrderVisit(body, [&](const ObjectRef& node) {
    auto* decl = node.as<DeclBufferObj>();
    if (decl) seen[decl->buffer.get()] = true;
  });
  PostOrderVisit(body, [&](const ObjectRef& node) {
    auto* buffer = node.as<BufferObj>();
    if (!buffer || seen.count(buffer)) return;
    seen[buffer] = true;
    if (std::find_if(outer.begin(), outer.end(),
                     [&](const Var& v) { return v.same_as(buffer->data); }) != outer.end())
      result.push_back(ffi::GetRef<Buffer>(buffer));
  });
  return result;
}

struct RegionSplitter : Mutator<RegionSplitter, AttrStmtObj> {
  const PrimFunc& func;
  std::string name;  // of the function
  const Map<GlobalVar, BaseFunc>& taken;
  std::vector<std::pair<GlobalVar, PrimFunc>> kernels;

  RegionSplitter(const PrimFunc& func, std::string name, const Map<GlobalVar, BaseFunc>& taken)
      : func(func), name(std::move(name)), taken(taken) {}

  GlobalVar NewName() {
    auto is_taken = [&](const std::string& candidate) {
      auto same = [&](const GlobalVar& v) { return View(v->name_hint) == candidate; };
      for (const auto& [var, f] : taken) {
        if (same(var)) return true;
      }
      return std::any_of(kernels.begin(), kernels.end(), [&](auto& k) { return same(k.first); });
    };
    std::string result = name + "_kernel";
    for (int i = 1; is_taken(result); ++i) result = name + "_kernel_" + std::to_string(i);
    return GlobalVar(result);
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->attr_key != ::tvm::attr::kTarget) return MapChildren(op, *this);
    Target device = op->node.cast<Target>();
    Array<Var> outer = UndefinedVars(op->body);
    // Pointers first: that is how runtimes pass arguments.
    std::vector<Var> args(outer.begin(), outer.end());
    std::stable_sort(args.begin(), args.end(), [](const Var& a, const Var& b) {
      return a.dtype().is_handle() > b.dtype().is_handle();
    });
    Array<Var> params;
    ffi::Map<Var, PrimExpr> renamed;
    for (const Var& v : args) {
      params.push_back(v.CopyWithSuffix(""));
      renamed.Set(v, params.back());
    }
    Stmt body = op->body;
    std::vector<Buffer> buffers = OuterBuffers(body, outer);
    for (auto b = buffers.rbegin(); b != buffers.rend(); ++b) body = DeclBuffer(*b, body);
    PrimFunc kernel(params, Substitute(body, renamed));
    kernel = WithAttr(kernel, ::tvm::attr::kTarget, device);
    kernel = WithAttr(kernel, attr::kNoAlias, func->GetAttr<bool>(attr::kNoAlias, true));
    GlobalVar var = NewName();
    kernel = WithAttr(kernel, ::tvm::attr::kGlobalSymbol, var->name_hint);
    kernel = WithAttr(kernel, "tir.is_global_func", true);
    kernels.emplace_back(var, kernel);
    return Evaluate(Call(DataType::Void(), var, Array<PrimExpr>(args.begin(), args.end())));
  }
};
}  // namespace

IRModule SplitHostDevice(IRModule mod) {
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, base] : mod->Sorted()) {
    auto* f = base.as<PrimFuncObj>();
    if (!f) continue;
    PrimFunc func = ffi::GetRef<PrimFunc>(f);
    if (!HasAttr(func->body, ::tvm::attr::kTarget)) continue;
    auto symbol = func->GetAttr<String>(::tvm::attr::kGlobalSymbol);
    RegionSplitter split(func, symbol.value_or(var->name_hint), functions);
    PrimFunc host = RewriteBody(func, split);
    if (split.kernels.empty()) continue;
    functions.Set(var, host);
    for (const auto& [kernel_var, kernel] : split.kernels) functions.Set(kernel_var, kernel);
  }
  if (functions.same_as(mod->functions)) return mod;
  return IRModule(functions, mod->attrs, mod->global_infos);
}
TVM_PASS(
    tir, SplitHostDevice,
    R"(Moves regions marked with a target into functions of their own, which the host calls. MakePackedAPI makes what remains a function of the host.

before:
    @T.prim_func
    def main(A: T.Buffer((32,), "float32")):
        T.func_attr({"target": T.target("opencl", host="c")})
        with T.attr(T.target("opencl"), "target", 0):
            i = T.launch_thread("threadIdx.x", 32)
            A[i] = 1.0
after:
    @T.prim_func
    def main(A: T.Buffer((32,), "float32")):
        T.func_attr({"target": T.target("opencl", host="c")})
        Module.main_kernel(A.data)

    @T.prim_func
    def main_kernel(A_data: T.handle("float32")):
        T.func_attr({"target": T.target("opencl"), "tir.is_global_func": True, "tir.noalias": True})
        A = T.decl_buffer((32,), data=A_data)
        i = T.launch_thread("threadIdx.x", 32)
        A[i] = 1.0)")
}  // namespace tvm::tir
