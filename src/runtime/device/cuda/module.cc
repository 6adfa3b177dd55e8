// SPDX-License-Identifier: Apache-2.0
// Modules of CUDA kernels: loading them on each device, launching, saving.
#include "runtime/device/cuda/module.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/failure.h"

namespace tvm::runtime::cuda {
namespace {
constexpr int kMaxParams = 256;

/// A kernel that is called: its arguments, then the extents of its launch.
class Launcher {
 public:
  enum Slot { kGrid = 0, kBlock = 3, kCluster = 6, kShared = 9, kSlots = 10 };

  explicit Launcher(KernelInfo info) : info_(std::move(info)) {
    for (const std::string& name : info_.launch) slots_.push_back(SlotOf(name));
    in_clusters_ = std::any_of(slots_.begin(), slots_.end(),
                               [](int slot) { return slot >= kCluster && slot < kShared; });
    if (info_.params.size() > kMaxParams) {
      TVM_FFI_THROW(ValueError) << "cuda: expected at most " << kMaxParams << " parameters of "
                                << info_.name << ", got " << info_.params.size();
    }
  }
  const KernelInfo& info() const { return info_; }

  /// `function_of(device_id)` is the kernel as it is loaded on a device.
  template <class F>
  void operator()(ffi::PackedArgs args, F&& function_of) {
    size_t count = info_.params.size();
    if (static_cast<size_t>(args.size()) != count + slots_.size()) {
      TVM_FFI_THROW(TypeError) << info_.name << ": expected " << count << " arguments and "
                               << slots_.size() << " values of its launch, got " << args.size();
    }
    uint64_t values[kMaxParams];
    void* pointers[kMaxParams];
    for (size_t i = 0; i < count; ++i) {
      values[i] = ValueOf(args[static_cast<int>(i)], i);
      bool is_tensor_map = info_.params[i].code == kDLOpaqueHandle && info_.params[i].lanes > 1;
      pointers[i] = is_tensor_map ? reinterpret_cast<void*>(values[i]) : &values[i];
    }
    int64_t extents[kSlots] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0};
    for (size_t i = 0; i < slots_.size(); ++i) {
      extents[slots_[i]] = args[static_cast<int>(count + i)].cast<int64_t>();
      if (extents[slots_[i]] < 0 || extents[slots_[i]] > INT32_MAX) {
        TVM_FFI_THROW(ValueError) << info_.name << ": expected " << info_.launch[i]
                                  << " in [0, 2^31), got " << extents[slots_[i]];
      }
    }
    for (int i = 0; i < kShared; ++i) {
      if (extents[i] == 0) return;  // nobody to run it
    }
    DLDevice device = CurrentDevice(kDLCUDA);
    const Driver& driver = Use(device.device_id);
    CUfunction function = function_of(device.device_id);
    if (extents[kShared] > 0) AllowShared(driver, function, device.device_id, extents[kShared]);
    CUlaunchConfig config{};
    for (int i = 0; i < 3; ++i) {
      config.grid[i] = static_cast<unsigned>(extents[kGrid + i]);
      config.block[i] = static_cast<unsigned>(extents[kBlock + i]);
    }
    config.shared_bytes = static_cast<unsigned>(extents[kShared]);
    config.stream = static_cast<CUstream>(CurrentStream(device));
    CUlaunchAttribute cluster{};
    if (in_clusters_) {
      cluster.id = kClusterDimension;
      for (int i = 0; i < 3; ++i) cluster.cluster[i] = static_cast<unsigned>(extents[kCluster + i]);
      config.attrs = &cluster;
      config.num_attrs = 1;
    }
    CUresult result = driver.LaunchKernelEx(&config, function, pointers, nullptr);
    if (result != kSuccess) [[unlikely]]
      driver.Check(result, "launch of " + info_.name + " with " + Shown(extents));
  }

