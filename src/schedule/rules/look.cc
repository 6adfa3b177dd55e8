// SPDX-License-Identifier: Apache-2.0
// Looking at a block: axes, accesses, cost.
#include "schedule/rules/look.h"

#include <algorithm>
#include <vector>

#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
/// Counts operations and finds what keeps a body from being vectors.
struct BodyLook : Visitor<BodyLook, PrimExprObj, StmtObj, CallObj, BufferLoadObj, BufferStoreObj,
                          BlockObj, CastObj> {
  BlockLook* out;
  AccessReader reader;
  struct Seen {
    const Object* buffer;
    bool is_store;
    Array<PrimExpr> indices;
    size_t place;  // of its access
  };
  std::vector<Seen> seen;
  static constexpr std::ptrdiff_t kRemembered = 32;  // of what others repeat, the last ones

  explicit BodyLook(BlockLook* look) : out(look), reader(look) {}
  void Count(DataType t) {
    out->work += 1;
    if (t.is_float() || t.is_bfloat16() || t.is_integer())
      out->widest_bits = std::max<int>(out->widest_bits, t.bits());
  }
  void Visit(const PrimExprObj* e) {
    Count(e->dtype);
    VisitChildren(e, *this);
  }
  void Visit(const CastObj* e) {
    Count(e->dtype);
    VisitChildren(e, *this);
  }
  void Visit(const StmtObj* s) {
    out->simple = false;
    VisitChildren(s, *this);
  }
  void Visit(const BlockObj* block) {
    if (block != out->block.get()) out->simple = false;
    if (block->init.has_value()) (*this)(block->init.value());
    (*this)(block->body);
  }
  /// Whether the call itself does more than read: those in its arguments are asked themselves.
  static bool HasEffect(const CallObj* call) {
    CallEffectKind kind = EffectOf(call->op);
    return kind == CallEffectKind::kUpdateState || kind == CallEffectKind::kEmbedInfo ||
           kind == CallEffectKind::kControlJump;
  }
  void Visit(const CallObj* call) {
    Count(call->dtype);
    bool known = call->op.as<OpObj>() != nullptr;
    if (!known || HasEffect(call) || call->Is(builtin::call_extern()) ||
        call->Is(builtin::call_pure_extern()))
      out->simple = false;
    // What is known to be taken costs nothing: padding by nothing is a copy.
    if (call->Is(builtin::if_then_else()) && reader.IsAlways(call->args[0]))
      return (*this)(call->args[1]);
    out->work += cost::kCall;
    if (!call->Is(builtin::if_then_else())) return VisitChildren(call, *this);
    // (Numbers that tell places apart are no values: vectors are not shorter for them.)
    int widest_bits = out->widest_bits;
    (*this)(call->args[0]);
    if (!HasLoad(call->args[0])) out->widest_bits = widest_bits;
    for (size_t i = 1; i < call->args.size(); ++i) (*this)(call->args[i]);
  }
  static bool HasLoad(const PrimExpr& e) {
    bool found = false;
    PostOrderVisit(e, [&](const ObjectRef& node) { found |= node.as<BufferLoadObj>() != nullptr; });
    return found;
  }
  void Visit(const BufferLoadObj* load) {
    Add(load->buffer, load->indices, false);
    out->widest_bits = std::max<int>(out->widest_bits, load->buffer->dtype.bits());
    for (const PrimExpr& i : load->indices) Indices(i);
  }
  void Visit(const BufferStoreObj* store) {
    Add(store->buffer, store->indices, true);
    for (const PrimExpr& i : store->indices) Indices(i);
    (*this)(store->value);
  }
  /// Indices are not work, unless they are loaded.
  void Indices(const PrimExpr& index) {
    PostOrderVisit(index, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>()) {
        Add(load->buffer, load->indices, false);
        out->simple = false;
      }
      if (auto* call = node.as<CallObj>(); call && HasEffect(call)) out->simple = false;
    });
  }
  void Add(const Buffer& buffer, const Array<PrimExpr>& indices, bool is_store) {
    out->work += 1;
    // Expressions repeat themselves: a tile of Winograd's has 4 loads in 16 places.
    auto end = seen.rbegin() + std::min<std::ptrdiff_t>(std::ssize(seen), kRemembered);
    auto same = std::find_if(seen.rbegin(), end, [&](const Seen& old) {
      return old.buffer == buffer.get() && old.is_store == is_store &&
             std::equal(indices.begin(), indices.end(), old.indices.begin(), old.indices.end(),
                        ExprDeepEqual);
    });
    if (same != end) {
      out->accesses.push_back(out->accesses[same->place]);
      return;
    }
    seen.push_back({buffer.get(), is_store, indices, out->accesses.size()});
    out->accesses.push_back(reader.Of(buffer, indices, is_store));
  }
};
}  // namespace

