// SPDX-License-Identifier: Apache-2.0
// How blocks print.
#include "script/tir/tir.h"
#include "tvm/expr/op.h"

namespace tvm::script {
using namespace tir;
namespace {

/// The T.axis function of an iterator, or null when none makes it.
const char* AxisFunction(const IterVarObj* iter) {
  if (!iter->dom.has_value() || iter->thread_tag != "") return nullptr;
  switch (iter->iter_type) {
    case IterVarType::kDataPar:
      return "spatial";
    case IterVarType::kCommReduce:
      return "reduce";
    case IterVarType::kOrdered:
      return "scan";
    case IterVarType::kOpaque:
      return "opaque";
    default:
      return nullptr;
  }
}
/// 'S' or 'R' where T.axis.remap finds the range in the loop; else 0.
char RemapKind(Printer& p, const IterVarObj* iter, const PrimExpr& value) {
  auto* var = value.as<VarObj>();
  const auto& loops = p.State<TirState>().loops;
  auto loop = var ? loops.find(var) : loops.end();
  if (loop == loops.end() || !iter->dom.has_value() || iter->thread_tag != "") return 0;
  auto *extent = iter->dom.value()->extent.as<IntImmObj>(),
       *loop_extent = loop->second->extent.as<IntImmObj>();
  bool same_extent = iter->dom.value()->extent.same_as(loop->second->extent) ||
                     (extent && loop_extent && extent->value == loop_extent->value);
  if (!same_extent || iter->var.dtype() != value.dtype() || !IsZero(iter->dom.value()->min) ||
      !IsZero(loop->second->min) || loop->second->step.has_value()) {
    return 0;
  }
  return iter->iter_type == IterVarType::kDataPar      ? 'S'
         : iter->iter_type == IterVarType::kCommReduce ? 'R'
                                                       : 0;
}
void PrintAxis(Printer& p, const IterVarObj* iter, const Any* value) {
  const char* function = AxisFunction(iter);
  if (!function) DefineVar(p, iter->var.get());
  p.Begin();
  p << p.Define(iter->var.get(), iter->var->name_hint) << " = ";
  Tir(p, "axis.") << (function ? function : "iter");
  {
    Printer::List list(p, "(", ")");
    list.Item();
    if (!function) {
      p.Node(iter);
    } else {
      const RangeObj* dom = iter->dom.value().get();
      bool constant = dom->min.as<IntImmObj>() && dom->extent.as<IntImmObj>();
      if (IsZero(dom->min))
        PrintExpr(p, dom->extent);
      else if (constant)
        PrintTuple(p, {dom->min, dom->min + dom->extent});
      else
        p.Node(dom);
    }
    list.Item();
    if (value)
      PrintExpr(p, value->as<Object>(), value);
    else
      p << "None";
  }
  p.End();
}
void PrintAxes(Printer& p, const BlockObj* block, const ffi::ArrayObj* values) {
  size_t count = block->iter_vars.size();
  auto value = [&](size_t i) { return values ? values->begin() + i : nullptr; };
  for (size_t i = 0; i < count;) {
    std::string kinds;
    size_t end = i;
    for (; p.config->syntax_sugar && values && end < count; ++end) {
      char kind = RemapKind(p, block->iter_vars[end].get(), value(end)->cast<PrimExpr>());
      if (!kind) break;
      kinds += kind;
    }
    if (end - i < 2) {
      PrintAxis(p, block->iter_vars[i].get(), value(i));
      ++i;
      continue;
    }
    p.Begin();
    {
      Printer::List names(p, "", "");
      for (size_t j = i; j < end; ++j) {
        const Var& var = block->iter_vars[j]->var;
        names.Item() << p.Define(var.get(), var->name_hint);
      }
    }
    p << " = ";
    Tir(p, "axis.remap(").Quote(kinds) << ", ";
    {
      Printer::List bindings(p, "[", "]");
      for (; i < end; ++i) PrintExpr(bindings.Item(), value(i)->as<Object>(), value(i));
    }
    p << ")";
    p.End();
  }
}
void PrintRegions(Printer& p, const char* function, const Array<BufferRegion>& regions) {
  p.Begin();
  Tir(p, function);
  {
    Printer::List list(p, "(", ")");
    if (!regions.empty()) {
      for (const Any& r : *static_cast<const ffi::ArrayObj*>(regions.get())) {
        list.Item().Node(r.as<Object>(), &r);
      }
    }
  }
  p.End();
}
/// Whether the regions name buffers that the block allocates.
bool UsesOwnBuffers(const BlockObj* block) {
  for (const auto* regions : {&block->reads, &block->writes}) {
    for (const BufferRegion& region : *regions) {
      for (const Buffer& own : block->alloc_buffers) {
        if (own.same_as(region->buffer)) return true;
      }
    }
  }
  return false;
}
}  // namespace

void PrintBlockBody(Printer& p, const BlockObj* block, const BlockRealizeObj* realize, bool root) {
  auto allocate = [&] {
    for (const Buffer& buffer : block->alloc_buffers) {
      if (!p.Known(buffer.get())) DefineBuffer(p, buffer.get(), "alloc_buffer");
    }
  };
  if (!root) {
    PrintAxes(p, block,
              realize && !realize->iter_values.empty()
                  ? static_cast<const ffi::ArrayObj*>(realize->iter_values.get())
                  : nullptr);
    if (realize && !IsTrue(realize->predicate)) {
      p.Begin();
      Tir(p, "where(");
      PrintExpr(p, realize->predicate);
      p << ")";
      p.End();
    }
    p.State<TirState>().FlushBuffers();
    if (UsesOwnBuffers(block)) allocate();
    PrintRegions(p, "reads", block->reads);
    PrintRegions(p, "writes", block->writes);
    if (!block->annotations.empty()) {
      p.Begin();
      Tir(p, "block_attr(");
      p.Value(block->annotations);
      p << ")";
      p.End();
    }
  }
  allocate();
  for (const MatchBufferRegion& match : block->match_buffers) {
    DefineBuffer(p, match->buffer.get(), "match_buffer", match->source);
  }
  if (block->init.has_value()) {
    p.Begin();
    p << "with ";
    Tir(p, "init():");
    p.End();
    Printer::Scope scope(p);
    Printer::Indent indent(p);
    PrintStmt(p, block->init.value().get(), &block->init, true);
  }
  PrintStmt(p, block->body);
}

namespace {
void PrintWithBlock(Printer& p, const BlockObj* block, const BlockRealizeObj* realize) {
  p.Begin();
  p << "with ";
  Tir(p, "block(").Quote(View(block->name_hint)) << (realize ? "):" : ", no_realize=True):");
  p.End();
  Printer::Scope scope(p);
  Printer::Indent indent(p);
  PrintBlockBody(p, block, realize, false);
}
void PrintBlock(Printer& p, const BlockObj* n) { PrintWithBlock(p, n, nullptr); }
void PrintBlockRealize(Printer& p, const BlockRealizeObj* n) {
  size_t begin = p.Position();
  PrintWithBlock(p, n->block.get(), n);
  p.MarkLine(n->block.get(), &n->block, begin);
}
TVM_REGISTER() {
  DefPrintStmt<BlockObj, &PrintBlock>();
  DefPrintStmt<BlockRealizeObj, &PrintBlockRealize>();
}
}  // namespace
}  // namespace tvm::script
