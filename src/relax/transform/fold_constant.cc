// SPDX-License-Identifier: Apache-2.0
// What constants alone determine is computed at compile time: all kernels of a module are built at
// once, then run in order.
#include "relax/transform/fold_constant.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "ir/warn.h"
#include "relax/analysis/uncalled.h"
#include "runtime/host_tensor.h"
#include "tir/any_stmt.h"
#include "tir/shared_kernels.h"
#include "tir/strided_kernel.h"
#include "tvm/expr/op.h"
#include "tvm/ir/backend.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"
#include "tvm/runtime/module.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/unoptimized.h"

namespace tvm::relax {
namespace {
using runtime::Tensor;

constexpr int kView = -1;
/// One kernel to run, or a reshape: then the result is a view of the operand.
struct FoldStep {
  String name;                // of the function that the program calls
  int kernel = kView;         // which of the kernels
  std::vector<Any> operands;  // tensors, numbers, or an undefined one: the result of `producers`
  std::vector<int> producers;
  TensorStructInfo out{nullptr};
  Tensor result;          // undefined: not computed
  bool is_final = false;  // what is not folded uses it
};

/// The variables that bindings which stay use.
struct RemainingUses : ExprVisitor {
  std::function<bool(const Var&)> is_folded;
  std::unordered_set<const Object*> used;  // ids
  void VisitBinding(const Binding& binding) final {
    if (!is_folded(binding->var)) ExprVisitor::VisitBinding(binding);
  }
  void VisitExpr_(const VarObj* op) final { used.insert(op->vid.get()); }
};

class ConstantFolder {
 public:
  explicit ConstantFolder(const IRModule& mod)
      : mod_(mod), scratch_(BlockBuilder::Create()), context_(transform::PassContext::Current()) {
    legalizes_ = context_->GetConfig<bool>("relax.transform.apply_legalize_ops");
    seconds_ = context_->GetConfig<double>("relax.FoldConstant.max_seconds");
    bytes_ = static_cast<double>(context_->GetConfig<int64_t>("relax.FoldConstant.max_bytes"));
  }
  IRModule Run() {
    for (const auto& [var, func] : mod_->Sorted()) {
      if (!func.as<FunctionObj>()) continue;
      PostOrderVisit(Any(func).cast<Expr>(), [&](const Expr& e) {
        auto* constant = e.as<ConstantObj>();
        if (constant && counted_.insert(constant).second) bytes_ += 2.0 * SizeOf(constant->data);
      });
    }
    for (const auto& [var, func] : mod_->Sorted()) {
      if (func.as<FunctionObj>())
        VisitBindings(Any(func).cast<Expr>(), [&](const Binding& b) { Consider(b); });
    }
    if (known_.empty()) return mod_;
    RemainingUses uses;
    uses.is_folded = [&](const Var& var) { return known_.count(var->vid.get()) > 0; };
    for (const auto& [var, func] : mod_->functions) {
      if (func.as<FunctionObj>()) uses.VisitExpr(Any(func).cast<Expr>());
    }
    for (const Object* id : uses.used) {
      auto it = known_.find(id);
      if (it != known_.end() && it->second.step >= 0) steps_[it->second.step].is_final = true;
    }
    Compute();
    IRModule folded = Replaced();
    return ended_early_ ? WithAttr(folded, kFoldingEndedEarly, true) : folded;
  }

 private:
  static double SizeOf(const Tensor& data) {
    return static_cast<double>(runtime::DataSize(data.shape(), data.dtype()));
  }

