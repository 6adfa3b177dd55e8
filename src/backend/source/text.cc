// SPDX-License-Identifier: Apache-2.0
// C-like text: operators, types, constants, names.
#include "backend/source/text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "tvm/expr/op.h"

namespace tvm::codegen::source {

// ---- expressions --------------------------------------------------------------------------------
Value Made(std::string text, Level level, const std::vector<Value>& from) {
  Value v;
  v.text = std::move(text);
  v.level = level;
  for (const Value& part : from) v.reads |= part.reads;
  return v;
}
Value Infix(const Value& a, const char* symbol, const Value& b, Level level) {
  // a - (b - c), and operands of other operators than sums and products for the reader.
  Level left = level == kSum || level == kProduct ? level : kSum;
  Level right = level == kSum ? kProduct : level == kProduct ? kUnary : kSum;
  return Made(a.At(left) + " " + symbol + " " + b.At(right), level, {a, b});
}
Value CastTo(const std::string& type, const Value& v) {
  Value result = v;
  result.text = "(" + type + ")" + v.At(kUnary);
  result.level = kUnary;
  result.literal = false;
  return result;
}
Value Apply(const std::string& function, const std::vector<Value>& args) {
  std::string text = function + "(";
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + args[i].text;
  return Made(text + ")", kPrimary, args);
}
Value Nothing() { return Number(DataType::Int(32), int64_t{0}); }

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
  if (t.is_float16() || t.is_bfloat16()) return "uint16_t";
  if (t.is_ieee_float() && t.bits() == 32) return "float";
  if (t.is_ieee_float() && t.bits() == 64) return "double";
  TVM_FFI_THROW(NotImplementedError)
      << "code generation: expected float types to be legalised to float16, float32 or float64, "
         "got "
      << t;
  TVM_FFI_UNREACHABLE();
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
DataType ElementTypeOf(const Var& var) {
  auto* pointer = var->type_annotation.as<PointerTypeObj>();
  auto* element = pointer ? pointer->element_type.as<PrimTypeObj>() : nullptr;
  bool says = element && !element->dtype.is_void() && !element->dtype.is_handle();
  return says ? element->dtype.element() : DataType::Void();
}
std::string PointerType(const Var& var) {
  DataType element = ElementTypeOf(var);
  return element.is_void() ? TypeName(var.dtype()) : MemoryName(element) + "*";
}

// ---- constants ----------------------------------------------------------------------------------
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\' || c == '?') {  // ?: trigraphs
      out += '\\';
      out += static_cast<char>(c);
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
  v.literal = true;
  v.index = t.is_index();
  v.nonnegative = value >= 0;
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

std::string NumberList(DataType t, const char* bytes, size_t size) {
  std::string text, type = MemoryName(t);
  auto list = [&](auto number) {
    constexpr size_t kPerLine = 12;
    using T = decltype(number);
    for (size_t i = 0; i < size / sizeof(T); ++i) {
      std::memcpy(&number, bytes + i * sizeof(T), sizeof(T));
      std::string one = std::is_floating_point_v<T>
                            ? Number(t, static_cast<double>(number)).text
                            : Number(t.is_integer() ? t : DataType::UInt(8 * sizeof(T)),
                                     static_cast<int64_t>(number))
                                  .text;
      text += (i % kPerLine == 0 ? "\n    " : " ") + one + ",";
    }
  };
  // Signed numbers keep their sign in int64.
  bool is_int = t.is_int() && !IsPacked(t);
  if (t.is_float() && t.bits() == 32) {
    list(float{});
  } else if (t.is_float() && t.bits() == 64) {
    list(double{});
  } else if (type == "uint8_t" || HolderBits(t) == 8) {
    is_int ? list(int8_t{}) : list(uint8_t{});
  } else if (HolderBits(t) == 16) {
    is_int ? list(int16_t{}) : list(uint16_t{});
  } else if (HolderBits(t) == 32) {
    is_int ? list(int32_t{}) : list(uint32_t{});
  } else {
    is_int ? list(int64_t{}) : list(uint64_t{});
  }
  return text;
}
std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}
const std::vector<const char*>& ReservedNames() {
  static const std::vector<const char*> words = {
      "alignas",   "alignof",   "and",      "asm",       "auto",       "bool",     "break",
      "case",      "catch",     "char",     "class",     "compl",      "const",    "continue",
      "decltype",  "default",   "delete",   "do",        "double",     "else",     "enum",
      "explicit",  "export",    "extern",   "false",     "float",      "for",      "friend",
      "goto",      "if",        "inline",   "int",       "long",       "main",     "mutable",
      "namespace", "new",       "noexcept", "not",       "nullptr",    "operator", "or",
      "private",   "protected", "public",   "register",  "restrict",   "return",   "short",
      "signed",    "sizeof",    "static",   "struct",    "switch",     "template", "this",
      "throw",     "true",      "try",      "typedef",   "typeid",     "typename", "typeof",
      "union",     "unsigned",  "using",    "virtual",   "void",       "volatile", "wchar_t",
      "while",     "xor",       "NULL",     "NAN",       "INFINITY",   "memcpy",   "memset",
      "fma",       "fmaf",      "sqrt",     "sqrtf",     "floor",      "floorf",   "ceil",
      "ceilf",     "trunc",     "truncf",   "nearbyint", "nearbyintf", "fabs",     "fabsf",
      "copysign",  "copysignf", "fmod",     "fmodf",     "assert",     "size_t",   "isnan"};
  return words;
}

}  // namespace tvm::codegen::source
