// SPDX-License-Identifier: Apache-2.0
// merge: nests that follow each other become one.
#include <algorithm>
#include <unordered_set>

#include "schedule/dependence.h"
#include "schedule/loops.h"

namespace tvm::tir {
namespace {

/// The loops from the one below `ancestor` down to `loop`.
std::vector<LoopId> PathTo(const State& self, NodeId ancestor, LoopId loop) {
  std::vector<LoopId> path;
  for (NodeId id = loop; id != ancestor; id = self.parent(id)) {
    if (id == kNoNode || self.IsBlock(id)) {
      Refuse("expected loops of one scope", {self.stmt(loop)});
    }
    path.push_back({id});
  }
  std::reverse(path.begin(), path.end());
  return path;
}

/// Where the nests begin in the sequence of statements they are in; they must follow each other.
size_t RequireNeighbours(const SeqStmtObj* seq, const std::vector<Stmt>& tops) {
  if (seq) {
    for (size_t at = 0; at + tops.size() <= seq->seq.size(); ++at) {
      bool here = true;
      for (size_t i = 0; i < tops.size(); ++i) here &= seq->seq[at + i].same_as(tops[i]);
      if (here) return at;
    }
  }
  Refuse("expected nests that follow each other with nothing in between, in the order given",
         {tops.begin(), tops.end()});
}

void MemoryOf(const State& self, NodeId top, std::unordered_set<const Object*>* all,
              std::unordered_set<const Object*>* written) {
  for (BlockId id : self.ChildBlocks(top)) {
    for (const auto& r : self.block(id)->reads) all->insert(r->buffer->data.get());
    for (const auto& r : self.block(id)->writes) {
      all->insert(r->buffer->data.get());
      written->insert(r->buffer->data.get());
    }
  }
}
/// Whether a nest writes memory that another one uses.
bool Depend(const State& self, const std::vector<std::vector<LoopId>>& paths) {
  for (const auto& a : paths) {
    std::unordered_set<const Object*> all, written;
    MemoryOf(self, a[0], &all, &written);
    for (const auto& b : paths) {
      if (a[0] == b[0]) continue;
      std::unordered_set<const Object*> others, other_written;
      MemoryOf(self, b[0], &others, &other_written);
      for (const Object* data : written) {
        if (others.count(data)) return true;
      }
    }
  }
  return false;
}

LoopId Merge(State& self, const std::vector<LoopId>& loops) {
  RequireDistinct(self, loops);
  if (loops.size() < 2) Refuse("expected at least two loops", {self.stmt(loops[0])});
  NodeId ancestor = loops[0];
  for (LoopId loop : loops) ancestor = self.CommonAncestor(ancestor, loop);
  if (ancestor == kNoNode) Refuse("expected loops of one function", {self.stmt(loops[0])});
  std::vector<std::vector<LoopId>> paths;
  std::vector<Stmt> tops;
  for (LoopId loop : loops) {
    paths.push_back(PathTo(self, ancestor, loop));
    if (paths.back().empty()) {
      Refuse("expected loops of different nests, got one around another", {self.stmt(loop)});
    }
    tops.push_back(self.stmt(paths.back()[0]));
  }
  arith::Analyzer analyzer;
  for (const auto& path : paths) {
    if (path.size() != paths[0].size()) {
      Refuse(Text("expected loops of one depth, got ", self.loop(path.back())->loop_var->name_hint,
                  " at ", path.size(), " and ", self.loop(paths[0].back())->loop_var->name_hint,
                  " at ", paths[0].size()),
             {self.stmt(path.back()), self.stmt(paths[0].back())});
    }
    RequireOneNest(self, path);
    for (size_t d = 0; d < path.size(); ++d) {
      const ForObj *loop = self.loop(path[d]), *first = self.loop(paths[0][d]);
      RequirePlain(loop);
      if (!analyzer.CanProveEqual(loop->extent, first->extent) ||
          !analyzer.CanProveEqual(loop->min, first->min)) {
        Refuse(Text("expected loops over one range, got ", loop->loop_var->name_hint, " over ",
                    loop->extent, " and ", first->loop_var->name_hint, " over ", first->extent),
               {self.stmt(path[d]), self.stmt(paths[0][d])});
      }
    }
  }
  const Stmt& body =
      self.IsBlock(ancestor) ? self.block({ancestor})->body : self.loop({ancestor})->body;
  auto* seq = body.as<SeqStmtObj>();
  size_t at = RequireNeighbours(seq, tops);
  bool depend = Depend(self, paths);

  LoopVarRewrite rewrite;
  rewrite.domains = DomainsOf(self, self.LoopsAbove(paths[0][0]));
  std::vector<Var> vars;
  for (LoopId id : paths[0]) {
    const ForObj* loop = self.loop(id);
    vars.push_back(loop->loop_var.CopyWithSuffix("_m"));
    rewrite.domains.Set(vars.back(), Range::FromMinExtent(loop->min, loop->extent));
  }
  Array<Stmt> bodies;
  for (const auto& path : paths) {
    for (size_t d = 0; d < path.size(); ++d) {
      const Var& old = self.loop(path[d])->loop_var;
      rewrite.values.Set(old, cast(old.dtype(), vars[d]));
    }
    bodies.push_back(rewrite(self.loop(path.back())->body));
  }
  Stmt merged = SeqStmt::Flatten(bodies);
  for (size_t d = paths[0].size(); d-- > 0;) {
    const ForObj* loop = self.loop(paths[0][d]);
    merged = For(vars[d], loop->min, loop->extent, ForKind::kSerial, merged);
  }
  Array<Stmt> statements;
  for (size_t i = 0; i < seq->seq.size(); ++i) {
    if (i == at) statements.push_back(merged);
    if (i < at || i >= at + tops.size()) statements.push_back(seq->seq[i]);
  }
  self.ReplaceBody(ancestor, SeqStmt::Flatten(statements), rewrite.reuse);
  std::vector<LoopId> result;
  for (const Var& var : vars) result.push_back(self.FindLoop(var));
  // Before, all of one nest ran before the next; now only the same and earlier iterations did.
  if (depend) RequireIndependent(self, result, true);
  return result.back();
}

TVM_REGISTER() {
  DefPrimitive("Merge", "merge", &Merge, &Schedule::Merge,
               "Makes one nest of nests that follow each other: the loops named, one of each nest, "
               "and all above them up to where the nests meet. The loops run over the same "
               "ranges, and what a nest computes for another is used in the same iteration.",
               {R"(
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"),
           C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] + 1.0)",
                R"(sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0]))"},
               Arg("*loops"));
}

}  // namespace
}  // namespace tvm::tir