  // ---- what can be folded -----------------------------------------------------------------------
  /// A constant, or the number of the step that computes one.
  struct Known {
    Optional<Constant> constant;
    int step = -1;
  };
  void Consider(const Binding& binding) {
    auto* bind = binding.as<VarBindingObj>();
    if (auto constant = bind ? bind->value.as<Constant>() : std::nullopt) {
      if (AreKnown({*constant})) known_[binding->var->vid.get()] = {*constant, -1};
      return;
    }
    auto* call = bind ? bind->value.as<CallObj>() : nullptr;
    if (!call || !AreKnown(call->args)) return;
    static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
    if (call->Is(call_tir)) {
      auto callee = Any(call->args[0]).cast<GlobalVar>();
      auto func = mod_->Lookup(callee).as<tir::PrimFunc>();
      if (func) AddStep(binding->var, call, *func);
      called_.insert(callee->name_hint);
    } else if (legalizes_ && call->op.as<OpObj>() && !IsImpureCall(call)) {
      Legalize(binding->var, ffi::GetRef<Call>(call));
    }
  }
  bool AreKnown(const Array<Expr>& args) const {
    return std::all_of(args.begin(), args.end(), [&](const Expr& arg) {
      if (auto* var = arg.as<VarObj>()) return known_.count(var->vid.get()) > 0;
      if (auto* tuple = arg.as<TupleObj>()) return AreKnown(tuple->fields);
      if (auto* shape = arg.as<ShapeExprObj>())
        return std::all_of(shape->values.begin(), shape->values.end(),
                           [](const PrimExpr& e) { return e.as<IntImmObj>() != nullptr; });
      if (auto* prim = arg.as<PrimValueObj>())
        return prim->value.as<IntImmObj>() || prim->value.as<FloatImmObj>();
      if (auto* constant = arg.as<ConstantObj>())
        return constant->data.device().device_type == kDLCPU;
      return arg.as<GlobalVarObj>() || arg.as<StringImmObj>() || arg.as<DataTypeImmObj>();
    });
  }
  /// An operator becomes the steps of its lowering.
  void Legalize(const Var& var, const Call& call) {
    const auto* lower = FLegalize.Find(call->op.as<OpObj>());
    if (!lower || TAllocator.Get(call->op, false)) return;
    size_t depth = scratch_->Depth();
    scratch_->BeginBindingBlock();
    try {
      Expr result = scratch_->Normalize((*lower)(scratch_, call));
      BindingBlock block = scratch_->EndBlock();
      if (result.same_as(call)) return;
      IRModule kernels = scratch_->GetModule();
      for (const Binding& binding : block->bindings)
        AddLowered(binding->var, ValueOf(binding), kernels);
      AddLowered(var, result, kernels);
    } catch (const ffi::Error&) {
      scratch_->UnwindTo(depth);  // what is wrong with the call is said where it is lowered
    }
  }
  void AddLowered(const Var& var, const Expr& value, const IRModule& kernels) {
    static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
    if (auto constant = value.as<Constant>()) {
      known_[var->vid.get()] = {*constant, -1};
    } else if (auto* call = value.as<CallObj>();
               call && call->Is(call_tir) && AreKnown(call->args)) {
      auto func = kernels->Lookup(Any(call->args[0]).cast<GlobalVar>()).as<tir::PrimFunc>();
      if (func) AddStep(var, call, *func);
    }
  }
  void AddStep(const Var& var, const CallObj* call, tir::PrimFunc func) {
    auto* out = call->sinfo_args[0].as<TensorStructInfoObj>();
    auto dims = out ? out->Dims() : Optional<Array<PrimExpr>>();
    if (!dims || !IsForHost(func, out)) return;
    double bytes = out->dtype.bits() / 8.0;
    for (const PrimExpr& dim : dims.value()) {
      auto* size = dim.as<IntImmObj>();
      if (!size) return;
      bytes *= static_cast<double>(size->value);
    }
    bool is_view = IsView(func);
    if (is_view) bytes = 0;
    if (bytes > bytes_ || (!is_view && !IsQuick(func))) return;
    FoldStep step;
    step.name = Any(call->args[0]).cast<GlobalVar>()->name_hint;
    step.out = ffi::GetRef<TensorStructInfo>(out);
    if (auto* args = call->args[1].as<TupleObj>()) {
      for (const Expr& arg : args->fields) AddOperand(arg, &step);
    }
    if (step.operands.size() != func->params.size() - 1 - (call->args.size() > 2 ? Vars(call) : 0))
      return;
    step.operands.push_back(nullptr);
    step.producers.push_back(static_cast<int>(steps_.size()));  // its own result
    if (call->args.size() > 2) {
      for (const PrimExpr& e : call->args[2].as<ShapeExprObj>()->values) {
        step.operands.push_back(e.as<IntImmObj>()->value);
        step.producers.push_back(-1);
      }
    }
    bytes_ -= bytes;
    if (!is_view) step.kernel = IndexOf(func);
    known_[var->vid.get()] = {{}, static_cast<int>(steps_.size())};
    steps_.push_back(std::move(step));
  }
  static size_t Vars(const CallObj* call) {
    auto* shape = call->args[2].as<ShapeExprObj>();
    return shape ? shape->values.size() : SIZE_MAX;
  }
  void AddOperand(const Expr& arg, FoldStep* step) {
    Any value;
    int producer = -1;
    if (auto* var = arg.as<VarObj>()) {
      const Known& known = known_.at(var->vid.get());
      if (known.constant) value = known.constant.value()->data;
      producer = known.step;
    } else if (auto* constant = arg.as<ConstantObj>()) {
      value = constant->data;
    } else if (auto* prim = arg.as<PrimValueObj>()) {
      auto* number = prim->value.as<IntImmObj>();
      if (number) value = number->value;
      if (!number) value = prim->value.as<FloatImmObj>()->value;
    }
    step->operands.push_back(value);
    step->producers.push_back(producer);
  }
  static bool IsForHost(const tir::PrimFunc& func, const TensorStructInfoObj* out) {
    auto is_cpu = [](const Target& target) { return target->DeviceType() == kDLCPU; };
    auto target = func->GetAttr<Target>(tvm::attr::kTarget);
    return (!target || is_cpu(target.value())) &&
           (!out->vdevice || is_cpu(out->vdevice.value()->target));
  }
  bool IsView(const tir::PrimFunc& func) {
    auto [it, is_new] = views_.try_emplace(func.get(), func, false);
    if (is_new) it->second.second = HasReshapePattern(func);
    return it->second.second;
  }
  /// Whether what is left of the time is enough.
  bool IsQuick(const tir::PrimFunc& func) {
    constexpr double kOperationsPerSecond = 1e9;
    try {
      double seconds = tir::EstimateTIRFlops(func->body) / kOperationsPerSecond;
      if (seconds > seconds_) return false;
      seconds_ -= seconds;
      return true;
    } catch (const ffi::Error&) {
      return false;  // loops of unknown length
    }
  }
  /// How many numbers a kernel reads and writes.
  static double ElementsOf(const tir::PrimFunc& func) {
    double elements = 0;
    for (const auto& [param, buffer] : func->buffer_map) {
      double size = 1;
      for (const PrimExpr& dim : buffer->shape)
        size *= static_cast<double>(AsConstInt(dim).value_or(int64_t{1} << 32));
      elements += size;
    }
    return elements;
  }
  static bool Reduces(const tir::PrimFunc& func) {
    return tir::AnyStmt<tir::BlockObj>(
        func->body, [](const tir::BlockObj* block) { return block->init.has_value(); });
  }
  int IndexOf(const tir::PrimFunc& func) {
    auto [it, is_new] = index_.try_emplace(func.get(), static_cast<int>(kernels_.size()));
    if (is_new) kernels_.push_back(func);
    return it->second;
  }

