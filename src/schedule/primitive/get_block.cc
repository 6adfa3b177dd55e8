// SPDX-License-Identifier: Apache-2.0
// get_block: a block by its name.
#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

BlockId GetBlock(const ScheduleObj& self, String name, Optional<String>& func_name) {
  const State& state = self.state->value;
  if (!func_name) {
    if (!self.working_on) {
      TVM_FFI_THROW(ValueError) << "get_block: the schedule does not know which function to be "
                                   "working on; give func_name, or call work_on() before";
    }
    func_name = (*self.working_on)->name_hint;
  }
  BlockId root = state.Root(*func_name);
  if (root == kNoNode && state.mod()->FindGlobalVar(*func_name).defined())
    Refuse(Text("expected a function with a root block, got '", *func_name, "'"));
  if (root == kNoNode) {
    std::vector<std::string_view> names;
    for (const auto& [var, func] : state.mod()->functions) names.push_back(View(var->name_hint));
    Refuse(Text("expected the name of a function, got '", *func_name, "'",
                DidYouMean(View(*func_name), names)));
  }
  std::vector<BlockId> found = state.BlocksNamed(name, *func_name);
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    std::vector<BlockId> blocks{root};
    std::vector<std::string_view> names;
    for (size_t i = 0; i < blocks.size(); ++i) {
      names.push_back(View(state.block(blocks[i])->name_hint));
      for (BlockId child : state.ChildBlocks(blocks[i])) blocks.push_back(child);
    }
    std::string hint = DidYouMean(View(name), names);
    if (self.error_render_level != ErrorRenderLevel::kDetail)
      Refuse(Text("Cannot find a block with the specified name '", name, "'", hint));
    Refuse(Text("Cannot find a block with the name: ", name, ", in '", *func_name, "'", hint));
  }
  std::vector<ObjectRef> about;
  for (BlockId id : found) about.push_back(state.inner_stmt(id));
  Refuse(Text("expected one block named '", name, "', got ", found.size()), about);
}

TVM_REGISTER() {
  DefPrimitive("GetBlock", "get_block", &GetBlock, &Schedule::GetBlock,
               "The block of a name in a function; in the one being worked on if none is given.",
               {kLongStage, R"(block = sch.get_block("B"))"}, Arg("name"),
               Arg("func_name", nullptr));
}

}  // namespace
}  // namespace tvm::tir
