// SPDX-License-Identifier: Apache-2.0
// Measuring how long a function runs.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tvm/runtime/device.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime {
namespace {
struct TimingOptions {
  DLDevice device;
  int64_t number, repeat;
  double min_repeat_ms;
  int64_t limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown, cache_flush_bytes;
  Optional<Function> preproc;
};

/// Events of a device, which measure what it does and not how fast the host queues it.
struct Timer {
  DLDevice device;
  DeviceAPI* api = GetDeviceAPI(device.device_type);
  Event begin = api->CreateEvent(device), end = api->CreateEvent(device);
  explicit Timer(DLDevice device) : device(device) {}
  Timer(const Timer&) = delete;
  ~Timer() {
    api->FreeEvent(device, begin);
    api->FreeEvent(device, end);
  }
};
/// Ctrl-C is heard after every `calls_per_check` of them.
double RunSeconds(const TimingOptions& o, const Function& f, ffi::PackedArgs args, int64_t number,
                  int64_t calls_per_check = 1) {
  Timer timer(o.device);
  Stream stream = CurrentStream(o.device);
  timer.api->Sync(o.device, stream);
  timer.api->Record(o.device, timer.begin, stream);
  for (int64_t i = 0; i < number;) {
    for (int64_t end = std::min(number, i + calls_per_check); i < end; ++i) {
      Any result;
      f.CallPacked(args.data(), args.size(), &result);
    }
    if (i < number) CheckSignals();
  }
  timer.api->Record(o.device, timer.end, stream);
  timer.api->Sync(o.device, stream);
  return timer.api->Seconds(o.device, timer.begin, timer.end);
}

Array<double> Measure(const TimingOptions& o, const Function& f, ffi::PackedArgs args) {
  // The first call loads, faults pages in and starts threads. It is about as long as others, or
  // longer: what follows looks for signals at least every tenth of a second.
  double first = RunSeconds(o, f, args, 1);
  auto per_check = static_cast<int64_t>(std::clamp(0.1 / std::max(first, 1e-9), 1.0, 1e8));
  Optional<Tensor> flush;
  if (o.cache_flush_bytes > 0) flush = Empty({o.cache_flush_bytes}, {kDLUInt, 8, 1}, o.device);
  Tensor source = flush ? Empty({o.cache_flush_bytes}, {kDLUInt, 8, 1}, o.device) : Tensor();
  Array<double> results;
  int64_t number = o.number;
  for (int64_t i = 0; i < o.repeat; ++i) {
    CheckSignals();
    if (o.preproc) {
      Any ignored;
      o.preproc->CallPacked(args.data(), args.size(), &ignored);
    }
    double seconds = 0;
    for (int64_t zero = 0;;) {
      if (flush) CopyTensor(source, *flush);
      seconds = RunSeconds(o, f, args, number, per_check);
      if (seconds * 1e3 >= o.min_repeat_ms) break;
      if (seconds == 0 && ++zero >= o.limit_zero_time_iterations) break;
      // The next guess hits the wanted time, or at least grows: short runs are measured badly.
      double wanted =
          seconds > 0 ? o.min_repeat_ms / (seconds * 1e3 / static_cast<double>(number)) : 0;
      number = std::max(static_cast<int64_t>(std::min(wanted + 1, 1e12)),
                        number + std::max<int64_t>(1, number / 2));
      CheckSignals();
    }
    results.push_back(seconds / static_cast<double>(number));
    if (o.cooldown_interval_ms > 0 && (i + 1) % std::max<int64_t>(o.repeats_to_cooldown, 1) == 0) {
      for (int64_t left = o.cooldown_interval_ms; left > 0; left -= 100) {
        std::this_thread::sleep_for(std::chrono::milliseconds(std::min<int64_t>(left, 100)));
        CheckSignals();
      }
    }
  }
  return results;
}

Function TimeEvaluator(Function f, DLDevice device, int64_t number, int64_t repeat,
                       double min_repeat_ms, int64_t limit_zero_time_iterations,
                       int64_t cooldown_interval_ms, int64_t repeats_to_cooldown,
                       int64_t cache_flush_bytes, String preproc) {
  if (number < 1 || repeat < 1) {
    TVM_FFI_THROW(ValueError) << "time_evaluator: expected number and repeat of at least 1, got "
                              << number << " and " << repeat;
  }
  GetDeviceAPI(device.device_type);
  TimingOptions o{device,
                  number,
                  repeat,
                  min_repeat_ms,
                  limit_zero_time_iterations,
                  cooldown_interval_ms,
                  repeats_to_cooldown,
                  cache_flush_bytes,
                  {}};
  if (!preproc.empty()) {
    o.preproc = Function::GetGlobal(preproc);
    if (!o.preproc) {
      TVM_FFI_THROW(ValueError)
          << "time_evaluator: expected f_preproc to name a global function, got '" << preproc
          << "'";
    }
  }
  // Not as a lambda: KeyboardInterrupt is no exception of C++.
  struct Evaluator {
    TimingOptions options;
    Function f;
    static int Call(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
      try {
        auto* e = static_cast<Evaluator*>(self);
        ffi::PackedArgs packed(reinterpret_cast<const AnyView*>(args), n);
        *ret = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(Measure(e->options, e->f, packed)));
        return 0;
      } catch (...) {
        return ReportException();
      }
    }
  };
  return Function::FromExternC(new Evaluator{o, f}, &Evaluator::Call,
                               [](void* self) { delete static_cast<Evaluator*>(self); });
}

/// Drops the CPU tensors among the arguments, except the first one, from the caches.
void FlushCaches(ffi::PackedArgs args, Any*) {
#if defined(__x86_64__)
  for (int i = 1; i < args.size(); ++i) {
    auto tensor = args[i].try_cast<ffi::TensorView>();
    if (!tensor || tensor->device().device_type != kDLCPU || !tensor->IsContiguous()) continue;
    auto* data = static_cast<const char*>(tensor->data_ptr());
    for (size_t at = 0, size = ffi::GetDataSize(*tensor); at < size; at += 64)
      __builtin_ia32_clflush(data + at);
  }
  __builtin_ia32_mfence();
#else
  TVM_FFI_THROW(NotImplementedError) << "cache_flush_cpu_non_first_arg needs an x86-64 CPU";
#endif
}

TVM_REGISTER() {
  Def("runtime.TimeEvaluator", &TimeEvaluator,
      "A function that runs `f` on its arguments and returns the seconds of one call, once per "
      "repeat.",
      Arg("f"), Arg("device"), Arg("number", 10), Arg("repeat", 1), Arg("min_repeat_ms", 0),
      Arg("limit_zero_time_iterations", 100), Arg("cooldown_interval_ms", 0),
      Arg("repeats_to_cooldown", 1), Arg("cache_flush_bytes", 0), Arg("f_preproc", ""));
  Function::SetGlobal("cache_flush_cpu_non_first_arg", Function::FromPacked(&FlushCaches));
}
}  // namespace
}  // namespace tvm::runtime