  // ---- computing --------------------------------------------------------------------------------
  static constexpr double kFewElements = 1 << 23, kFewestElements = 1 << 20;
  /// The code of each kernel. Compiling takes longer than running: weights of many shapes are
  /// scaled and moved by a few kernels, and most of them need no compiler.
  std::vector<ffi::Function> Compile() const {
    std::vector<ffi::Function> code;
    std::vector<tir::PrimFunc> others;
    std::vector<int> position(kernels_.size(), -1);  // among the others
    for (size_t i = 0; i < kernels_.size(); ++i) {
      auto strided = tir::StridedKernel(kernels_[i]);
      code.push_back(strided.value_or(ffi::Function()));
      if (strided) continue;
      position[i] = static_cast<int>(others.size());
      others.push_back(kernels_[i]);
    }
    if (others.empty()) return code;
    tir::SharedKernels shared = tir::ShareKernels(others);
    auto name = [](size_t i) { return String("fold" + std::to_string(i)); };
    std::vector<double> elements(shared.kernels.size());  // in all calls
    for (const FoldStep& step : steps_) {
      if (step.kernel != kView && position[step.kernel] >= 0)
        elements[shared.of[position[step.kernel]]] += ElementsOf(kernels_[step.kernel]);
    }
    Map<GlobalVar, BaseFunc> functions;
    for (size_t i = 0; i < shared.kernels.size(); ++i) {
      tir::PrimFunc kernel = WithoutAttr(shared.kernels[i], tvm::attr::kTarget);
      // A schedule takes longer to compile than it saves, and so do LLVM's passes; but the order of
      // a reduction is part of its result.
      if (!Reduces(kernel)) {
        if (elements[i] < kFewElements) kernel = WithAttr(kernel, tir::attr::kIsScheduled, true);
        if (elements[i] < kFewestElements) kernel = WithAttr(kernel, tir::attr::kUnoptimized, true);
      }
      functions.Set(GlobalVar(name(i)), WithAttr(kernel, tvm::attr::kGlobalSymbol, name(i)));
    }
    static const ffi::Function build = ffi::Function::GetGlobalRequired("driver.Build");
    auto module = build(IRModule(functions), DefaultHost(), nullptr).cast<ffi::Module>();
    for (size_t i = 0; i < code.size(); ++i) {
      if (position[i] >= 0) code[i] = runtime::GetFunction(module, name(shared.of[position[i]]));
    }
    return code;
  }
  void Compute() {
    if (steps_.empty()) return;
    std::vector<ffi::Function> code = Compile();
    using Clock = std::chrono::steady_clock;
    double budget = context_->GetConfig<double>("relax.FoldConstant.max_seconds");
    auto end = Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(budget));
    std::vector<size_t> last_use(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (int producer : steps_[i].producers) {
        if (producer >= 0) last_use[producer] = i;
      }
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      if ((ended_early_ = Clock::now() > end)) return;
      RunStep(code, &steps_[i]);
      // What lies between constants and results does not pile up.
      for (int producer : steps_[i].producers) {
        if (producer >= 0 && last_use[producer] == i && !steps_[producer].is_final)
          steps_[producer].result = Tensor();
      }
    }
  }
  void RunStep(const std::vector<ffi::Function>& code, FoldStep* step) {
    std::vector<int64_t> shape;
    for (const PrimExpr& dim : step->out->Dims().value())
      shape.push_back(dim.as<IntImmObj>()->value);
    bool is_view = step->kernel == kView;
    Tensor result;
    if (!is_view) {
      result = runtime::Empty(ffi::ShapeView(shape.data(), shape.size()), step->out->dtype,
                              DLDevice{kDLCPU, 0});
    }
    std::vector<Any> args = step->operands;
    for (size_t i = 0; i < args.size(); ++i) {
      if (int producer = step->producers[i]; producer >= 0) {
        const FoldStep& source = steps_[producer];
        if (&source != step && !source.result.defined()) return;
        args[i] = &source == step ? result : source.result;
      }
      // Weights of a file, and views of them, may lie at any address.
      if (auto operand = args[i].as<Tensor>(); operand && !is_view)
        args[i] = runtime::HostTensor(*operand);
    }
    if (is_view) {
      auto source = args[0].cast<Tensor>();
      if (source.is_contiguous())
        step->result = runtime::CreateView(source, ffi::Shape(shape), step->out->dtype);
      return;
    }
    std::vector<AnyView> views(args.begin(), args.end());
    try {
      Any ignored;
      code[step->kernel].CallPacked(views.data(), static_cast<int32_t>(views.size()), &ignored);
      step->result = result;
    } catch (const ffi::Error& error) {
      // An index beyond its buffer is the program's, if it ever comes there. Any other error may be
      // ours, or the machine's.
      if (error.kind() == "IndexError") return;
      Warn("relax", "FoldConstant: a call of " + step->name + " stays, which failed with " +
                        std::string(error.kind()) + ": " + error.message());
    }
  }

