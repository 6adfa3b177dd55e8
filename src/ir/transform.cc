// SPDX-License-Identifier: Apache-2.0
// Running passes; the pass context; the registries of passes and options.
#include "tvm/ir/transform.h"

#include <atomic>
#include <chrono>
#include <map>

#include "ir/each_function.h"
#include "ir/own_name.h"
#include "ir/target/scope.h"
#include "tvm/ir/callback.h"
#include "tvm/ir/stack.h"
#include "tvm/runtime/thread_pool.h"
#include "tvm/runtime/type_of.h"

namespace tvm::transform {
namespace {
struct PassEntry {
  const FnInfo* info;
  Function run;
  int32_t function_type;  // -1: the pass takes the module
  PassTraits traits;
};
struct ConfigEntry {
  Any fallback;
  const char* doc;
  TypeSchemaFn schema;
  bool (*accepts)(const Any&);
};
/// By short name: "tir.transform.UnrollLoop" is "tir.UnrollLoop".
std::map<std::string, PassEntry, std::less<>>& Passes() {
  static auto* passes = new std::map<std::string, PassEntry, std::less<>>();
  return *passes;
}
std::map<std::string, ConfigEntry, std::less<>>& Configs() {
  static auto* configs = new std::map<std::string, ConfigEntry, std::less<>>();
  return *configs;
}
std::string ShortName(std::string name) {
  if (size_t p = name.find(".transform."); p != std::string::npos) name.erase(p, 10);
  return name;
}
thread_local std::vector<PassContext> contexts;

std::vector<void (*)()>& Forgetters() {
  static auto* list = new std::vector<void (*)()>();
  return *list;
}
struct Preparation {
  int32_t function_type;
  BaseFunc (*prepare)(BaseFunc);
};
std::vector<Preparation>& Preparations() {
  static auto* list = new std::vector<Preparation>();
  return *list;
}
struct ForgetAtEnd {
  ~ForgetAtEnd() {
    for (auto* forget : Forgetters()) forget();
  }
};

template <class... A>
Any CallIfAny(const Optional<Function>& fn, const A&... args) {
  return fn.has_value() ? CallBack(fn.value(), args...) : Any(nullptr);
}
/// The switch of stacks costs more than many a pass on a small function.
void CheckSignalsNowAndThen() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point next;
  if (auto now = Clock::now(); now >= next) {
    OnHomeStack([] { CheckSignals(); });
    next = now + std::chrono::milliseconds(10);
  }
}
}  // namespace

PassInfo::PassInfo(int64_t opt_level, String name, Array<String> required, bool traceable) {
  *this = New<PassInfo>([&](PassInfoObj* n) {
    n->opt_level = opt_level;
    n->name = name;
    n->required = required;
    n->traceable = traceable;
  });
}
ModulePass::ModulePass(Function pass_func, PassInfo info) {
  *this = New<ModulePass>([&](ModulePassObj* n) { n->pass_func = pass_func, n->info = info; });
}
Sequential::Sequential(Array<Pass> passes, String name) {
  *this =
      New<Sequential>([&](SequentialObj* n) { n->passes = passes, n->info = PassInfo(0, name); });
}

void OnFunctionsDone(void (*forget)()) { Forgetters().push_back(forget); }
void BeforeFunctionPasses(int32_t function_type, BaseFunc (*prepare)(BaseFunc)) {
  Preparations().push_back({function_type, prepare});
}

void ForEachFunction(size_t count, const std::function<void(size_t)>& run) {
  constexpr size_t kWorthThreads = 16;
  if (count < kWorthThreads || runtime::NumThreads() == 1) {
    ForgetAtEnd forget;
    for (size_t i = 0; i < count; ++i) run(i);
    return;
  }
  std::atomic<size_t> next{0};
  PassContext ctx = PassContext::Current();
  Target target = Target::Current();
  // The pool's threads know nothing of context and target and begin on small stacks.
  runtime::ParallelRun(runtime::NumThreads(), [&](int, int) {
    TargetScope scope(target);
    ForgetAtEnd forget;
    contexts.push_back(ctx);
    struct Leave {
      ~Leave() { contexts.pop_back(); }
    } leave;
    OnDeepStack([&] {
      for (size_t i; (i = next++) < count;) run(i);
    });
  });
}

