// SPDX-License-Identifier: Apache-2.0
// Statements and functions: constructors and invariants.
#include "tvm/tir/stmt.h"

#include <limits>

#include "tvm/expr/op.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

namespace {
void CheckBool(const PrimExpr& e, const char* node) {
  if (!e.dtype().is_bool() || !e.dtype().is_scalar())
    TVM_FFI_THROW(TypeError) << node << ": expected a bool condition, got " << e.dtype();
}
void CheckPointer(const Var& var, const char* node) {
  if (!var.dtype().is_handle())
    TVM_FFI_THROW(TypeError) << node << ": expected a pointer variable, got " << var->name_hint
                             << " of type " << var.dtype();
}
}  // namespace

LetStmt::LetStmt(Var var, PrimExpr value, Stmt body, Optional<Span> span) {
  *this = New<LetStmt>(
      [&](LetStmtObj* n) { n->var = var, n->value = value, n->body = body, n->span = span; });
}
void LetStmtObj::Init() {
  if (var.dtype() != value.dtype()) {
    TVM_FFI_THROW(TypeError) << "LetStmt: expected a value of type " << var.dtype() << " for "
                             << var->name_hint << ", got " << value.dtype();
  }
}
AssertStmt::AssertStmt(PrimExpr condition, PrimExpr message, Stmt body, Optional<Span> span) {
  *this = New<AssertStmt>([&](AssertStmtObj* n) {
    n->condition = condition;
    n->message = message;
    n->body = body;
    n->span = span;
  });
}
void AssertStmtObj::Init() {
  CheckBool(condition, "AssertStmt");
  if (!message.as<StringImmObj>() && !message.dtype().is_int())
    TVM_FFI_THROW(TypeError) << "AssertStmt: expected a text or an integer as message, got "
                             << message.dtype();
}

For::For(Var loop_var, PrimExpr min, PrimExpr extent, ForKind kind, Stmt body,
         Optional<IterVar> thread_binding, Map<String, Any> annotations, Optional<PrimExpr> step,
         Optional<Span> span) {
  *this = New<For>([&](ForObj* n) {
    n->loop_var = loop_var;
    n->min = min;
    n->extent = extent;
    n->kind = kind;
    n->body = body;
    n->thread_binding = thread_binding;
    n->annotations = annotations;
    n->step = step;
    n->span = span;
  });
}
void ForObj::Init() {
  DataType t = loop_var.dtype();
  if (!t.is_integer() || !t.is_scalar())
    TVM_FFI_THROW(TypeError) << "For: expected an integer loop variable, got " << t;
  auto match = [&](PrimExpr* e, const char* what) {
    if (e->dtype() == t) return;
    if (!e->dtype().is_integer() || (!AsConstInt(*e) && e->dtype().bits() > t.bits())) {
      TVM_FFI_THROW(TypeError) << "For: expected a " << what << " of type " << t
                               << " as the loop variable " << loop_var->name_hint << " has, got "
                               << e->dtype();
    }
    *e = cast(t, *e);
  };
  match(&min, "begin");
  match(&extent, "extent");
  if (step.has_value()) {
    PrimExpr s = step.value();
    match(&s, "step");
    if (auto value = AsConstInt(s); value && *value <= 0)
      TVM_FFI_THROW(ValueError) << "For: expected a positive step, got " << *value;
    step = s;
  }
  if (kind == ForKind::kThreadBinding && !thread_binding.has_value())
    TVM_FFI_THROW(ValueError) << "For: expected a thread_binding for the loop "
                              << loop_var->name_hint;
}
bool ForObj::HasTrivialStep() const { return !step.has_value() || IsOne(step.value()); }

While::While(PrimExpr condition, Stmt body, Optional<Span> span) {
  *this =
      New<While>([&](WhileObj* n) { n->condition = condition, n->body = body, n->span = span; });
}
void WhileObj::Init() { CheckBool(condition, "While"); }