  // ---- replacing --------------------------------------------------------------------------------
  struct Replacer : VarReplacer {
    std::unordered_set<const Object*> folded;
    void VisitBinding(const Binding& binding) final {
      if (!folded.count(binding->var->vid.get())) VarReplacer::VisitBinding(binding);
    }
  };
  IRModule Replaced() const {
    IRModule folded = MapFunctions(mod_, [&](const GlobalVar&, const Function& func) {
      Replacer replacer;
      VisitBindings(func, [&](const Binding& binding) {
        auto it = known_.find(binding->var->vid.get());
        auto* bind = binding.as<VarBindingObj>();
        if (it == known_.end() || (bind && bind->value.as<ConstantObj>())) return;
        Optional<Constant> value = it->second.constant;
        if (it->second.step >= 0) {
          const FoldStep& step = steps_[it->second.step];
          if (step.result.defined()) value = Constant(step.result, step.out);
        }
        if (!value) return;
        replacer.Replace(binding->var, value.value());
        replacer.folded.insert(binding->var->vid.get());
      });
      if (replacer.folded.empty()) return func;
      return RemoveAllUnused(As<Function>(replacer.VisitExpr(func)));
    });
    return folded.same_as(mod_) ? mod_ : RemoveUncalled(folded, called_);
  }