 private:
  int SlotOf(const std::string& name) const {
    auto starts = [&](const char* prefix) { return name.rfind(prefix, 0) == 0; };
    if (starts("blockIdx.")) return kGrid + (name.back() - 'x');
    if (starts("threadIdx.")) return kBlock + (name.back() - 'x');
    if (starts("clusterCtaIdx.")) return kCluster + (name.back() - 'x');
    if (name == "tir.use_dyn_shared_memory") return kShared;
    TVM_FFI_THROW(NotImplementedError)
        << "cuda: the launch parameter '" << name << "' of " << info_.name;
    TVM_FFI_UNREACHABLE();
  }
  /// The bits of an argument, as the kernel's parameter has them.
  uint64_t ValueOf(const AnyView& arg, size_t i) const {
    DLDataType t = info_.params[i];
    uint64_t bits = 0;
    if (t.code == kDLOpaqueHandle) {
      if (auto tensor = arg.as<DLTensor*>())
        return reinterpret_cast<uint64_t>(static_cast<char*>((*tensor)->data) +
                                          (*tensor)->byte_offset);
      return reinterpret_cast<uint64_t>(arg.cast<void*>());
    }
    if (t.code != kDLFloat) return static_cast<uint64_t>(arg.cast<int64_t>());
    auto value = arg.cast<double>();
    auto narrow = static_cast<float>(value);
    if (t.bits == 64) std::memcpy(&bits, &value, sizeof(value));
    if (t.bits == 32) std::memcpy(&bits, &narrow, sizeof(narrow));
    if (t.bits != 64 && t.bits != 32) {
      TVM_FFI_THROW(NotImplementedError)
          << info_.name << ": a parameter of type float" << int{t.bits};
    }
    return bits;
  }
  /// Beyond 48 KiB a kernel has to say that it wants so much.
  void AllowShared(const Driver& driver, CUfunction function, int device_id, int64_t bytes) {
    constexpr int64_t kAlways = 48 << 10;
    std::atomic<int64_t>& allowed = allowed_[device_id];
    if (bytes <= kAlways || bytes <= allowed.load(std::memory_order_relaxed)) return;
    driver.Check(
        driver.FuncSetAttribute(function, kFuncMaxDynamicSharedBytes, static_cast<int>(bytes)),
        info_.name + " with " + std::to_string(bytes) + " bytes of dynamic shared memory");
    allowed.store(bytes, std::memory_order_relaxed);
  }
  static std::string Shown(const int64_t* extents) {
    auto triple = [](const int64_t* e) {
      return "(" + std::to_string(e[0]) + ", " + std::to_string(e[1]) + ", " +
             std::to_string(e[2]) + ")";
    };
    return "grid " + triple(extents + kGrid) + ", cluster " + triple(extents + kCluster) +
           ", block " + triple(extents + kBlock) + ", " + std::to_string(extents[kShared]) +
           " bytes of dynamic shared memory";
  }
  KernelInfo info_;
  std::vector<int> slots_;
  bool in_clusters_ = false;
  std::array<std::atomic<int64_t>, kMaxDevices> allowed_{};
};

class CudaModuleObj : public ffi::ModuleObj {
 public:
  CudaModuleObj(std::vector<Binary> binaries, std::vector<KernelInfo> kernels, std::string source)
      : binaries_(std::move(binaries)), source_(std::move(source)) {
    for (KernelInfo& kernel : kernels) {
      if (kernel.binary >= binaries_.size()) {
        TVM_FFI_THROW(ValueError) << "cuda: expected kernel " << kernel.name << " in one of "
                                  << binaries_.size() << " binaries, got " << kernel.binary;
      }
      std::string name = kernel.name;
      kernels_.emplace(std::move(name), std::make_unique<Kernel>(std::move(kernel)));
    }
  }
  ~CudaModuleObj() {
    for (int i = 0; i < kMaxDevices; ++i) {
      for (CUmodule module : modules_[i]) {
        try {
          if (module) Use(i).ModuleUnload(module);
        } catch (const std::exception&) {
        }
      }
    }
  }

  const char* kind() const final { return "cuda"; }
  int GetPropertyMask() const final {
    return ffi::Module::kRunnable | ffi::Module::kBinarySerializable;
  }
  bool ImplementsFunction(const String& name) final { return kernels_.count(std::string(name)); }
  Optional<Function> GetFunction(const String& name) final {
    if (View(name) == kFunctionNames) {
      Array<String> names;
      for (const auto& [n, kernel] : kernels_) names.push_back(n);
      return Function::FromTyped([names]() { return names; });
    }
    auto it = kernels_.find(std::string(name));
    if (it == kernels_.end()) return std::nullopt;
    Kernel* kernel = it->second.get();
    // The function keeps the module.
    return Function::FromPacked(
        [self = ffi::GetRef<ffi::Module>(this), this, kernel](ffi::PackedArgs args, Any*) {
          kernel->launch(args, [&](int device_id) { return FunctionOf(kernel, device_id); });
        });
  }