// ---- running ----------------------------------------------------------------------------------
IRModule Pass::operator()(IRModule mod) const {
  PassContext ctx = PassContext::Current();
  const PassInfo& info = get()->info;
  for (const PassInstrument& i : ctx->instruments) {
    Any run = CallIfAny(i->should_run, mod, info);
    if (run != nullptr && !run.cast<bool>()) return mod;
  }
  for (const PassInstrument& i : ctx->instruments) CallIfAny(i->run_before_pass, mod, info);
  OnHomeStack([] { CheckSignals(); });
  mod = OnDeepStack([&] { return get()->Run(std::move(mod), ctx); });
  for (const PassInstrument& i : ctx->instruments) CallIfAny(i->run_after_pass, mod, info);
  return mod;
}
IRModule ModulePassObj::Run(IRModule mod, const PassContext& ctx) const {
  Any result = CallBack(pass_func, mod, ctx);
  auto module = result.try_cast<IRModule>();
  if (!module || !module->defined()) {
    TVM_FFI_THROW(TypeError) << info->name << ": expected the pass to return an IRModule, got "
                             << result.GetTypeKey();
  }
  return *module;
}

// ---- context ----------------------------------------------------------------------------------
bool PassContextObj::Enables(const PassInfo& info) const {
  auto has = [&](const Array<String>& names) {
    return std::find(names.begin(), names.end(), info->name) != names.end();
  };
  if (has(disabled_pass)) return false;
  return has(required_pass) || opt_level >= info->opt_level;
}
/// Unknown keys are errors: a misspelt option must not be lost.
void PassContextObj::Init() {
  auto unknown = [](const String& key, const std::vector<std::string_view>& names) {
    TVM_FFI_THROW(ValueError) << "PassContext: expected the name of an option, got '" << key << "'"
                              << DidYouMean(View(key), names);
  };
  auto own = [](const String& name) { return String(OwnName(View(name))); };
  Map<String, Any> named;
  for (const auto& [key, value] : config) named.Set(own(key), value);
  config = named;
  required_pass = required_pass.Map(own);
  disabled_pass = disabled_pass.Map(own);
  for (const auto& [key, value] : config) {
    if (auto it = Configs().find(View(key)); it != Configs().end()) {
      if (!it->second.accepts(value)) {
        TVM_FFI_THROW(TypeError) << "PassContext: expected " << PrettyType(it->second.schema())
                                 << " for the option '" << key << "', got " << TypeOf(value);
      }
      continue;
    }
    auto pass = Passes().find(View(key));
    if (pass == Passes().end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, entry] : Configs()) names.push_back(name);
      for (const auto& [name, entry] : Passes()) names.push_back(name);
      unknown(key, names);
    }
    auto options = value.try_cast<Map<String, Any>>();
    if (!options) {
      TVM_FFI_THROW(TypeError) << "PassContext: expected a dict of options for '" << key
                               << "', got " << TypeOf(value);
    }
    std::vector<std::string_view> names;
    for (const Arg& a : pass->second.info->args) names.push_back(a.name);
    for (const auto& [name, unused] : *options) {
      if (std::find(names.begin() + 1, names.end(), View(name)) == names.end()) {
        TVM_FFI_THROW(ValueError) << "PassContext: " << key << " has no option '" << name << "'"
                                  << DidYouMean(View(name), names);
      }
    }
  }
}
Any PassContextObj::ConfigValue(const String& key) const {
  auto it = config.find(key);
  if (it != config.end()) return (*it).second;
  auto entry = Configs().find(View(key));
  TVM_FFI_ICHECK(entry != Configs().end()) << "no option '" << key << "' is registered";
  return entry->second.fallback;
}
PassContext PassContext::Current() {
  if (!contexts.empty()) return contexts.back();
  static const auto* fallback = new PassContext(New<PassContext>([](PassContextObj*) {}));
  return *fallback;
}

