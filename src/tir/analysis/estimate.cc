// SPDX-License-Identifier: Apache-2.0
// How much a program computes and allocates.
#include <map>
#include <unordered_set>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
/// Counts arithmetic on values (not on indices), times the loops around it: sums, products,
/// quotients, minima and maxima of any type are one each. Comparisons are none, whatever they
/// compare, and of calls only the arguments count. Loops whose extent is not constant count by the
/// bounds known, or once.
struct FlopCounter
    : Visitor<FlopCounter, ForObj, IfThenElseObj, BlockRealizeObj, BlockObj, BufferStoreObj,
              BufferLoadObj, CallObj, SelectObj, PrimExprObj, AttrStmtObj, WhileObj> {
  arith::Analyzer analyzer;
  double count = 0, times = 1;

  double ExtentOf(const PrimExpr& e) {
    if (auto value = AsConstInt(e)) return static_cast<double>(*value);
    arith::ConstIntBound bound = analyzer.const_int_bound(e);
    bool bounded = bound->max_value != arith::ConstIntBoundObj::kPosInf;
    return bounded ? static_cast<double>(bound->max_value) : 1.0;
  }
  template <class F>
  void Repeat(double n, F&& body) {
    double outer = times;
    times *= n;
    body();
    times = outer;
  }
  template <class F>
  double Measure(F&& body) {
    double before = std::exchange(count, 0);
    body();
    return std::exchange(count, before);
  }
  void Visit(const ForObj* op) {
    analyzer.Bind(op->loop_var, Range::FromMinExtent(op->min, op->extent), true);
    Repeat(ExtentOf(op->extent), [&] { (*this)(op->body); });
  }
  void Visit(const WhileObj* op) { (*this)(op->body); }
  void Visit(const AttrStmtObj* op) {
    if (op->attr_key == "estimated_flops") {  // said by whoever knows better
      if (auto flops = AsConstInt(op->value)) {
        count += times * static_cast<double>(*flops);
        return;
      }
    }
    bool is_thread = op->attr_key == attr::kThreadExtent;
    Repeat(is_thread ? ExtentOf(op->value) : 1.0, [&] { (*this)(op->body); });
  }
  /// The side that does more.
  void Visit(const IfThenElseObj* op) {
    (*this)(op->condition);
    double a = Measure([&] { (*this)(op->then_case); });
    double b = op->else_case.has_value() ? Measure([&] { (*this)(op->else_case.value()); }) : 0;
    count += std::max(a, b);
  }
  void Visit(const BlockRealizeObj* op) { Visit(op->block.get()); }
  void Visit(const BlockObj* op) {
    for (const IterVar& iv : op->iter_vars) {
      if (iv->dom.has_value()) analyzer.Bind(iv->var, iv->dom.value(), true);
    }
    // init stores constants mostly, and once for all steps of the reduction.
    (*this)(op->body);
  }
  void Visit(const BufferStoreObj* op) { (*this)(op->value); }
  void Visit(const BufferLoadObj*) {}
  void Visit(const SelectObj* op) {
    (*this)(op->condition);
    double a = Measure([&] { (*this)(op->true_value); }),
           b = Measure([&] { (*this)(op->false_value); });
    count += std::max(a, b);
  }
  void Visit(const CallObj* op) {
    for (const PrimExpr& a : op->args) (*this)(a);
  }
  void Visit(const PrimExprObj* op) {
    static const std::unordered_set<int32_t> arithmetic = {
        AddObj::RuntimeTypeIndex(),      SubObj::RuntimeTypeIndex(),
        MulObj::RuntimeTypeIndex(),      DivObj::RuntimeTypeIndex(),
        ModObj::RuntimeTypeIndex(),      FloorDivObj::RuntimeTypeIndex(),
        FloorModObj::RuntimeTypeIndex(), MinObj::RuntimeTypeIndex(),
        MaxObj::RuntimeTypeIndex()};
    static const std::unordered_set<int32_t> comparisons = {
        EQObj::RuntimeTypeIndex(), NEObj::RuntimeTypeIndex(), LTObj::RuntimeTypeIndex(),
        LEObj::RuntimeTypeIndex(), GTObj::RuntimeTypeIndex(), GEObj::RuntimeTypeIndex()};
    if (comparisons.count(op->type_index())) return;
    if (arithmetic.count(op->type_index())) count += times * std::max(1, op->dtype.lanes());
    VisitChildren(op, *this);
  }
};

