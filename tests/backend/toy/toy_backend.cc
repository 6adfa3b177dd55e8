// SPDX-License-Identifier: Apache-2.0
// A backend in one file, as somebody outside would add it: kernels as text through backend/source,
// a module that runs them. (Its row is in the test.) The toy device is this processor: the threads
// of a launch are the turns of loops, so that threads cannot wait for each other.
#include <dlfcn.h>
#include <tvm/ffi/extra/module.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backend/source/function.h"
#include "tir/threads.h"
#include "tvm/runtime/device.h"

namespace tvm::codegen::toy {
using source::FileWriter, source::FunctionWriter, source::MemoryName, source::PointerType;

class KernelText : public FunctionWriter {
 public:
  using FunctionWriter::FunctionWriter;
  /// void name(toy_value* args): the parameters, then the extents of the launch.
  std::string Define() {
    const Array<Var>& params = info_.func->params;
    for (size_t i = 0; i < params.size(); ++i) {
      std::string field = params[i].dtype().is_handle()  ? "p"
                          : params[i].dtype().is_float() ? "f"
                                                         : "i";
      std::string type = PointerType(params[i]);
      Line(type + " " + Bind(params[i], true) + " = (" + type + ")args[" + std::to_string(i) +
           "]." + field + ";");
    }
    Gen(info_.func->body);
    return "\nvoid " + info_.symbol + "(toy_value* args) {\n" + code_ + "}\n";
  }

 private:
  using FunctionWriter::Emit;
  void Emit(const AttrStmtObj* op) final {
    const IterVarObj* iv = LaunchedThread(op);
    if (!iv) return FunctionWriter::Emit(op);
    std::string extent = Gen(op->value).text, type = source::TypeName(iv->var.dtype());
    std::string index = Bind(iv->var, true, true);
    Block("for (" + type + " " + index + " = 0; " + index + " < " + extent + "; ++" + index + ")",
          op->body);
    Line("}");
  }
  void Emit(const AssertStmtObj* op) final {
    Line("if (!" + Gen(op->condition).At(source::kUnary) + ") abort();");
    Gen(op->body);
  }
  void Emit(const AllocateObj* op) final {
    int64_t count = op->ConstantSize();
    if (count <= 0) Unsupported("memory of unknown size", op->span);
    element_[op->buffer_var.get()] = op->dtype.element();
    Line(MemoryName(op->dtype.element()) + " " + Bind(op->buffer_var) + "[" +
         std::to_string(count) + "];");
    Gen(op->body);
  }
  std::string ConstantArray(const std::string& type, const std::string& name,
                            const std::string& list) const final {
    return "\nstatic const " + type + " " + name + "[] = {" + list + "\n};\n";
  }
};

class KernelFile : public FileWriter {
 public:
  explicit KernelFile(const FunctionList& kernels) : FileWriter("toy", {}, "static inline") {
    for (const auto& [var, info] : kernels) {
      FunctionInfo own = info;
      own.func = source::Scalarize(info.func, *this);
      std::string definition = KernelText(*this, own).Define();
      text_ += std::exchange(body_, {}) + definition;
    }
  }
  std::string Source() const {
    return "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include "
           "<stdlib.h>\n#include <string.h>\n"
           "typedef union { void* p; int64_t i; double f; } toy_value;\n" +
           helper_text_ + extern_text_ + text_;
  }

 private:
  std::string text_;
};

union Argument {
  void* p;
  int64_t i;
  double f;
};

class ToyModuleObj : public ffi::ModuleObj {
 public:
  explicit ToyModuleObj(std::string source) : source_(std::move(source)) {
    std::string folder = (std::filesystem::temp_directory_path() / "toy-XXXXXX").string();
    if (!mkdtemp(folder.data())) TVM_FFI_THROW(OSError) << "cannot make " << folder;
    std::ofstream(folder + "/kernels.c") << source_;
    std::string command =
        "cc -O1 -shared -fPIC -w -o " + folder + "/kernels.so " + folder + "/kernels.c -lm";
    bool compiled = std::system(command.c_str()) == 0;
    if (compiled) library_ = dlopen((folder + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    std::filesystem::remove_all(folder);
    if (!library_) TVM_FFI_THROW(RuntimeError) << "toy: the compiler refused\n" << source_;
  }
  const char* kind() const final { return "toy"; }
  String InspectSource(const String&) const final { return source_; }
  Optional<Function> GetFunction(const String& name) final {
    auto* kernel = reinterpret_cast<void (*)(Argument*)>(dlsym(library_, name.c_str()));
    if (!kernel) return std::nullopt;
    return Function::FromPacked([kernel](ffi::PackedArgs args, ffi::Any*) {
      std::vector<Argument> values(args.size());
      for (int i = 0; i < args.size(); ++i) {
        if (auto pointer = args[i].try_cast<void*>())
          values[i].p = *pointer;
        else if (auto integer = args[i].try_cast<int64_t>())
          values[i].i = *integer;
        else
          values[i].f = args[i].cast<double>();
      }
      kernel(values.data());
    });
  }

 private:
  std::string source_;
  void* library_ = nullptr;
};

TVM_REGISTER() {
  runtime::RegisterDeviceAPI(kDLExtDev, runtime::GetDeviceAPI(kDLCPU));  // the same memory
  Def(
      "target.build.ext_dev",
      [](IRModule mod, Target) {
        KernelFile file(FunctionsOf(mod, "target.build.ext_dev"));
        return ffi::Module(ffi::make_object<ToyModuleObj>(file.Source()));
      },
      "Writes kernels for the toy device.", Arg("mod"), Arg("target"));
}
}  // namespace tvm::codegen::toy
