// SPDX-License-Identifier: Apache-2.0
// Models for programs in C: a virtual machine, and calls that keep their inputs and outputs.
#include "tvm/runtime/model.h"

#include <tvm/ffi/extra/json.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/hooks.h"
#include "tvm/runtime/thread_pool.h"
#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {
/// A value of a signature, in the form that C reads.
struct ModelValueText {
  std::string name;
  DLDataType dtype{0, 0, 1};
  int32_t ndim = -1;
  std::vector<int64_t> shape;
  std::vector<std::string> dim_texts;
  std::vector<const char*> dim_names;

  TVMModelValue View() const {
    bool known = ndim >= 0;
    return {name.c_str(), dtype, ndim, known ? shape.data() : nullptr,
            known ? dim_names.data() : nullptr};
  }
};

namespace {
using SignatureJson = Map<String, Any>;

/// Heap memory that does not move: C reads pointers into it.
std::unique_ptr<ModelValueText> ReadValue(const SignatureJson& entry) {
  auto value = std::make_unique<ModelValueText>();
  auto get = [&](const char* key) -> Any {
    auto it = entry.find(key);
    return it == entry.end() ? Any(nullptr) : (*it).second;
  };
  if (auto name = get("name").as<String>()) value->name = *name;
  if (auto dtype = get("dtype").as<String>()) value->dtype = ffi::StringToDLDataType(*dtype);
  if (auto ndim = get("ndim").as<int64_t>()) value->ndim = static_cast<int32_t>(*ndim);
  if (auto shape = get("shape").as<Array<Any>>()) {
    value->ndim = static_cast<int32_t>(shape->size());
    for (const Any& dim : *shape) {
      auto extent = dim.as<int64_t>();
      auto text = dim.as<String>();
      value->shape.push_back(extent.value_or(-1));
      value->dim_texts.emplace_back(text ? std::string(View(*text)) : "");
    }
  }
  value->shape.resize(std::max(value->ndim, 0), -1);
  value->dim_texts.resize(value->shape.size());
  for (const std::string& text : value->dim_texts)
    value->dim_names.push_back(text.empty() ? nullptr : text.c_str());
  return value;
}
std::vector<std::unique_ptr<ModelValueText>> ReadValues(const SignatureJson& signature,
                                                        const char* key) {
  std::vector<std::unique_ptr<ModelValueText>> values;
  auto it = signature.find(key);
  if (it == signature.end()) return values;
  for (const Any& entry : (*it).second.cast<Array<Any>>())
    values.push_back(ReadValue(entry.cast<SignatureJson>()));
  return values;
}

thread_local std::string model_error;
/// Runs `body`; an exception becomes -1 and a text.
template <class F>
int Checked(F&& body) {
  try {
    body();
    return 0;
  } catch (const ffi::Error& error) {
    model_error = error.kind() + ": " + error.message();
  } catch (const std::exception& error) {
    model_error = error.what();
  }
  return -1;
}
template <class T>
void Expect(T* pointer, const char* what) {
  if (!pointer) TVM_FFI_THROW(ValueError) << what << ": expected a pointer, got NULL";
}

/// A tensor in memory that the caller keeps.
Tensor Borrow(const DLTensor& tensor) {
  struct Borrowed {
    DLManagedTensor managed{};
    std::vector<int64_t> shape, strides;
  };
  auto owner = std::make_unique<Borrowed>();
  owner->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  owner->managed.dl_tensor = tensor;
  owner->managed.dl_tensor.shape = owner->shape.data();
  if (tensor.strides) {
    owner->strides.assign(tensor.strides, tensor.strides + tensor.ndim);
    owner->managed.dl_tensor.strides = owner->strides.data();
  }
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Borrowed*>(self->manager_ctx);
  };
  Tensor borrowed = Tensor::FromDLPack(&owner->managed);
  owner.release();
  return borrowed;
}
void Flatten(const Any& value, std::vector<Tensor>* tensors) {
  if (auto tuple = value.as<Array<Any>>()) {
    for (const Any& item : *tuple) Flatten(item, tensors);
  } else if (auto tensor = As<Tensor>(value)) {
    tensors->push_back(*tensor);
  } else {
    TVM_FFI_THROW(TypeError) << "TVMModelRun: expected results that are tensors, got "
                             << AnyView(value).GetTypeKey();
  }
}
}  // namespace
}  // namespace tvm::runtime::vm

