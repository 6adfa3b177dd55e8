// SPDX-License-Identifier: Apache-2.0
// Collects the stores of a program in one walk, without lowering it.
#include "tune/store_info.h"

#include <cmath>
#include <unordered_map>

#include "tvm/expr/builtin.h"
#include "tvm/expr/op.h"

namespace tvm::tune {
namespace {
using namespace tir;

const std::unordered_map<int32_t, Arithmetic>& Kinds() {
  static const std::unordered_map<int32_t, Arithmetic> kinds = {
      {AddObj::RuntimeTypeIndex(), kAddSub},      {SubObj::RuntimeTypeIndex(), kAddSub},
      {MulObj::RuntimeTypeIndex(), kMul},         {DivObj::RuntimeTypeIndex(), kDivMod},
      {ModObj::RuntimeTypeIndex(), kDivMod},      {FloorDivObj::RuntimeTypeIndex(), kDivMod},
      {FloorModObj::RuntimeTypeIndex(), kDivMod}, {MinObj::RuntimeTypeIndex(), kMinMax},
      {MaxObj::RuntimeTypeIndex(), kMinMax},      {EQObj::RuntimeTypeIndex(), kCompare},
      {NEObj::RuntimeTypeIndex(), kCompare},      {LTObj::RuntimeTypeIndex(), kCompare},
      {LEObj::RuntimeTypeIndex(), kCompare},      {GTObj::RuntimeTypeIndex(), kCompare},
      {GEObj::RuntimeTypeIndex(), kCompare},      {SelectObj::RuntimeTypeIndex(), kChoose},
      {AndObj::RuntimeTypeIndex(), kOther},       {OrObj::RuntimeTypeIndex(), kOther},
      {NotObj::RuntimeTypeIndex(), kOther},       {CastObj::RuntimeTypeIndex(), kOther}};
  return kinds;
}

struct Collector
    : Visitor<Collector, ForObj, BlockRealizeObj, BlockObj, BufferStoreObj, BufferLoadObj,
              AllocateObj, AttrStmtObj, LetStmtObj, CallObj, PrimExprObj> {
  std::vector<StoreInfo> stores;

  // ---- scopes ----
  void Visit(const ForObj* op) {
    double unroll =
        UnrollSteps(op->annotations, loops_.empty() ? unroll_ : loops_.back().unroll_steps);
    double extent = static_cast<double>(AsConstInt(op->extent).value_or(kUnknownExtent));
    Affine self(loops_.size() + 1);
    self.back() = 1;
    vars_[op->loop_var.get()] = std::move(self);
    loops_.push_back({op, extent, op->kind, unroll});
    (*this)(op->body);
    loops_.pop_back();
  }
  void Visit(const BlockRealizeObj* op) {
    const Block& block = op->block;
    for (size_t i = 0; i < block->iter_vars.size(); ++i)
      vars_[block->iter_vars[i]->var.get()] = ToAffine(op->iter_values[i]);
    double outer = unroll_;
    if (loops_.empty()) unroll_ = UnrollSteps(block->annotations, unroll_);
    Visit(block.get());
    unroll_ = outer;
  }
  void Visit(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) allocated_[b.get()] = SizeOf(b);
    if (op->init.has_value()) (*this)(op->init.value());
    (*this)(op->body);
  }
  void Visit(const AllocateObj* op) { (*this)(op->body); }
  void Visit(const AttrStmtObj* op) { (*this)(op->body); }
  void Visit(const LetStmtObj* op) {
    vars_[op->var.get()] = ToAffine(op->value);
    (*this)(op->body);
  }

  // ---- stores and what they compute ----
  void Visit(const BufferStoreObj* op) {
    StoreInfo info;
    info.node = op;
    info.loops = loops_;
    if (auto it = allocated_.find(op->buffer.get()); it != allocated_.end())
      info.allocated_bytes = it->second;
    now_ = &info;
    Touch(op->buffer, op->indices, true);
    (*this)(op->value);
    now_ = nullptr;
    stores.push_back(std::move(info));
  }
  void Visit(const BufferLoadObj* op) {
    if (now_) Touch(op->buffer, op->indices, false);
  }
  void Visit(const CallObj* op) {
    if (now_) {
      bool choose = op->Is(builtin::if_then_else());
      Count(op->dtype, choose ? kChoose : kMath);
    }
    for (const PrimExpr& a : op->args) (*this)(a);
  }
  void Visit(const PrimExprObj* op) {
    if (now_) {
      auto it = Kinds().find(op->type_index());
      if (it != Kinds().end()) Count(op->dtype, it->second);
    }
    VisitChildren(op, *this);
  }

