// SPDX-License-Identifier: Apache-2.0
// C-like text: expressions with what is known of their values, types, constants, names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "backend/host_function.h"

namespace tvm::codegen::source {

/// How tightly the outermost operator of an expression binds.
enum Level { kChoice, kOr, kAnd, kEqual, kCompare, kBits, kSum, kProduct, kUnary, kPrimary };

/// An expression.
struct Value {
  std::string text;
  Level level = kPrimary;
  bool index = false;        ///< Computed from loop and shape variables alone.
  bool nonnegative = false;  ///< Known of signed numbers.
  bool reads = false;        ///< Depends on memory: must be evaluated before later effects.
  bool literal = false;

  /// The text as an operand of an operator of this level.
  std::string At(Level least) const { return level < least ? "(" + text + ")" : text; }
};
/// An expression made from others.
Value Made(std::string text, Level level, const std::vector<Value>& from);
Value Infix(const Value& a, const char* symbol, const Value& b, Level level);
Value CastTo(const std::string& type, const Value& v);
/// A function applied to operands.
Value Apply(const std::string& function, const std::vector<Value>& args);
/// The value of statements.
Value Nothing();

// ---- types ----
std::string TypeName(DataType t);    ///< In expressions: bool, int32_t, float, void*.
std::string MemoryName(DataType t);  ///< In memory: bool and what is below a byte are uint8_t.
std::string ShortName(DataType t);   ///< In names of helpers: i32, u8, f16.
/// Bits of the C type that holds an integer type.
int HolderBits(DataType t);
bool IsPacked(DataType t);  ///< Elements below a byte.
/// The type of the elements a pointer variable points to; void where it does not say.
DataType ElementTypeOf(const Var& var);
/// The C type of a variable.
std::string PointerType(const Var& var);

// ---- constants and names ----
/// A string literal.
std::string Quoted(std::string_view text);
/// A constant of a numeric type.
Value Number(DataType t, int64_t value);
Value Number(DataType t, double value);
/// The numbers of an array, as they stand between braces.
std::string NumberList(DataType t, const char* bytes, size_t size);
/// The name with what is not allowed in it replaced.
std::string Identifier(std::string_view name);
/// "a, b, c"
std::string Joined(const std::vector<std::string>& parts);
/// Words of C and C++, and names of functions and macros that the text uses.
const std::vector<const char*>& ReservedNames();

}  // namespace tvm::codegen::source
