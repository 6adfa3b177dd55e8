// SPDX-License-Identifier: Apache-2.0
// Exporting: the code of all modules, the data of those that have none, and one file of it all.
#include "tvm/driver/export.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <set>

#include "driver/archive.h"
#include "driver/elf_write.h"
#include "runtime/apart_file.h"
#include "runtime/elf.h"
#include "runtime/temporary_folder.h"
#include "tvm/ir/backend.h"
#include "tvm/runtime/module.h"

namespace tvm {
namespace {
namespace fs = std::filesystem;

/// The attribute of a module, and the key of a library's information, that make it a system
/// library.
constexpr const char* kSystemLibPrefix = "system_lib_prefix";
const std::vector<std::string> kObjects = {"o", "obj", "a"}, kSources = {"c", "cc", "cpp", "cu"},
                               kPacked = {"c", "tar"}, kShared = {"so", "dylib", "dll"};

std::string Suffix(const fs::path& path) {
  std::string text = path.extension().string();
  return text.empty() ? "" : text.substr(1);
}
bool IsOneOf(const std::string& suffix, const std::vector<std::string>& list) {
  return std::find(list.begin(), list.end(), suffix) != list.end();
}
bool IsElf(const fs::path& path) {
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  return std::string_view(magic, sizeof(magic)) ==
         "\x7f"
         "ELF";
}

// ---- what is written ----------------------------------------------------------------------------
/// Files with the code of every compiled module, in the first form of `prefer` that it has.
Paths WriteCode(const ffi::Module& mod, const fs::path& folder, bool as_source) {
  std::vector<std::string> prefer = as_source ? kSources : kObjects;
  const std::vector<std::string>& rest = as_source ? kObjects : kSources;
  prefer.insert(prefer.end(), rest.begin(), rest.end());
  Paths files;
  for (const ffi::Module& part : runtime::CompiledModules(mod)) {
    Array<String> formats = part->GetWriteFormats();
    auto format = std::find_if(prefer.begin(), prefer.end(), [&](const std::string& f) {
      return std::find(formats.begin(), formats.end(), String(f)) != formats.end();
    });
    if (format == prefer.end()) {
      std::string known;
      for (const String& f : formats) known += (known.empty() ? "" : ", ") + std::string(f);
      TVM_FFI_THROW(ValueError) << "export_library: expected a module of kind '" << part->kind()
                                << "' to write objects or C, got formats [" << known << "]";
    }
    files.push_back(folder / ("lib" + std::to_string(files.size()) + "." + *format));
    part->WriteToFile(files.back().string(), *format);
  }
  return files;
}
/// Data as C, for a compiler whose machine is not known: as strings, which compilers read much
/// faster than lists of numbers.
std::string DataAsC(const runtime::DataSymbols& symbols) {
  constexpr size_t kPerLine = 4096;
  std::string text;
  for (const auto& [name, pieces] : symbols) {
    std::string data;
    for (std::string_view piece : pieces) {
      data.resize((data.size() + runtime::kApartAlignment - 1) / runtime::kApartAlignment *
                  runtime::kApartAlignment);
      data += piece;
    }
    text += "unsigned char " + name + "[" + std::to_string(data.size()) +
            "] __attribute__((aligned(64))) =\n";
    for (size_t at = 0; at < std::max<size_t>(data.size(), 1); at += kPerLine) {
      text += "\"";
      for (size_t i = at; i < std::min(at + kPerLine, data.size()); ++i) {
        auto c = static_cast<unsigned char>(data.data()[i]);
        char octal[8];
        std::snprintf(octal, sizeof(octal), "\\%03o", c);
        text += octal;
      }
      text += "\"\n";
    }
    text.back() = ';';
    text += "\n";
  }
  return text;
}
void CheckWritten(std::ostream& out, const fs::path& path) {
  if (!out.flush()) TVM_FFI_THROW(OSError) << "export_library: cannot write " << path.string();
}
void CheckDone(const std::error_code& error, const fs::path& path) {
  if (error) {
    TVM_FFI_THROW(OSError) << "export_library: cannot write " << path.string() << ": "
                           << error.message();
  }
}
/// Removes a file that was not finished.
struct Partial {
  fs::path output, path;
  /// Beside its place, so that renaming is atomic and a process that uses the old file keeps it;
  /// with its suffix, which linkers look at.
  explicit Partial(const fs::path& output) : output(output), path(output) {
    path.replace_filename("." + output.stem().string() + "." + std::to_string(getpid()) +
                          output.extension().string());
  }
  ~Partial() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  void Finish() const {
    std::error_code error;
    fs::rename(path, output, error);
    CheckDone(error, output);
  }
};
/// What export adds to the code of a library: in a program that it is linked into nobody can map
/// constants, so that they are part of what is saved.
runtime::ExportSymbols DataOf(const ffi::Module& mod, bool is_linked, const Partial* params) {
  runtime::ExportSymbols symbols(mod);
  if (is_linked) {
    if (std::string packed = runtime::PackImports(mod); !packed.empty())
      symbols.texts[ffi::symbol::tvm_ffi_library_bin] = packed;
    symbols.tensors = {};
  } else if (params) {
    std::ofstream out(params->path, std::ios::binary);
    std::string id = runtime::WriteApartFile(out, symbols.tensors);
    CheckWritten(out, params->output);
    symbols.texts[runtime::kLibraryParams] = params->output.filename().string() + "\n" + id;
    symbols.tensors = {};
  }
  return symbols;
}
/// Something that a compiled module tells about its code.
std::optional<std::string> InfoOf(const ffi::Module& mod, const char* key) {
  for (const ffi::Module& part : runtime::CompiledModules(mod)) {
    auto get = part->GetFunction(runtime::kLibraryInfo);
    if (!get) continue;
    auto info = (*get)().cast<Map<String, String>>();
    if (auto it = info.find(key); it != info.end()) return std::string((*it).second);
  }
  return std::nullopt;
}
/// What a library is made of.
struct Parts {
  Paths files;
  runtime::ExportSymbols data;
  /// Of `data`: what the linker leaves room for, which is written when it is done. It would hold
  /// them in memory, as input and as output.
  runtime::DataSymbols reserved = {};
};
/// Whether the built-in linker, as we call it, makes a shared library of the files.
bool IsLinkedByUs(const Paths& files, const ExportOptions& options) {
  auto is_object = [](const fs::path& file) { return IsOneOf(Suffix(file), kObjects); };
  return (!options.link.has_value() || options.links_objects_as_built_in) &&
         options.link_options.empty() && !Backend::Of(DefaultHost()).join.empty() &&
         std::all_of(files.begin(), files.end(), is_object) &&
         std::all_of(options.addons.begin(), options.addons.end(), is_object);
}
/// All files to link: code, saved imports, and what the caller adds.
Parts Collect(const ffi::Module& mod, const fs::path& folder, const ExportOptions& options,
              bool as_source, bool is_linked, const Partial* params) {
  Paths files = WriteCode(mod, folder, as_source);
  if (files.empty() && !(mod->GetPropertyMask() & ffi::Module::kBinarySerializable)) {
    TVM_FFI_THROW(ValueError) << "export_library: a module of kind '" << mod->kind()
                              << "' holds no code to export";
  }
  Parts parts{{}, DataOf(mod, is_linked, params)};
  parts.data.texts.insert(options.texts.begin(), options.texts.end());
  bool all_sources = std::all_of(files.begin(), files.end(),
                                 [](const fs::path& f) { return IsOneOf(Suffix(f), kSources); });
  // Whoever compiles the sources decides for which processor.
  if (all_sources) parts.data.texts.erase(runtime::kLibraryInfo);
  runtime::DataSymbols symbols = parts.data.Pieces();
  if (!symbols.empty()) {
    auto like = std::find_if(files.begin(), files.end(),
                             [](const fs::path& f) { return Suffix(f) == "o" && IsElf(f); });
    // A program without code is for this machine. With sources we do not know the machine: its
    // compiler will make an object out of C.
    std::string machine = files.empty() ? "/proc/self/exe" : like == files.end() ? "" : *like;
    fs::path data = folder / (machine.empty() ? "data.c" : "data.o");
    if (machine.empty()) {
      WriteFile(data, DataAsC(symbols));
    } else {
      if (!as_source && !is_linked && IsLinkedByUs(files, options)) {
        if (auto tensors = symbols.extract(runtime::kLibraryData))
          parts.reserved.insert(std::move(tensors));
      }
      std::ofstream out(data, std::ios::binary);
      elf::WriteDataObject(out, runtime::MappedFile(machine).bytes(), symbols, parts.reserved);
      CheckWritten(out, data);
    }
    files.push_back(data);
  }
  for (const std::string& addon : options.addons) files.emplace_back(addon);
  parts.files = std::move(files);
  return parts;
}
/// Writes what the linker left room for.
void WriteReserved(const runtime::DataSymbols& reserved, const fs::path& library,
                   const fs::path& output) {
  if (reserved.empty()) return;
  std::string linked = ReadFile(library);
  std::ofstream out(library, std::ios::binary);
  elf::FillReserved(out, linked, reserved);
  CheckWritten(out, output);
}
/// The headers of the modules that are exported as C, beside their sources.
Paths WriteHeaders(const ffi::Module& mod, const fs::path& folder) {
  Paths headers;
  int index = 0;
  for (const ffi::Module& part : runtime::CompiledModules(mod)) {
    Array<String> formats = part->GetWriteFormats();
    if (std::find(formats.begin(), formats.end(), "h") != formats.end()) {
      headers.push_back(folder / ("lib" + std::to_string(index) + ".h"));
      part->WriteToFile(headers.back().string(), "h");
    }
    ++index;
  }
  return headers;
}
/// The files with archives unpacked; ValueError where one is no object.
Paths Objects(const Paths& files, const fs::path& folder, const char* what) {
  Paths objects;
  std::string sources;
  for (const fs::path& file : files) {
    std::string suffix = Suffix(file);
    if (!IsOneOf(suffix, kObjects)) {
      sources += (sources.empty() ? "" : ", ") + file.filename().string();
    } else if (suffix == "a") {
      Paths members = ExtractStaticLibrary(file, folder);
      objects.insert(objects.end(), members.begin(), members.end());
    } else {
      objects.push_back(file);
    }
  }
  if (!sources.empty()) {
    TVM_FFI_THROW(ValueError) << "export_library: expected objects for " << what << ", got sources "
                              << sources;
  }
  return objects;
}
std::string Joined(const Paths& files) {
  std::string text;
  for (const fs::path& file : files) text += ReadFile(file);
  return text;
}
/// What objects offer to the object layer: functions, and data that it fills or reads.
constexpr std::string_view kFunctionPrefix = "__tvm_ffi_";
std::set<std::string> SystemSymbols(const Paths& objects) {
  std::set<std::string> symbols;
  for (const fs::path& object : objects) {
    for (const std::string& symbol : runtime::GlobalSymbols(ReadFile(object))) {
      if (symbol.rfind(kFunctionPrefix, 0) == 0 || symbol.rfind("__TVMBackend", 0) == 0)
        symbols.insert(symbol);
    }
  }
  return symbols;
}
/// The C header of an object or static library.
std::string Header(const Paths& objects, const fs::path& output) {
  std::string declarations, calls, stem = output.stem().string();
  for (char& c : stem) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  auto is_identifier = [](const std::string& s) {
    return std::all_of(s.begin(), s.end(),
                       [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  };
  for (const std::string& symbol : SystemSymbols(objects)) {
    if (!is_identifier(symbol)) continue;
    bool is_function = symbol.rfind(kFunctionPrefix, 0) == 0 &&
                       symbol.size() > kFunctionPrefix.size() &&
                       symbol[kFunctionPrefix.size()] != '_';
    declarations += is_function ? "int " + symbol +
                                      "(void* self, const TVMFFIAny* args, int32_t num_args, "
                                      "TVMFFIAny* result);\n"
                                : "extern char " + symbol + "[];\n";
    calls += "  TVMFFIEnvModRegisterSystemLibSymbol(\"" + symbol + "\", (void*)" + symbol + ");\n";
  }
  return "/* Functions of " + output.filename().string() +
         ", to be linked into a program; made by export_library. */\n"
         "#pragma once\n#include <tvm/ffi/extra/c_env_api.h>\n#ifdef __cplusplus\nextern \"C\" {\n"
         "#endif\n" +
         declarations +
         "\n/* Call it once: the functions are then found in the system library (ffi.SystemLib). "
         "*/\nstatic inline void " +
         stem + "_register(void) {\n" + calls + "}\n#ifdef __cplusplus\n}\n#endif\n";
}

// ---- linking ------------------------------------------------------------------------------------
Array<String> Names(const Paths& files) {
  Array<String> names;
  for (const fs::path& file : files) names.push_back(file.string());
  return names;
}
void Link(const Paths& files, const fs::path& output, bool is_object,
          const ExportOptions& options) {
  Array<String> names = Names(files);
  String to = output.string();
  if (options.link.has_value()) {
    (*options.link)(to, names, is_object);
  } else if (const Backend& host = Backend::Of(DefaultHost()); !is_object) {
    Array<String> words;
    for (const std::string& word : options.link_options) words.push_back(word);
    Function::GetGlobalRequired(host.link)(names, to, words);
  } else if (!host.join.empty()) {
    Function::GetGlobalRequired(host.join)(names, to);
  } else {
    TVM_FFI_THROW(RuntimeError) << "export_library: joining objects needs the built-in linker "
                                   "(libtvm_llvm), which is not installed; export a .a instead";
  }
  if (!fs::exists(output)) {
    TVM_FFI_THROW(RuntimeError) << "export_library: the linker ended well but did not write "
                                << output.string();
  }
}
void Write(const Paths& files, const fs::path& output, const std::string& suffix,
           const fs::path& folder, const ExportOptions& options) {
  if (suffix == "c") {
    for (const fs::path& file : files) {
      if (Suffix(file) != "c") {
        TVM_FFI_THROW(ValueError) << "export_library: expected C sources for a C file, got "
                                  << file.filename().string();
      }
    }
    WriteFile(output, Joined(files));
  } else if (suffix == "tar") {
    WriteTar(files, output);
  } else if (suffix == "a") {
    WriteStaticLibrary(Objects(files, folder, "a static library"), output);
  } else if (suffix == "o" || suffix == "obj") {
    Paths objects = Objects(files, folder, "an object file");
    if (objects.size() == 1) {
      std::error_code error;
      fs::copy_file(objects[0], output, fs::copy_options::overwrite_existing, error);
      CheckDone(error, output);
    } else {
      Link(objects, output, true, options);
    }
  } else {
    Link(files, output, false, options);
  }
}
/// Adds an object that registers all functions when the program starts, for code that was built as
/// a system library.
void AddRegistration(const ffi::Module& mod, const fs::path& folder, Paths* files) {
  if (!InfoOf(mod, kSystemLibPrefix)) return;
  Array<String> symbols;
  for (const std::string& symbol : SystemSymbols(Objects(*files, folder, "a system library")))
    symbols.push_back(symbol);
  Target target{String(InfoOf(mod, "target").value())};
  files->push_back(folder / "register.o");
  Function::GetGlobalRequired("codegen.write_registration")(symbols, target,
                                                            files->back().string());
}
}  // namespace

void CheckFolderOf(const std::string& path) {
  fs::path output(path);
  if (output.has_parent_path() && !fs::is_directory(output.parent_path())) {
    TVM_FFI_THROW(FileNotFoundError)
        << "export_library: the folder of '" << path << "' does not exist";
  }
}
namespace {
/// The new file takes the place of the old one, which must not be a folder or a device.
void CheckIsReplaceable(const fs::path& output) {
  std::error_code missing;
  fs::file_status status = fs::status(output, missing);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  TVM_FFI_THROW(OSError) << "export_library: expected the name of a file to write, got '"
                         << output.string() << "', which is "
                         << (fs::is_directory(status) ? "a folder" : "no regular file");
}
}  // namespace
void CheckSuffixOf(const std::string& path) {
  std::string suffix = Suffix(path), known;
  for (const auto* list : {&kShared, &kObjects, &kPacked}) {
    if (IsOneOf(suffix, *list)) return;
    for (const std::string& s : *list) known += (known.empty() ? "." : ", .") + s;
  }
  TVM_FFI_THROW(ValueError) << "expected a file that ends in one of " << known << ", got '" << path
                            << "'";
}
void ExportLibrary(const ffi::Module& mod, const std::string& path, const ExportOptions& options) {
  fs::path output(path);
  CheckFolderOf(path);
  CheckIsReplaceable(output);
  if (!options.params.empty()) CheckIsReplaceable(options.params);
  if (!options.workspace.empty() && !fs::is_directory(options.workspace)) {
    TVM_FFI_THROW(FileNotFoundError)
        << "export_library: the folder workspace_dir='" << options.workspace << "' does not exist";
  }
  runtime::TemporaryFolder temporary;
  fs::path folder = options.workspace.empty() ? temporary.path : fs::path(options.workspace);
  std::string suffix = Suffix(output);
  bool is_packed = IsOneOf(suffix, kPacked), is_linked = IsOneOf(suffix, kObjects);
  std::optional<Partial> params;
  if (!options.params.empty()) {
    params.emplace(fs::path(options.params));
    if (is_packed || is_linked || params->output.parent_path() != output.parent_path()) {
      TVM_FFI_THROW(ValueError)
          << "export_library: expected a shared library and a file of parameters in its folder, "
             "got '"
          << path << "' and '" << options.params << "'";
    }
  }
  Parts parts = Collect(mod, folder, options, options.as_source || is_packed, is_linked,
                        params ? &*params : nullptr);
  Paths& files = parts.files;
  if (is_linked) AddRegistration(mod, folder, &files);
  Paths headers = is_packed ? WriteHeaders(mod, folder) : Paths();
  Partial partial(output);
  Paths members = files;
  if (suffix == "tar") members.insert(members.end(), headers.begin(), headers.end());
  Write(members, partial.path, suffix, folder, options);
  WriteReserved(parts.reserved, partial.path, output);
  fs::path header = output;
  header.replace_extension(".h");
  if (suffix == "c") WriteFile(header, Joined(headers));
  if (is_linked) WriteFile(header, Header(Objects(files, folder, "a header"), output));
  if (params) params->Finish();
  partial.Finish();
}

TVM_REGISTER() {
  Def(
      "driver.ExportLibrary",
      [](ffi::Module mod, String path) { ExportLibrary(mod, std::string(path)); },
      "Writes a compiled module with everything it imports; the suffix says as what.", Arg("mod"),
      Arg("path"));
  Def(
      "driver.ExportLibraryWith",
      [](ffi::Module mod, String path, Array<String> addons, String workspace, bool as_source,
         Array<String> link_options, Optional<Function> link, String params,
         bool links_objects_as_built_in) {
        ExportOptions options;
        options.addons.assign(addons.begin(), addons.end());
        options.workspace = workspace;
        options.as_source = as_source;
        options.link_options.assign(link_options.begin(), link_options.end());
        options.link = link;
        options.params = params;
        options.links_objects_as_built_in = links_objects_as_built_in;
        ExportLibrary(mod, path, options);
      },
      "The same with options; `link(output, files, is_object)` replaces the built-in linker, or "
      "calls it where `links_objects_as_built_in`.",
      Arg("mod"), Arg("path"), Arg("addons"), Arg("workspace"), Arg("as_source"),
      Arg("link_options"), Arg("link", nullptr), Arg("params", String("")),
      Arg("links_objects_as_built_in", false));
  Def(
      "driver.ExtractStaticLibrary",
      [](String library, String folder) {
        return Names(ExtractStaticLibrary(std::string(library), std::string(folder)));
      },
      "Extracts the objects of a static library.", Arg("library"), Arg("folder"));
}
}  // namespace tvm