  String InspectSource(const String& format) const final {
    std::string kind = format.empty() ? "cu" : std::string(format);
    if (kind == "cu" || kind == "cuda" || kind == "ptx") return Render(kind, "inspect_source");
    TVM_FFI_THROW(ValueError) << "inspect_source: expected the format cu or ptx, got '" << kind
                              << "'; write_to_file writes binaries (" << Format() << ")";
    TVM_FFI_UNREACHABLE();
  }
  Array<String> GetWriteFormats() const final { return {"cu", "ptx", Format()}; }
  void WriteToFile(const String& file_name, const String& format) const final {
    std::string name(file_name), kind(format);
    if (kind.empty()) kind = name.substr(name.find_last_of('.') + 1);
    std::string bytes = Render(kind, "write_to_file");
    std::ofstream file(name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) TVM_FFI_THROW(OSError) << "cannot write " << name;
  }
  ffi::Bytes SaveToBytes() const final {
    std::string out;
    PutNumber(&out, binaries_.size());
    for (const Binary& binary : binaries_) {
      Put(&out, binary.format);
      Put(&out, binary.arch);
      Put(&out, binary.code);
    }
    Put(&out, source_);
    PutNumber(&out, kernels_.size());
    for (const auto& [name, kernel] : kernels_) {
      const KernelInfo& info = kernel->launch.info();
      Put(&out, info.name);
      PutNumber(&out, info.params.size());
      for (DLDataType t : info.params)
        PutNumber(&out, t.code | uint64_t{t.bits} << 8 | uint64_t{t.lanes} << 16);
      PutNumber(&out, info.launch.size());
      for (const std::string& word : info.launch) Put(&out, word);
      PutNumber(&out, info.binary);
    }
    return ffi::Bytes(out);
  }

