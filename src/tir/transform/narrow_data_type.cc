// SPDX-License-Identifier: Apache-2.0
// Computes indices in fewer bits where their bounds allow it.
#include "../analyzed_mutator.h"
#include "../contents.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
bool IsArithmetic(const PrimExprObj* e) {
  static const std::unordered_map<int32_t, bool> kinds = {
      {AddObj::RuntimeTypeIndex(), true},       {SubObj::RuntimeTypeIndex(), true},
      {MulObj::RuntimeTypeIndex(), true},       {DivObj::RuntimeTypeIndex(), true},
      {ModObj::RuntimeTypeIndex(), true},       {FloorDivObj::RuntimeTypeIndex(), true},
      {FloorModObj::RuntimeTypeIndex(), true},  {MinObj::RuntimeTypeIndex(), true},
      {MaxObj::RuntimeTypeIndex(), true},       {RampObj::RuntimeTypeIndex(), true},
      {BroadcastObj::RuntimeTypeIndex(), true}, {SelectObj::RuntimeTypeIndex(), true}};
  return kinds.count(e->type_index());
}
bool IsWideInt(DataType t, int bits) { return t.is_int() && t.bits() > bits; }

/// Whether all of an index expression fits the narrow type, step by step.
struct FitChecker {
  arith::Analyzer* analyzer;
  int bits;

  bool Fits(const PrimExpr& e) {
    if (!e.dtype().is_int()) return true;  // conditions of selects: narrowed by themselves
    if (e.dtype().bits() <= bits) return true;
    if (auto* c = e.as<CastObj>();
        c && c->value.dtype().is_int() && c->value.dtype().bits() <= bits)
      return true;
    auto in_range = [&](const PrimExpr& scalar) {
      arith::ConstIntBound b = analyzer->const_int_bound(scalar);
      int64_t limit = int64_t{1} << (bits - 1);
      return b->min_value >= -limit && b->max_value < limit;
    };
    if (auto* ramp = e.as<RampObj>()) {
      if (e.dtype().is_scalable()) return false;
      return Fits(ramp->base) && Fits(ramp->stride) &&
             in_range(ramp->base +
                      ramp->stride * MakeConst(ramp->stride.dtype(), e.dtype().lanes() - 1));
    }
    if (auto* b = e.as<BroadcastObj>()) return Fits(b->value);
    if (!e.dtype().is_scalar() || !in_range(e)) return false;
    if (!IsArithmetic(e.get())) return true;
    bool fits = true;
    VisitChildren(e.get(), [&](const ObjectRef& child) {
      if (auto c = child.as<PrimExpr>()) fits = fits && Fits(*c);
    });
    return fits;
  }
};

/// Finds the variables that occur in expressions which need all their bits.
struct WideVarFinder : AnalyzedMutator<WideVarFinder, BufferLoadObj, BufferStoreObj, LTObj, LEObj,
                                       GTObj, GEObj, EQObj, NEObj> {
  using Base::Rewrite;
  int bits;
  bool has_wide = false;
  std::unordered_map<const VarObj*, bool> wide;
  explicit WideVarFinder(int bits) : bits(bits) {}

  void Check(const PrimExpr& e) {
    if (!IsWideInt(e.dtype(), bits)) return;
    has_wide = true;
    if (!FitChecker{&analyzer, bits}.Fits(e)) MarkVars(e);
  }
  void MarkVars(const PrimExpr& e) {
    if (auto* v = e.as<VarObj>()) wide[v] = true;
    if (!IsArithmetic(e.get())) return;
    VisitChildren(e.get(), [&](const ObjectRef& child) {
      if (auto c = child.as<PrimExpr>()) MarkVars(*c);
    });
  }
  ObjectRef Rewrite(const ForObj* op) {
    if (IsWideInt(op->loop_var.dtype(), bits)) {
      has_wide = true;
      FitChecker check{&analyzer, bits};
      if (!check.Fits(op->min) || !check.Fits(op->extent) || !check.Fits(op->min + op->extent))
        wide[op->loop_var.get()] = true;
    }
    return Base::Rewrite(op);
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    if (IsWideInt(op->var.dtype(), bits)) {
      has_wide = true;
      if (!FitChecker{&analyzer, bits}.Fits(op->value)) wide[op->var.get()] = true;
    }
    return Base::Rewrite(op);
  }
  ObjectRef Rewrite(const LetObj* op) {
    if (IsWideInt(op->var.dtype(), bits)) {
      has_wide = true;
      if (!FitChecker{&analyzer, bits}.Fits(op->value)) wide[op->var.get()] = true;
    }
    return Base::Rewrite(op);
  }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      const IterVar& iv = op->block->iter_vars[i];
      if (!IsWideInt(iv->var.dtype(), bits)) continue;
      Check(op->iter_values[i]);
      FitChecker check{&analyzer, bits};
      Range dom = iv->dom.value();
      if (!check.Fits(op->iter_values[i]) || !check.Fits(dom->min) || !check.Fits(dom->extent) ||
          !check.Fits(dom->min + dom->extent))
        wide[iv->var.get()] = true;
    }
    return Base::Rewrite(op);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    for (const PrimExpr& i : op->indices) Check(i);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    for (const PrimExpr& i : op->indices) Check(i);
    return MapChildren(op, *this);
  }
  template <class N>
  ObjectRef Compare(const N* op) {
    Check(op->a);
    Check(op->b);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const LTObj* op) { return Compare(op); }
  ObjectRef Rewrite(const LEObj* op) { return Compare(op); }
  ObjectRef Rewrite(const GTObj* op) { return Compare(op); }
  ObjectRef Rewrite(const GEObj* op) { return Compare(op); }
  ObjectRef Rewrite(const EQObj* op) { return Compare(op); }
  ObjectRef Rewrite(const NEObj* op) { return Compare(op); }
};