 private:
  static constexpr int64_t kUnknownExtent = 8;

  static double UnrollSteps(const Map<String, Any>& annotations, double fallback) {
    auto it = annotations.find(tir::attr::kPragmaUnroll);
    if (it == annotations.end()) return fallback;
    if (auto n = (*it).second.as<int64_t>()) return static_cast<double>(*n);
    if (auto e = (*it).second.as<IntImm>()) return static_cast<double>((*e)->value);
    return fallback;
  }
  static double SizeOf(const Buffer& b) {
    double bytes = std::max(1, b->dtype.bits() / 8);
    for (const PrimExpr& e : b->shape)
      bytes *= static_cast<double>(AsConstInt(e).value_or(kUnknownExtent));
    return bytes;
  }
  void Count(DataType t, Arithmetic kind) {
    (t.is_int() || t.is_uint() || t.is_bool() ? now_->int_ops : now_->float_ops)[kind] +=
        std::max(1, t.lanes());
  }
  void Touch(const Buffer& buffer, const Array<PrimExpr>& indices, bool write) {
    auto it = std::find_if(now_->accesses.begin(), now_->accesses.end(),
                           [&](const Access& a) { return a.buffer.same_as(buffer); });
    if (it == now_->accesses.end()) {
      now_->accesses.push_back({buffer, false, false, 0, {}});
      it = std::prev(now_->accesses.end());
      it->indices.resize(indices.size());
    }
    (write ? it->writes : it->reads) = true;
    ++it->count;
    for (size_t d = 0; d < indices.size() && d < it->indices.size(); ++d)
      Join(&it->indices[d], ToAffine(indices[d]));
  }
  /// The larger movement per loop.
  static void Join(Affine* to, const Affine& from) {
    if (to->size() < from.size()) to->resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) (*to)[i] = std::max((*to)[i], from[i]);
  }
  static void Sum(Affine* to, const Affine& from, double scale = 1) {
    if (to->size() < from.size()) to->resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) (*to)[i] += std::abs(scale) * from[i];
  }
  Affine ToAffine(const PrimExpr& e) {
    if (auto* var = e.as<VarObj>()) {
      auto it = vars_.find(var);
      return it == vars_.end() ? Affine() : it->second;
    }
    Affine result;
    if (auto* op = e.as<MulObj>()) {
      if (auto c = AsConstInt(op->b)) {
        Sum(&result, ToAffine(op->a), *c);
        return result;
      }
      if (auto c = AsConstInt(op->a)) {
        Sum(&result, ToAffine(op->b), *c);
        return result;
      }
    }
    if (auto* op = e.as<FloorDivObj>()) {
      if (auto c = AsConstInt(op->b); c && *c != 0) {
        Sum(&result, ToAffine(op->a), 1.0 / static_cast<double>(*c));
        return result;
      }
    }
    if (auto* op = e.as<FloorModObj>()) return ToAffine(op->a);
    if (auto* op = e.as<RampObj>()) {
      Sum(&result, ToAffine(op->base));
      return result;
    }
    if (e.as<BufferLoadObj>()) return result;  // the place depends on data: unknown
    VisitChildren(e.get(), [&](const ObjectRef& child) {
      if (auto part = child.as<PrimExpr>()) Sum(&result, ToAffine(*part));
    });
    return result;
  }

  std::vector<Loop> loops_;
  std::unordered_map<const VarObj*, Affine> vars_;
  std::unordered_map<const BufferObj*, double> allocated_;
  StoreInfo* now_ = nullptr;
  double unroll_ = 0;
};
}  // namespace

std::vector<StoreInfo> CollectStores(const PrimFunc& func) {
  Collector collector;
  collector(func->body);
  return std::move(collector.stores);
}

}  // namespace tvm::tune