struct AllocationCounter : Visitor<AllocationCounter, AllocateObj, BlockObj, SeqStmtObj> {
  std::map<std::string, int64_t> now, peak;
  template <class F>
  void Hold(const Var& data, DataType t, int64_t elements, F&& body) {
    std::string scope(data->type_annotation.as<PointerTypeObj>()->storage_scope);
    int64_t bytes = elements * ((int64_t{t.bits()} * t.lanes() + 7) / 8);
    now[scope] += bytes;
    peak[scope] = std::max(peak[scope], now[scope]);
    body();
    now[scope] -= bytes;
  }
  void Visit(const AllocateObj* op) {
    Hold(op->buffer_var, op->dtype, op->ConstantSize(), [&] { (*this)(op->body); });
  }
  void Visit(const BlockObj* op) { Next(op, 0); }
  void Next(const BlockObj* op, size_t i) {
    if (i == op->alloc_buffers.size()) return (*this)(op->body);
    const Buffer& b = op->alloc_buffers[i];
    int64_t elements = 1;
    for (const PrimExpr& e : b->shape) elements *= AsConstInt(e).value_or(0);
    Hold(b->data, b->dtype, elements, [&] { Next(op, i + 1); });
  }
  void Visit(const SeqStmtObj* op) { VisitChildren(op, *this); }
};
}  // namespace

double EstimateTIRFlops(const Stmt& stmt) {
  FlopCounter counter;
  counter(stmt);
  return counter.count;
}
double EstimateTIRFlops(const IRModule& mod) {
  double total = 0;
  for (const auto& [var, func] : mod->functions) {
    auto* f = func.as<PrimFuncObj>();
    if (!f) continue;
    if (!f->attrs.Has("estimated_flops")) {
      total += EstimateTIRFlops(f->body);
      continue;
    }
    Any said = f->attrs->dict.at("estimated_flops");
    auto number = said.as<FloatImm>();
    total += number ? (*number)->value : said.cast<double>();
  }
  return total;
}
Map<String, int64_t> CalculateAllocatedBytes(const PrimFunc& func) {
  AllocationCounter counter;
  counter(func->body);
  Map<String, int64_t> result;
  for (const auto& [scope, bytes] : counter.peak) result.Set(scope, bytes);
  return result;
}

Optional<Block> FindAnchorBlock(const IRModule& mod) {
  // The block with a reduction that computes most; without reductions the last one that writes.
  Optional<Block> best;
  double most = -1;
  bool has_reduction = false;
  for (const auto& [var, func] : mod->Sorted()) {
    auto* f = func.as<PrimFuncObj>();
    if (!f) continue;
    struct Finder : Visitor<Finder, ForObj, BlockObj> {
      std::vector<std::pair<const BlockObj*, double>> blocks;
      double times = 1;
      void Visit(const ForObj* op) {
        double outer = times;
        times *= static_cast<double>(AsConstInt(op->extent).value_or(1));
        (*this)(op->body);
        times = outer;
      }
      void Visit(const BlockObj* op) {
        blocks.emplace_back(op, times);
        VisitChildren(op, *this);
      }
    } find;
    find(f->body);
    for (const auto& [block, times] : find.blocks) {
      if (block->writes.empty() || block->iter_vars.empty()) continue;
      bool reduces = false;
      for (const IterVar& iv : block->iter_vars)
        reduces |= iv->iter_type == IterVarType::kCommReduce;
      if (has_reduction && !reduces) continue;
      double flops = times * EstimateTIRFlops(block->body);
      if ((reduces && !has_reduction) || flops >= most) {
        best = ffi::GetRef<Block>(block);
        most = flops;
      }
      has_reduction |= reduces;
    }
  }
  return best;
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.analysis.estimate_tir_flops",
      [](Variant<Stmt, IRModule> stmt_or_mod) {
        return OnDeepStack([&] {
          if (auto stmt = stmt_or_mod.as<Stmt>()) return EstimateTIRFlops(*stmt);
          return EstimateTIRFlops(stmt_or_mod.get<IRModule>());
        });
      },
      "The number of arithmetic operations on values in one run.", Arg("stmt_or_mod"));
  Def(
      "tir.analysis.calculate_allocated_bytes",
      [](Variant<PrimFunc, IRModule> func_or_mod) -> Map<String, Any> {
        Map<String, Any> result;
        if (auto func = func_or_mod.as<PrimFunc>()) {
          result.Set("main", CalculateAllocatedBytes(*func));
          return result;
        }
        IRModule mod = func_or_mod.get<IRModule>();
        for (const auto& [var, func] : mod->functions) {
          if (auto* f = func.as<PrimFuncObj>())
            result.Set(var->name_hint, CalculateAllocatedBytes(ffi::GetRef<PrimFunc>(f)));
        }
        return result;
      },
      "The bytes that are allocated at once at most, by function (a function alone is 'main') and "
      "memory scope.",
      Arg("func_or_mod"));
  Def("tir.analysis.find_anchor_block", &FindAnchorBlock,
      "The block that does most of the work, or None.", Arg("mod"));
}
}  // namespace
}  // namespace tvm::tir
