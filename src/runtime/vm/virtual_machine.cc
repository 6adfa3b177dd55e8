// SPDX-License-Identifier: Apache-2.0
// The virtual machine as a module: setting it up, calling its functions, inputs and outputs that
// it keeps, profiles.
#include <chrono>
#include <map>
#include <shared_mutex>

#include "runtime/copy_of.h"
#include "runtime/vm/program.h"

namespace tvm::runtime::vm {

Closure::Closure(String func_name, Function impl)
    : ObjectRef(ffi::make_object<ClosureObj>(std::move(func_name), std::move(impl))) {}

struct VirtualMachineObj::State {
  std::shared_mutex mutex;
  std::map<std::string, Function> saved;
  std::map<std::string, std::vector<Any>> inputs;
  std::map<std::string, Any> outputs;
  std::optional<Function> instrument;
  std::map<std::string, Tensor> kept;
};

VirtualMachineObj::VirtualMachineObj(Module executable, bool profiles)
    : executable_(std::move(executable)), profiles_(profiles), state_(new State) {}
VirtualMachineObj::~VirtualMachineObj() { DropGraphs(this); }

const ExecutableObj* VirtualMachineObj::executable() const {
  return static_cast<const ExecutableObj*>(executable_.operator->());
}

void VirtualMachineObj::Init(std::vector<DLDevice> devices, std::vector<AllocatorKind> kinds) {
  if (program_) TVM_FFI_THROW(RuntimeError) << "VM: it is already initialized";
  if (devices.empty() || devices.back().device_type != kDLCPU) {
    devices.push_back({kDLCPU, 0});
    kinds.push_back(AllocatorKind::kPooled);
  }
  std::vector<Allocator*> allocators;
  for (size_t i = 0; i < devices.size(); ++i) {
    allocators.push_back(Allocator::Get(devices[i], kinds[i]));
  }
  auto program = std::make_unique<const Program>(executable(), this, devices[0]);
  devices_ = std::move(devices);
  allocators_ = std::move(allocators);
  program_ = std::move(program);
}

Allocator* VirtualMachineObj::allocator(int64_t device_index) const {
  auto count = static_cast<int64_t>(allocators_.size());
  int64_t i = device_index == -1 ? count - 1 : device_index;
  if (i < 0 || i >= count) {
    TVM_FFI_THROW(IndexError) << "VM: expected a device below " << count << ", got "
                              << device_index;
  }
  return allocators_[i];
}

Optional<Tensor> VirtualMachineObj::GetState(const String& name) const {
  std::shared_lock lock(state_->mutex);
  auto it = state_->kept.find(std::string(View(name)));
  if (it == state_->kept.end()) return std::nullopt;
  return it->second;
}
void VirtualMachineObj::SetState(const String& name, Tensor value) {
  std::unique_lock lock(state_->mutex);
  state_->kept.insert_or_assign(std::string(View(name)), std::move(value));
}

namespace {
/// The profile that this thread takes, if any.
thread_local std::vector<CallRecord>* vm_profile_records = nullptr;
}  // namespace

void VirtualMachineObj::InvokeOf(const Module& owner, int64_t function, ffi::PackedArgs args,
                                 Any* result) {
  if (!owner.same_as(executable_)) {
    TVM_FFI_THROW(ValueError) << "invoke_closure: expected a closure of this executable, got one "
                                 "of another";
  }
  if (!program_) {
    TVM_FFI_THROW(RuntimeError) << "VM: call vm_initialization before the first function";
  }
  Observer observer;
  std::optional<Function> instrument;
  if (has_instrument_.load(std::memory_order_acquire)) {
    std::shared_lock lock(state_->mutex);
    instrument = state_->instrument;
  }
  if (instrument) observer.instrument = &*instrument;
  observer.records = vm_profile_records;
  observer.device = devices_[0];
  bool observed = observer.instrument || observer.records;
  program_->Run(function, args.data(), args.size(), result, observed ? &observer : nullptr);
}
void VirtualMachineObj::InvokeClosure(const AnyView& closure, ffi::PackedArgs args, Any* result) {
  if (auto function = As<Function>(closure)) {
    return function->CallPacked(args.data(), args.size(), result);
  }
  auto* object = closure.as<ClosureObj>();
  if (!object) {
    TVM_FFI_THROW(TypeError) << "invoke_closure: expected a closure or a function, got "
                             << closure.GetTypeKey();
  }
  std::vector<AnyView> all{static_cast<void*>(this)};
  all.insert(all.end(), args.data(), args.data() + args.size());
  object->impl.CallPacked(all.data(), static_cast<int32_t>(all.size()), result);
}

int64_t VirtualMachineObj::Require(const String& name) const {
  int64_t i = executable()->Find(View(name));
  if (i < 0 || executable()->functions[i].kind == FunctionKind::kPacked) {
    std::vector<std::string_view> names;
    for (const FunctionInfo& f : executable()->functions) {
      if (f.kind != FunctionKind::kPacked) names.push_back(f.name);
    }
    TVM_FFI_THROW(ValueError) << "VM: there is no function '" << name << "'"
                              << DidYouMean(View(name), names);
  }
  return i;
}

namespace {
std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}
/// In the form of tvm.runtime.profiling.Report.
std::string ReportJson(const std::vector<CallRecord>& records, double total_us) {
  auto text = [](std::string_view value) { return "{\"string\": " + JsonText(value) + "}"; };
  auto time = [](double us) { return "{\"microseconds\": " + std::to_string(us) + "}"; };
  auto device = [](DLDevice d) { return DeviceName(d.device_type) + std::to_string(d.device_id); };
  std::string calls;
  for (const CallRecord& r : records) {
    calls += (calls.empty() ? "" : ", ") + std::string("{\"Name\": ") + text(r.name) +
             ", \"Duration (us)\": " + time(r.microseconds) +
             ", \"Percent\": {\"percent\": " + std::to_string(100 * r.microseconds / total_us) +
             "}, \"Device\": " + text(device(r.device)) +
             ", \"Count\": {\"count\": 1}, \"Argument Shapes\": " + text(r.arguments) + "}";
  }
  std::string where = records.empty() ? "cpu0" : device(records[0].device);
  return "{\"calls\": [" + calls + "], \"device_metrics\": {" + JsonText(where) +
         ": {\"Duration (us)\": " + time(total_us) + "}}, \"configuration\": {}}";
}
const Any& OutputAt(const Any& output, ffi::PackedArgs path, Any* holder) {
  *holder = output;
  for (int i = 0; i < path.size(); ++i) {
    auto tuple = holder->as<Array<Any>>();
    auto index = path[i].cast<int64_t>();
    if (!tuple || index < 0 || index >= static_cast<int64_t>(tuple->size())) {
      TVM_FFI_THROW(IndexError) << "get_output: there is no output " << index;
    }
    *holder = Any((*tuple)[index]);
  }
  return *holder;
}
}  // namespace

