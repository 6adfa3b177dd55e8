// SPDX-License-Identifier: Apache-2.0
// A toy language of two nodes: recipes of steps that change a number. All that C++ has to say.
#include "tvm/script/language.h"

#include "tvm/ir/transform.h"

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

TVM_REGISTER() {
  RegisterNode<StepObj>("A change of the number.");
  RegisterNode<RecipeObj>("Changes of a number, one after the other.");
  script::RegisterLanguage(&kToy);
  script::DefPrint<StepObj, &PrintStep>();
  script::DefPrintFunction<RecipeObj, &PrintRecipe, 5>();
}
TVM_PASS(toy, JoinAdditions, "add(a), add(b)  ->  add(a + b)");
}  // namespace
}  // namespace toy
