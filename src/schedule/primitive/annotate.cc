// SPDX-License-Identifier: Apache-2.0
// annotate and unannotate: facts about a block or loop for later passes.
#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

template <class F>
void EditAnnotations(State& self, NodeId id, F&& edit) {
  if (self.IsBlock(id)) {
    Block block = self.realize({id})->block;
    edit(&Edit(&block)->annotations);
    self.ReplaceBlock({id}, block);
  } else {
    For loop = ffi::GetRef<For>(self.loop({id}));
    edit(&Edit(&loop)->annotations);
    self.Replace(id, loop);
  }
}

void Annotate(State& self, BlockOrLoopId id, String key, const Annotation& value) {
  EditAnnotations(self, id, [&](Map<String, Any>* all) { all->Set(key, value.value); });
}

void Unannotate(State& self, BlockOrLoopId id, String key) {
  EditAnnotations(self, id, [&](Map<String, Any>* all) {
    if (!all->count(key)) {
      std::vector<std::string_view> names;
      for (const auto& [name, value] : *all) names.push_back(View(name));
      Refuse(Text("expected an annotation that is there, got '", key, "'",
                  DidYouMean(View(key), names)),
             {self.inner_stmt(id)});
    }
    all->erase(key);
  });
}

TVM_REGISTER() {
  DefPrimitive("Annotate", "annotate", &Annotate, &Schedule::Annotate,
               "Gives a block or loop an annotation: a text, a number, an expression variable, or "
               "lists and dictionaries of them.",
               {kLongStage, R"(sch.annotate("B", "key", [1, "two"]))"}, Arg("block_or_loop"),
               Arg("ann_key"), Arg("ann_val"));
  DefPrimitive("Unannotate", "unannotate", &Unannotate, &Schedule::Unannotate,
               "Takes an annotation away from a block or loop.",
               {R"(
def before(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    for i in range(128):
        with T.block("B"):
            T.block_attr({"key": 1})
            vi = T.axis.spatial(128, i)
            B[vi] = A[vi] * 2.0)",
                R"(sch.unannotate("B", "key"))"},
               Arg("block_or_loop"), Arg("ann_key"));
}

}  // namespace
}  // namespace tvm::tir
