// SPDX-License-Identifier: Apache-2.0
// Functions of modules, and packing modules for export.
#include "tvm/runtime/module.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/elf.h"
#include "tvm/runtime/device.h"

namespace tvm::runtime {

Array<String> FunctionNames(const Module& mod) {
  if (auto list = mod->GetFunction(kFunctionNames)) return (*list)().cast<Array<String>>();
  return {};
}

namespace {
std::string Listing(const Array<String>& names) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i ? ", " : "") + std::string(View(names[i]));
  }
  if (names.size() > kShown) text += ", … (" + std::to_string(names.size()) + ")";
  return text;
}
[[noreturn]] void ThrowNoFunction(const Module& mod, const String& name) {
  Array<String> names = FunctionNames(mod);
  // Array hands out copies, and short strings live inside them: views need owners of their own.
  std::vector<std::string> owners(names.begin(), names.end());
  std::vector<std::string_view> views(owners.begin(), owners.end());
  std::string known = names.empty() ? "" : "; its functions are: " + Listing(names);
  TVM_FFI_THROW(AttributeError) << "module of kind '" << mod->kind() << "' has no function '"
                                << name << "'" << DidYouMean(View(name), views) << known;
  TVM_FFI_UNREACHABLE();
}
}  // namespace

Function GetFunction(const Module& mod, const String& name, bool query_imports) {
  auto fn = mod->GetFunction(name, query_imports);
  if (!fn) ThrowNoFunction(mod, name);
  return *fn;
}
Function EntryFunction(const Module& mod) {
  if (auto fn = mod->GetFunction("main")) return *fn;
  Array<String> names = FunctionNames(mod);
  if (names.size() == 1) return GetFunction(mod, names[0]);
  if (names.empty()) ThrowNoFunction(mod, "main");
  TVM_FFI_THROW(AttributeError)
      << "module: expected a function 'main' or only one function to call, "
      << "got: " << Listing(names) << "; write mod[\"name\"](...)";
  TVM_FFI_UNREACHABLE();
}

namespace {
bool IsCompiled(const Module& mod) {
  return mod->GetPropertyMask() & Module::kCompilationExportable;
}

/// Reachable modules in depth-first order, each once.
void Collect(const Module& mod, std::vector<Module>* order) {
  for (const Module& seen : *order) {
    if (seen.same_as(mod)) return;
  }
  order->push_back(mod);
  for (const Any& import : mod->imports()) Collect(import.cast<Module>(), order);
}
void Put(std::string* out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}
void Put(std::string* out, std::string_view text) {
  Put(out, text.size());
  out->append(text);
}
void Put(std::string* out, const std::vector<uint64_t>& values) {
  Put(out, values.size());
  for (uint64_t v : values) Put(out, v);
}
/// All compiled modules become one library: one node of the tree that is packed.
class ImportTree {
 public:
  ImportTree(const Module& root, ApartTensors* apart) : apart_(apart) { Collect(root, &order_); }
  std::string Pack() {
    for (const Module& mod : order_) NodeOf(mod);
    children_.resize(nodes_.size());
    for (const Module& mod : order_) {
      for (const Any& import : mod->imports()) {
        size_t from = NodeOf(mod), to = NodeOf(import.cast<Module>());
        auto& list = children_[from];
        if (from != to && std::find(list.begin(), list.end(), to) == list.end()) list.push_back(to);
      }
    }
    CheckAcyclic();
    if (nodes_.size() == 1 && IsCompiled(nodes_[0])) return "";
    std::vector<uint64_t> begins{0}, flat;
    for (const auto& list : children_) {
      flat.insert(flat.end(), list.begin(), list.end());
      begins.push_back(flat.size());
    }
    std::string body;
    Put(&body, begins);
    Put(&body, flat);
    for (const Module& mod : nodes_) PutModule(&body, mod);
    std::string packed;
    Put(&packed, body.size());
    return packed + body;
  }

