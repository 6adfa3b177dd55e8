// SPDX-License-Identifier: Apache-2.0
// A toy language of two nodes: recipes of steps that change a number. All that C++ has to say.
#include "tvm/ir/language.h"

#include "tvm/expr/builtin.h"
#include "tvm/expr/op.h"
#include "tvm/script/language.h"
#include "tvm/tir/function.h"

namespace toy {
using namespace tvm;

/// x = x + argument, x * argument, or argument(x) for another recipe of the module.
struct StepObj : NodeObj {
  String kind;
  Any argument;  // int64_t or GlobalVar
  static void Fields(auto&& def) {
    def("kind", &StepObj::kind);
    def("argument", &StepObj::argument);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("toy.Step", StepObj, NodeObj);
};
TVM_NODE_REF(Step, ObjectRef, StepObj);

struct RecipeObj : BaseFuncObj {
  Array<Step> steps;
  static void Fields(auto&& def) {
    def("steps", &RecipeObj::steps);
    def("attrs", &BaseFuncObj::attrs, Default(DictAttrs(Map<String, Any>())));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("toy.Recipe", RecipeObj, BaseFuncObj);
};
TVM_NODE_REF(Recipe, BaseFunc, RecipeObj);

namespace {
const script::Language kToy{"toy", "Y", "toy."};

void PrintStep(script::Printer& p, const StepObj* n) {
  p.In(kToy, View(n->kind)) << "(";
  p.Value(n->argument);
  p << ")";
}
void PrintRecipe(script::Printer& p, const RecipeObj* n, const String& name) {
  p.Begin();
  p << "@";
  p.In(kToy, "recipe");
  p.End();
  size_t begin = p.Position();
  p.Begin();
  p << "def " << View(name) << "():";
  p.End();
  p.MarkLine(n, nullptr, begin);
  script::Printer::Indent indent(p);
  if (p.module) p.NameModule();
  for (const Step& step : n->steps) {
    p.Begin();
    p.Node(step.get());
    p.End();
  }
}

Recipe JoinAdditions(Recipe recipe) {
  Array<Step> steps;
  for (const Step& step : recipe->steps) {
    if (!steps.empty() && step->kind == "add" && steps.back()->kind == "add") {
      Step last = steps.back();
      int64_t sum = last->argument.cast<int64_t>() + step->argument.cast<int64_t>();
      Edit(&last)->argument = sum;
      steps.Set(steps.size() - 1, last);
    } else {
      steps.push_back(step);
    }
  }
  Edit(&recipe)->steps = steps;
  return recipe;
}

/// x after the steps of the recipe.
PrimExpr Apply(const IRModule& mod, const Recipe& recipe, PrimExpr x, int depth = 0) {
  if (depth > 100) TVM_FFI_THROW(ValueError) << "toy: expected recipes that do not call themselves";
  for (const Step& step : recipe->steps) {
    if (auto other = step->argument.as<GlobalVar>())
      x = Apply(mod, Any(mod->Lookup(*other)).cast<Recipe>(), x, depth + 1);
    else if (IntImm number = IntImm::Int64(step->argument.cast<int64_t>()); step->kind == "add")
      x = add(x, number);
    else
      x = mul(x, number);
  }
  return x;
}
/// Recipes become functions of the language below.
Compiled Lower(IRModule mod, Target, Optional<transform::Pass>) {
  Map<GlobalVar, BaseFunc> rest;
  for (const auto& [var, func] : mod->functions) {
    auto recipe = func.as<Recipe>();
    tir::Var x("x", DataType::Int(64));
    rest.Set(var,
             !recipe ? func
                     : tir::PrimFunc({x},
                                     tir::Evaluate(tir::Call(DataType::Int(64), tir::builtin::ret(),
                                                             {Apply(mod, *recipe, x)})),
                                     PrimType(DataType::Int(64)), {}, func->attrs));
  }
  return {IRModule(rest, mod->attrs, mod->global_infos), std::nullopt};
}

TVM_REGISTER() {
  RegisterNode<StepObj>("A change of the number.");
  RegisterNode<RecipeObj>("Changes of a number, one after the other.");
  script::RegisterLanguage(&kToy);
  script::DefPrint<StepObj, &PrintStep>();
  script::DefPrintFunction<RecipeObj, &PrintRecipe, 5>();
  RegisterLanguage({"toy", "toy.Recipe", /*level=*/1, &Lower});
}
TVM_PASS(toy, JoinAdditions, "add(a), add(b)  ->  add(a + b)");
}  // namespace
}  // namespace toy
