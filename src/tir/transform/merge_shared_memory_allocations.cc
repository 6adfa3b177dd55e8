// SPDX-License-Identifier: Apache-2.0
// Makes one allocation of all the shared memory of a kernel.
#include "../analysis/lifetime.h"
#include "../any_stmt.h"
#include "../element_pointer.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Enough for every vector type.
constexpr int64_t kAlignment = 16;
int64_t BytesOf(DataType t) { return (int64_t{t.bits()} * t.lanes() + 7) / 8; }

struct Merger : Mutator<Merger, AttrStmtObj, AllocateObj, DeclBufferObj, BufferLoadObj,
                        BufferStoreObj, CallObj, VarObj> {
  const char* scope;
  const LifetimeFinder& lives;
  std::unordered_map<const VarObj*, PrimExpr> offsets;  // in bytes
  Var merged;                                           // of the kernel
  std::unordered_map<const BufferObj*, Buffer> buffers;
  bool in_kernel = false;
  Merger(const char* scope, const LifetimeFinder& lives) : scope(scope), lives(lives) {}

  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (in_kernel || !LaunchedThread(op)) return MapChildren(op, *this);
    // Inside of all thread indices, which the extents may not depend on.
    std::vector<const AttrStmtObj*> launch;
    Stmt body = ffi::GetRef<Stmt>(op);
    while (auto* attr = body.as<AttrStmtObj>()) {
      if (!LaunchedThread(attr)) break;
      launch.push_back(attr);
      body = attr->body;
    }
    PrimExpr size = Plan(body);
    if (!size.defined()) return ffi::GetRef<ObjectRef>(op);
    in_kernel = true;
    body = Allocate(merged, DataType::UInt(8), {size}, const_true(), Mutate(body));
    in_kernel = false;
    for (auto it = launch.rbegin(); it != launch.rend(); ++it)
      body = AttrStmt((*it)->node, (*it)->attr_key, (*it)->value, body, (*it)->span);
    return body;
  }
  /// Places the allocations of a kernel, largest first; memory is used again by those that begin
  /// after a barrier that follows the last use. Undefined when there is nothing to merge.
  PrimExpr Plan(const Stmt& kernel) {
    std::vector<const AllocateObj*> fixed, dynamic;
    PreOrderVisit(kernel, [&](const ObjectRef& node) {
      auto* op = node.as<AllocateObj>();
      if (!op || ScopeOf(op->buffer_var.get()) != scope) return true;
      bool is_fixed = lives.allocations.at(op->buffer_var.get()).bytes >= 0;
      (is_fixed ? fixed : dynamic).push_back(op);
      return true;
    });
    if (fixed.size() + dynamic.size() < 2) return PrimExpr();
    struct Placed {
      const Allocation* what;
      int64_t begin, end;
    };
    std::vector<Placed> placed;
    auto info = [&](const AllocateObj* op) { return &lives.allocations.at(op->buffer_var.get()); };
    std::stable_sort(fixed.begin(), fixed.end(),
                     [&](auto* a, auto* b) { return info(a)->bytes > info(b)->bytes; });
    int64_t total = 0;
    for (const AllocateObj* op : fixed) {
      const Allocation* a = info(op);
      int64_t bytes = (a->bytes + kAlignment - 1) / kAlignment * kAlignment, begin = 0;
      auto overlaps = [&](const Placed& p) {
        bool apart = (p.what->last < a->first && lives.HasBarrier(p.what->last, a->first)) ||
                     (a->last < p.what->first && lives.HasBarrier(a->last, p.what->first));
        bool may_share = apart && !a->is_exposed && !p.what->is_exposed;
        return !may_share && begin < p.end && p.begin < begin + bytes;
      };
      for (bool moved = true; moved;) {
        moved = false;
        for (const Placed& p : placed) {
          if (overlaps(p)) {
            begin = p.end;
            moved = true;
          }
        }
      }
      placed.push_back({a, begin, begin + bytes});
      offsets[op->buffer_var.get()] = MakeConst(DataType::Int(32), begin);
      total = std::max(total, begin + bytes);
    }
    PrimExpr size = MakeConst(DataType::Int(32), total);
    for (const AllocateObj* op : dynamic) {
      offsets[op->buffer_var.get()] = size;
      PrimExpr bytes = MakeConst(DataType::Int(32), BytesOf(op->dtype));
      for (const PrimExpr& e : op->extents) bytes = bytes * e;
      PrimExpr unit = MakeConst(bytes.dtype(), kAlignment);
      size = size + floordiv(bytes + unit - 1, unit) * unit;
    }
    merged = Var(std::string(scope) == "shared" ? "buf_shmem" : "buf_dyn_shmem",
                 PointerType(PrimType(DataType::UInt(8)), scope));
    return size;
  }
  const PrimExpr* Offset(const VarObj* data) const {
    auto it = in_kernel ? offsets.find(data) : offsets.end();
    return it == offsets.end() ? nullptr : &it->second;
  }
  /// The offset in elements.
  PrimExpr Elements(const PrimExpr& bytes, DataType t) const {
    return floordiv(bytes, MakeConst(bytes.dtype(), BytesOf(t)));
  }
  Buffer Placed(const Buffer& buffer) {
    const PrimExpr* offset = Offset(buffer->data.get());
    if (!offset) return buffer;
    Buffer& result = buffers[buffer.get()];
    if (!result.defined()) {
      if (buffer->shape.size() != 1) {
        TVM_FFI_THROW(ValueError) << "MergeSharedMemoryAllocations: expected buffer "
                                  << buffer->name << " with one dimension, run FlattenBuffer first";
      }
      result = buffer;
      auto* n = Edit(&result);
      n->data = merged;
      n->shape = {Elements(*offset, n->dtype) + n->shape[0]};
    }
    return result;
  }
  PrimExpr Shift(const PrimExpr& i, const PrimExpr& offset) const {
    PrimExpr by = cast(i.dtype().element(), offset);
    return i.dtype().is_scalar() ? i + by : i + Broadcast(by, PrimExpr(i.dtype().lanes()));
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    return Offset(op->buffer_var.get()) ? ObjectRef(Mutate(op->body)) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    Buffer b = Placed(op->buffer);
    return b.same_as(op->buffer) ? MapChildren(op, *this)
                                 : ObjectRef(DeclBuffer(b, Mutate(op->body), op->span));
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    const PrimExpr* offset = Offset(op->buffer->data.get());
    if (!offset) return MapChildren(op, *this);
    return BufferLoad(Placed(op->buffer),
                      {Shift(Mutate(op->indices[0]), Elements(*offset, op->buffer->dtype))},
                      op->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    const PrimExpr* offset = Offset(op->buffer->data.get());
    if (!offset) return MapChildren(op, *this);
    return BufferStore(Placed(op->buffer), Mutate(op->value),
                       {Shift(Mutate(op->indices[0]), Elements(*offset, op->buffer->dtype))},
                       op->predicate, op->span);
  }
  ObjectRef Rewrite(const CallObj* op) {
    auto* data = op->Is(builtin::tvm_access_ptr()) ? op->args[1].as<VarObj>() : nullptr;
    const PrimExpr* offset = data ? Offset(data) : nullptr;
    if (!offset) return MapChildren(op, *this);
    Array<PrimExpr> args = op->args;
    args.Set(1, merged);
    args.Set(2, Shift(Mutate(op->args[2]), Elements(*offset, op->args[0].dtype())));
    return Call(op->dtype, op->op, args, op->span);
  }
  /// A bare pointer; typed where it can be.
  ObjectRef Rewrite(const VarObj* op) {
    const PrimExpr* offset = Offset(op);
    if (!offset) return ffi::GetRef<ObjectRef>(op);
    auto* type = op->type_annotation.as<PointerTypeObj>();
    if (auto* element = type ? type->element_type.as<PrimTypeObj>() : nullptr;
        element && !element->dtype.is_void())
      return ElementPointer(ffi::GetRef<Var>(op), merged, Elements(*offset, element->dtype));
    return Call(DataType::Handle(), builtin::handle_add_byte_offset(), {merged, *offset});
  }
};
PrimFunc Merge(PrimFunc func, const char* scope) {
  auto in_scope = [&](const AllocateObj* op) { return ScopeOf(op->buffer_var.get()) == scope; };
  if (!AnyStmt<AllocateObj>(func->body, in_scope)) return func;
  LifetimeFinder lives;
  lives(func->body);
  Merger merge(scope, lives);
  return RewriteBody(std::move(func), merge);
}
}  // namespace

