// SPDX-License-Identifier: Apache-2.0
// Products whose number of rows is known when they run: one row, as in a step of a decoder, has a
// schedule of its own. Tiles of several rows would be empty, and a transposed weight is read once.
//
//   for i, n, k in T.grid(m, N, K): …   -->   if m == 1: <scheduled for one row>
//                                             else:      <scheduled for any number>
#include <algorithm>

#include "schedule/rules/look.h"
#include "tir/any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// The one variable in shapes of parameters; none where there are several, or a parameter is it.
Var OnlyExtent(const PrimFunc& func) {
  Var found;
  bool is_only = true;
  for (const auto& [param, buffer] : func->buffer_map) {
    for (const PrimExpr& extent : buffer->shape) {
      if (AsConstInt(extent)) continue;
      auto* var = extent.as<VarObj>();
      if (!var || (found.defined() && found.get() != var)) is_only = false;
      if (var) found = ffi::GetRef<Var>(var);
    }
    is_only = is_only && buffer->strides.empty() && IsZero(buffer->elem_offset);
  }
  for (const Var& param : func->params) is_only = is_only && !param.same_as(found);
  return is_only ? found : Var();
}
/// Whether a block sums up products of rows, `rows` of them, and a matrix that all rows share.
bool IsProduct(const BlockObj* block, const Var& rows) {
  int64_t reduced = 0;
  bool has_rows = false;
  for (const IterVar& iter : block->iter_vars) {
    auto extent = AsConstInt(iter->dom->extent);
    if (iter->iter_type == IterVarType::kCommReduce) {
      if (!extent) return false;
      reduced += *extent > 1;
    } else {
      has_rows |= iter->dom->extent.same_as(rows);
    }
  }
  auto is_shared = [&](const BufferRegion& read) {
    return !UsesVar(read->buffer->shape, [&](const VarObj* var) { return var == rows.get(); }) &&
           read->buffer->shape.size() >= 2;
  };
  return has_rows && reduced == 1 && block->reads.size() >= 2 &&
         std::any_of(block->reads.begin(), block->reads.end(), is_shared);
}
}  // namespace

PrimFunc WithOneRow(const PrimFunc& func, const std::function<PrimFunc(PrimFunc)>& schedule) {
  PrimFunc general = schedule(func);
  Var rows = OnlyExtent(func);
  if (!rows.defined() ||
      !AnyStmt<BlockObj>(func->body, [&](auto* block) { return IsProduct(block, rows); }))
    return general;
  Map<Var, Variant<Buffer, PrimExpr>> fixed;
  PrimExpr one = MakeConst(rows->dtype, 1);
  for (const auto& [param, buffer] : func->buffer_map) {
    Array<PrimExpr> shape = buffer->shape.Map(
        [&](const PrimExpr& extent) { return extent.same_as(rows) ? one : extent; });
    if (shape.same_as(buffer->shape)) continue;
    fixed.Set(param, Buffer(buffer->data, buffer->dtype, shape, {}, buffer->elem_offset,
                            buffer->name, buffer->data_alignment, buffer->offset_factor,
                            buffer->buffer_type, buffer->axis_separators, buffer->span));
  }
  PrimFunc one_row = schedule(Specialize(func, fixed));
  Stmt body = one_row->body;
  for (const auto& [param, buffer] : one_row->buffer_map) {
    if (fixed.count(param)) body = DeclBuffer(buffer, body);
  }
  Block root({}, {}, {}, "root", IfThenElse(EQ(rows, one), body, general->body));
  return ConvertSSA(WithBody(std::move(general), BlockRealize({}, const_true(), root)));
}
}  // namespace tvm::tir
