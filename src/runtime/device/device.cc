// SPDX-License-Identifier: Apache-2.0
// The table of device kinds, and what Python asks of devices.
#include "tvm/runtime/device.h"

#include <atomic>
#include <charconv>

namespace tvm::runtime {
namespace {
struct Kind {
  const char* name;
  DLDeviceType type;
};
/// The first name of a type is the one printed; the others are target kinds that run on it.
constexpr Kind kKinds[] = {
    {"cpu", kDLCPU},
    {"llvm", kDLCPU},
    {"c", kDLCPU},
    {"composite", kDLCPU},
    {"test", kDLCPU},
    {"cuda", kDLCUDA},
    {"nvptx", kDLCUDA},
    {"cuda_host", kDLCUDAHost},
    {"cuda_managed", kDLCUDAManaged},
    {"opencl", kDLOpenCL},
    {"vulkan", kDLVulkan},
    {"metal", kDLMetal},
    {"mps", kDLMetal},
    {"vpi", kDLVPI},
    {"rocm", kDLROCM},
    {"rocm_host", kDLROCMHost},
    {"ext_dev", kDLExtDev},
    {"oneapi", kDLOneAPI},
    {"webgpu", kDLWebGPU},
    {"wgpu", kDLWebGPU},
    {"hexagon", kDLHexagon},
    {"maia", kDLMAIA},
    {"trn", kDLTrn},
};
constexpr int kMaxType = 64;
std::atomic<DeviceAPI*> apis[kMaxType];

std::vector<std::string_view> KindNames() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}
}  // namespace

std::string DeviceName(DLDeviceType type) {
  for (const Kind& kind : kKinds) {
    if (kind.type == type) return kind.name;
  }
  return "device type " + std::to_string(static_cast<int>(type));
}
void RegisterDeviceAPI(DLDeviceType type, DeviceAPI* api) { apis[type].store(api); }
DeviceAPI* FindDeviceAPI(DLDeviceType type) {
  return type >= 0 && type < kMaxType ? apis[type].load(std::memory_order_acquire) : nullptr;
}
DeviceAPI* GetDeviceAPI(DLDeviceType type) {
  DeviceAPI* api = FindDeviceAPI(type);
  if (!api) {
    TVM_FFI_THROW(RuntimeError) << "device: this build has no runtime for " << DeviceName(type);
  }
  return api;
}

void DeviceAPI::WaitForStream(DLDevice device, Stream waiting, Stream awaited) {
  if (waiting == awaited) return;
  Event event = CreateEvent(device);
  Record(device, event, awaited);
  WaitForEvent(device, waiting, event);
  FreeEvent(device, event);
}
Stream CurrentStream(DLDevice device) {
  return TVMFFIEnvGetStream(device.device_type, device.device_id);
}
namespace {
thread_local int current_ids[kMaxType];
}  // namespace
DLDevice CurrentDevice(DLDeviceType type) { return {type, current_ids[type]}; }
void SetCurrentDevice(DLDevice device) { current_ids[device.device_type] = device.device_id; }

DLDevice ParseDevice(std::string_view text, int device_id) {
  std::string_view name = text.substr(0, text.find(' '));
  if (size_t colon = name.find(':'); colon != std::string_view::npos) {
    std::string_view digits = name.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), device_id);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      TVM_FFI_THROW(ValueError) << "device: expected a number after '" << name.substr(0, colon)
                                << ":', got '" << digits << "'";
    }
    name = name.substr(0, colon);
  }
  if (device_id < 0) {
    TVM_FFI_THROW(ValueError) << "device: expected an index of at least 0, got " << device_id;
  }
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return {kind.type, device_id};
  }
  TVM_FFI_THROW(ValueError) << "device: expected a device or a target, got '" << name << "'"
                            << DidYouMean(name, KindNames());
  TVM_FFI_UNREACHABLE();
}