// ---- registries -------------------------------------------------------------------------------
void RegisterConfig(const char* key, Any fallback, const char* doc, TypeSchemaFn schema,
                    bool (*accepts)(const Any&)) {
  Configs()[key] = {std::move(fallback), doc, schema, accepts};
}

namespace {
/// A registered pass over functions with its options bound. What it does to one function depends on
/// no other one.
struct FunctionPassObj : PassObj {
  const PassEntry* entry = nullptr;
  Array<Any> options;
  static void Fields(auto&& def) {
    def("info", &PassObj::info);
    def("options", &FunctionPassObj::options, Default(Array<Any>()));
  }
  void Init() {
    auto it = Passes().find(View(info->name));
    bool is_known = it != Passes().end() && it->second.function_type >= 0;
    if (!is_known || options.size() >= it->second.info->args.size()) {
      TVM_FFI_THROW(ValueError) << "FunctionPass: expected the name of a registered pass over "
                                   "functions with at most its options, got "
                                << info->name << " with " << options.size();
    }
    entry = &it->second;
  }
  /// The arguments of the pass after the function.
  std::vector<Any> Arguments(const PassContext& ctx) const {
    return BindOptions(*entry, options, ctx);
  }
  BaseFunc RunOn(const BaseFunc& func, const std::vector<Any>& arguments) const {
    return CallPass(*entry, func, arguments).cast<BaseFunc>();
  }
  IRModule Run(IRModule mod, const PassContext& ctx) const override;

  static std::vector<Any> BindOptions(const PassEntry& entry, const Array<Any>& options,
                                      const PassContext& ctx);
  static Any CallPass(const PassEntry& entry, const Any& program,
                      const std::vector<Any>& arguments) {
    std::vector<AnyView> views{program};
    views.insert(views.end(), arguments.begin(), arguments.end());
    Any result;
    entry.run.CallPacked(views.data(), static_cast<int>(views.size()), &result);
    return result;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("transform.FunctionPass", FunctionPassObj, PassObj);
};
TVM_NODE_REF(FunctionPass, Pass, FunctionPassObj);

/// What the caller gave, else the context's option, else the default.
std::vector<Any> FunctionPassObj::BindOptions(const PassEntry& entry, const Array<Any>& options,
                                              const PassContext& ctx) {
  Optional<Map<String, Any>> config;
  String name = ShortName(entry.info->name);
  if (ctx->config.count(name)) config = ctx->config[name].cast<Map<String, Any>>();
  std::vector<Any> args;
  for (size_t i = 1; i < entry.info->args.size(); ++i) {
    const Arg& arg = entry.info->args[i];
    Any value = i - 1 < options.size() ? options[i - 1] : Any(nullptr);
    if (value == nullptr)
      value = config && config->count(arg.name) ? (*config)[arg.name] : arg.value;
    args.push_back(value);
  }
  return args;
}

/// Passes over functions, one after the other: all of them on one function before the next, which
/// keeps it in the cache, and functions on several threads.
IRModule RunFunctionPasses(const std::vector<const FunctionPassObj*>& passes, IRModule mod,
                           const PassContext& ctx) {
  std::vector<std::vector<Any>> arguments;
  for (const FunctionPassObj* pass : passes) arguments.push_back(pass->Arguments(ctx));
  struct Work {
    GlobalVar var;
    BaseFunc before, func;
  };
  std::vector<Work> work;
  for (const auto& [var, func] : mod->functions) {
    if (func->type_index() == passes[0]->entry->function_type) work.push_back({var, func, func});
  }
  ForEachFunction(work.size(), [&](size_t i) {
    for (const Preparation& first : Preparations()) {
      if (first.function_type == work[i].func->type_index())
        work[i].func = first.prepare(std::move(work[i].func));
    }
    for (size_t p = 0; p < passes.size(); ++p) {
      CheckSignalsNowAndThen();
      work[i].func = passes[p]->RunOn(work[i].func, arguments[p]);
    }
  });
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const Work& w : work) {
    if (!w.func.same_as(w.before)) functions.Set(w.var, w.func);
  }
  if (functions.same_as(mod->functions)) return mod;
  return IRModule(functions, mod->attrs, mod->global_infos);
}
IRModule FunctionPassObj::Run(IRModule mod, const PassContext& ctx) const {
  return RunFunctionPasses({this}, std::move(mod), ctx);
}
}  // namespace