PrimFunc MergeSharedMemoryAllocations(PrimFunc func) {
  bool is_static =
      ::tvm::transform::PassContext::Current()->GetConfig<bool>("tir.merge_static_smem");
  if (is_static) func = Merge(std::move(func), "shared");
  return Merge(std::move(func), "shared.dyn");
}
TVM_PASS(
    tir, MergeSharedMemoryAllocations,
    R"(Makes one allocation of the dynamic shared memory of each kernel, and with tir.merge_static_smem of the static one. Memory whose last use a barrier separates from the first use of another allocation serves both.

before(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "int32")):
    i = T.launch_thread("threadIdx.x", 32)
    S_data = T.allocate([32], "float32", "shared.dyn")
    S = T.decl_buffer((32,), data=S_data, scope="shared.dyn")
    R_data = T.allocate([32], "int32", "shared.dyn")
    R = T.decl_buffer((32,), "int32", data=R_data, scope="shared.dyn")
    S[i] = A[i]
    R[i] = B[i]
    T.tvm_storage_sync("shared.dyn")
    A[i] = S[31 - i]
    B[i] = R[31 - i]
after:
    i = T.launch_thread("threadIdx.x", 32)
    data = T.allocate([256], "uint8", "shared.dyn")
    S = T.decl_buffer((32,), data=data, scope="shared.dyn")
    R = T.decl_buffer((64,), "int32", data=data, scope="shared.dyn")
    S[i] = A[i]
    R[i + 32] = B[i]
    T.tvm_storage_sync("shared.dyn")
    A[i] = S[31 - i]
    B[i] = R[31 - i + 32])")
}  // namespace tvm::tir
