// SPDX-License-Identifier: Apache-2.0
// The parts of a C file that belong to the whole of it: names, the order of declarations, the
// header.
#include "backend/c/codegen.h"

#include <tvm/ffi/extra/module.h>

#include <set>

#include "tvm/expr/op.h"

namespace tvm::codegen::c {

// ---- names --------------------------------------------------------------------------------------
namespace {
/// Names of the headers the file includes that its text uses.
constexpr const char* kHeaderNames[] = {"DLTensor",  "TVMFFIAny", "malloc", "free",
                                        "vsnprintf", "va_list",   "linux",  "unix",
                                        "errno",     "stdin",     "stdout", "stderr"};

constexpr const char* kPreamble = R"(#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/extra/c_env_api.h>

/* What C99 has no words for; other compilers do without. */
#if defined(__GNUC__)
#define TVM_RESTRICT __restrict__
#define TVM_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define TVM_WEAK __attribute__((weak, visibility("default")))
#define TVM_EXPORT __attribute__((visibility("default")))
#define TVM_PREFETCH(address) __builtin_prefetch(address)
#define TVM_ATOMIC_LOAD(address) __atomic_load_n(address, __ATOMIC_ACQUIRE)
#define TVM_ATOMIC_STORE(address, value) __atomic_store_n(address, value, __ATOMIC_RELEASE)
#else
#define TVM_RESTRICT
#define TVM_ALIGNED(bytes)
#define TVM_WEAK
#define TVM_EXPORT
#define TVM_PREFETCH(address) ((void)(address))
#define TVM_ATOMIC_LOAD(address) (*(address))
#define TVM_ATOMIC_STORE(address, value) ((void)(*(address) = (value)))
#endif

#ifdef __cplusplus
extern "C" {
#endif
)";
constexpr const char* kEnd = R"(
#ifdef __cplusplus
}
#endif
)";
}  // namespace

// ---- functions that return a status -------------------------------------------------------------
const CallObj* StatusCheck(const IfThenElseObj* op) {
  auto* differs = op->condition.as<NEObj>();
  auto* call = differs && IsConstInt(differs->b, 0) ? differs->a.as<CallObj>() : nullptr;
  auto* leaves = op->then_case.as<EvaluateObj>();
  auto* ret = leaves ? leaves->value.as<CallObj>() : nullptr;
  bool matches = call && call->op.as<GlobalVarObj>() && !op->else_case && ret &&
                 ret->Is(builtin::ret()) && IsConstInt(ret->args[0], -1);
  return matches ? call : nullptr;
}
namespace {
/// Functions whose int32 result is looked at otherwise than as a status, or is none.
struct ValueUses : Visitor<ValueUses, IfThenElseObj, EvaluateObj, CallObj> {
  std::set<std::string> called, handed_on;  // handed_on: `return f()`
  bool returns_values = false;
  void Visit(const IfThenElseObj* op) {
    if (auto* call = StatusCheck(op)) return VisitChildren(call, *this);
    VisitChildren(op, *this);
  }
  void Visit(const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    if (call && call->Is(builtin::ret()) && call->args.size() == 1) {
      auto* inner = call->args[0].as<CallObj>();
      auto* var = inner ? inner->op.as<GlobalVarObj>() : nullptr;
      if (var) {
        handed_on.insert(std::string(var->name_hint));
        return VisitChildren(inner, *this);
      }
    }
    if (call && call->op.as<GlobalVarObj>()) return VisitChildren(call, *this);
    VisitChildren(op, *this);
  }
  void Visit(const CallObj* op) {
    if (auto* var = op->op.as<GlobalVarObj>()) called.insert(std::string(var->name_hint));
    if (op->Is(builtin::ret())) {
      auto* status = op->args.empty() ? nullptr : op->args[0].as<IntImmObj>();
      returns_values |= !status || (status->value != 0 && status->value != -1);
    }
    VisitChildren(op, *this);
  }
};
/// MakePackedAPI gives plain functions an int32 status as their result: they return 0 or -1, and
/// callers only hand that on.
void MarkStatusFunctions(FunctionList* functions) {
  std::set<std::string> values;
  std::vector<ValueUses> uses(functions->size());
  auto is_value = [&](size_t i) {
    const auto& [var, info] = (*functions)[i];
    return !info.internal || !(info.result == DataType::Int(32)) ||
           values.count(std::string(var->name_hint));
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto& [var, info] = (*functions)[i];
    uses[i](info.func->body);
    values.insert(uses[i].called.begin(), uses[i].called.end());
    if (uses[i].returns_values) values.insert(std::string(var->name_hint));
  }
  for (size_t before = values.size() + 1; before != values.size();) {
    before = values.size();
    for (size_t i = 0; i < uses.size(); ++i) {
      if (is_value(i) && !(*functions)[i].second.packed)
        values.insert(uses[i].handed_on.begin(), uses[i].handed_on.end());
    }
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    if (!is_value(i)) (*functions)[i].second.result = DataType::Void();
  }
}
}  // namespace

