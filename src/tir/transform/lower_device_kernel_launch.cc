// SPDX-License-Identifier: Apache-2.0
// Turns calls from the host into device functions into launches.
#include "../text.h"
#include "../threads.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// What a launch needs to know: the extents of the thread indices and the dynamic shared memory, in
/// terms of the kernel's parameters.
struct Launch : Visitor<Launch, AttrStmtObj, AllocateObj> {
  PrimFunc kernel;
  String symbol;
  Target target;
  Array<String> names;
  Array<PrimExpr> values;
  bool is_launched = false;

  void Add(const String& name, const PrimExpr& value) {
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      if (name != "tir.use_dyn_shared_memory") return;  // an index is bound again inside
      TVM_FFI_THROW(ValueError) << "LowerDeviceKernelLaunch: expected one allocation of dynamic "
                                   "shared memory in "
                                << symbol << ", run MergeSharedMemoryAllocations first";
    }
    const Array<Var>& params = kernel->params;
    auto is_param = [&](const VarObj* v) {
      return std::any_of(params.begin(), params.end(), [&](const Var& p) { return p.get() == v; });
    };
    if (UsesVar(value, [&](const VarObj* v) { return !is_param(v); })) {
      TVM_FFI_THROW(ValueError) << "LowerDeviceKernelLaunch: expected the size of " << name
                                << " in kernel " << symbol << " to be known before its launch, got "
                                << TextOf(value);
    }
    names.push_back(name);
    values.push_back(value);
  }
  void Visit(const AttrStmtObj* op) {
    if (const IterVarObj* iv = LaunchedThread(op)) Add(iv->thread_tag, op->value);
    VisitChildren(op, *this);
  }
  void Visit(const AllocateObj* op) {
    if (ScopeOf(op->buffer_var.get()) == "shared.dyn") {
      PrimExpr bytes = MakeConst(DataType::Int(64), (op->dtype.bits() * op->dtype.lanes() + 7) / 8);
      for (const PrimExpr& e : op->extents) bytes = bytes * cast(DataType::Int(64), e);
      Add("tir.use_dyn_shared_memory", bytes);
    }
    VisitChildren(op, *this);
  }
};

struct CallLowerer : Mutator<CallLowerer, CallObj> {
  std::unordered_map<const GlobalVarObj*, Launch> launches;
  Target caller;

  ObjectRef Rewrite(const CallObj* op) {
    Call call = Below<Call>(op);
    auto* var = call->op.as<GlobalVarObj>();
    auto it = var ? launches.find(var) : launches.end();
    if (it == launches.end() || !caller.defined()) return call;
    Launch& launch = it->second;
    if (launch.target->str() == caller->str()) return call;
    Array<PrimExpr> args{StringImm(launch.symbol)};
    for (const PrimExpr& arg : call->args) args.push_back(arg);
    if (launch.target->DeviceType() == caller->DeviceType())  // another code generator's function
      return Call(call->dtype, builtin::call_extern(), args, call->span);
    launch.is_launched = true;
    ffi::Map<Var, PrimExpr> given;
    for (size_t i = 0; i < call->args.size(); ++i)
      given.Set(launch.kernel->params[i], call->args[i]);
    for (const PrimExpr& value : launch.values) args.push_back(Substitute(value, given));
    return Call(DataType::Int(32), builtin::tvm_call_packed(), args, call->span);
  }
};
/// The target of a function. What SplitHostDevice left of one for a device runs on its host.
Optional<Target> RunsOn(const BaseFunc& func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (!target.has_value() || func->HasNonzeroAttr("tir.is_global_func")) return target;
  return target.value().Host().value_or(target.value());
}
}  // namespace

IRModule LowerDeviceKernelLaunch(IRModule mod) {
  // Without functions for different targets there is nothing to launch.
  Optional<Target> first;
  bool differ = false;
  for (const auto& [var, base] : mod->functions) {
    auto target = RunsOn(base);
    if (!target.has_value()) continue;
    if (!first.has_value()) first = target;
    differ |=
        !target.value().same_as(first.value()) && target.value()->str() != first.value()->str();
  }
  if (!differ) return mod;
  CallLowerer lower;
  for (const auto& [var, base] : mod->functions) {
    auto* f = base.as<PrimFuncObj>();
    auto target = RunsOn(base);
    if (!f || !target.has_value()) continue;
    Launch launch;
    launch.kernel = ffi::GetRef<PrimFunc>(f);
    launch.symbol = base->GetAttr<String>(::tvm::attr::kGlobalSymbol).value_or(var->name_hint);
    launch.target = target.value();
    // Functions of the host have no launch; what they contain is looked at only for kernels.
    if (launch.target->DeviceType() != kDLCPU) launch(launch.kernel->body);
    lower.launches.emplace(var.get(), std::move(launch));
  }
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, base] : mod->functions) {
    auto* f = base.as<PrimFuncObj>();
    if (!f || !lower.launches.count(var.get())) continue;
    lower.caller = lower.launches.at(var.get()).target;
    PrimFunc changed = RewriteBody(ffi::GetRef<PrimFunc>(f), lower);
    if (!changed.same_as(base)) functions.Set(var, changed);
  }
  for (const auto& [var, base] : mod->functions) {
    auto it = lower.launches.find(var.get());
    if (it == lower.launches.end() || !it->second.is_launched) continue;
    PrimFunc kernel = Any(functions[var]).cast<PrimFunc>();
    kernel = WithAttr(kernel, ::tvm::attr::kGlobalSymbol, it->second.symbol);
    kernel = WithAttr(kernel, ::tvm::attr::kCallingConv,
                      static_cast<int64_t>(CallingConv::kDeviceKernelLaunch));
    kernel = WithAttr(kernel, "tir.kernel_launch_params", it->second.names);
    functions.Set(var, WithAttr(kernel, "tir.is_global_func", true));
  }
  if (functions.same_as(mod->functions)) return mod;
  return IRModule(functions, mod->attrs, mod->global_infos);
}
TVM_PASS(
    tir, LowerDeviceKernelLaunch,
    R"(Makes calls of device functions from the host launches: packed calls with the thread extents, and the bytes of dynamic shared memory, after the arguments. The kernel's attribute tir.kernel_launch_params names them. A function for the same kind of device that another code generator makes is called as an external one.

before:
    @T.prim_func
    def main(A: T.handle("float32"), n: T.int32):
        T.func_attr({"target": T.target("c")})
        Module.kernel(A, n)

    @T.prim_func
    def kernel(A_data: T.handle("float32"), n: T.int32):
        T.func_attr({"target": T.target("opencl"), "tir.is_global_func": True})
        A = T.decl_buffer((n,), data=A_data)
        i = T.launch_thread("threadIdx.x", n)
        A[i] = 1.0
after:
    @T.prim_func
    def main(A: T.handle("float32"), n: T.int32):
        T.func_attr({"target": T.target("c")})
        T.call_packed("kernel", A, n, n)

    @T.prim_func
    def kernel(A_data: T.handle("float32"), n: T.int32):
        T.func_attr({"calling_conv": 2, "target": T.target("opencl"), "tir.is_global_func": True, "tir.kernel_launch_params": ["threadIdx.x"]})
        A = T.decl_buffer((n,), data=A_data)
        i = T.launch_thread("threadIdx.x", n)
        A[i] = 1.0)")
}  // namespace tvm::tir