BufferStore::BufferStore(Buffer buffer, PrimExpr value, Array<PrimExpr> indices,
                         Optional<PrimExpr> predicate, Optional<Span> span) {
  *this = New<BufferStore>([&](BufferStoreObj* n) {
    n->buffer = buffer;
    n->value = value;
    n->indices = indices;
    n->predicate = predicate;
    n->span = span;
  });
}
void BufferStoreObj::Init() {
  DataType t = AccessType(buffer, indices, "BufferStore");
  if (value.dtype() != t) {
    TVM_FFI_THROW(TypeError) << "BufferStore: expected a value of type " << t << " for buffer "
                             << buffer->name << ", got " << value.dtype();
  }
  DataType mask = predicate.has_value() ? predicate.value().dtype() : t;
  bool is_mask = mask.is_bool() || mask.bits() == 1;  // uint1 is the older name of bool
  if (predicate.has_value() && !(is_mask && mask.raw_lanes() == t.raw_lanes())) {
    TVM_FFI_THROW(TypeError) << "BufferStore: expected a bool predicate with the lanes of " << t
                             << ", got " << mask;
  }
}
BufferRealize::BufferRealize(Buffer buffer, Array<Range> bounds, PrimExpr condition, Stmt body,
                             Optional<Span> span) {
  *this = New<BufferRealize>([&](BufferRealizeObj* n) {
    n->buffer = buffer;
    n->bounds = bounds;
    n->condition = condition;
    n->body = body;
    n->span = span;
  });
}

Allocate::Allocate(Var buffer_var, DataType dtype, Array<PrimExpr> extents, PrimExpr condition,
                   Stmt body, Map<String, Any> annotations, Optional<Span> span) {
  *this = New<Allocate>([&](AllocateObj* n) {
    n->buffer_var = buffer_var;
    n->dtype = dtype;
    n->extents = extents;
    n->condition = condition;
    n->body = body;
    n->annotations = annotations;
    n->span = span;
  });
}
void AllocateObj::Init() {
  CheckPointer(buffer_var, "Allocate");
  CheckBool(condition, "Allocate");
}
int64_t AllocateObj::ConstantSize() const {
  int64_t size = 1;
  for (const PrimExpr& e : extents) {
    auto extent = AsConstInt(e);
    if (!extent || __builtin_mul_overflow(size, *extent, &size)) return 0;
  }
  return size;
}
AllocateConst::AllocateConst(Var buffer_var, DataType dtype, Array<PrimExpr> extents,
                             ffi::Tensor data, Stmt body, Map<String, Any> annotations,
                             Optional<Span> span) {
  *this = New<AllocateConst>([&](AllocateConstObj* n) {
    n->buffer_var = buffer_var;
    n->dtype = dtype;
    n->extents = extents;
    n->data = data;
    n->body = body;
    n->annotations = annotations;
    n->span = span;
  });
}
void AllocateConstObj::Init() {
  CheckPointer(buffer_var, "AllocateConst");
  if (data.has_value() == irmod_storage_idx.has_value())
    TVM_FFI_THROW(ValueError) << "AllocateConst: expected either data or an index";
}
DeclBuffer::DeclBuffer(Buffer buffer, Stmt body, Optional<Span> span) {
  *this = New<DeclBuffer>(
      [&](DeclBufferObj* n) { n->buffer = buffer, n->body = body, n->span = span; });
}
AttrStmt::AttrStmt(Any node, String attr_key, PrimExpr value, Stmt body, Optional<Span> span) {
  *this = New<AttrStmt>([&](AttrStmtObj* n) {
    n->node = node;
    n->attr_key = attr_key;
    n->value = value;
    n->body = body;
    n->span = span;
  });
}