  IRModule mod_;
  BlockBuilder scratch_;  // where operators are lowered
  transform::PassContext context_;
  bool legalizes_;
  double bytes_, seconds_;  // left
  bool ended_early_ = false;
  std::unordered_set<const Object*> counted_;
  std::unordered_map<const Object*, Known> known_;  // by id
  std::vector<FoldStep> steps_;
  std::vector<tir::PrimFunc> kernels_;
  std::unordered_map<const Object*, int> index_;                             // of them
  std::unordered_map<const Object*, std::pair<tir::PrimFunc, bool>> views_;  // which are reshapes
  std::unordered_set<std::string> called_;  // kernels of the module, maybe for the last time
};

IRModule FoldConstant(IRModule mod) {
  return OnDeepStack([&] { return ConstantFolder(mod).Run(); });
}
TVM_REGISTER() {
  transform::DefConfig<bool>("relax.transform.apply_legalize_ops", true,
                             "FoldConstant computes operators of constants, too.");
  transform::DefConfig<int64_t>(
      "relax.FoldConstant.max_bytes", int64_t{64} << 20,
      "How many bytes of results FoldConstant makes beyond twice the constants of the module.");
  transform::DefConfig<double>("relax.FoldConstant.max_seconds", 20.0,
                               "How long FoldConstant computes.");
}
}  // namespace
TVM_RELAX_PASS(
    FoldConstant, 0,
    R"(Computes calls whose arguments are constants and whose result is one tensor of static shape,
and puts the result in their place; what is too large or takes too long stays. Bindings that nobody
uses any more go, and private kernels that nobody calls.

lv = R.call_tir(cls.transpose, (metadata["relax.expr.Constant"][0],), out_sinfo=…)
gv = R.call_tir(cls.matmul, (x, lv), out_sinfo=…)
->
gv = R.call_tir(cls.matmul, (x, metadata["relax.expr.Constant"][0]), out_sinfo=…))");
}  // namespace tvm::relax