/// What the module offers by name besides the functions of the program.
struct VMFunctions {
  using Method = void (*)(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result);

  static void Initialize(VirtualMachineObj* vm, ffi::PackedArgs args, Any*) {
    if (args.size() % 3 != 0) {
      TVM_FFI_THROW(TypeError) << "vm_initialization: expected device type, device index and kind "
                                  "of allocator for each device, got "
                               << args.size() << " arguments";
    }
    std::vector<DLDevice> devices;
    std::vector<AllocatorKind> kinds;
    for (int i = 0; i < args.size(); i += 3) {
      devices.push_back({static_cast<DLDeviceType>(args[i].cast<int>()), args[i + 1].cast<int>()});
      kinds.push_back(static_cast<AllocatorKind>(args[i + 2].cast<int>()));
    }
    vm->Init(std::move(devices), std::move(kinds));
  }
  static void InvokeClosure(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    if (args.size() == 0) TVM_FFI_THROW(TypeError) << "invoke_closure: expected a closure";
    WithCallStack([&] { vm->InvokeClosure(args[0], args.Slice(1), result); });
  }
  /// name, saved name, whether it returns the result, arguments…
  static void SaveFunction(VirtualMachineObj* vm, ffi::PackedArgs args, Any*) {
    auto name = args[0].cast<String>(), saved_name = args[1].cast<String>();
    bool include_return = args[2].cast<bool>();
    int64_t function = vm->Require(name);
    if (vm->executable()->Find(View(saved_name)) >= 0) {
      TVM_FFI_THROW(ValueError) << "save_function: there is a function '" << saved_name
                                << "' already";
    }
    std::vector<Any> values(args.data() + 3, args.data() + args.size());
    // No strong reference to the machine that will own the function: GetFunction adds one.
    auto call = [vm, function, values, include_return](ffi::PackedArgs, Any* result) {
      std::vector<AnyView> views(values.begin(), values.end());
      Any value;
      WithCallStack([&] {
        vm->Invoke(function, {views.data(), static_cast<int32_t>(views.size())}, &value);
      });
      if (include_return) *result = std::move(value);
    };
    std::unique_lock lock(vm->state_->mutex);
    vm->state_->saved.insert_or_assign(std::string(View(saved_name)), Function::FromPacked(call));
  }
  static void SetInput(VirtualMachineObj* vm, ffi::PackedArgs args, Any*) {
    auto name = args[0].cast<String>();
    std::vector<Any> values(args.data() + 1, args.data() + args.size());
    StoreInputs(vm, name, std::move(values));
  }
  /// The last argument is a module whose get_params returns the parameters behind the others.
  static void SetInputWithParamModule(VirtualMachineObj* vm, ffi::PackedArgs args, Any*) {
    auto name = args[0].cast<String>();
    std::vector<Any> values(args.data() + 1, args.data() + args.size() - 1);
    auto params = args[args.size() - 1].cast<Module>();
    Any all = runtime::GetFunction(params, "get_params")();
    for (const Any& value : all.cast<Array<Any>>()) values.push_back(value);
    StoreInputs(vm, name, std::move(values));
  }
  static void StoreInputs(VirtualMachineObj* vm, const String& name, std::vector<Any> values) {
    const FunctionInfo& f = vm->executable()->functions[vm->Require(name)];
    if (values.size() != f.params.size()) {
      TVM_FFI_THROW(ValueError) << "set_input: expected " << f.params.size() << " arguments for '"
                                << name << "', got " << values.size();
    }
    if (vm->devices_.empty()) TVM_FFI_THROW(RuntimeError) << "VM: call vm_initialization first";
    for (Any& value : values) value = ToDevice(value, vm->devices_[0]);
    std::unique_lock lock(vm->state_->mutex);
    vm->state_->inputs[std::string(View(name))] = std::move(values);
    vm->has_inputs_.store(true, std::memory_order_release);
  }
  static void InvokeStateful(VirtualMachineObj* vm, ffi::PackedArgs args, Any*) {
    auto name = args[0].cast<String>();
    int64_t function = vm->Require(name);
    std::string key(View(name));
    std::vector<Any> inputs;
    {
      std::shared_lock lock(vm->state_->mutex);
      auto it = vm->state_->inputs.find(key);
      if (it == vm->state_->inputs.end()) {
        TVM_FFI_THROW(VMStateError)
            << "invoke_stateful: no inputs are set for '" << name << "'; call set_input first";
      }
      inputs = it->second;
    }
    std::vector<AnyView> views(inputs.begin(), inputs.end());
    Any output;
    WithCallStack(
        [&] { vm->Invoke(function, {views.data(), static_cast<int32_t>(views.size())}, &output); });
    std::unique_lock lock(vm->state_->mutex);
    vm->state_->outputs[key] = std::move(output);
  }
  /// name, then indices into nested tuples
  static void GetOutput(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    Any holder;
    *result = OutputAt(FindOutput(vm, args[0].cast<String>()), args.Slice(1), &holder);
  }
  /// -1: no tuple.
  static void GetOutputArity(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    Any holder;
    const Any& at = OutputAt(FindOutput(vm, args[0].cast<String>()), args.Slice(1), &holder);
    auto tuple = at.as<Array<Any>>();
    *result = tuple ? static_cast<int64_t>(tuple->size()) : int64_t{-1};
  }
  static Any FindOutput(VirtualMachineObj* vm, const String& name) {
    std::shared_lock lock(vm->state_->mutex);
    auto it = vm->state_->outputs.find(std::string(View(name)));
    if (it == vm->state_->outputs.end()) {
      TVM_FFI_THROW(VMStateError) << "get_output: '" << name
                                  << "' has no output yet; call invoke_stateful first";
    }
    return it->second;
  }
  static void GetFunctionArity(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    int64_t i = vm->Require(args[0].cast<String>());
    *result = static_cast<int64_t>(vm->executable()->functions[i].params.size());
  }
  static void GetFunctionParamName(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    const auto& names = vm->executable()->functions[vm->Require(args[0].cast<String>())].params;
    auto i = args[1].cast<int64_t>();
    if (i < 0 || i >= static_cast<int64_t>(names.size())) {
      TVM_FFI_THROW(IndexError) << "get_function_param_name: expected an index below "
                                << names.size() << ", got " << i;
    }
    *result = String(names[i]);
  }
  /// JSON; "" when it is not known.
  static void GetFunctionSignature(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    *result = String(vm->executable()->functions[vm->Require(args[0].cast<String>())].signature);
  }
  /// What the program keeps under a name; None before it was written.
  static void GetState(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    *result = vm->GetState(args[0].cast<String>());
  }
  static void SetState(VirtualMachineObj* vm, ffi::PackedArgs args, Any*) {
    if (vm->devices_.empty()) TVM_FFI_THROW(RuntimeError) << "VM: call vm_initialization first";
    Tensor copy = CopyOf(args[1].cast<Tensor>());
    vm->SetState(args[0].cast<String>(), ToDevice(copy, vm->devices_[0]).cast<Tensor>());
  }
  /// A function or the name of a global one; None removes it.
  static void SetInstrument(VirtualMachineObj* vm, ffi::PackedArgs args, Any*) {
    std::optional<Function> function;
    if (auto name = args[0].as<String>()) {
      function = Function::GetGlobalRequired(*name);
    } else if (args[0] != nullptr) {
      function = Cast<Function>(args[0], "set_instrument");
    }
    std::unique_lock lock(vm->state_->mutex);
    vm->state_->instrument = function;
    vm->has_instrument_.store(function.has_value(), std::memory_order_release);
  }
  /// Runs a function once and returns the time of each call, as JSON.
  static void Profile(VirtualMachineObj* vm, ffi::PackedArgs args, Any* result) {
    int64_t function = vm->Require(args[0].cast<String>());
    std::vector<CallRecord> records;
    Any ignored;
    WithCallStack([&] { vm->Invoke(function, args.Slice(1), &ignored); });  // warms caches up
    auto* outer = std::exchange(vm_profile_records, &records);
    auto begin = std::chrono::steady_clock::now();
    try {
      WithCallStack([&] { vm->Invoke(function, args.Slice(1), &ignored); });
    } catch (...) {
      vm_profile_records = outer;
      throw;
    }
    vm_profile_records = outer;
    std::chrono::duration<double, std::micro> total = std::chrono::steady_clock::now() - begin;
    *result = String(ReportJson(records, total.count()));
  }
  struct Row {
    const char* name;
    int min_args;
    Method method;
  };
  static const Row* Find(std::string_view name, bool profiles) {
    static constexpr Row kRows[] = {
        {"vm_initialization", 0, &Initialize},
        {"invoke_closure", 1, &InvokeClosure},
        {"save_function", 3, &SaveFunction},
        {"set_input", 1, &SetInput},
        {"set_input_with_param_module", 2, &SetInputWithParamModule},
        {"invoke_stateful", 1, &InvokeStateful},
        {"get_output", 1, &GetOutput},
        {"get_output_arity", 1, &GetOutputArity},
        {"get_function_arity", 1, &GetFunctionArity},
        {"get_function_param_name", 2, &GetFunctionParamName},
        {"get_function_signature", 1, &GetFunctionSignature},
        {"get_state", 1, &GetState},
        {"set_state", 2, &SetState},
        {"set_instrument", 1, &SetInstrument},
        {"profile", 1, &Profile},
    };
    for (const Row& row : kRows) {
      if (row.name == name && (profiles || row.method != &Profile)) return &row;
    }
    return nullptr;
  }
};

