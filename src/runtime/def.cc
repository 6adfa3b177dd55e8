// SPDX-License-Identifier: Apache-2.0
// The function registry and what Python asks of it.
#include "tvm/runtime/def.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <map>
#include <numeric>

#include "runtime/identity.h"
#include "runtime/own_libraries.h"
#include "tvm/runtime/signals.h"
#include "tvm/runtime/type_of.h"

namespace tvm {
namespace {
std::map<std::string_view, const FnInfo*>& Functions() {
  static auto* table = new std::map<std::string_view, const FnInfo*>();
  return *table;
}
/// What the object layer has under their names, unless somebody replaced it.
std::map<std::string_view, TVMFFIObjectHandle>& Handles() {
  static auto* table = new std::map<std::string_view, TVMFFIObjectHandle>();
  return *table;
}
std::atomic<bool> is_changed{false};
bool IsOwn(void (*registration)()) {
  Dl_info library{};
  dladdr(reinterpret_cast<void*>(registration), &library);
  return library.dli_fname && runtime::IsOwnLibrary(library.dli_fname);
}
/// One type out of a schema; `pos` is behind it afterwards.
std::string ParseType(std::string_view s, size_t* pos) {
  size_t begin = s.find("\"type\":\"", *pos) + 8, end = s.find('"', begin);
  std::string name(s.substr(begin, end - begin)), args;
  *pos = end + 1;
  if (s.substr(*pos, 8) == ",\"args\":") {
    for (*pos += 9; s[*pos] != ']';) {
      if (s[*pos] == ',') {
        ++*pos;
        args += ", ";
      }
      args += ParseType(s, pos);
    }
    ++*pos;
  }
  ++*pos;  // the closing brace
  if (name.rfind("ffi.", 0) == 0) name = name.substr(4);
  if (name == "String") name = "str";
  return args.empty() ? name : name + "[" + args + "]";
}
/// Frames of which nothing but a mangled name is known tell a user nothing: what is left is where
/// the error was raised, and what Python did.
void DropUnknownFrames(ffi::Error* error) {
  static const bool keep = std::getenv("TVM_FULL_BACKTRACE") != nullptr;
  std::string all = error->backtrace();
  if (keep || all.find("File \"<unknown>\"") == std::string::npos) return;
  std::string kept;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = std::min(all.find('\n', begin), all.size() - 1) + 1;
    std::string_view line = std::string_view(all).substr(begin, end - begin);
    if (line.find("File \"<unknown>\"") == std::string_view::npos) kept += line;
    begin = end;
  }
  TVMFFIByteArray bytes{kept.data(), kept.size()};
  error->UpdateBacktrace(&bytes, kTVMFFIBacktraceUpdateModeReplace);
}
/// tvm-ffi says which text is no type; this adds the type that may have been meant.
void NameNearestType(ffi::Error* error) {
  constexpr std::string_view said = "unknown dtype `";
  std::string message = error->message();
  size_t at = message.rfind(said);
  if (at == std::string::npos || message.back() != '`') return;
  at += said.size();
  std::string_view got = std::string_view(message).substr(at, message.size() - 1 - at);
  message += DidYouMean(got, {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
                              "uint32", "uint64", "float16", "float32", "float64", "bfloat16",
                              "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "handle"});
  if (message.back() == '?') *error = ffi::Error(error->kind(), message, error->backtrace());
}
}  // namespace

std::vector<void (*)()>& Registrations() {
  static auto* list = new std::vector<void (*)()>();
  return *list;
}
int AddRegistration(void (*fn)()) {
  Registrations().push_back(fn);
  return 0;
}
void Initialize() {
  auto batch = std::exchange(Registrations(), {});
  // A library comes after those that it needs.
  if (!batch.empty() && !IsOwn(batch.back())) runtime::NoteChange();
  for (auto fn : batch) fn();
}
void runtime::NoteChange() { is_changed = true; }
bool runtime::IsChanged() {
  if (is_changed) return true;
  return std::any_of(Handles().begin(), Handles().end(), [](const auto& entry) {
    // A virtual machine looks its functions up when it is made.
    if (entry.first.starts_with("vm.builtin.")) return false;
    auto now = ffi::Function::GetGlobal(entry.first);
    return !now || now->get() != entry.second;
  });
}
/// Called by the Python package after loading a library.
extern "C" TVM_FFI_DLL_EXPORT int __tvm_ffi_Init(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) {
  try {
    Initialize();
    return 0;
  } catch (...) {
    return ReportException();
  }
}

std::string TypeOf(const ffi::AnyView& value) {
  std::string key = value.GetTypeKey();
  return key == "ffi.SmallStr" || key == "ffi.String" ? "str" : key;
}
std::string PrettyType(std::string_view schema) {
  size_t pos = 0;
  return ParseType(schema, &pos);
}
namespace {
/// The type of a value that was refused; of a container with those of its elements, one of which
/// is what is wrong. None among them is.
std::string Refused(const ffi::AnyView& got) {
  std::vector<std::string> types;
  auto add = [&](const Any& element) {
    std::string type = TypeOf(element);
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  };
  if (auto* array = got.as<ffi::ArrayObj>()) std::for_each(array->begin(), array->end(), add);
  if (auto* map = got.as<ffi::MapObj>()) {
    for (const auto& [key, value] : *map) add(value);
  }
  if (std::find(types.begin(), types.end(), "None") != types.end()) types = {"None"};
  std::string text = TypeOf(got);
  for (size_t i = 0; i < types.size(); ++i) text += (i == 0 ? " with " : ", ") + types[i];
  return text;
}
/// What to write where a value of the wrong type is often written.
const char* Advice(const ffi::AnyView& got, const std::string& want) {
  if (got.type_index() == ffi::TypeIndex::kTVMFFITensor && want == "ir.PrimExpr") {
    return "; an expression has no data yet: use an element of a te.placeholder, and numpy for "
           "arrays";
  }
  bool is_class = got.type_index() == ffi::TypeIndex::kTVMFFIFunction;
  return is_class && want == "DataType" ? "; write its name, such as 'float32'" : "";
}
}  // namespace

void ThrowWrongType(const ffi::AnyView& got, TypeSchemaFn expected) {
  TVM_FFI_THROW(TypeError) << "expected " << PrettyType(expected()) << ", got " << Refused(got);
  TVM_FFI_UNREACHABLE();
}
void ThrowBadArg(const FnInfo* info, int i, const ffi::AnyView& got, TypeSchemaFn expected) {
  std::string want = PrettyType(expected());
  TVM_FFI_THROW(TypeError) << info->name << ": parameter '" << info->args[i].name << "': expected "
                           << want << ", got " << Refused(got) << Advice(got, want);
  TVM_FFI_UNREACHABLE();
}
void CheckCount(const FnInfo* info, int expected, int got) {
  if (expected != got)
    TVM_FFI_THROW(TypeError) << info->name << ": expected " << expected << " arguments, got "
                             << got;
}
int ReportException() noexcept {
  try {
    throw;
  } catch (ffi::Error& e) {
    NameNearestType(&e);
    DropUnknownFrames(&e);
    ffi::detail::SetSafeCallRaised(e);
  } catch (Interrupt& e) {
    DropUnknownFrames(&e.error);
    ffi::detail::SetSafeCallRaised(e.error);
  } catch (const std::bad_alloc&) {
    ffi::detail::SetSafeCallRaised(ffi::Error("MemoryError", "out of memory", ""));
  } catch (const std::exception& e) {
    ffi::detail::SetSafeCallRaised(ffi::Error("InternalError", e.what(), ""));
  }
  return -1;
}
const FnInfo* FindFunction(std::string_view name) {
  auto it = Functions().find(name);
  return it == Functions().end() ? nullptr : it->second;
}
std::vector<std::string_view> ListFunctions(std::string_view prefix) {
  std::vector<std::string_view> names;
  for (auto it = Functions().lower_bound(prefix); it != Functions().end(); ++it) {
    if (it->first.substr(0, prefix.size()) != prefix) break;
    names.push_back(it->first);
  }
  return names;
}
std::string DidYouMean(std::string_view got, const std::vector<std::string_view>& names) {
  size_t best = std::max<size_t>(2, got.size() / 3) + 1;
  std::string_view nearest;
  for (std::string_view name : names) {
    // Levenshtein distance, one row at a time.
    std::vector<size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 0; i < got.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i + 1);
      for (size_t j = 0; j < name.size(); ++j) {
        size_t replace = diagonal + (std::tolower(got[i]) != std::tolower(name[j]));
        diagonal = row[j + 1];
        row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() < best) {
      best = row.back();
      nearest = name;
    }
  }
  return nearest.empty() ? "" : ", did you mean '" + std::string(nearest) + "'?";
}
void RegisterFunction(FnInfo* info, TVMFFISafeCallType call) {
  if (ffi::Function::GetGlobal(info->name)) {
    TVM_FFI_THROW(ImportError) << "the function " << info->name
                               << " is already registered in this process";
  }
  TVMFFIObjectHandle fn;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionCreate(info, call, nullptr, &fn));
  TVMFFIByteArray name{info->name, std::char_traits<char>::length(info->name)};
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIFunctionSetGlobal(&name, fn, 0));
  Functions()[info->name] = info;
  Handles()[info->name] = fn;  // a reference: nothing else gets its address
}

Array<Any> Describe(const char* doc, const std::vector<Arg>& args,
                    const std::vector<TypeSchemaFn>& schemas) {
  Array<String> names, types;
  Array<Any> defaults;
  for (const Arg& a : args) {
    names.push_back(a.name);
    if (a.has_default) defaults.push_back(a.value);
  }
  for (auto schema : schemas) types.push_back(PrettyType(schema()));
  return {String(doc), names, defaults, types};
}

namespace {
/// What Describe says of a registered function, or None.
Any DescribeFunction(String name) {
  const FnInfo* f = FindFunction(std::string_view(name.data(), name.size()));
  return f ? Any(Describe(f->doc, f->args, f->schemas)) : Any(nullptr);
}
Array<String> ListFunctionNames(String prefix) {
  Array<String> names;
  for (std::string_view name : ListFunctions({prefix.data(), prefix.size()})) {
    names.push_back(String(std::string(name)));
  }
  return names;
}
TVM_REGISTER() {
  Def("ir.DescribeFunction", &DescribeFunction, "", Arg("name"));
  Def("ir.ListFunctions", &ListFunctionNames, "", Arg("prefix"));
}
}  // namespace
}  // namespace tvm
