// SPDX-License-Identifier: Apache-2.0
// Passes: one function and one registration each. Their context, their order, their instruments.
#pragma once
#include <functional>

#include "tvm/ir/module.h"

namespace tvm::transform {

struct PassContext;

/// What is known of a pass: its name, the level it belongs to and the passes that must run before.
struct PassInfoObj : NodeObj {
  int64_t opt_level = 0;
  String name;
  Array<String> required;
  bool traceable = false;
  static void Fields(auto&& def) {
    def("opt_level", &PassInfoObj::opt_level);
    def("name", &PassInfoObj::name);
    def("required", &PassInfoObj::required, Default(Array<String>()));
    def("traceable", &PassInfoObj::traceable, Default(false));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("transform.PassInfo", PassInfoObj, NodeObj);
};
struct PassInfo : ObjectRef {
  PassInfo(int64_t opt_level, String name, Array<String> required = {}, bool traceable = false);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PassInfo, ObjectRef, PassInfoObj);
};

/// A program transformation.
struct PassObj : NodeObj {
  PassInfo info;
  static constexpr uint32_t _type_child_slots = 4;
  static void Fields(auto&& def) { def("info", &PassObj::info); }
  virtual ~PassObj() = default;
  virtual IRModule Run(IRModule mod, const PassContext& ctx) const = 0;
  TVM_FFI_DECLARE_OBJECT_INFO("transform.Pass", PassObj, NodeObj);
};
struct Pass : ObjectRef {
  /// Runs the pass under the current context, with its instruments.
  IRModule operator()(IRModule mod) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Pass, ObjectRef, PassObj);
};

/// A pass given by a function (module, context) -> module.
struct ModulePassObj : PassObj {
  Function pass_func;
  static void Fields(auto&& def) {
    def("pass_func", &ModulePassObj::pass_func);
    def("info", &PassObj::info);
  }
  IRModule Run(IRModule mod, const PassContext& ctx) const override;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("transform.ModulePass", ModulePassObj, PassObj);
};
struct ModulePass : Pass {
  ModulePass(Function pass_func, PassInfo info);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ModulePass, Pass, ModulePassObj);
};

/// Passes one after the other: those that the context enables, each after the passes it requires.
struct SequentialObj : PassObj {
  Array<Pass> passes;
  static void Fields(auto&& def) {
    def("passes", &SequentialObj::passes);
    def("info", &PassObj::info);
  }
  IRModule Run(IRModule mod, const PassContext& ctx) const override;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("transform.Sequential", SequentialObj, PassObj);
};
struct Sequential : Pass {
  explicit Sequential(Array<Pass> passes, String name = "sequential");
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Sequential, Pass, SequentialObj);
};

