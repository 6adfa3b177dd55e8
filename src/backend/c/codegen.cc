// SPDX-License-Identifier: Apache-2.0
// The parts of a C file that belong to the whole of it: types, constants, names, the order of
// declarations.
#include "backend/c/codegen.h"

#include <tvm/ffi/extra/module.h>

#include <array>
#include <charconv>
#include <cmath>

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/source.h"

namespace tvm::codegen::c {

void Unsupported(const std::string& what, const Optional<Span>& span) {
  TVM_FFI_THROW(NotImplementedError) << ShowSpan(span) << "C code generation: " << what;
  TVM_FFI_UNREACHABLE();
}

// ---- types --------------------------------------------------------------------------------------
int HolderBits(DataType t) {
  for (int bits : {8, 16, 32}) {
    if (t.bits() <= bits) return bits;
  }
  return 64;
}
bool IsPacked(DataType t) { return t.is_integer() && t.bits() < 8; }
std::string TypeName(DataType t) {
  if (t.is_bool()) return "bool";
  if (t.is_handle()) return "void*";
  if (t.is_integer()) {
    return (t.is_uint() ? "uint" : "int") + std::to_string(HolderBits(t)) + "_t";
  }
  if (t.is_float16()) return "uint16_t";
  if (t.is_ieee_float() && t.bits() == 32) return "float";
  if (t.is_ieee_float() && t.bits() == 64) return "double";
  Unsupported("expected float types to be legalised to float16, float32 or float64, got " +
              t.str());
}
std::string MemoryName(DataType t) {
  return t.is_bool() || IsPacked(t) ? "uint8_t" : TypeName(t.element());
}
std::string ShortName(DataType t) {
  const char* kind = t.is_bool()    ? "b"
                     : t.is_int()   ? "i"
                     : t.is_uint()  ? "u"
                     : t.is_float() ? "f"
                                    : "p";
  return kind + std::to_string(t.bits());
}

// ---- constants ----------------------------------------------------------------------------------
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\' || c == '?') {  // ?: trigraphs
      out += '\\', out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 32 || c > 126) {
      char octal[8];
      std::snprintf(octal, sizeof(octal), "\\%03o", c);
      out += octal;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}
Value Number(DataType t, int64_t value) {
  Value v;
  v.literal = true, v.index = t.is_index(), v.nonnegative = value >= 0;
  if (t.is_bool()) {
    v.text = value ? "true" : "false";
  } else if (t.is_uint()) {
    std::string digits = std::to_string(static_cast<uint64_t>(value));
    v.text =
        HolderBits(t) == 64 ? "UINT64_C(" + digits + ")" : digits + (t.bits() == 32 ? "u" : "");
  } else if (value == INT64_MIN) {
    v.text = "INT64_MIN";
  } else if (value == INT32_MIN) {
    v.text = "INT32_MIN";
  } else {
    bool is_long = value > INT32_MAX || value < INT32_MIN;
    std::string digits = std::to_string(value);
    v.text = is_long ? "INT64_C(" + digits + ")" : digits;
    if (value < 0 && !is_long) v.level = kUnary;
  }
  return v;
}
Value Number(DataType t, double value) {
  Value v;
  v.literal = true;
  const char* suffix = t.bits() == 32 ? "f" : "";
  if (t.is_float16()) {
    // The bits of the number: exact, by way of the nearest float16's value.
    double rounded = RoundToFloatType(value, t), size = std::fabs(rounded);
    int bits = std::signbit(rounded) ? 0x8000 : 0;
    if (std::isnan(rounded)) {
      bits |= 0x7e00;
    } else if (std::isinf(rounded)) {
      bits |= 0x7c00;
    } else if (size < 0x1p-14) {
      bits |= static_cast<int>(size * 0x1p24);
    } else {
      int exponent = std::ilogb(size);
      bits |= ((exponent + 14) << 10) + static_cast<int>(std::ldexp(size, 10 - exponent));
    }
    char text[48];
    std::snprintf(text, sizeof(text), "0x%04x /* %g */", bits, rounded);
    v.text = text;
  } else if (std::isnan(value) || std::isinf(value)) {
    v.text = std::string(t.bits() == 64 ? "(double)" : "") + (std::signbit(value) ? "-" : "") +
             (std::isnan(value) ? "NAN" : "INFINITY");
    v.level = kUnary;
  } else {
    std::array<char, 64> text;
    auto result = t.bits() == 32
                      ? std::to_chars(text.begin(), text.end(), static_cast<float>(value))
                      : std::to_chars(text.begin(), text.end(), value);
    v.text = std::string(text.begin(), result.ptr);
    if (v.text.find_first_of(".e") == std::string::npos) v.text += ".0";
    v.text += suffix;
    if (std::signbit(value)) v.level = kUnary;
  }
  return v;
}
std::string Identifier(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "_" + out;
  return out;
}