namespace {
Stream AsStream(int64_t handle) { return reinterpret_cast<Stream>(handle); }

Any GetDeviceAttr(DLDevice device, int attr) {
  if (attr < 0 || attr >= static_cast<int>(DeviceAttr::kCount)) {
    TVM_FFI_THROW(ValueError) << "GetDeviceAttr: expected an attribute below "
                              << static_cast<int>(DeviceAttr::kCount) << ", got " << attr;
  }
  DeviceAPI* api = FindDeviceAPI(device.device_type);
  auto kind = static_cast<DeviceAttr>(attr);
  if (!api) return kind == DeviceAttr::kExist ? Any(false) : Any(nullptr);
  return api->GetAttr(device, kind);
}
TVM_REGISTER() {
  Def(
      "runtime.ParseDevice", [](String text, int id) { return ParseDevice(View(text), id); },
      "The device of a device name or a target.", Arg("text"), Arg("device_id", 0));
  Def(
      "runtime.DeviceName", [](int type) { return DeviceName(static_cast<DLDeviceType>(type)); },
      "The name of a DLPack device type.", Arg("device_type"));
  Def("runtime.GetDeviceAttr", &GetDeviceAttr, "What a device tells about itself, or None.",
      Arg("device"), Arg("attr"));
  Def(
      "runtime.Device_StreamCreate",
      [](DLDevice d) {
        return reinterpret_cast<int64_t>(GetDeviceAPI(d.device_type)->CreateStream(d));
      },
      "A new stream.", Arg("device"));
  Def(
      "runtime.Device_StreamFree",
      [](DLDevice d, int64_t stream) {
        GetDeviceAPI(d.device_type)->FreeStream(d, AsStream(stream));
      },
      "Ends a stream of Device_StreamCreate.", Arg("device"), Arg("stream"));
  Def(
      "runtime.Device_SetStream",
      [](DLDevice d, int64_t stream) {
        GetDeviceAPI(d.device_type);
        TVM_FFI_CHECK_SAFE_CALL(
            TVMFFIEnvSetStream(d.device_type, d.device_id, AsStream(stream), nullptr));
      },
      "Makes a stream the current one of this thread.", Arg("device"), Arg("stream"));
  Def(
      "runtime.Device_StreamSync",
      [](DLDevice d, int64_t stream) {
        GetDeviceAPI(d.device_type)->Sync(d, stream ? AsStream(stream) : CurrentStream(d));
      },
      "Waits for everything queued on a stream (0: the current one).", Arg("device"),
      Arg("stream", 0));
  Def(
      "runtime.Device_StreamSyncFromTo",
      [](DLDevice d, int64_t first, int64_t then) {
        GetDeviceAPI(d.device_type)->WaitForStream(d, AsStream(then), AsStream(first));
      },
      "What is queued on stream `then` from now on runs after what is on stream `first` now.",
      Arg("device"), Arg("first"), Arg("then"));
  Def(
      "runtime.DeviceMemory",
      [](DLDevice d) {
        MemoryStats now = GetDeviceAPI(d.device_type)->Memory(d);
        auto number = [](uint64_t n) { return static_cast<int64_t>(n); };
        return Map<String, int64_t>{{"used", number(now.used)},
                                    {"peak", number(now.peak)},
                                    {"reserved", number(now.reserved)},
                                    {"limit", number(now.limit)},
                                    {"allocations", number(now.allocations)}};
      },
      "Bytes of a device that this process uses, used at most, and keeps; the limit, 0 for none.",
      Arg("device"));
  Def(
      "runtime.SetDeviceMemoryLimit",
      [](DLDevice d, int64_t bytes) {
        if (bytes < 0) {
          TVM_FFI_THROW(ValueError) << "memory limit: expected at least 0 bytes, got " << bytes;
        }
        GetDeviceAPI(d.device_type)->SetMemoryLimit(d, static_cast<uint64_t>(bytes));
      },
      "How many bytes of a device tensors and workspaces may use; 0: all there are.", Arg("device"),
      Arg("bytes"));
  Def(
      "runtime.TrimDeviceMemory", [](DLDevice d) { GetDeviceAPI(d.device_type)->Trim(d); },
      "Gives memory that is kept for later back to the system.", Arg("device"));
  Def(
      "__tvm_set_device",
      [](int type, int id) { SetCurrentDevice({static_cast<DLDeviceType>(type), id}); },
      "The device that this thread works on from now on.", Arg("device_type"), Arg("device_id"));
}
}  // namespace
}  // namespace tvm::runtime