IRModule SequentialObj::Run(IRModule mod, const PassContext& ctx) const {
  std::vector<const FunctionPassObj*> together;
  auto flush = [&] {
    if (!together.empty()) mod = RunFunctionPasses(together, std::move(mod), ctx);
    together.clear();
  };
  for (const Pass& pass : passes) {
    if (!pass.as<SequentialObj>() && !ctx->Enables(pass->info)) continue;
    auto* of_functions = pass.as<FunctionPassObj>();
    // Instruments want to see the module after each pass.
    if (of_functions && ctx->instruments.empty() && pass->info->required.empty()) {
      if (!together.empty() &&
          together[0]->entry->function_type != of_functions->entry->function_type)
        flush();
      together.push_back(of_functions);
      continue;
    }
    flush();
    for (const String& name : pass->info->required) mod = GetPass(name)(std::move(mod));
    mod = pass(std::move(mod));
  }
  flush();
  return mod;
}

namespace {
Pass BindPass(const PassEntry& entry, const std::string& name, Array<Any> options) {
  PassInfo info(entry.traits.opt_level, entry.traits.name ? entry.traits.name : name,
                entry.traits.required);
  if (entry.function_type >= 0) {
    return New<FunctionPass>([&](FunctionPassObj* n) { n->options = options, n->info = info; });
  }
  auto run = [&entry, options](IRModule mod, PassContext ctx) -> IRModule {
    auto arguments = FunctionPassObj::BindOptions(entry, options, ctx);
    return FunctionPassObj::CallPass(entry, mod, arguments).cast<IRModule>();
  };
  return ModulePass(Function::FromTyped(run), info);
}
/// The Python factory: its parameters are the options.
int MakePass(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
  try {
    auto* info = static_cast<const FnInfo*>(self);
    CheckCount(info, static_cast<int>(info->args.size()), n);
    Array<Any> options;
    for (int i = 0; i < n; ++i) options.push_back(Any(AnyView::CopyFromTVMFFIAny(args[i])));
    *ret = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(Any(GetPass(ShortName(info->name), options)));
    return 0;
  } catch (...) {
    return ReportException();
  }
}
}  // namespace

void RegisterPass(FnInfo* info, TVMFFISafeCallType call, int32_t function_type, PassTraits traits) {
  Passes()[ShortName(info->name)] = {info, Function::FromExternC(info, call, nullptr),
                                     function_type, std::move(traits)};
  auto* factory = new FnInfo{info->name, info->doc, nullptr, {}, {}};
  for (size_t i = 1; i < info->args.size(); ++i) {
    factory->args.emplace_back(info->args[i].name, nullptr);
    factory->schemas.push_back(info->schemas[i]);
  }
  factory->schemas.push_back(&ffi::detail::TypeSchema<Pass>::v);
  RegisterFunction(factory, &MakePass);
}
Pass GetPass(const String& name, const Array<Any>& options) {
  auto it = Passes().find(ShortName(name));
  if (it == Passes().end()) {
    std::vector<std::string_view> names;
    for (const auto& [known, entry] : Passes()) names.push_back(known);
    TVM_FFI_THROW(ValueError) << "GetPass: expected the name of a pass, got '" << name << "'"
                              << DidYouMean(View(name), names);
  }
  return BindPass(it->second, it->first, options);
}

