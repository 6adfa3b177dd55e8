// SPDX-License-Identifier: Apache-2.0
// A file of source text: the names at its top level, and the helper functions it needs.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "backend/source/text.h"

namespace tvm::codegen::source {

/// A helper function as text. $N: its name; $T, $F: the types of its result and argument; $U: $T
/// without sign; $W: the unsigned type that C computes $U in; $B: bits of the TIR type; $f: the
/// suffix of C's mathematical functions for $T; $L, $MIN, $MAX: the limits of an integer type.
struct HelperRow {
  const char* name;
  char kind;  ///< Of the type: i(nt), u(int), f(loat), * (any).
  const char* text;
  std::vector<const char*> needs = {};
};
/// The helpers for operators whose results C leaves undefined.
const std::vector<HelperRow>& SharedHelpers();

class FileWriter {
 public:
  /// `language` begins errors: "C". Rows of `helpers` go before those all languages share;
  /// `inline_function` is how a helper that is used in expressions begins.
  FileWriter(std::string language, const std::vector<HelperRow>& helpers,
             std::string inline_function);
  virtual ~FileWriter() = default;

  /// Error for a construct that earlier passes should have lowered or that the language lacks.
  [[noreturn]] void Unsupported(const std::string& what, const Optional<Span>& span = {}) const;
  const std::string& language() const { return language_; }

  /// The name of a helper function, which is then part of the file.
  std::string Helper(const std::string& name, DataType t = {}, DataType from = {});
  /// Declares a function; NotImplementedError when it is used with other types elsewhere.
  void DeclareExtern(const std::string& name, const std::string& result,
                     const std::vector<std::string>& params);
  /// Text at the top level, before the function that is being written.
  void AddTop(const std::string& text) { body_ += text; }
  std::string UniqueGlobal(const std::string& name);
  /// A name that local variables must not hide; false when it is taken.
  bool Reserve(const std::string& name) { return reserved_.insert(name).second; }
  bool IsReserved(const std::string& name) const { return reserved_.count(name); }
  /// Reserves the names of functions that a body calls.
  void ReserveExterns(const Stmt& body);

 protected:
  std::string helper_text_, extern_text_, body_;

 private:
  std::string language_, inline_function_;
  const std::vector<HelperRow>& own_helpers_;
  std::unordered_set<std::string> reserved_, globals_;
  std::set<std::string> helpers_;
  std::map<std::string, std::string> extern_types_;
};

}  // namespace tvm::codegen::source