BlockLook LookAt(const Schedule& sch, const BlockRV& rv) {
  BlockLook look(sch, rv);
  look.rv = rv;
  Array<LoopRV> loops = sch.GetLoops(rv);
  for (size_t i = 0; i < look.axes.size(); ++i) look.axes[i].loop = loops[i];
  BodyLook body(&look);
  body(look.block);
  if (!IsTrue(look.realize->predicate)) look.simple = false;
  return look;
}

std::optional<int64_t> BlockLook::Size(const std::function<bool(const Axis&)>& which) const {
  int64_t size = 1;
  for (const Axis& axis : axes) {
    if (!which(axis)) continue;
    if (!axis.size) return std::nullopt;
    size *= *axis.size;
  }
  return size;
}
bool BlockLook::IsEmpty() const {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size == 0; });
}
std::optional<double> BlockLook::TotalWork() const {
  auto size = Size();
  return size ? std::optional(work * static_cast<double>(*size)) : std::nullopt;
}
bool BlockLook::Collapses(size_t outer) const {
  arith::Analyzer analyzer;
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return access.linear && analyzer.CanProveEqual(access.steps[outer], access.steps[outer + 1] *
                                                                            axes[outer + 1].extent);
  });
}
bool BlockLook::ChoosesAlong(size_t axis) const {
  bool chooses = false;
  auto ask = [&](const PrimExpr& condition) {
    PreOrderVisit(condition, [&](const ObjectRef& node) {
      chooses |= axes[axis].iter.same_as(node);
      return !node.as<BufferLoadObj>();
    });
  };
  PostOrderVisit(block->body, [&](const ObjectRef& node) {
    if (auto* select = node.as<SelectObj>()) ask(select->condition);
    auto* call = node.as<CallObj>();
    if (call && call->Is(builtin::if_then_else())) ask(call->args[0]);
  });
  return chooses;
}
const Access& BlockLook::Store() const {
  for (const Access& access : accesses) {
    if (access.is_store) return access;
  }
  TVM_FFI_THROW(InternalError) << "default rules: expected a block that stores something";
  TVM_FFI_UNREACHABLE();
}
std::optional<size_t> BlockLook::Column() const {
  std::optional<size_t> column;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].spatial || axes[i].reduce || !Store().StepsBy(i, 1)) continue;
    // One element is along every axis: rather the axis that is longer, if vectors fit there.
    bool stays = column && axes[i].size == 1 &&
                 std::all_of(accesses.begin(), accesses.end(),
                             [&](const Access& access) { return access.IsNear(*column); });
    if (!stays) column = i;
  }
  return column;
}

bool Attempt(const Schedule& sch, const std::function<bool()>& attempt) {
  // Copies of a schedule share what they have in common.
  ScheduleObj* self = sch.get();
  State state = self->state->value;
  auto symbols = self->symbols;
  auto insts = self->insts;
  auto decisions = self->decisions;
  try {
    if (attempt()) return true;
  } catch (const ffi::Error& error) {
    if (error.kind() != "ScheduleError") throw;
  }
  self->state->value = state;
  self->symbols = symbols;
  self->insts = insts;
  self->decisions = decisions;
  return false;
}
}  // namespace tvm::tir
