// SPDX-License-Identifier: Apache-2.0
// Intrinsics of processors with tile registers (AMX): a grid of tiles of sums stays in registers.
//
// The sums are a buffer of scope "amx.tile", which has no memory: amx_zero_… begins, amx_dot_… adds
// products of words of four bytes or two bfloat16, amx_store_… takes the sums to memory. A name
// says the grid and the types: amx_dot_2x2_us has 2 x 2 tiles of 16 x 16 sums, unsigned bytes on
// the left and signed ones on the right; amx_dot_2x2_bf_reversed is described with the right factor
// first.
#include "tvm/expr/op.h"
#include "tvm/tir/stmt.h"
#include "tvm/tir/tensor_intrin.h"

namespace tvm::tir::amx {
namespace {
constexpr int kSide = 16;      // rows of a tile, and words in a row
constexpr int kRegisters = 8;  // tile registers

PrimExpr Number(int value) { return IntImm::Int32(value); }

/// Tiles of sums, and the registers that hold them and the factors.
struct Grid {
  int rows, columns;
  int Sum(int row, int column) const { return row * columns + column; }
  int Left(int row) const { return rows * columns + row; }
  int Right(int column) const { return rows * columns + rows + column; }
};
Buffer Sums(const Grid& grid, DataType t) {
  return Buffer(Var("C", PointerType(PrimType(t), "amx.tile")), t,
                {Number(grid.rows * kSide), Number(grid.columns * kSide)}, {}, Number(0), "C", 0,
                1);
}
/// A matrix in memory, of any stride between its rows.
Buffer Matrix(const char* name, int rows, int columns, DataType t, const String& scope) {
  Var pitch(std::string(name) + "_pitch", DataType::Int(32));
  Var offset(std::string(name) + "_offset", DataType::Int(32));
  return Buffer(Var(name, PointerType(PrimType(t), scope)), t, {Number(rows), Number(columns)},
                {pitch, Number(1)}, offset, name, 0, 1);
}

/// `body` as a function of buffers, of which the last one is written.
PrimFunc FunctionOf(const std::vector<Buffer>& buffers, const Stmt& body) {
  Array<BufferRegion> regions;
  Array<Var> params;
  Map<Var, Buffer> map;
  for (const Buffer& buffer : buffers) {
    regions.push_back(BufferRegion(buffer, buffer->shape.Map([](const PrimExpr& extent) {
      return Range::FromMinExtent(Number(0), extent);
    })));
    params.push_back(Var(buffer->name, DataType::Handle()));
    map.Set(params.back(), buffer);
  }
  Array<BufferRegion> reads = regions, writes = {regions.back()};
  if (buffers.size() < 3) reads.pop_back();  // only sums are added to
  Block block({}, reads, writes, "root", body);
  return PrimFunc(params, BlockRealize({}, IntImm::Bool(true), block), TupleType::Void(), map);
}
TensorIntrin IntrinOf(const std::vector<Buffer>& buffers, const Stmt& described,
                      const Array<Stmt>& steps) {
  auto node = ffi::make_object<TensorIntrinObj>();
  node->desc = FunctionOf(buffers, described);
  node->impl = FunctionOf(buffers, SeqStmt::Flatten(steps));
  node->Init();
  return TensorIntrin(node);
}
Stmt InLoops(const std::vector<std::pair<Var, int>>& loops, Stmt body) {
  for (auto it = loops.rbegin(); it != loops.rend(); ++it)
    body = For(it->first, Number(0), Number(it->second), ForKind::kSerial, body);
  return body;
}
Stmt Do(const char* instruction, const Array<PrimExpr>& args) {
  Array<PrimExpr> all = {StringImm(instruction)};
  for (const PrimExpr& arg : args) all.push_back(arg);
  return Evaluate(Call(DataType::Void(), builtin::call_llvm_intrin(), all));
}
PrimExpr Register(int number) { return MakeConst(DataType::Int(8), number); }
/// Between a register and the tile of a matrix at these numbers of tiles.
Stmt Move(const char* instruction, int tile, const Buffer& matrix, int row, int column) {
  PrimExpr at = Call(DataType::Handle(), builtin::address_of(),
                     {BufferLoad(matrix, {Number(row * kSide), Number(column * kSide)})});
  PrimExpr pitch = cast(DataType::Int(64), matrix->strides[0]);
  int64_t bytes = matrix->dtype.bits() / 8;
  return Do(instruction, {Register(tile), at, pitch * MakeConst(DataType::Int(64), bytes)});
}

TensorIntrin Zero(const Grid& grid, DataType t) {
  Buffer c = Sums(grid, t);
  Var i("i", DataType::Int(32)), j("j", DataType::Int(32));
  Array<Stmt> steps;
  for (int n = 0; n < grid.rows * grid.columns; ++n)
    steps.push_back(Do("llvm.x86.tilezero", {Register(n)}));
  return IntrinOf({c},
                  InLoops({{i, grid.rows * kSide}, {j, grid.columns * kSide}},
                          BufferStore(c, MakeZero(t), {i, j})),
                  steps);
}
TensorIntrin Store(const Grid& grid, DataType t, const String& scope) {
  Buffer c = Sums(grid, t);
  Buffer y = Matrix("Y", grid.rows * kSide, grid.columns * kSide, t, scope);
  Var i("i", DataType::Int(32)), j("j", DataType::Int(32));
  Array<Stmt> steps;
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column)
      steps.push_back(Move("llvm.x86.tilestored64", grid.Sum(row, column), y, row, column));
  }
  return IntrinOf({c, y},
                  InLoops({{i, grid.rows * kSide}, {j, grid.columns * kSide}},
                          BufferStore(y, BufferLoad(c, {i, j}), {i, j})),
                  steps);
}
/// What an instruction multiplies.
struct Kind {
  std::string_view name;
  const char* instruction;
  const char* dot;  // of the words
  DataType left, right, sum;
  int Group() const { return sum.is_float() ? 2 : 4; }
  /// What words on the left are made of.
  DataType Number() const {
    return sum.is_float() ? DataType::BFloat16() : DataType(left.code(), 8);
  }
};
const Kind kKinds[] = {
    {"bf", "llvm.x86.tdpbf16ps", "tir.dot_bfloat16", DataType::UInt(32), DataType::UInt(32),
     DataType::Float(32)},
    {"ss", "llvm.x86.tdpbssd", "tir.dot_bytes", DataType::Int(32), DataType::Int(32),
     DataType::Int(32)},
    {"su", "llvm.x86.tdpbsud", "tir.dot_bytes", DataType::Int(32), DataType::UInt(32),
     DataType::Int(32)},
    {"us", "llvm.x86.tdpbusd", "tir.dot_bytes", DataType::UInt(32), DataType::Int(32),
     DataType::Int(32)},
    {"uu", "llvm.x86.tdpbuud", "tir.dot_bytes", DataType::UInt(32), DataType::UInt(32),
     DataType::Int(32)},
};
TensorIntrin Dot(const Grid& grid, const Kind& kind, bool is_reversed, bool is_direct) {
  int group = is_direct ? kind.Group() : 1;
  Buffer a = Matrix("A", grid.rows * kSide, kSide * group, is_direct ? kind.Number() : kind.left,
                    "global");
  Buffer b = Matrix("B", kSide, grid.columns * kSide, kind.right, "global");
  Buffer c = Sums(grid, kind.sum);
  Var i("i", DataType::Int(32)), j("j", DataType::Int(32)), k("k", DataType::Int(32));
  PrimExpr left = BufferLoad(a, {i, k}), right = BufferLoad(b, {k, j});
  if (is_direct) {
    PrimExpr numbers = BufferLoad(a, {i, Ramp(k * Number(group), Number(1), Number(group))});
    left = reinterpret(kind.left, reinterpret(DataType::UInt(32), numbers));
  }
  if (is_reversed) std::swap(left, right);
  PrimExpr dot = Call(kind.sum, Op::Get(kind.dot), {left, right});
  Array<Stmt> steps;
  for (int column = 0; column < grid.columns; ++column)
    steps.push_back(Move("llvm.x86.tileloadd64", grid.Right(column), b, 0, column));
  for (int row = 0; row < grid.rows; ++row) {
    steps.push_back(Move("llvm.x86.tileloadd64", grid.Left(row), a, row, 0));
    for (int column = 0; column < grid.columns; ++column) {
      steps.push_back(
          Do(kind.instruction, {Register(grid.Sum(row, column)), Register(grid.Left(row)),
                                Register(grid.Right(column))}));
    }
  }
  return IntrinOf({a, b, c},
                  InLoops({{i, grid.rows * kSide}, {j, grid.columns * kSide}, {k, kSide}},
                          BufferStore(c, BufferLoad(c, {i, j}) + dot, {i, j})),
                  steps);
}