void SeqStmtObj::Init() {
  if (seq.empty()) TVM_FFI_THROW(ValueError) << "SeqStmt: expected at least one statement";
  bool nested = false;
  for (const Stmt& s : seq) nested |= s.as<SeqStmtObj>() != nullptr;
  if (!nested) return;
  Array<Stmt> flat;
  for (const Stmt& s : seq) {
    if (auto* inner = s.as<SeqStmtObj>()) {
      for (const Stmt& i : inner->seq) flat.push_back(i);
    } else {
      flat.push_back(s);
    }
  }
  seq = flat;
}
bool IsNothing(const Stmt& stmt) {
  auto* e = stmt.as<EvaluateObj>();
  return e && e->value.as<IntImmObj>();
}
Stmt SeqStmt::Flatten(const Array<Stmt>& seq, Optional<Span> span) {
  Array<Stmt> flat;
  for (const Stmt& s : seq) {
    if (!s.defined() || IsNothing(s)) continue;
    if (auto* inner = s.as<SeqStmtObj>()) {
      for (const Stmt& i : inner->seq) flat.push_back(i);
    } else {
      flat.push_back(s);
    }
  }
  if (flat.empty()) return Evaluate::Nothing();
  if (flat.size() == 1) return flat[0];
  return New<SeqStmt>([&](SeqStmtObj* n) { n->seq = flat, n->span = span; });
}

IfThenElse::IfThenElse(PrimExpr condition, Stmt then_case, Optional<Stmt> else_case,
                       Optional<Span> span) {
  *this = New<IfThenElse>([&](IfThenElseObj* n) {
    n->condition = condition;
    n->then_case = then_case;
    n->else_case = else_case;
    n->span = span;
  });
}
void IfThenElseObj::Init() { CheckBool(condition, "IfThenElse"); }
Evaluate::Evaluate(PrimExpr value, Optional<Span> span) {
  *this = New<Evaluate>([&](EvaluateObj* n) { n->value = value, n->span = span; });
}

BufferRegion::BufferRegion(Buffer buffer, Array<Range> region) {
  *this = New<BufferRegion>([&](BufferRegionObj* n) { n->buffer = buffer, n->region = region; });
}
void BufferRegionObj::Init() {
  if (region.size() != buffer->shape.size()) {
    TVM_FFI_THROW(ValueError) << "BufferRegion: expected " << buffer->shape.size()
                              << " ranges for buffer " << buffer->name << ", got " << region.size();
  }
}
BufferRegion BufferRegion::Full(Buffer buffer) {
  Array<Range> region;
  for (const PrimExpr& e : buffer->shape)
    region.push_back(Range::FromMinExtent(MakeZero(e.dtype()), e));
  return BufferRegion(buffer, region);
}
BufferRegion BufferRegion::Point(Buffer buffer, const Array<PrimExpr>& indices) {
  Array<Range> region;
  for (const PrimExpr& i : indices) {
    if (auto* ramp = i.as<RampObj>()) {
      region.push_back(Range::FromMinExtent(ramp->base, ramp->stride * (ramp->lanes - 1) + 1));
    } else {
      region.push_back(Range::FromMinExtent(i, MakeConst(i.dtype(), 1)));
    }
  }
  return BufferRegion(buffer, region);
}
MatchBufferRegion::MatchBufferRegion(Buffer buffer, BufferRegion source) {
  *this = New<MatchBufferRegion>(
      [&](MatchBufferRegionObj* n) { n->buffer = buffer, n->source = source; });
}
void MatchBufferRegionObj::Init() {
  if (buffer->dtype != source->buffer->dtype) {
    TVM_FFI_THROW(TypeError) << "MatchBufferRegion: expected " << buffer->name << " of type "
                             << source->buffer->dtype << ", got " << buffer->dtype;
  }
  const Array<PrimExpr>& shape = buffer->shape;
  const Array<Range>& region = source->region;
  for (size_t i = 0; shape.size() == region.size() && i < shape.size(); ++i) {
    auto size = AsConstInt(shape[i]), extent = AsConstInt(region[i]->extent);
    if (size && extent && *size != *extent) {
      TVM_FFI_THROW(ValueError)
          << "MatchBufferRegion: expected a view of the shape of its region of "
          << source->buffer->name << ", " << *extent << " elements in dimension " << i << ", got "
          << *size;
    }
  }
}
Block::Block(Array<IterVar> iter_vars, Array<BufferRegion> reads, Array<BufferRegion> writes,
             String name_hint, Stmt body, Optional<Stmt> init, Array<Buffer> alloc_buffers,
             Array<MatchBufferRegion> match_buffers, Map<String, Any> annotations,
             Optional<Span> span) {
  *this = New<Block>([&](BlockObj* n) {
    n->iter_vars = iter_vars;
    n->reads = reads;
    n->writes = writes;
    n->name_hint = name_hint;
    n->body = body;
    n->init = init;
    n->alloc_buffers = alloc_buffers;
    n->match_buffers = match_buffers;
    n->annotations = annotations;
    n->span = span;
  });
}
BlockRealize::BlockRealize(Array<PrimExpr> iter_values, PrimExpr predicate, Block block,
                           Optional<Span> span) {
  *this = New<BlockRealize>([&](BlockRealizeObj* n) {
    n->iter_values = iter_values;
    n->predicate = predicate;
    n->block = block;
    n->span = span;
  });
}
void BlockRealizeObj::Init() {
  CheckBool(predicate, "BlockRealize");
  if (iter_values.size() != block->iter_vars.size()) {
    TVM_FFI_THROW(ValueError) << "BlockRealize: expected " << block->iter_vars.size()
                              << " values for the iterators of block " << block->name_hint
                              << ", got " << iter_values.size();
  }
}