 private:
  /// The text, or all kernels as one binary: that of the module, or one that the compiler makes.
  std::string Render(const std::string& kind, const char* what) const {
    if (kind == "cu" || kind == "cuda") return source_;
    if (kind == Format() && binaries_.size() == 1) return binaries_[0].code;
    if (kind != Format() && kind != "ptx" && kind != "cubin") {
      TVM_FFI_THROW(ValueError) << what << ": expected the format cu, ptx or " << Format()
                                << ", got '" << kind << "'";
    }
    auto compile = Function::GetGlobal("cuda.nvrtc_compile");
    if (!compile) {
      TVM_FFI_THROW(ValueError) << what << ": expected the compiler, which makes one " << kind
                                << " of all kernels, got the runtime alone";
    }
    auto bytes = (*compile)(source_, kind, binaries_[0].arch, Array<String>{"--std=c++17"})
                     .cast<ffi::Bytes>();
    return {bytes.data(), bytes.size()};
  }
  const std::string& Format() const { return binaries_.at(0).format; }
  struct Kernel {
    explicit Kernel(KernelInfo info) : launch(std::move(info)) {}
    Launcher launch;
    std::array<std::atomic<CUfunction>, kMaxDevices> functions{};
  };
  /// Of the binaries that begin at `first`, the one for the newest architecture that a device runs.
  size_t BinaryFor(size_t first, const Driver& driver, int device_id) const {
    size_t end = first + 1;
    while (end < binaries_.size() && binaries_[end].arch != binaries_[first].arch) ++end;
    if (end == first + 1) return first;
    CUdevice device = 0;
    int major = 0, minor = 0;
    driver.Check(driver.DeviceGet(&device, device_id), "cuDeviceGet");
    driver.Check(driver.DeviceGetAttribute(&major, kComputeCapabilityMajor, device),
                 "cuDeviceGetAttribute");
    driver.Check(driver.DeviceGetAttribute(&minor, kComputeCapabilityMinor, device),
                 "cuDeviceGetAttribute");
    std::optional<size_t> best;
    int highest = -1;
    std::string known;
    for (size_t i = first; i < end; ++i) {
      const std::string& arch = binaries_[i].arch;  // sm_90a: of this one alone
      int own = std::atoi(arch.c_str() + std::min<size_t>(arch.size(), 3)), rank = 2 * own;
      bool is_exact = !arch.empty() && std::isalpha(static_cast<unsigned char>(arch.back()));
      known += (known.empty() ? "" : ", ") + arch;
      if (own / 10 != major || own % 10 > minor || (is_exact && own % 10 != minor)) continue;
      if (rank + is_exact <= highest) continue;
      highest = rank + is_exact;
      best = i;
    }
    if (!best) {
      TVM_FFI_THROW(RuntimeError) << "cuda: expected kernels for device " << device_id << " (sm_"
                                  << major << minor << "), got those for " << known
                                  << "; compile with -arch=" << known << ",sm_" << major << minor;
    }
    return *best;
  }
  CUfunction FunctionOf(Kernel* kernel, int device_id) {
    CUfunction function = kernel->functions.at(device_id).load(std::memory_order_acquire);
    if (function) [[likely]]
      return function;
    std::lock_guard lock(mutex_);
    const Driver& driver = Use(device_id);
    modules_[device_id].resize(binaries_.size());
    size_t number = BinaryFor(kernel->launch.info().binary, driver, device_id);
    const Binary& binary = binaries_[number];
    CUmodule& module = modules_[device_id][number];
    if (!module) {
      driver.Check(
          driver.ModuleLoadData(&module, binary.code.data()),
          "loading kernels for " + binary.arch + " on device " + std::to_string(device_id));
      ConnectFailures(device_id, module);
    }
    const std::string& name = kernel->launch.info().name;
    driver.Check(driver.ModuleGetFunction(&function, module, name.c_str()),
                 "kernel " + name + " of a module");
    kernel->functions[device_id].store(function, std::memory_order_release);
    return function;
  }
  static void PutNumber(std::string* out, uint64_t value) {
    for (int i = 0; i < 8; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
  }
  static void Put(std::string* out, std::string_view text) {
    PutNumber(out, text.size());
    out->append(text);
  }

  std::vector<Binary> binaries_;
  std::string source_;
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;
  std::mutex mutex_;
  std::vector<CUmodule> modules_[kMaxDevices];
};

/// Reads what SaveToBytes wrote; every length is checked.
struct Reader {
  std::string_view rest;
  uint64_t Number() {
    std::string_view bytes = Take(8);
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return value;
  }
  std::string Text() { return std::string(Take(Number())); }
  /// Of a list whose elements have at least `bytes` bytes each.
  uint64_t Count(uint64_t bytes) {
    uint64_t count = Number();
    if (count > rest.size() / bytes) Truncated();
    return count;
  }
  std::string_view Take(uint64_t count) {
    if (count > rest.size()) Truncated();
    std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }
  [[noreturn]] static void Truncated() {
    TVM_FFI_THROW(ValueError) << "cuda: expected a whole module of kernels, got a truncated one";
    TVM_FFI_UNREACHABLE();
  }
};
Module LoadFromBytes(const ffi::Bytes& bytes) {
  Reader in{{bytes.data(), bytes.size()}};
  std::vector<Binary> binaries(in.Count(24));
  for (Binary& binary : binaries) {
    binary.format = in.Text();
    binary.arch = in.Text();
    binary.code = in.Text();
  }
  std::string source = in.Text();
  std::vector<KernelInfo> kernels(in.Count(32));
  for (KernelInfo& kernel : kernels) {
    kernel.name = in.Text();
    kernel.params.resize(in.Count(8));
    for (DLDataType& t : kernel.params) {
      uint64_t code = in.Number();
      t = {static_cast<uint8_t>(code), static_cast<uint8_t>(code >> 8),
           static_cast<uint16_t>(code >> 16)};
    }
    kernel.launch.resize(in.Count(8));
    for (std::string& word : kernel.launch) word = in.Text();
    kernel.binary = in.Number();
  }
  return MakeModule(std::move(binaries), std::move(kernels), std::move(source));
}
TVM_REGISTER() {
  Def("ffi.Module.load_from_bytes.cuda", &LoadFromBytes, "CUDA kernels of an exported library.",
      Arg("bytes"));
}
}  // namespace

Module MakeModule(std::vector<Binary> binaries, std::vector<KernelInfo> kernels,
                  std::string source) {
  return Module(
      ffi::make_object<CudaModuleObj>(std::move(binaries), std::move(kernels), std::move(source)));
}

}  // namespace tvm::runtime::cuda
