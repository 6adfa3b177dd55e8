// SPDX-License-Identifier: Apache-2.0
// Writing loops over buffers: the statements of operators that no expression per element describes.
#pragma once
#include "topi/shape.h"

namespace tvm::topi {
using tir::Buffer, tir::Stmt;

inline PrimExpr Load(const Buffer& b, const Index& index) {
  return tir::BufferLoad(b, Array<PrimExpr>(index.begin(), index.end()));
}
inline Stmt Store(const Buffer& b, const Index& index, const PrimExpr& value) {
  return tir::BufferStore(b, tvm::cast(b->dtype, value),
                          Array<PrimExpr>(index.begin(), index.end()));
}
inline Stmt Steps(const std::vector<Stmt>& steps) {
  return tir::SeqStmt::Flatten(Array<Stmt>(steps.begin(), steps.end()));
}
/// for name in range(extent): body
template <class F>
Stmt Loop(const char* name, const PrimExpr& extent, F&& body) {
  Var var(name, extent.dtype());
  return tir::For(var, MakeZero(extent.dtype()), extent, tir::ForKind::kSerial, body(var));
}
/// A loop per dimension of a shape.
template <class F>
Stmt Loops(const Shape& shape, F&& body) {
  std::vector<Var> vars;
  for (size_t d = 0; d < shape.size(); ++d)
    vars.emplace_back("i" + std::to_string(d), shape[d].dtype());
  Stmt stmt = body(Index(vars.begin(), vars.end()));
  for (size_t d = shape.size(); d-- > 0;) {
    stmt = tir::For(vars[d], MakeZero(shape[d].dtype()), shape[d], tir::ForKind::kSerial, stmt);
  }
  return stmt;
}
inline Stmt Copy(const Buffer& from, const Buffer& to) {
  return Loops(from->shape, [&](const Index& i) { return Store(to, i, Load(from, i)); });
}
/// `body` with a buffer of its own.
inline Stmt WithBuffer(const Buffer& b, const Stmt& body) {
  return tir::Allocate(b->data, b->dtype, b->shape, const_true(), tir::DeclBuffer(b, body));
}
/// A number that statements change.
struct Scalar {
  Buffer buffer;
  Scalar(const char* name, DataType t) : buffer(Buffer::Decl({PrimExpr(1)}, t, name)) {}
  PrimExpr Get() const { return Load(buffer, {PrimExpr(0)}); }
  Stmt Set(const PrimExpr& value) const { return Store(buffer, {PrimExpr(0)}, value); }
};
/// var = value; body(var)
template <class F>
Stmt Let(const char* name, const PrimExpr& value, F&& body) {
  Var var(name, value.dtype());
  return tir::LetStmt(var, value, body(var));
}
/// The index with another one inserted at an axis.
inline Index Inserted(Index index, size_t axis, const PrimExpr& at) {
  index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), at);
  return index;
}
inline Shape Without(const Shape& shape, size_t axis) {
  Shape rest;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis) rest.push_back(shape[d]);
  }
  return rest;
}

}  // namespace tvm::topi
