// SPDX-License-Identifier: Apache-2.0
// fuse: a nest of loops becomes one loop.
#include "schedule/loops.h"
#include "schedule/primitive/examples.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

LoopId Fuse(State& self, const std::vector<LoopId>& loops, bool preserve_unit_iters) {
  std::vector<LoopId> nest = RequireOneNest(self, loops);
  if (nest.size() != loops.size()) {
    Refuse("expected loops that follow each other, got a nest with others in between",
           {self.stmt(nest.front()), self.stmt(nest.back())});
  }
  if (!std::equal(nest.begin(), nest.end(), loops.begin())) {
    Refuse("expected the loops from the outermost in",
           {self.stmt(loops.front()), self.stmt(loops.back())});
  }
  std::string name;
  DataType dtype = self.loop(nest[0])->loop_var.dtype();
  for (size_t i = 0; i < nest.size(); ++i) {
    const ForObj* loop = self.loop(nest[i]);
    RequirePlain(loop, true);
    name += std::string(loop->loop_var->name_hint) + "_";
    if (loop->loop_var.dtype().bits() > dtype.bits()) dtype = loop->loop_var.dtype();
    for (size_t outer = 0; outer < i; ++outer) {
      const VarObj* var = self.loop(nest[outer])->loop_var.get();
      auto is_var = [&](const VarObj* v) { return v == var; };
      if (UsesVar(loop->extent, is_var) || UsesVar(loop->min, is_var)) {
        Refuse(Text("expected a rectangular nest, got loop ", loop->loop_var->name_hint,
                    " with bounds that depend on ", var->name_hint),
               {self.stmt(nest[i]), self.stmt(nest[outer])});
      }
    }
  }
  double count = 1;
  for (LoopId id : nest)
    count *= static_cast<double>(AsConstInt(self.loop(id)->extent).value_or(1));
  if (count > INT32_MAX) dtype = DataType::Int(64);
  if (count > 0x1p62)
    Refuse("expected fewer iterations than 64 bits can count", {self.stmt(nest[0])});
  Var fused(name + "fused", dtype);
  arith::Analyzer analyzer;
  LoopVarRewrite rewrite;
  rewrite.domains = DomainsOf(self, self.LoopsAbove(nest[0]));
  int64_t total = 1;
  for (LoopId id : nest) {
    auto size = AsConstInt(self.loop(id)->extent);
    bool fits = total > 0 && size && *size > 0 && *size < (int64_t{1} << 31) &&
                total * *size < (int64_t{1} << 31) && IsZero(self.loop(id)->min);
    total = fits ? total * *size : 0;
  }
  PrimExpr extent = MakeConst(dtype, total ? total : 1);
  if (total == 0) {
    analyzer.Bind(rewrite.domains);
    for (LoopId id : nest) extent = extent * cast(dtype, self.loop(id)->extent);
    extent = analyzer.Simplify(extent);
  }
  Range domain = Range::FromMinExtent(MakeZero(dtype), extent);
  rewrite.domains.Set(fused, domain);
  if (total == 0) analyzer.Bind(fused, domain);
  // For numbers the digits are written as the simplifier would.
  int64_t low = total;
  for (size_t i = 0; total && i < nest.size(); ++i) {
    const ForObj* loop = self.loop(nest[i]);
    int64_t size = *AsConstInt(loop->extent), above = low;
    low /= size;
    PrimExpr part = low == 1 ? PrimExpr(fused) : floordiv(fused, MakeConst(dtype, low));
    if (above != total) part = floormod(part, MakeConst(dtype, size));
    if (size == 1) part = MakeZero(dtype);
    rewrite.values.Set(loop->loop_var, cast(loop->loop_var.dtype(), part));
  }
  PrimExpr rest = fused;
  for (size_t i = total ? 0 : nest.size(); i-- > 0;) {
    const ForObj* loop = self.loop(nest[i]);
    PrimExpr size = cast(dtype, loop->extent);
    PrimExpr part = i == 0 ? rest : floormod(rest, size);
    rest = analyzer.Simplify(floordiv(rest, size));
    part = cast(loop->loop_var.dtype(), analyzer.Simplify(part));
    rewrite.values.Set(loop->loop_var, analyzer.Simplify(part + loop->min));
  }
  rewrite.simplify_unit_loops = !preserve_unit_iters;
  Stmt body = rewrite(self.loop(nest.back())->body);
  body = For(fused, MakeZero(dtype), extent, ForKind::kSerial, body);
  self.Replace(nest[0], body, rewrite.reuse);
  return self.FindLoop(fused);
}

TVM_REGISTER() {
  DefPrimitive("Fuse", "fuse", &Fuse, &Schedule::Fuse,
               "Makes one loop of a nest of loops that follow each other, the last one fastest. "
               "Without preserve_unit_iters, loops of extent 1 are left out of the bindings of "
               "blocks.",
               {kGrid,
                R"(i, j = sch.get_loops("B")
fused = sch.fuse(i, j))"},
               Arg("*loops"), Arg("preserve_unit_iters", true));
}

}  // namespace
}  // namespace tvm::tir