// ---- names --------------------------------------------------------------------------------------
namespace {
/// Words of C and C++, and names of the headers the file includes that its text uses.
constexpr const char* kReserved[] = {
    "alignas",   "alignof",   "and",       "asm",        "auto",      "bool",     "break",
    "case",      "catch",     "char",      "class",      "compl",     "const",    "continue",
    "decltype",  "default",   "delete",    "do",         "double",    "else",     "enum",
    "explicit",  "export",    "extern",    "false",      "float",     "for",      "friend",
    "goto",      "if",        "inline",    "int",        "long",      "main",     "mutable",
    "namespace", "new",       "noexcept",  "not",        "nullptr",   "operator", "or",
    "private",   "protected", "public",    "register",   "restrict",  "return",   "short",
    "signed",    "sizeof",    "static",    "struct",     "switch",    "template", "this",
    "throw",     "true",      "try",       "typedef",    "typeid",    "typename", "typeof",
    "union",     "unsigned",  "using",     "virtual",    "void",      "volatile", "wchar_t",
    "while",     "xor",       "NULL",      "NAN",        "INFINITY",  "DLTensor", "TVMFFIAny",
    "memcpy",    "memset",    "malloc",    "free",       "vsnprintf", "va_list",  "fma",
    "fmaf",      "sqrt",      "sqrtf",     "floor",      "floorf",    "ceil",     "ceilf",
    "trunc",     "truncf",    "nearbyint", "nearbyintf", "fabs",      "fabsf",    "copysign",
    "copysignf", "fmod",      "fmodf",     "linux",      "unix",      "errno",    "assert",
    "unix",      "size_t",    "stdin",     "stdout",     "stderr",    "isnan"};

/// Names of C functions that a body calls.
void AddExternNames(const Stmt& body, std::unordered_set<std::string>* names) {
  PostOrderVisit(body, [&](const ObjectRef& node) {
    auto* call = node.as<CallObj>();
    if (!call || !call->op.as<OpObj>() || call->args.empty()) return;
    if (!call->Is(builtin::call_extern()) && !call->Is(builtin::call_pure_extern())) return;
    if (auto* name = call->args[0].as<StringImmObj>()) names->insert(std::string(name->value));
  });
}
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
ModuleText::ModuleText(const FunctionList& functions)
    : functions_(functions), reserved_(std::begin(kReserved), std::end(kReserved)) {
  MarkStatusFunctions(&functions_);
  for (size_t i = 0; i < functions_.size(); ++i) {
    const auto& [var, info] = functions_[i];
    by_name_.emplace(var->name_hint, i);
    AddExternNames(info.func->body, &reserved_);
    std::string symbol = SymbolOf(info);
    if (symbol != Identifier(symbol)) {
      TVM_FFI_THROW(ValueError)
          << "C code generation: expected the name of a function to be an identifier of C, got '"
          << info.symbol << "'";
    }
    if (!reserved_.insert(symbol).second) {
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
std::string ModuleText::UniqueGlobal(const std::string& name) {
  std::string unique = name;
  for (int i = 1; !globals_.insert(unique).second || reserved_.count(unique); ++i)
    unique = name + std::to_string(i);
  return unique;
}
std::string ModuleText::PackedSlot(const std::string& name) {
  std::string& slot = slots_[name];
  if (slot.empty()) {
    slot = UniqueGlobal("tvm_packed_" + Identifier(name));
    extern_text_ += "static void* " + slot + " = NULL;\n";
  }
  return slot;
}
void ModuleText::DeclareExtern(const std::string& name, const std::string& result,
                               const std::vector<std::string>& params) {
  std::string list;
  for (const std::string& p : params) list += (list.empty() ? "" : ", ") + p;
  std::string type = result + " " + name + "(" + (list.empty() ? "void" : list) + ")";
  auto [it, is_new] = extern_types_.emplace(name, type);
  if (!is_new && it->second != type) {
    Unsupported("expected all uses of the external function " + name +
                " to have the same types of arguments and result");
  }
  if (is_new) extern_text_ += "extern " + type + ";\n";
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
  std::string list;
  for (const std::string& p : params) list += (list.empty() ? "" : ", ") + p;
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
