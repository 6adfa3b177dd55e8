// SPDX-License-Identifier: Apache-2.0
// Running bytecode: registers of a call in one array, arguments packed into another, both from a
// stack that each thread keeps.
#include <pthread.h>

#include <chrono>
#include <cstring>

#include "runtime/vm/program.h"
#include "tvm/runtime/signals.h"

namespace tvm::runtime::vm {
namespace {
/// Room for registers and arguments of nested calls, last in first out.
class ValueStack {
 public:
  struct Mark {
    size_t block, used;
  };
  Mark mark() const { return {block_, used_}; }
  void Release(Mark mark) {
    block_ = mark.block;
    used_ = mark.used;
  }
  TVMFFIAny* Take(size_t n) {
    while (block_ == blocks_.size() || used_ + n > blocks_[block_].size) {
      // A block behind the current one holds nothing: it may be replaced by a larger one.
      if (block_ < blocks_.size() && used_ > 0) {
        ++block_;
        used_ = 0;
        continue;
      }
      size_t size = std::max<size_t>(n, 4096);
      Block fresh{std::make_unique<TVMFFIAny[]>(size), size};
      if (block_ == blocks_.size()) {
        blocks_.push_back(std::move(fresh));
      } else {
        blocks_[block_] = std::move(fresh);
      }
    }
    TVMFFIAny* values = blocks_[block_].values.get() + used_;
    used_ += n;
    return values;
  }

 private:
  struct Block {
    std::unique_ptr<TVMFFIAny[]> values;
    size_t size;
  };
  std::vector<Block> blocks_;
  size_t block_ = 0, used_ = 0;
};

struct VMThread {
  ValueStack values;
  std::vector<CallSite> call_sites;
  int depth = 0;
  uintptr_t stack_low = 0, stack_high = 0;