namespace {
void EnterContext(PassContext ctx) {
  contexts.push_back(ctx);
  try {
    for (const PassInstrument& i : ctx->instruments) CallIfAny(i->enter_pass_ctx);
  } catch (...) {
    contexts.pop_back();
    throw;
  }
}
void ExitContext(PassContext ctx) {
  if (contexts.empty() || !contexts.back().same_as(ctx)) {
    TVM_FFI_THROW(RuntimeError)
        << "PassContext: expected contexts to be left in the reverse order of entering";
  }
  contexts.pop_back();
  for (const PassInstrument& i : ctx->instruments) CallIfAny(i->exit_pass_ctx);
}
/// {key: {"type", "default", "doc"}} of all options; a pass's options are a dict.
Map<String, Map<String, Any>> ListConfigs() {
  Map<String, Map<String, Any>> result;
  for (const auto& [key, c] : Configs()) {
    result.Set(key, {{"type", String(PrettyType(c.schema()))},
                     {"default", c.fallback},
                     {"doc", String(c.doc)}});
  }
  for (const auto& [key, pass] : Passes()) {
    Map<String, Any> defaults;
    for (size_t i = 1; i < pass.info->args.size(); ++i) {
      defaults.Set(pass.info->args[i].name, pass.info->args[i].value);
    }
    if (!defaults.empty()) {
      result.Set(key, {{"type", String("Map[str, Any]")},
                       {"default", defaults},
                       {"doc", String(pass.info->doc)}});
    }
  }
  return result;
}

TVM_REGISTER() {
  RegisterNode<PassInfoObj>("What is known of a pass.");
  RegisterBase<PassObj>("A program transformation.");
  RegisterNode<ModulePassObj>("A pass given by a function (module, context) -> module.");
  RegisterNode<FunctionPassObj>("A registered pass over functions.");
  RegisterNode<SequentialObj>("Passes one after the other.");
  RegisterNode<PassInstrumentObj>("Observes (and may skip) passes.");
  RegisterNode<PassContextObj>("Options that hold while passes run.");
  Def(
      "transform.RunPass", [](Pass pass, IRModule mod) { return pass(mod); }, "Applies a pass.",
      Arg("pass_obj"), Arg("mod"));
  Def("transform.GetPass", &GetPass, "A registered pass by its name.", Arg("name"),
      Arg("options", Array<Any>()));
  Def("transform.EnterPassContext", &EnterContext, "", Arg("ctx"));
  Def("transform.ExitPassContext", &ExitContext, "", Arg("ctx"));
  Def("transform.GetCurrentPassContext", [] { return PassContext::Current(); }, "");
  Def("transform.ListConfigs", &ListConfigs, "All options of PassContext.");
  Def(
      "transform.ListPasses",
      [] {
        Array<String> names;
        for (const auto& [key, entry] : Passes())
          names.push_back(entry.traits.name ? entry.traits.name : key);
        return names;
      },
      "The names of all registered passes, as PassContext's lists have them.");
  Def(
      "transform.OverrideInstruments",
      [](PassContext ctx, Array<PassInstrument> instruments) {
        for (const PassInstrument& i : ctx->instruments) CallIfAny(i->exit_pass_ctx);
        const_cast<PassContextObj*>(ctx.get())->instruments = instruments;
        for (const PassInstrument& i : instruments) CallIfAny(i->enter_pass_ctx);
      },
      "Replaces the instruments of an entered context.", Arg("ctx"), Arg("instruments"));
}
}  // namespace
}  // namespace tvm::transform
