// SPDX-License-Identifier: Apache-2.0
// Registers the operators of the tables in builtin.h and hopper.h.
#include "tvm/expr/builtin.h"

#include <array>
#include <unordered_map>

#include "tvm/expr/hopper.h"
#include "tvm/expr/signature.h"

namespace tvm::tir {
namespace {
struct Row {
  const char* name;
  CallEffectKind effect;
  bool lane_wise;
  const char* doc;
};
constexpr Row kRows[] = {
#define ROW(name, effect, lane_wise, doc) {"tir." #name, CallEffectKind::effect, lane_wise, doc},
    TVM_BUILTINS(ROW)
#undef ROW
#define ROW(name, effect, doc) {"tir." #name, CallEffectKind::effect, false, doc},
        TVM_HOPPER_BUILTINS(ROW)
#undef ROW
#define ROW(name, doc) {"tir." #name, CallEffectKind::kPure, true, doc},
            TVM_UNARY_MATH(ROW) TVM_ROUNDING_MATH(ROW) TVM_BINARY_MATH(ROW)
#undef ROW
                {"tir.pow", CallEffectKind::kPure, true, "x to the power y."},
    {"tir.fabs", CallEffectKind::kPure, true, "The absolute value of a float."},
};
/// By operator object: calls ask this for every node.
const std::unordered_map<const Object*, const Row*>& RowsByOp() {
  static const auto* table = [] {
    auto* rows = new std::unordered_map<const Object*, const Row*>();
    for (const Row& row : kRows) rows->emplace(Op::Register(row.name, row.doc).get(), &row);
    return rows;
  }();
  return *table;
}
const Row* FindRow(const RelaxExpr& op) {
  auto it = RowsByOp().find(op.get());
  return it == RowsByOp().end() ? nullptr : it->second;
}
const OpAttr<int64_t> TCallEffectKind("TCallEffectKind");
const OpAttr<bool> TVectorizable("TVectorizable");
}  // namespace

namespace builtin {
#define ROW(name, ...)                               \
  const Op& name() {                                 \
    static const Op op = Op::Register("tir." #name); \
    return op;                                       \
  }
TVM_BUILTINS(ROW)
TVM_HOPPER_BUILTINS(ROW)
TVM_UNARY_MATH(ROW)
TVM_ROUNDING_MATH(ROW)
TVM_BINARY_MATH(ROW)
ROW(pow)
ROW(fabs)
#undef ROW
}  // namespace builtin

CallEffectKind EffectOf(const RelaxExpr& op) {
  if (const Row* row = FindRow(op)) return row->effect;
  const int64_t* effect = TCallEffectKind.Find(op);
  return effect ? static_cast<CallEffectKind>(*effect) : CallEffectKind::kOpaque;
}
bool IsLaneWise(const RelaxExpr& op) {
  if (const Row* row = FindRow(op)) return row->lane_wise;
  return TVectorizable.Get(op, false);
}

TVM_REGISTER() {
  for (const Row& row : kRows) {
    Op op = Op::Register(row.name, row.doc);
    op.SetAttr("TCallEffectKind", static_cast<int64_t>(row.effect));
    op.SetAttr("TScriptPrinterName", String(row.name + 4));
    if (row.lane_wise) op.SetAttr("TVectorizable", true);
    if (const Signature* s = FindSignature(row.name + 4))
      op.SetAttr("TSignature", String(std::string(s->type) + ": " + std::string(s->params)));
  }
}
}  // namespace tvm::tir