struct TVMModel {
  tvm::runtime::vm::VirtualMachine machine;
};
struct TVMModelCall {
  tvm::Function function;
  std::vector<std::string> params;
  std::vector<std::unique_ptr<tvm::runtime::vm::ModelValueText>> inputs, outputs;
  std::vector<tvm::Any> values;
  std::vector<tvm::runtime::Tensor> results;
};

// Functions of C are the same ones in any namespace.
namespace tvm::runtime::vm {
extern "C" {
const char* TVMModelError(void) { return model_error.c_str(); }

int TVMModelOpen(const char* path, DLDevice device, TVMModel** model) {
  return Checked([&] {
    Expect(path, "TVMModelOpen: path");
    Expect(model, "TVMModelOpen: model");
    Initialize();
    *model = new TVMModel{VirtualMachine(LoadModule(path), {device})};
  });
}
int TVMModelOpenBytes(const void* bytes, size_t size, DLDevice device, TVMModel** model) {
  return Checked([&] {
    Expect(bytes, "TVMModelOpenBytes: bytes");
    Expect(model, "TVMModelOpenBytes: model");
    Initialize();
    Module library = LoadModuleFromBytes({static_cast<const char*>(bytes), size});
    *model = new TVMModel{VirtualMachine(library, {device})};
  });
}
int TVMModelOpenLinked(const char* prefix, DLDevice device, TVMModel** model) {
  return Checked([&] {
    Expect(prefix, "TVMModelOpenLinked: prefix");
    Expect(model, "TVMModelOpenLinked: model");
    Initialize();
    auto library = Function::GetGlobalRequired("ffi.SystemLib")(prefix).cast<Module>();
    *model = new TVMModel{VirtualMachine(library, {device})};
  });
}
void TVMModelClose(TVMModel* model) { delete model; }

int TVMModelSetNumThreads(int32_t count) {
  return Checked([&] { SetNumThreads(count); });
}
int TVMModelSetAllocator(const TVMModelAllocator* allocator) {
  return Checked([&] {
    Initialize();
    if (allocator) {
      Expect(allocator->alloc, "TVMModelSetAllocator: alloc");
      Expect(allocator->free, "TVMModelSetAllocator: free");
    }
    Allocator::ClearAll();
    if (uint64_t used = GetDeviceAPI(kDLCPU)->Memory({kDLCPU, 0}).used) {
      TVM_FFI_THROW(RuntimeError) << "TVMModelSetAllocator: expected no memory of the former "
                                     "allocator in use, got "
                                  << used << " bytes";
    }
    allocator_hook = allocator ? new TVMModelAllocator(*allocator) : nullptr;
  });
}
int TVMModelSetThreadPool(const TVMModelThreadPool* pool) {
  return Checked([&] {
    if (pool) Expect(pool->run, "TVMModelSetThreadPool: run");
    if (pool && pool->num_threads < 1) {
      TVM_FFI_THROW(ValueError) << "TVMModelSetThreadPool: expected at least one thread, got "
                                << pool->num_threads;
    }
    SetNumThreads(pool ? pool->num_threads : 0);
    thread_pool_hook = pool ? new TVMModelThreadPool(*pool) : nullptr;
  });
}
int TVMModelSetLog(void (*write)(void* self, const char* text), void* self) {
  return Checked([&] {
    auto to_stdout = [](String text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    };
    auto to_program = [write, self](String text) { write(self, text.c_str()); };
    auto function = write ? Function::FromTyped(to_program) : Function::FromTyped(to_stdout);
    Function::SetGlobal("runtime.write_stdout", function, /*override=*/true);
  });
}

int TVMModelNewCall(TVMModel* model, const char* function, TVMModelCall** call) {
  return Checked([&] {
    Expect(model, "TVMModelNewCall: model");
    Expect(function, "TVMModelNewCall: function");
    Expect(call, "TVMModelNewCall: call");
    auto made = std::make_unique<TVMModelCall>();
    made->function = model->machine[function];
    const FunctionInfo& info = model->machine.info(function);
    made->params = info.params;
    made->values.resize(info.params.size());
    if (!info.signature.empty()) {
      auto signature = ffi::json::Parse(info.signature).cast<Map<String, Any>>();
      made->inputs = ReadValues(signature, "inputs");
      made->outputs = ReadValues(signature, "outputs");
    }
    *call = made.release();
  });
}
void TVMModelFreeCall(TVMModelCall* call) { delete call; }
int32_t TVMModelNumInputs(const TVMModelCall* call) {
  return static_cast<int32_t>(call->params.size());
}
int32_t TVMModelNumOutputs(const TVMModelCall* call) {
  return static_cast<int32_t>(call->outputs.size());
}

}  // extern "C"
namespace {
void ReadModelValue(const std::vector<std::unique_ptr<ModelValueText>>& values, const char* what,
                    int32_t index, TVMModelValue* value) {
  Expect(value, what);
  if (index < 0 || static_cast<size_t>(index) >= values.size()) {
    TVM_FFI_THROW(IndexError) << what << ": expected an index below " << values.size() << ", got "
                              << index;
  }
  *value = values[index]->View();
}
}  // namespace
extern "C" {

int TVMModelInput(const TVMModelCall* call, int32_t index, TVMModelValue* value) {
  return Checked([&] { ReadModelValue(call->inputs, "TVMModelInput", index, value); });
}
int TVMModelOutput(const TVMModelCall* call, int32_t index, TVMModelValue* value) {
  return Checked([&] { ReadModelValue(call->outputs, "TVMModelOutput", index, value); });
}
int TVMModelSetInput(TVMModelCall* call, const char* name, const DLTensor* tensor) {
  return Checked([&] {
    Expect(call, "TVMModelSetInput: call");
    Expect(name, "TVMModelSetInput: name");
    Expect(tensor, "TVMModelSetInput: tensor");
    auto it = std::find(call->params.begin(), call->params.end(), name);
    if (it == call->params.end()) {
      std::vector<std::string_view> known(call->params.begin(), call->params.end());
      TVM_FFI_THROW(ValueError) << "TVMModelSetInput: there is no input '" << name << "'"
                                << DidYouMean(name, known);
    }
    call->values[it - call->params.begin()] = Borrow(*tensor);
  });
}
int TVMModelRun(TVMModelCall* call) {
  return Checked([&] {
    Expect(call, "TVMModelRun: call");
    for (size_t i = 0; i < call->values.size(); ++i) {
      if (call->values[i] == nullptr)
        TVM_FFI_THROW(ValueError) << "TVMModelRun: the input '" << call->params[i]
                                  << "' is not set";
    }
    call->results.clear();
    std::vector<AnyView> views(call->values.begin(), call->values.end());
    Any result;
    call->function.CallPacked(views.data(), static_cast<int32_t>(views.size()), &result);
    Flatten(result, &call->results);
  });
}
int TVMModelGetOutput(TVMModelCall* call, int32_t index, const DLTensor** tensor) {
  return Checked([&] {
    Expect(call, "TVMModelGetOutput: call");
    Expect(tensor, "TVMModelGetOutput: tensor");
    if (index < 0 || static_cast<size_t>(index) >= call->results.size()) {
      TVM_FFI_THROW(IndexError) << "TVMModelGetOutput: expected an index below "
                                << call->results.size() << ", got " << index;
    }
    *tensor = call->results[index].GetDLTensorPtr();
  });
}
}  // extern "C"
}  // namespace tvm::runtime::vm