/// Observes (and may skip) passes. Absent callbacks do nothing.
struct PassInstrumentObj : NodeObj {
  String name;
  Optional<Function> enter_pass_ctx, exit_pass_ctx;
  Optional<Function> should_run;  // (module, info) -> bool
  Optional<Function> run_before_pass, run_after_pass;
  static constexpr uint32_t _type_child_slots = 1;
  static void Fields(auto&& def) {
    def("name", &PassInstrumentObj::name);
    def("enter_pass_ctx_fn", &PassInstrumentObj::enter_pass_ctx, Default(nullptr));
    def("exit_pass_ctx_fn", &PassInstrumentObj::exit_pass_ctx, Default(nullptr));
    def("should_run_fn", &PassInstrumentObj::should_run, Default(nullptr));
    def("run_before_pass_fn", &PassInstrumentObj::run_before_pass, Default(nullptr));
    def("run_after_pass_fn", &PassInstrumentObj::run_after_pass, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO("instrument.PassInstrument", PassInstrumentObj, NodeObj);
};
TVM_NODE_REF(PassInstrument, ObjectRef, PassInstrumentObj);

/// Options that hold while passes run. Unknown keys and wrong types are errors that name them.
struct PassContextObj : NodeObj {
  int64_t opt_level = 2;
  Array<String> required_pass, disabled_pass;
  Array<PassInstrument> instruments;
  Map<String, Any> config;
  static void Fields(auto&& def) {
    def("opt_level", &PassContextObj::opt_level, Default(2));
    def("required_pass", &PassContextObj::required_pass, Default(Array<String>()));
    def("disabled_pass", &PassContextObj::disabled_pass, Default(Array<String>()));
    def("instruments", &PassContextObj::instruments, Default(Array<PassInstrument>()));
    def("config", &PassContextObj::config, Default(Map<String, Any>()));
  }
  void Init();
  bool Enables(const PassInfo& info) const;
  /// A registered option: what the context says, else its default.
  template <class T>
  T GetConfig(const String& key) const {
    return ConfigValue(key).cast<T>();
  }
  Any ConfigValue(const String& key) const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("transform.PassContext", PassContextObj, NodeObj);
};
struct PassContext : ObjectRef {
  /// The innermost context of this thread, or the default one.
  static PassContext Current();
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PassContext, ObjectRef, PassContextObj);
};

// ---- definition -------------------------------------------------------------------------------
/// DefConfig<bool>("tir.disable_vectorize", false, "Keeps loops scalar."): an option of
/// PassContext.
void RegisterConfig(const char* key, Any fallback, const char* doc, TypeSchemaFn schema,
                    bool (*accepts)(const Any&));
template <class T>
void DefConfig(const char* key, Any fallback, const char* doc) {
  RegisterConfig(key, std::move(fallback), doc, &ffi::detail::TypeSchema<T>::v,
                 [](const Any& value) { return value.try_cast<T>().has_value(); });
}

/// What a pass says of itself beside its function.
struct PassTraits {
  Array<String> required = {};  ///< Passes that must run before.
  int64_t opt_level = 0;
  const char* name = nullptr;  ///< In PassInfo; by default "tir.X" for "tir.transform.X".
};
void RegisterPass(FnInfo* info, TVMFFISafeCallType call, int32_t function_type, PassTraits traits);

/// DefPass("tir.transform.UnrollLoop", &UnrollLoop, "before -> after", {}, Arg("auto_max_step",
/// 0)), where UnrollLoop is `PrimFunc (PrimFunc, int64_t auto_max_step)` or `IRModule (IRModule,
/// ...)`, gives Python `tvm.tir.transform.UnrollLoop(auto_max_step=None)`, which returns a Pass. An
/// option is what the caller gave, else PassContext(config={"tir.UnrollLoop": {"auto_max_step":
/// 4}}), else the default. A pass over functions runs on those of the module that are of its class.
template <class R, class First, class... A, class... P>
void DefPass(const char* name, R (*fn)(First, A...), const char* doc, PassTraits traits,
             P... options) {
  static_assert(sizeof...(A) == sizeof...(P),
                "one Arg per option; the first parameter is the program");
  using Ref = std::remove_cvref_t<First>;
  int32_t type = std::is_same_v<Ref, IRModule> ? -1 : Ref::ContainerType::RuntimeTypeIndex();
  RegisterPass(MakeFnInfo(name, fn, doc, {Arg("program"), std::move(options)...}),
               &CallTyped<R, First, A...>, type, std::move(traits));
}
/// TVM_PASS(tir, UnrollLoop, "doc", Arg(...)): name, function and file agree.
#define TVM_PASS(part, fn, doc, ...)                                                             \
  TVM_REGISTER() {                                                                               \
    ::tvm::transform::DefPass(#part ".transform." #fn, &fn, doc, {} __VA_OPT__(, ) __VA_ARGS__); \
  }
/// A registered pass by its name "tir.UnrollLoop", with the options given (None: not given).
Pass GetPass(const String& name, const Array<Any>& options = {});

}  // namespace tvm::transform
