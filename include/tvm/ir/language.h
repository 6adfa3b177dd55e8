// SPDX-License-Identifier: Apache-2.0
// Languages: how the functions of each become code. Modules mix them.
#pragma once
#include <tvm/ffi/extra/module.h>

#include <functional>
#include <string>
#include <vector>

#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"

namespace tvm {

/// A program without the functions of one language.
struct Compiled {
  IRModule rest;
  /// (module of code of the rest; None when nothing is left) -> module of code of everything. None:
  /// the code of the rest is that of everything.
  Optional<Function> link;
};

/// A language: the class of its functions, and how they are compiled.
struct Language {
  std::string name;      // "tir"; the key of its pipeline
  std::string type_key;  // of its functions: "tir.PrimFunc"
  int level = 0;         // compiled before those of lower levels, which it may be compiled to
  std::function<Compiled(IRModule, Target, Optional<transform::Pass> pipeline)> compile;

  /// The language of a function; TypeError when there is none.
  static const Language& Of(const GlobalVar& var, const BaseFunc& func);
};
/// ValueError when the class has a language.
void RegisterLanguage(Language row);

}  // namespace tvm