struct Narrower
    : AnalyzedMutator<Narrower, VarObj, IterVarObj, BufferObj, BufferRegionObj, BufferLoadObj,
                      BufferStoreObj, LTObj, LEObj, GTObj, GEObj, EQObj, NEObj> {
  using Base::Rewrite;
  int bits;
  const std::unordered_map<const VarObj*, bool>& wide;
  std::unordered_map<const VarObj*, Var> narrow;  // definitions seen that were narrowed
  Narrower(int bits, const std::unordered_map<const VarObj*, bool>& wide)
      : bits(bits), wide(wide) {}

  bool Fits(const PrimExpr& e) { return FitChecker{&analyzer, bits}.Fits(e); }
  bool IsNarrowed(const Var& v) { return IsWideInt(v.dtype(), bits) && !wide.count(v.get()); }

  /// The value of `e`, all of which fits, in the narrow type.
  PrimExpr InNarrow(const PrimExpr& e) {
    DataType t = e.dtype().is_int() ? e.dtype().with_bits(bits) : e.dtype();
    if (!IsWideInt(e.dtype(), bits)) return cast(t, Mutate(e));
    if (auto* v = e.as<VarObj>()) {
      auto it = narrow.find(v);
      return it == narrow.end() ? cast(t, e) : PrimExpr(it->second);
    }
    if (auto* i = e.as<IntImmObj>()) return IntImm(t, i->value, i->span);
    if (auto* c = e.as<CastObj>(); c && c->value.dtype().is_int()) {
      if (c->value.dtype().bits() <= bits) return cast(t, Mutate(c->value));
    }
    if (!IsArithmetic(e.get())) return cast(t, Mutate(e));
    return Any(MapChildren(e.get(),
                           [&](const ObjectRef& child) -> ObjectRef {
                             auto c = child.as<PrimExpr>();
                             if (!c) return child;
                             bool is_lanes =
                                 (e.as<RampObj>() && child.same_as(e.as<RampObj>()->lanes)) ||
                                 (e.as<BroadcastObj>() &&
                                  child.same_as(e.as<BroadcastObj>()->lanes));
                             if (is_lanes) return child;
                             return IsWideInt(c->dtype(), bits) ? InNarrow(*c) : Mutate(*c);
                           }))
        .template cast<PrimExpr>();
  }
  PrimExpr Index(const PrimExpr& e) {
    return IsWideInt(e.dtype(), bits) && Fits(e) ? InNarrow(e) : Mutate(e);
  }

  ObjectRef Rewrite(const VarObj* op) {
    auto it = narrow.find(op);
    if (it == narrow.end()) return ffi::GetRef<ObjectRef>(op);
    return cast(op->dtype, it->second);
  }
  /// What is declared about memory is no computation.
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }

  ObjectRef Rewrite(const ForObj* op) {
    if (!IsNarrowed(op->loop_var)) return Base::Rewrite(op);
    For loop = ffi::GetRef<For>(op);
    auto* n = Edit(&loop);
    n->loop_var = op->loop_var.CopyWithDType(op->loop_var.dtype().with_bits(bits));
    n->min = InNarrow(op->min);
    n->extent = InNarrow(op->extent);
    if (op->step.has_value()) n->step = InNarrow(op->step.value());
    narrow.emplace(op->loop_var.get(), n->loop_var);
    LoopScope scope(this, op->loop_var, op->min, op->extent, op->body);
    n->body = Mutate(op->body);
    return loop;
  }
  Range InNarrow(const Range& r) {
    return Range::FromMinExtent(InNarrow(r->min), InNarrow(r->extent));
  }
  /// Iterators that fit, with their domains and what binds them.
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    Array<PrimExpr> values;
    bool narrows = false;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      const Var& var = op->block->iter_vars[i]->var;
      bool fits = IsNarrowed(var);
      values.push_back(fits ? InNarrow(op->iter_values[i]) : Mutate(op->iter_values[i]));
      if (fits) narrow.emplace(var.get(), var.CopyWithDType(var.dtype().with_bits(bits)));
      narrows |= fits;
    }
    BlockRealize realize = As<BlockRealize>(Base::Rewrite(op));
    if (narrows) Edit(&realize)->iter_values = values;
    return realize;
  }
  ObjectRef Rewrite(const IterVarObj* op) {
    auto it = narrow.find(op->var.get());
    if (it == narrow.end()) return MapChildren(op, *this);
    return IterVar(InNarrow(op->dom.value()), it->second, op->iter_type, op->thread_tag, op->span);
  }
  ObjectRef Rewrite(const BufferRegionObj* op) {
    Array<Range> region = op->region.Map([&](const Range& r) {
      bool fits = IsWideInt(r->min.dtype(), bits) && Fits(r->min) && Fits(r->extent);
      return fits ? InNarrow(r) : Mutate(r);
    });
    return region.same_as(op->region) ? ffi::GetRef<ObjectRef>(op)
                                      : BufferRegion(op->buffer, region);
  }
  template <class T>
  ObjectRef NarrowLet(const T* op) {
    if (!IsNarrowed(op->var)) return Base::Rewrite(op);
    LearnLet(&analyzer, op->var, op->value, &data_vars);
    PrimExpr value = InNarrow(op->value);
    Var var = op->var.CopyWithDType(value.dtype());
    narrow.emplace(op->var.get(), var);
    auto body = Mutate(op->body);
    if constexpr (std::is_same_v<T, LetObj>)
      return Let(var, value, body, op->span);
    else
      return LetStmt(var, value, body, op->span);
  }
  ObjectRef Rewrite(const LetStmtObj* op) { return NarrowLet(op); }
  ObjectRef Rewrite(const LetObj* op) { return NarrowLet(op); }

  Optional<PrimExpr> Predicate(const Optional<PrimExpr>& e) {
    return e.has_value() ? Optional<PrimExpr>(Mutate(e.value())) : e;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    Array<PrimExpr> indices = op->indices.Map([&](const PrimExpr& e) { return Index(e); });
    Optional<PrimExpr> predicate = Predicate(op->predicate);
    if (indices.same_as(op->indices) && predicate.same_as(op->predicate))
      return ffi::GetRef<ObjectRef>(op);
    return BufferLoad(op->buffer, indices, predicate, op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    Array<PrimExpr> indices = op->indices.Map([&](const PrimExpr& e) { return Index(e); });
    PrimExpr value = Mutate(op->value);
    Optional<PrimExpr> predicate = Predicate(op->predicate);
    if (indices.same_as(op->indices) && value.same_as(op->value) &&
        predicate.same_as(op->predicate)) {
      return ffi::GetRef<ObjectRef>(op);
    }
    return BufferStore(op->buffer, value, indices, predicate, op->span);
  }
  template <class Ref, class N>
  ObjectRef Compare(const N* op) {
    if (!IsWideInt(op->a.dtype(), bits) || !Fits(op->a) || !Fits(op->b))
      return MapChildren(op, *this);
    return Ref(InNarrow(op->a), InNarrow(op->b), op->span);
  }
  ObjectRef Rewrite(const LTObj* op) { return Compare<LT>(op); }
  ObjectRef Rewrite(const LEObj* op) { return Compare<LE>(op); }
  ObjectRef Rewrite(const GTObj* op) { return Compare<GT>(op); }
  ObjectRef Rewrite(const GEObj* op) { return Compare<GE>(op); }
  ObjectRef Rewrite(const EQObj* op) { return Compare<EQ>(op); }
  ObjectRef Rewrite(const NEObj* op) { return Compare<NE>(op); }
};
}  // namespace

PrimFunc NarrowDataType(PrimFunc func, int64_t target_bits) {
  if (target_bits != 8 && target_bits != 16 && target_bits != 32) {
    TVM_FFI_THROW(ValueError) << "NarrowDataType: expected target_bits 8, 16 or 32, got "
                              << target_bits;
  }
  auto is_wide = [&](DataType t) { return IsWideInt(t, static_cast<int>(target_bits)); };
  if (!ContentsOf(func->body).HasType(is_wide)) return func;
  WideVarFinder find(static_cast<int>(target_bits));
  find.LearnParams(func);
  find.Mutate(func->body);
  if (!find.has_wide) return func;
  Narrower narrow(static_cast<int>(target_bits), find.wide);
  narrow.LearnParams(func);
  return RewriteBody(std::move(func), narrow);
}
TVM_PASS(tir, NarrowDataType,
         R"(Computes loop variables and indices in target_bits where their bounds fit.

options: target_bits=32
before(A: T.Buffer((T.int64(16),), "float32")):
    for i in T.serial(T.int64(16)):
        A[i] = 1.0
after:
    for i in range(16):
        A[i] = T.float32(1))",
         Arg("target_bits", 32))
}  // namespace tvm::tir