  VMThread() {
#ifdef __linux__
    pthread_attr_t attributes;
    void* low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
      stack_low = reinterpret_cast<uintptr_t>(low);
      stack_high = stack_low + size;
    }
    pthread_attr_destroy(&attributes);
#endif
  }
  void Enter() {
    // What a called function needs: kernels keep small arrays on the stack, Python a lot.
    constexpr uintptr_t kReserve = 256 << 10;
    // On a stack that is not the thread's own (the compiler folds constants on one) we do not know
    // the end.
    constexpr int kMaxDepthElsewhere = 1000;
    auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    bool own = here >= stack_low && here < stack_high;
    if (own ? here - stack_low < kReserve : depth >= kMaxDepthElsewhere) [[unlikely]] {
      TVM_FFI_THROW(RecursionError) << "VM: functions call each other too deeply: the stack is "
                                       "used up after "
                                    << depth << " calls";
    }
    ++depth;
  }
};
VMThread& Self() {
  thread_local VMThread thread;
  return thread;
}

/// Registers, with their number in front, and the array of packed arguments of one call.
class Frame {
 public:
  Frame(VMThread* thread, int64_t num_registers, int64_t max_args)
      : thread_(thread), mark_(thread->values.mark()), num_registers_(num_registers) {
    thread->Enter();
    try {
      values_ = thread->values.Take(static_cast<size_t>(1 + num_registers + max_args)) + 1;
    } catch (...) {
      --thread->depth;
      throw;
    }
    std::memset(values_, 0, num_registers * sizeof(TVMFFIAny));  // None
    values_[-1] = AnyView(num_registers).CopyToTVMFFIAny();
  }
  ~Frame() {
    for (int64_t i = 0; i < num_registers_; ++i) registers()[i].reset();
    thread_->values.Release(mark_);
    --thread_->depth;
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  Any* registers() { return reinterpret_cast<Any*>(values_); }
  AnyView* args() { return reinterpret_cast<AnyView*>(values_ + num_registers_); }

 private:
  VMThread* thread_;
  ValueStack::Mark mark_;
  int64_t num_registers_;
  TVMFFIAny* values_;
};
static_assert(sizeof(Any) == sizeof(TVMFFIAny) && sizeof(AnyView) == sizeof(TVMFFIAny));
static_assert(ffi::TypeIndex::kTVMFFINone == 0, "memory of zeros is None");

void SetParameters(const AnyView* args, const FunctionInfo& f, Any* registers) {
  for (size_t i = 0; i < f.params.size(); ++i) {
    if (args[i].type_index() == ffi::TypeIndex::kTVMFFIDLTensorPtr) {
      TVM_FFI_THROW(TypeError) << f.name << ": parameter '" << f.params[i]
                               << "': expected a tensor with an owner, got one that is lent";
    }
    registers[i] = args[i];
  }
}
std::string Extents(ShapeView extents) {
  std::string text;
  for (size_t i = 0; i < extents.size(); ++i) text += (i ? ", " : "") + std::to_string(extents[i]);
  return text;
}
/// Part of what kernels say of tensors with other strides than they expect.
constexpr const char* kCompactTensor = "of a compact tensor";
/// Kernels refuse tensors that are not compact, by the name of their own parameter: this is the
/// name of the function's, where such a tensor came in as an argument.
std::string CompactnessHint(const FunctionInfo& f, const Any* registers, int64_t index) {
  auto tensor = As<Tensor>(registers[index]);
  if (!tensor || tensor->is_contiguous()) return "";
  std::vector<int64_t> compact(tensor->ndim(), 1);
  for (int64_t axis = tensor->ndim() - 1; axis > 0; --axis)
    compact[axis - 1] = compact[axis] * tensor->shape()[axis];
  return "\n" + f.name + ": argument '" + f.params[index] + "': expected a compact tensor, with " +
         "strides (" + Extents({compact.data(), compact.size()}) + "), got strides (" +
         Extents(tensor->strides()) + ")";
}
std::string ArgumentText(const AnyView* args, int32_t n) {
  std::string text;
  for (int32_t i = 0; i < n; ++i) {
    auto tensor = args[i].try_cast<ffi::TensorView>();
    if (!tensor) continue;
    text += (text.empty() ? "" : ", ") + ffi::DLDataTypeToString(tensor->dtype()) + "[" +
            Extents(tensor->shape()) + "]";
  }
  return text;
}
}  // namespace

std::vector<CallSite>& CallSites() { return Self().call_sites; }

void ThrowWithCallStack(size_t first) {
  constexpr size_t kShown = 20;
  std::vector<CallSite> sites(CallSites().begin() + first, CallSites().end());
  CallSites().resize(first);
  std::string hints, text = "\nRelax call stack, innermost first:";
  for (const CallSite& site : sites) hints += site.hint;
  for (size_t i = 0; i < std::min(sites.size(), kShown); ++i) {
    const CallSite& site = sites[i];
    text += "\n  " + site.function->name + ", instruction " + std::to_string(site.instruction) +
            (site.callee ? ": call " + site.callee->name : "");
  }
  if (sites.size() > kShown) text += "\n  … " + std::to_string(sites.size() - kShown) + " more";
  if (sites.empty()) text.clear();
  auto rethrow = [&](const ffi::Error& e) {
    // A function that takes any strides may fail for another reason.
    bool is_about_strides = e.message().find(kCompactTensor) != std::string::npos;
    throw ffi::Error(e.kind(), e.message() + (is_about_strides ? hints : "") + text, e.backtrace(),
                     e.cause_chain(), e.extra_context());
  };
  try {
    throw;
  } catch (const ffi::Error& error) {
    rethrow(error);
  } catch (const Interrupt& interrupt) {  // past C functions only an Error keeps its kind
    rethrow(interrupt.error);
  } catch (const std::bad_alloc&) {
    rethrow(ffi::Error("MemoryError", "out of memory", ""));
  }
  TVM_FFI_UNREACHABLE();
}

void Program::Run(int64_t function, const AnyView* args, int32_t num_args, Any* result,
                  const Observer* observer) const {
  const FunctionInfo& f = exec_->functions[function];
  if (static_cast<size_t>(num_args) != f.params.size()) {
    std::string names;
    for (const std::string& name : f.params) names += (names.empty() ? "" : ", ") + name;
    TVM_FFI_THROW(TypeError) << f.name << ": expected " << f.params.size() << " arguments ("
                             << names << "), got " << num_args;
  }
  if (f.kind == FunctionKind::kVMTIR) return RunCompiled(function, args, result);
  RunBytecode(function, args, result, observer);
}

/// The compiled function reads and writes the lists of registers, constants and functions; what it
/// returns is in the register behind the parameters.
void Program::RunCompiled(int64_t function, const AnyView* args, Any* result) const {
  const FunctionInfo& f = exec_->functions[function];
  Frame frame(&Self(), std::max<int64_t>(f.num_registers, f.params.size() + 1), 0);
  Any* registers = frame.registers();
  SetParameters(args, f, registers);
  try {
    functions_[function](static_cast<void*>(vm_), static_cast<void*>(registers), constants_.data(),
                         values_.data());
  } catch (...) {
    std::string hint;
    for (size_t i = 0; i < f.params.size(); ++i) hint += CompactnessHint(f, registers, i);
    CallSites().push_back({&f, 0, nullptr, hint});
    throw;
  }
  *result = std::move(registers[f.params.size()]);
}

void Program::RunBytecode(int64_t function, const AnyView* args, Any* result,
                          const Observer* observer) const {
  const FunctionInfo& f = exec_->functions[function];
  const Body& body = bodies_[function];
  Frame frame(&Self(), f.num_registers, body.max_args);
  Any* registers = frame.registers();
  AnyView* packed = frame.args();
  SetParameters(args, f, registers);
  const Instruction* code = body.code.data();
  int64_t pc = 0;
  unsigned back_jumps = 0;
  try {
    for (;;) {
      const Instruction& in = code[pc];
      switch (in.op) {
        case Step::kCall: {
          const Arg* from = args_.data() + in.args;
          for (int64_t i = 0; i < in.num_args; ++i) {
            packed[i] = from[i].reg >= 0 ? AnyView(registers[from[i].reg])
                                         : AnyView::CopyFromTVMFFIAny(from[i].value);
          }
          Any value;
          Call(in.target, packed, static_cast<int32_t>(in.num_args), &value, observer);
          if (in.dst >= 0) registers[in.dst] = std::move(value);
          ++pc;
          break;
        }
        case Step::kClear:
          registers[in.dst].reset();
          ++pc;
          break;
        case Step::kRet:
          *result = std::move(registers[in.dst]);
          return;
        case Step::kGoto:
          if (in.target <= pc && ++back_jumps % 256 == 0) CheckSignals();
          pc = in.target;
          break;
        case Step::kIf: {
          bool taken = ReadCondition(registers[in.dst]);
          if (!taken && in.target <= pc && ++back_jumps % 256 == 0) CheckSignals();
          pc = taken ? pc + 1 : in.target;
          break;
        }
      }
    }
  } catch (...) {
    const Instruction& in = code[pc];
    bool call = in.op == Step::kCall;
    std::string hint;
    for (int64_t i = 0; call && i < in.num_args; ++i) {
      int64_t reg = args_[in.args + i].reg;
      if (reg >= 0 && reg < static_cast<int64_t>(f.params.size()))
        hint += CompactnessHint(f, registers, reg);
    }
    CallSites().push_back({&f, pc, call ? &exec_->functions[in.target] : nullptr, hint});
    throw;
  }
}

void Program::Call(int64_t function, const AnyView* args, int32_t num_args, Any* result,
                   const Observer* observer) const {
  if (observer) [[unlikely]]
    return CallObserved(function, args, num_args, result, *observer);
  if (exec_->functions[function].kind == FunctionKind::kPacked) [[likely]]
    return functions_[function].CallPacked(args, num_args, result);
  Run(function, args, num_args, result, nullptr);
}

void Program::CallObserved(int64_t function, const AnyView* args, int32_t num_args, Any* result,
                           const Observer& o) const {
  const FunctionInfo& f = exec_->functions[function];
  constexpr int64_t kSkipRun = 1;
  std::vector<AnyView> watched;
  String name(f.name);
  if (o.instrument) {
    watched = {values_[function], name, true, nullptr};
    watched.insert(watched.end(), args, args + num_args);
    Any answer;
    o.instrument->CallPacked(watched.data(), static_cast<int32_t>(watched.size()), &answer);
    if (answer != nullptr && answer.cast<int64_t>() == kSkipRun) return;
  }
  bool packed = f.kind == FunctionKind::kPacked;
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  if (packed) {
    functions_[function].CallPacked(args, num_args, result);
  } else {
    Run(function, args, num_args, result, &o);
  }
  if (o.records && packed) {
    GetDeviceAPI(o.device.device_type)->Sync(o.device, CurrentStream(o.device));
    double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    o.records->push_back({f.name, ArgumentText(args, num_args), o.device, us});
  }
  if (o.instrument) {
    watched[2] = false;
    watched[3] = *result;
    Any ignored;
    o.instrument->CallPacked(watched.data(), static_cast<int32_t>(watched.size()), &ignored);
  }
}
}  // namespace tvm::runtime::vm