PrimFunc::PrimFunc(Array<Var> params, Stmt body, Type ret_type, Map<Var, Buffer> buffer_map,
                   DictAttrs attrs, Optional<Span> span) {
  *this = New<PrimFunc>([&](PrimFuncObj* n) {
    n->params = params;
    n->body = body;
    n->ret_type = ret_type;
    n->buffer_map = buffer_map;
    n->attrs = attrs.defined() ? attrs : DictAttrs(Map<String, Any>());
    n->span = span;
  });
}
void PrimFuncObj::Init() {
  if (!attrs.defined()) attrs = DictAttrs(Map<String, Any>());
  for (const auto& [var, buffer] : buffer_map) {
    bool is_param = false;
    for (const Var& p : params) is_param |= p.same_as(var);
    if (!is_param) {
      TVM_FFI_THROW(ValueError)
          << "PrimFunc: expected the keys of buffer_map to be parameters, got " << var->name_hint;
    }
    CheckPointer(var, "PrimFunc");
  }
}
void TensorIntrinObj::Init() {
  if (desc->params.size() != impl->params.size()) {
    TVM_FFI_THROW(ValueError)
        << "TensorIntrin: expected description and implementation with as many "
        << "parameters, got " << desc->params.size() << " and " << impl->params.size();
  }
}

namespace {
TVM_REGISTER() {
  RegisterBase<StmtObj>("Base of statements.");
  RegisterNode<LetStmtObj>("body with var standing for value.");
  RegisterNode<AssertStmtObj>("Raises an error unless condition holds.");
  RegisterNode<ForObj>("for loop_var in [min, min + extent), in steps of step: body");
  RegisterNode<WhileObj>("Runs body while condition holds.");
  RegisterNode<BufferStoreObj>("buffer[indices] = value");
  RegisterNode<BufferRealizeObj>("The region of a buffer that body needs.");
  RegisterNode<AllocateObj>("Memory for body.");
  RegisterNode<AllocateConstObj>("Constant memory for body.");
  RegisterNode<DeclBufferObj>("Makes a view of a pointer known in body.");
  RegisterNode<AttrStmtObj>("Says something about node while body runs.");
  RegisterNode<SeqStmtObj>("Statements one after the other.");
  RegisterNode<IfThenElseObj>("if condition: then_case, else: else_case");
  RegisterNode<EvaluateObj>("An expression evaluated for its effect.");
  RegisterNode<BufferRegionObj>("A box of a buffer.");
  RegisterNode<MatchBufferRegionObj>("A buffer as a view of a region.");
  RegisterNode<BlockObj>("The unit of scheduling.");
  RegisterNode<BlockRealizeObj>("Runs a block with its iterators bound.");
  RegisterNode<PrimFuncObj>("A function over buffers and scalars.");
  RegisterNode<TensorIntrinObj>("A computation and the instruction that does it.");
}
}  // namespace
}  // namespace tvm::tir
