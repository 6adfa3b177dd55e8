// SPDX-License-Identifier: Apache-2.0
// bind: the iterations of a loop become threads.
#include "schedule/dependence.h"
#include "schedule/loops.h"
#include "schedule/primitive/examples.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

bool IsThreadTag(std::string_view tag) {
  for (std::string_view prefix : {"blockIdx.", "clusterCtaIdx.", "threadIdx.", "vthread."}) {
    if (tag.starts_with(prefix) && tag.size() == prefix.size() + 1) {
      char axis = tag.back();
      return axis == 'x' || axis == 'y' || axis == 'z';
    }
  }
  return tag == "vthread";
}
bool IsBoundTo(const Stmt& stmt, const String& tag) {
  auto* loop = stmt.as<ForObj>();
  return loop && loop->thread_binding && (*loop->thread_binding)->thread_tag == tag;
}

/// Whether every iteration of an outer loop bound to the same threads fills the same shared memory:
/// then its threads may divide the work of the inner loop among them.
bool IsSharedWork(const For& loop, const ForObj* outer) {
  bool uses = UsesVar(loop, [&](const VarObj* v) { return v == outer->loop_var.get(); });
  if (uses || !ExprDeepEqual(loop->extent, outer->extent)) return false;
  bool shared = true;
  PostOrderVisit(loop->body, [&](const ObjectRef& node) {
    auto* block = node.as<BlockObj>();
    if (!block) return;
    for (const BufferRegion& write : block->writes)
      shared &= View(write->buffer.scope()).starts_with("shared");
  });
  return shared;
}

void Bind(State& self, LoopId id, String thread_axis) {
  For loop = ffi::GetRef<For>(self.loop(id));
  if (!IsThreadTag(View(thread_axis))) {
    Refuse(Text("expected blockIdx, clusterCtaIdx, threadIdx or vthread with .x, .y or .z, got '",
                thread_axis, "'"),
           {loop});
  }
  if (!loop->HasTrivialStep()) {
    Refuse(Text("expected a loop with steps of 1, got ", loop->loop_var->name_hint), {loop});
  }
  bool is_virtual = View(thread_axis).starts_with("vthread");
  for (NodeId up = self.parent(id); up != kNoNode && !is_virtual; up = self.parent(up)) {
    if (IsBoundTo(self.stmt(up), thread_axis) && !IsSharedWork(loop, self.loop({up}))) {
      Refuse(Text("expected ", thread_axis, " once in a nest, but the outer loop ",
                  self.loop({up})->loop_var->name_hint, " is bound to it"),
             {loop, self.stmt(up)});
    }
  }
  std::function<void(const Stmt&)> check = [&](const Stmt& below) {
    if (IsBoundTo(below, thread_axis)) {
      Refuse(Text("expected ", thread_axis, " once in a nest, but the inner loop ",
                  static_cast<const ForObj*>(below.get())->loop_var->name_hint, " is bound to it"),
             {loop, below});
    }
    auto* inner = below.as<ForObj>();
    VisitNearest(
        inner ? inner->body : static_cast<const BlockRealizeObj*>(below.get())->block->body, check);
  };
  if (!is_virtual) VisitNearest(loop->body, check);
  // Threads of one block can combine what they reduced; others cannot.
  RequireIndependent(self, {id}, View(thread_axis).starts_with("threadIdx"));
  auto* n = Edit(&loop);
  n->kind = ForKind::kThreadBinding;
  n->thread_binding = IterVar(Optional<Range>(), Var(thread_axis, loop->loop_var.dtype()),
                              IterVarType::kThreadIndex, thread_axis);
  self.Replace(id, loop);
}

TVM_REGISTER() {
  DefPrimitive("Bind", "bind", &Bind, &Schedule::Bind,
               "Gives every iteration of a loop its own thread of a GPU: blockIdx.x, threadIdx.x "
               "and so on, or vthread for virtual ones. The iterations must be independent; a "
               "reduction may run over threadIdx. Threads that fill the same shared memory may "
               "divide that work: a loop inside them is bound to the same axis.",
               {kGrid,
                R"(i, j = sch.get_loops("B")
sch.bind(i, "blockIdx.x")
sch.bind(j, "threadIdx.x"))"},
               Arg("loop"), Arg("thread_axis"));
}

}  // namespace
}  // namespace tvm::tir