/// The text up to the next '_', which is taken off.
std::string_view Next(std::string_view* text) {
  std::string_view part = text->substr(0, text->find('_'));
  text->remove_prefix(std::min(part.size() + 1, text->size()));
  return part;
}
/// From "dot_2x2_us".
Optional<TensorIntrin> Make(std::string_view text) {
  std::string_view what = Next(&text), size = Next(&text), type = Next(&text);
  if (size.size() != 3 || size[1] != 'x') return {};
  Grid grid{size[0] - '0', size[2] - '0'};
  if (grid.rows < 1 || grid.columns < 1 || grid.Right(grid.columns) > kRegisters) return {};
  if (what == "dot") {
    std::string_view first = Next(&text), second = Next(&text);
    bool is_reversed = first == "reversed", is_direct = (is_reversed ? second : first) == "direct";
    size_t known = is_reversed + is_direct, given = !first.empty() + !second.empty();
    for (const Kind& kind : kKinds) {
      if (type == kind.name && known == given && text.empty())
        return Dot(grid, kind, is_reversed, is_direct);
    }
    return {};
  }
  if (type != "float32" && type != "int32") return {};
  DataType t{String(std::string(type))};
  if (what == "zero" && text.empty()) return Zero(grid, t);
  if (what == "store" && (text == "local" || text == "global"))
    return Store(grid, t, String(std::string(text)));
  return {};
}
TVM_REGISTER() { RegisterIntrinFamily("amx_", Make); }

}  // namespace
}  // namespace tvm::tir::amx
