// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: runs of kernels that are recorded once and replayed, and the memory they work on.
#include <tvm/ffi/extra/c_env_api.h>

#include <map>
#include <mutex>

#include "runtime/device/cuda/driver.h"
#include "runtime/vm/program.h"

namespace tvm::runtime::vm {
namespace {
using cuda::Driver;

/// Kernels launched in its life, by this thread, are recorded.
class Recording {
 public:
  explicit Recording(DLDevice device) : device_(device), driver_(cuda::Use(device.device_id)) {
    driver_.Check(driver_.StreamCreate(&stream_, cuda::kStreamNonBlocking), "cuStreamCreate");
    TVM_FFI_CHECK_SAFE_CALL(
        TVMFFIEnvSetStream(device.device_type, device.device_id, stream_, &before_));
    CUresult result = driver_.StreamBeginCapture(stream_, cuda::kCaptureRelaxed);
    if (result == cuda::kSuccess) return;
    Leave();
    driver_.Check(result, "cuStreamBeginCapture");
  }
  ~Recording() {
    if (!stream_) return;
    cuda::CUgraph dropped = nullptr;
    driver_.StreamEndCapture(stream_, &dropped);
    if (dropped) driver_.GraphDestroy(dropped);
    Leave();
  }
  cuda::CUgraphExec Finish() {
    cuda::CUgraph graph = nullptr;
    CUresult ended = driver_.StreamEndCapture(stream_, &graph);
    Leave();
    driver_.Check(ended, "cuStreamEndCapture");
    cuda::CUgraphExec exec = nullptr;
    CUresult made = driver_.GraphInstantiate(&exec, graph, 0);
    driver_.GraphDestroy(graph);
    driver_.Check(made, "cuGraphInstantiate");
    return exec;
  }

 private:
  using CUresult = cuda::CUresult;
  void Leave() {
    TVMFFIEnvSetStream(device_.device_type, device_.device_id, before_, nullptr);
    driver_.StreamDestroy(stream_);
    stream_ = nullptr;
  }
  DLDevice device_;
  const Driver& driver_;
  cuda::CUstream stream_ = nullptr;
  TVMFFIStreamHandle before_ = nullptr;
};

/// A recorded run of kernels and its results, which are in the same memory after every replay.
struct CudaGraph {
  DLDevice device;
  cuda::CUgraphExec exec = nullptr;
  Any inputs, results;
  CudaGraph() = default;
  CudaGraph(const CudaGraph&) = delete;
  ~CudaGraph() {
    try {
      if (exec) cuda::Use(device.device_id).GraphExecDestroy(exec);
    } catch (const std::exception&) {
    }
  }
};
/// Which run, the values of its shapes, and where its inputs are.
using GraphKey = std::vector<int64_t>;
struct MachineGraphs {
  std::mutex mutex;  // held while a graph is recorded or launched: each has one run at a time
  std::map<GraphKey, CudaGraph> graphs;
  std::map<int64_t, Any> memory;
};
struct AllGraphs {
  std::mutex mutex;
  std::map<const VirtualMachineObj*, std::shared_ptr<MachineGraphs>> of;
  static AllGraphs& Global() {
    static auto* all = new AllGraphs();
    return *all;
  }
  std::shared_ptr<MachineGraphs> Of(const VirtualMachineObj* vm) {
    std::lock_guard lock(mutex);
    auto& graphs = of[vm];
    if (!graphs) graphs = std::make_shared<MachineGraphs>();
    return graphs;
  }
};

void AddPlaces(const Any& value, GraphKey* key) {
  if (auto tensor = As<Tensor>(value)) {
    key->push_back(reinterpret_cast<int64_t>(tensor->data_ptr()) + tensor->byte_offset());
  } else if (auto tuple = As<Array<Any>>(value)) {
    for (const Any& item : *tuple) AddPlaces(item, key);
  }
}
/// machine, function, its arguments, number of the run[, values of shapes]. The first call runs the
/// kernels, which loads them, and records them; those that follow replay.
void RunOrCapture(ffi::PackedArgs args, Any* result) {
  if (args.size() != 4 && args.size() != 5) {
    TVM_FFI_THROW(TypeError) << "vm.builtin.cuda_graph.run_or_capture: expected 4 or 5 arguments, "
                                "got "
                             << args.size();
  }
  VirtualMachineObj* vm = MachineOf(args[0], "run_or_capture");
  auto inputs = Cast<Array<Any>>(args[2], "run_or_capture");
  GraphKey key{args[3].cast<int64_t>()};
  if (args.size() == 5) {
    auto shape = args[4].cast<Shape>();
    key.insert(key.end(), shape.begin(), shape.end());
  }
  AddPlaces(inputs, &key);
  DLDevice device = vm->allocator(0)->device();
  if (device.device_type != kDLCUDA) {
    TVM_FFI_THROW(ValueError) << "run_or_capture: expected a machine on a CUDA device";
  }
  std::shared_ptr<MachineGraphs> all = AllGraphs::Global().Of(vm);
  std::lock_guard lock(all->mutex);
  if (auto it = all->graphs.find(key); it != all->graphs.end()) {
    const Driver& driver = cuda::Use(device.device_id);
    auto stream = static_cast<cuda::CUstream>(CurrentStream(device));
    driver.Check(driver.GraphLaunch(it->second.exec, stream), "cuGraphLaunch");
    *result = it->second.results;
    return;
  }
  std::vector<AnyView> views(inputs.begin(), inputs.end());
  ffi::PackedArgs call(views.data(), static_cast<int32_t>(views.size()));
  vm->InvokeClosure(args[1], call, result);
  Any recorded;
  Recording recording(device);
  vm->InvokeClosure(args[1], call, &recorded);
  cuda::CUgraphExec exec = recording.Finish();
  CudaGraph& graph = all->graphs[key];
  graph.device = device;
  graph.exec = exec;
  graph.inputs = inputs;
  graph.results = recorded;
}
/// machine, function that allocates, number: what it allocated in the first call.
Any GetCachedAlloc(Any context, Any function, int64_t index) {
  VirtualMachineObj* vm = MachineOf(context, "get_cached_alloc");
  std::shared_ptr<MachineGraphs> all = AllGraphs::Global().Of(vm);
  std::lock_guard lock(all->mutex);
  Any& memory = all->memory[index];
  if (memory == nullptr) vm->InvokeClosure(function, ffi::PackedArgs(nullptr, 0), &memory);
  return memory;
}
TVM_REGISTER() {
  Function::SetGlobal("vm.builtin.cuda_graph.run_or_capture", Function::FromPacked(&RunOrCapture));
  Def("vm.builtin.cuda_graph.get_cached_alloc", &GetCachedAlloc,
      "The memory of recorded kernels, allocated once.", Arg("ctx"), Arg("function"), Arg("index"));
}
}  // namespace

void DropGraphs(const VirtualMachineObj* vm) {
  std::shared_ptr<MachineGraphs> dropped;  // destroyed without the lock
  AllGraphs& all = AllGraphs::Global();
  std::lock_guard lock(all.mutex);
  if (auto it = all.of.find(vm); it != all.of.end()) {
    dropped = std::move(it->second);
    all.of.erase(it);
  }
}

}  // namespace tvm::runtime::vm