 private:
  size_t NodeOf(const Module& mod) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].same_as(mod) || (IsCompiled(nodes_[i]) && IsCompiled(mod))) return i;
    }
    nodes_.push_back(mod);
    return nodes_.size() - 1;
  }
  void PutModule(std::string* out, const Module& mod) {
    if (IsCompiled(mod)) return Put(out, std::string_view("_lib"));
    if (!(mod->GetPropertyMask() & Module::kBinarySerializable)) {
      TVM_FFI_THROW(ValueError) << "export_library: a module of kind '" << mod->kind()
                                << "' can be neither compiled nor saved";
    }
    auto* with_data = apart_ ? dynamic_cast<const ApartData*>(mod.get()) : nullptr;
    ffi::Bytes bytes = with_data ? ffi::Bytes(with_data->SaveApart(apart_)) : mod->SaveToBytes();
    if (bytes.size() == 0) {  // tvm-ffi's reader takes it for the end of the data
      TVM_FFI_THROW(ValueError) << "export_library: a module of kind '" << mod->kind()
                                << "' was saved as no bytes at all";
    }
    Put(out, std::string_view(mod->kind()));
    Put(out, std::string_view(bytes.data(), bytes.size()));
  }
  /// Two compiled modules with a saved one between them would import each other as one library.
  void CheckAcyclic() {
    std::vector<int> state(nodes_.size());
    auto visit = [&](auto&& self, size_t i) -> void {
      state[i] = 1;
      for (size_t child : children_[i]) {
        if (state[child] == 1) {
          TVM_FFI_THROW(ValueError) << "export_library: a module of kind '" << nodes_[i]->kind()
                                    << "' imports compiled code that also imports it";
        }
        if (state[child] == 0) self(self, child);
      }
      state[i] = 2;
    };
    visit(visit, 0);
  }
  ApartTensors* apart_;
  std::vector<Module> order_, nodes_;
  std::vector<std::vector<size_t>> children_;
};
}  // namespace

Array<Module> CompiledModules(const Module& mod) {
  std::vector<Module> all;
  Collect(mod, &all);
  Array<Module> compiled;
  for (const Module& m : all) {
    if (IsCompiled(m)) compiled.push_back(m);
  }
  return compiled;
}
std::string PackImports(const Module& mod, ApartTensors* apart) {
  return ImportTree(mod, apart).Pack();
}

uint64_t ApartTensors::Add(Tensor tensor) {
  uint64_t begin = (size_ + kApartAlignment - 1) / kApartAlignment * kApartAlignment;
  size_ = begin + DataSize(tensor.shape(), tensor.dtype());
  tensors_.push_back(std::move(tensor));
  return begin;
}
std::vector<std::string_view> ApartTensors::Pieces() const {
  std::vector<std::string_view> pieces;
  for (const Tensor& t : tensors_) {
    pieces.emplace_back(static_cast<const char*>(t.data_ptr()) + t.byte_offset(),
                        DataSize(t.shape(), t.dtype()));
  }
  return pieces;
}

ExportSymbols::ExportSymbols(const Module& mod) {
  if (std::string packed = PackImports(mod, &tensors); !packed.empty()) {
    texts[ffi::symbol::tvm_ffi_library_bin] = packed;
  }
  // One library may come from several modules: it needs what all of them need.
  std::map<std::string, std::string> info;
  for (const Module& m : CompiledModules(mod)) {
    auto get = m->GetFunction(kLibraryInfo);
    if (!get) continue;
    for (const auto& [key, value] : (*get)().cast<Map<String, String>>()) {
      std::string& joined = info[std::string(View(key))];
      joined += (joined.empty() ? "" : ",") + std::string(View(value));
    }
  }
  if (!info.empty()) {
    std::string& text = texts[kLibraryInfo] = "format=" + std::to_string(kLibraryFormat) + "\n";
    for (const auto& [key, value] : info) text += key + "=" + value + "\n";
  }
}
DataSymbols ExportSymbols::Pieces() const {
  DataSymbols pieces;
  for (const auto& [name, text] : texts) pieces[name] = {text};
  if (auto data = tensors.Pieces(); !data.empty()) pieces[kLibraryData] = std::move(data);
  return pieces;
}

namespace {
TVM_REGISTER() {
  Def("runtime.ModuleFunctionNames", &FunctionNames,
      "Names of a module's functions, where it can list them.", Arg("mod"));
  Def("runtime.ModuleGetFunction", &GetFunction,
      "A function of a module; names the nearest when it has none.", Arg("mod"), Arg("name"),
      Arg("query_imports", false));
  Def("runtime.ModuleEntryFunction", &EntryFunction, "`main`, or the only function of a module.",
      Arg("mod"));
  Def("runtime.ModuleCompiled", &CompiledModules, "Reachable modules that write code.", Arg("mod"));
  Def(
      "runtime.ObjectGlobalSymbols",
      [](String path) {
        Array<String> names;
        for (const std::string& name : GlobalSymbols(MappedFile(path).bytes()))
          names.push_back(name);
        return names;
      },
      "Global symbols that an object file defines.", Arg("path"));
  Def(
      "runtime.ModuleSaveToBytes", [](Module mod) { return mod->SaveToBytes(); },
      "A module as bytes.", Arg("mod"));
}
}  // namespace
}  // namespace tvm::runtime