// ---- the file -----------------------------------------------------------------------------------
ModuleText::ModuleText(const FunctionList& functions, int vector_bits)
    : FileWriter("C", RuntimeHelpers(), "static inline"), functions_(functions) {
  for (const char* name : kHeaderNames) Reserve(name);
  for (auto& [var, info] : functions_)
    info.func = source::Scalarize(info.func, *this, {.bits = vector_bits});
  MarkStatusFunctions(&functions_);
  for (size_t i = 0; i < functions_.size(); ++i) {
    const auto& [var, info] = functions_[i];
    by_name_.emplace(var->name_hint, i);
    ReserveExterns(info.func->body);
    std::string symbol = SymbolOf(info);
    if (symbol != Identifier(symbol)) {
      TVM_FFI_THROW(ValueError)
          << "C code generation: expected the name of a function to be an identifier of C, got '"
          << info.symbol << "'";
    }
    if (!Reserve(symbol)) {
      TVM_FFI_THROW(ValueError) << "C code generation: expected one function of the symbol "
                                << symbol << ", got several";
    }
  }
  // Functions call each other in any order.
  std::string definitions, declarations;
  for (const auto& [var, info] : functions_) {
    FunctionText text(*this, info);
    std::string definition = text.Define();
    definitions += std::exchange(body_, {}) + definition;
    declarations += definition.substr(1, definition.find(") {")) + ";\n";
  }
  body_ = "\n" + declarations + definitions;
}
const FunctionInfo* ModuleText::Find(const std::string& name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &functions_[it->second].second;
}
bool ModuleText::IsStatus(const CallObj* call) const {
  const FunctionInfo* info = Find(std::string(call->op.as<GlobalVarObj>()->name_hint));
  return info && (info->packed || info->result.is_void());
}
std::string ModuleText::SymbolOf(const FunctionInfo& info) const {
  if (info.packed) return ffi::symbol::tvm_ffi_symbol_prefix + info.symbol;
  if (!info.internal) return info.symbol;
  // No function of C's library ends like this.
  std::string name = Identifier(info.symbol);
  return name.back() == '_' ? name : name + "_";
}
std::string ModuleText::PackedSlot(const std::string& name) {
  std::string& slot = slots_[name];
  if (slot.empty()) {
    slot = UniqueGlobal("tvm_packed_" + Identifier(name));
    extern_text_ += "static void* " + slot + " = NULL;\n";
  }
  return slot;
}
std::string ModuleText::Source() const {
  std::string text =
      "/* Made by the C backend of tvm. Compile it with the headers of tvm-ffi, and link it into a "
      "process\n   that has libtvm_ffi. */\n";
  text += kPreamble;
  if (!extern_text_.empty()) text += "\n" + extern_text_;
  if (!helper_text_.empty()) text += "\n" + helper_text_;
  return text + body_ + kEnd;
}
std::string ModuleText::Header() const {
  std::string text =
      "/* Made by the C backend of tvm: functions with the packed interface of tvm-ffi, which give "
      "0, or -1\n   with its error set. */\n#pragma once\n#include <stdbool.h>\n#include "
      "<tvm/ffi/c_api.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const auto& [var, info] : functions_) {
    if (info.internal) continue;
    std::vector<std::string> params;
    for (const Var& p : info.func->params) {
      params.push_back(TypeName(p.dtype()) + " " + Identifier(View(p->name_hint)));
    }
    if (info.packed)
      params = {"void* self", "const TVMFFIAny* args", "int32_t num_args", "TVMFFIAny* result"};
    text += Prototype(info, params) + ";\n";
  }
  return text + "#ifdef __cplusplus\n}\n#endif\n";
}
std::string ModuleText::Prototype(const FunctionInfo& info,
                                  const std::vector<std::string>& params) const {
  std::string list = source::Joined(params);
  bool has_result = !info.packed && !info.result.is_void();
  if (has_result && info.internal) {
    list += (list.empty() ? "" : ", ") + TypeName(info.result) + "* tvm_result";
  }
  std::string result = info.packed                    ? "int"
                       : has_result && !info.internal ? TypeName(info.result)
                                                      : "int32_t";
  return result + " " + SymbolOf(info) + "(" + (list.empty() ? "void" : list) + ")";
}

}  // namespace tvm::codegen::c