Optional<Function> VirtualMachineObj::GetFunction(const String& name) {
  auto self = ffi::GetRef<Module>(this);
  if (const auto* row = VMFunctions::Find(View(name), profiles_)) {
    return Function::FromPacked([self, this, row](ffi::PackedArgs args, Any* result) {
      if (args.size() < row->min_args) {
        TVM_FFI_THROW(TypeError) << row->name << ": expected at least " << row->min_args
                                 << " arguments, got " << args.size();
      }
      row->method(this, args, result);
    });
  }
  if (View(name) == kFunctionNames) return executable_->GetFunction(name);
  std::string key(View(name));
  {
    std::shared_lock lock(state_->mutex);
    if (auto it = state_->saved.find(key); it != state_->saved.end()) {
      return Function::FromPacked([self, saved = it->second](ffi::PackedArgs args, Any* result) {
        saved.CallPacked(args, result);
      });
    }
  }
  int64_t i = executable()->Find(key);
  if (i < 0 || executable()->functions[i].kind == FunctionKind::kPacked) return std::nullopt;
  return Function::FromPacked([self, this, i, key](ffi::PackedArgs args, Any* result) {
    if (has_inputs_.load(std::memory_order_acquire)) {
      std::shared_lock lock(state_->mutex);
      if (state_->inputs.count(key)) {
        TVM_FFI_THROW(VMStateError)
            << "VM: the inputs of '" << key << "' are set; call invoke_stateful instead";
      }
    }
    WithCallStack([&] { Invoke(i, args, result); });
  });
}

namespace {
Module MakeMachine(const Module& executable, std::vector<DLDevice> devices, AllocatorKind kind) {
  if (!dynamic_cast<const ExecutableObj*>(executable.get())) {
    TVM_FFI_THROW(ValueError) << "VirtualMachine: expected an executable, got a module of kind '"
                              << executable->kind() << "'";
  }
  auto machine = ffi::make_object<VirtualMachineObj>(executable, /*profiles=*/false);
  std::vector<AllocatorKind> kinds(devices.size(), kind);
  machine->Init(std::move(devices), std::move(kinds));
  return Module(machine);
}
}  // namespace

VirtualMachine::VirtualMachine(const Module& executable, std::vector<DLDevice> devices,
                               AllocatorKind kind)
    : executable_(executable), module_(MakeMachine(executable, std::move(devices), kind)) {}
const FunctionInfo& VirtualMachine::info(const String& name) const {
  auto* program = static_cast<const ExecutableObj*>(executable_.get());
  int64_t i = program->Find(View(name));
  if (i < 0) TVM_FFI_THROW(ValueError) << "VM: there is no function '" << name << "'";
  return program->functions[i];
}
}  // namespace tvm::runtime::vm
