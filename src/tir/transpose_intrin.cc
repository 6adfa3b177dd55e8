// SPDX-License-Identifier: Apache-2.0
// Intrinsics that turn a square of elements in vector registers: transpose_16_float32 and so on.
#include <charconv>

#include "tvm/tir/stmt.h"
#include "tvm/tir/tensor_intrin.h"

namespace tvm::tir {
namespace {

PrimExpr Number(int value) { return IntImm::Int32(value); }

/// A square of any strides between its rows.
Buffer Square(const char* name, int side, DataType t) {
  Var pitch(std::string(name) + "_pitch", DataType::Int(32));
  Var offset(std::string(name) + "_offset", DataType::Int(32));
  return Buffer(Var(name, PointerType(PrimType(t))), t, {Number(side), Number(side)},
                {pitch, Number(1)}, offset, name, 0, 1);
}
/// What both functions look like: `body` of X and Y.
PrimFunc Function(int side, DataType t,
                  const std::function<Stmt(const Buffer&, const Buffer&)>& body) {
  Buffer x = Square("X", side, t), y = Square("Y", side, t);
  Range all = Range::FromMinExtent(Number(0), Number(side));
  Block block({}, {BufferRegion(x, {all, all})}, {BufferRegion(y, {all, all})}, "root", body(x, y));
  Var from("x", DataType::Handle()), to("y", DataType::Handle());
  return PrimFunc({from, to}, BlockRealize({}, IntImm::Bool(true), block), TupleType::Void(),
                  {{from, x}, {to, y}});
}
Stmt Described(int side, const Buffer& x, const Buffer& y) {
  Var i("i", DataType::Int(32)), j("j", DataType::Int(32));
  Stmt body = BufferStore(y, BufferLoad(x, {i, j}), {j, i});
  for (const Var& loop : {j, i}) body = For(loop, Number(0), Number(side), ForKind::kSerial, body);
  return body;
}
/// In each step pairs of rows exchange the blocks off the diagonal, of twice the width as before.
Stmt Shuffled(int side, const Buffer& x, const Buffer& y) {
  PrimExpr row = Ramp(Number(0), Number(1), Number(side));
  std::vector<std::pair<Var, PrimExpr>> lets;
  auto named = [&](const PrimExpr& value) -> PrimExpr {
    lets.emplace_back(Var("v", value.dtype()), value);
    return lets.back().first;
  };
  std::vector<PrimExpr> rows;
  for (int i = 0; i < side; ++i) rows.push_back(named(BufferLoad(x, {Number(i), row})));
  for (int width = 1; width < side; width *= 2) {
    for (int i = 0; i < side; ++i) {
      if (i & width) continue;
      Array<PrimExpr> upper, lower;
      for (int lane = 0; lane < side; ++lane) {
        bool moves = lane & width;  // in the upper row, where the other one's lanes begin at `side`
        upper.push_back(Number(moves ? side + lane - width : lane));
        lower.push_back(Number(moves ? side + lane : lane + width));
      }
      Array<PrimExpr> both = {rows[i], rows[i + width]};
      rows[i] = named(Shuffle(both, upper));
      rows[i + width] = named(Shuffle(both, lower));
    }
  }
  Array<Stmt> stores;
  for (int i = 0; i < side; ++i) stores.push_back(BufferStore(y, rows[i], {Number(i), row}));
  Stmt body = SeqStmt::Flatten(stores);
  for (auto it = lets.rbegin(); it != lets.rend(); ++it)
    body = LetStmt(it->first, it->second, body);
  return body;
}
/// From "16_float32".
Optional<TensorIntrin> Make(std::string_view text) {
  int side = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
  std::string_view type = text.substr(end - text.data());
  constexpr int kLargest = 64;
  if (error != std::errc() || side < 2 || side > kLargest || (side & (side - 1))) return {};
  for (const char* known : {"float16", "float32", "float64", "int8", "int16", "int32", "int64",
                            "uint8", "uint16", "uint32", "uint64"}) {
    if (type != "_" + std::string(known)) continue;
    DataType t{String(known)};
    auto body = [&](auto make) {
      return Function(side, t, [&](const Buffer& x, const Buffer& y) { return make(side, x, y); });
    };
    auto node = ffi::make_object<TensorIntrinObj>();
    node->desc = body(Described);
    node->impl = body(Shuffled);
    node->Init();
    return TensorIntrin(node);
  }
  return {};
}
TVM_REGISTER() { RegisterIntrinFamily("transpose_", Make); }

}  // namespace
}  // namespace tvm::tir
