// SPDX-License-Identifier: Apache-2.0
// Attention on processors: rows of queries go through blocks of keys with the largest score and the
// sum of weights so far, so that scores never leave the first cache.
//
//   keys in panels [head] [panel] [size] [width]: parallel
//   for rows of a head: parallel
//     for blocks of keys that the mask leaves:
//       scores = queries · panels · scale + bias       (tiles in registers)
//       weights = exp(scores - largest so far); the sums so far shrink where it grew
//       sums += weights · values                       (tiles in registers)
//     result = sums / sum of weights
#include <cmath>
#include <limits>
#include <numeric>

#include "topi/loops.h"
#include "topi/nn/attention.h"
#include "tvm/ir/machine.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
constexpr int64_t kBlock = 128;    // keys whose scores stay in the first cache
constexpr int64_t kMostRows = 32;  // queries of a task
constexpr int64_t kLeastRows = 8;  // queries for which keys are worth packing
constexpr int64_t kChains = 4;     // vectors that are reduced next to each other

/// Rows and vectors of a tile in registers: most products per operand loaded.
struct RegisterTile {
  int64_t rows = 1, vectors = 1;
};
RegisterTile TileOf(int64_t most_vectors, const Machine& machine) {
  RegisterTile best;
  double least = 2;  // loads per product
  int64_t accumulators = machine->vector_registers * 3 / 4;
  for (int64_t rows = 1; rows <= kLeastRows; rows *= 2) {
    for (int64_t vectors = 1; vectors <= most_vectors && rows * vectors <= accumulators;
         ++vectors) {
      double loads = static_cast<double>(rows + vectors) / static_cast<double>(rows * vectors);
      if (most_vectors % vectors != 0 || loads >= least) continue;
      least = loads;
      best = {rows, vectors};
    }
  }
  return best;
}
/// The rows of a task that leave least beside a number of queries: few where it is not known, which
/// may be one.
int64_t RowsOf(std::optional<int64_t> queries) {
  int64_t best = queries ? kMostRows : kLeastRows;
  auto all = [&](int64_t rows) { return (*queries + rows - 1) / rows * rows; };
  for (int64_t rows = kMostRows; queries && rows >= kLeastRows; rows -= kLeastRows) {
    if (all(rows) < all(best)) best = rows;
  }
  return best;
}

class AttentionWriter {
 public:
  AttentionWriter(const AttentionInputs& inputs, int64_t lanes, const Machine& machine)
      : in_(inputs), lanes_(lanes) {
    auto dim = [&](const Tensor& t, int axis) { return tvm::cast(Type(), t->shape[axis]); };
    batch_ = dim(in_.query, 0);
    queries_ = dim(in_.query, 1);
    heads_ = dim(in_.query, 2);
    keys_ = dim(in_.key, 1);
    key_heads_ = dim(in_.key, 2);
    size_ = *AsConstInt(in_.query->shape[3]);
    out_ = *AsConstInt(in_.value->shape[3]);
    score_ = TileOf(kBlock / lanes, machine);
    sum_ = TileOf(out_ / lanes, machine);
    width_ = score_.vectors * lanes;
    rows_ = RowsOf(AsConstInt(queries_));
    blocks_ = Simplified(floordiv(keys_ + I(kBlock - 1), I(kBlock)));
    tiles_ = Simplified(floordiv(queries_ + I(rows_ - 1), I(rows_)));
    even_keys_ = IsMultiple(keys_, kBlock);
    even_rows_ = IsMultiple(queries_, rows_);
  }
  Stmt Write(const Array<Buffer>& in, const Array<Buffer>& out) {
    query_ = in[0];
    key_ = in[1];
    value_ = in[2];
    result_ = out[0];
    if (in.size() > 3) bias_ = in[3];
    PrimExpr per_head = Simplified(blocks_ * I(kBlock / width_));
    panels_ = Buffer::Decl({Simplified(batch_ * key_heads_), per_head, I(size_), I(width_)},
                           DataType::Float(32), "panels");
    Stmt pack = Parallel("panel", Simplified(batch_ * key_heads_ * per_head), [&](const Var& n) {
      return Pack(floordiv(n, per_head), floormod(n, per_head));
    });
    Stmt tasks = Parallel("task", Simplified(batch_ * heads_ * tiles_), [&](const Var& n) {
      return Task(floordiv(n, tiles_), floormod(n, tiles_));
    });
    return WithBuffer(panels_, Steps({pack, tasks}));
  }

 private:
  DataType Type() const { return in_.query->shape[1].dtype(); }
  PrimExpr I(int64_t n) const { return MakeConst(Type(), n); }
  static PrimExpr F(double x) { return MakeConst(DataType::Float(32), x); }
  static bool IsMultiple(const PrimExpr& size, int64_t of) {
    auto known = AsConstInt(size);
    return known && *known % of == 0;
  }
  template <class Body>
  Stmt For(const char* name, const PrimExpr& extent, ForKind kind, Body&& body) const {
    Var var(name, Type());
    return tir::For(var, I(0), extent, kind, body(var));
  }
  template <class Body>
  Stmt Parallel(const char* name, const PrimExpr& extent, Body&& body) const {
    return For(name, extent, ForKind::kParallel, body);
  }
  template <class Body>
  Stmt Serial(const char* name, const PrimExpr& extent, Body&& body) const {
    return For(name, extent, ForKind::kSerial, body);
  }
  template <class Body>
  Stmt Unrolled(const char* name, int64_t extent, Body&& body) const {
    return For(name, I(extent), ForKind::kUnrolled, body);
  }
  template <class Body>
  Stmt Vector(int64_t extent, Body&& body) const {
    return For("x", I(extent), ForKind::kVectorized, body);
  }
  Buffer Local(const char* name, const std::vector<int64_t>& shape) const {
    Shape extents;
    for (int64_t n : shape) extents.push_back(I(n));
    return Buffer::Decl(extents, DataType::Float(32), name, "local");
  }
  PrimExpr KeyHead(const PrimExpr& head) const {
    return Simplified(floordiv(head, floordiv(heads_, key_heads_)));
  }
  /// A key that is there; what is read in the place of others does not count.
  PrimExpr Inside(const PrimExpr& key) const { return even_keys_ ? key : min(key, keys_ - I(1)); }
  PrimExpr InsideRows(const PrimExpr& row) const {
    return even_rows_ ? row : min(row, queries_ - I(1));
  }

  Stmt Pack(const PrimExpr& head, const PrimExpr& panel) const {
    int64_t run = std::gcd(size_, lanes_);
    return Serial("d", I(size_ / run), [&](const Var& d) {
      return Unrolled("w", width_, [&](const Var& w) {
        return Vector(run, [&](const Var& x) {
          PrimExpr at = d * I(run) + x;
          PrimExpr key = Load(key_, {floordiv(head, key_heads_), Inside(panel * I(width_) + w),
                                     floormod(head, key_heads_), at});
          return Store(panels_, {head, panel, at, w}, key);
        });
      });
    });
  }
  /// `set` of the sums of a tile, over a loop that adds `left`(row) times `right`(vector, lane).
  template <class Start, class Left, class Right, class Set>
  Stmt Tile(const RegisterTile& tile, const PrimExpr& depth, Start&& start, Left&& left,
            Right&& right, Set&& set) const {
    Buffer sums = Local("tile", {tile.rows, tile.vectors, lanes_});
    auto all = [&](auto&& body) {
      return Unrolled("r", tile.rows, [&](const Var& r) {
        return Unrolled("v", tile.vectors, [&](const Var& v) {
          return Vector(lanes_, [&](const Var& x) { return body(r, v, x); });
        });
      });
    };
    Stmt begin = all([&](const Var& r, const Var& v, const Var& x) {
      return Store(sums, {r, v, x}, start(r, v * I(lanes_) + x));
    });
    Stmt add = Serial("k", depth, [&](const Var& k) {
      return all([&](const Var& r, const Var& v, const Var& x) {
        return Store(sums, {r, v, x},
                     Load(sums, {r, v, x}) + left(r, k) * right(k, v * I(lanes_) + x));
      });
    });
    Stmt end = all([&](const Var& r, const Var& v, const Var& x) {
      return set(r, v * I(lanes_) + x, Load(sums, {r, v, x}));
    });
    return WithBuffer(sums, Steps({begin, add, end}));
  }

  /// The rows of one tile of queries of a head.
  Stmt Task(const PrimExpr& place, const PrimExpr& tile) {
    scores_ = Local("scores", {rows_, kBlock});
    sums_ = Local("sums", {rows_, out_});
    largest_ = Local("largest", {rows_});
    total_ = Local("total", {rows_});
    PrimExpr batch = floordiv(place, heads_), head = floormod(place, heads_);
    PrimExpr first = tile * I(rows_);
    Stmt start = Serial("r", I(rows_), [&](const Var& r) {
      // The lowest number, not infinity: a row of which all scores so far are -inf goes on.
      return Steps({Store(largest_, {r}, F(std::numeric_limits<float>::lowest())),
                    Store(total_, {r}, F(0)),
                    Vector(out_, [&](const Var& x) { return Store(sums_, {r, x}, F(0)); })});
    });
    PrimExpr from = I(0), to = blocks_;
    const Mask& mask = in_.mask;
    if (mask.causal) {
      PrimExpr last = mask.Last(first + I(rows_ - 1), queries_, keys_);
      to = max(min(to, floordiv(last, I(kBlock)) + I(1)), I(0));
    }
    if (mask.window) {
      PrimExpr earliest = mask.Last(first, queries_, keys_) - I(*mask.window - 1);
      from = min(max(floordiv(earliest, I(kBlock)), I(0)), to);
    }
    Stmt blocks = Serial("block", to - from, [&](const Var& n) {
      PrimExpr block = from + n;
      return Steps({Scores(batch, head, first, block), Weights(), Sums(batch, head, block)});
    });
    Stmt end = Serial("r", I(rows_), [&](const Var& r) {
      // Nothing was added for a query that sees no key.
      PrimExpr total = Load(total_, {r}), by = Select(equal(total, F(0)), F(1), total);
      Stmt row = Vector(out_, [&](const Var& x) {
        PrimExpr result = div(Load(sums_, {r, x}), by);
        if (in_.zero_nan) result = Select(total > F(0), result, F(0));
        return Store(result_, {batch, first + r, head, x}, result);
      });
      return even_rows_ ? row : Stmt(IfThenElse(first + r < queries_, row));
    });
    Stmt all = Steps({start, blocks, end});
    for (const Buffer& b : {scores_, sums_, largest_, total_}) all = WithBuffer(b, all);
    return all;
  }
  PrimExpr Bias(const PrimExpr& batch, const PrimExpr& head, const PrimExpr& row,
                const PrimExpr& key) const {
    Index at = {batch, head, InsideRows(row), Inside(key)};
    for (size_t i = 0; i < at.size(); ++i) {
      if (IsOne(bias_->shape[i])) at[i] = I(0);
    }
    return Load(bias_, at);
  }
  Stmt Scores(const PrimExpr& batch, const PrimExpr& head, const PrimExpr& first,
              const PrimExpr& block) const {
    double scale = in_.scale ? *in_.scale : 1 / std::sqrt(static_cast<double>(size_));
    PrimExpr place = batch * key_heads_ + KeyHead(head);
    return Serial("panel", I(kBlock / width_), [&](const Var& p) {
      return Serial("rows", I(rows_ / score_.rows), [&](const Var& n) {
        PrimExpr begin = n * I(score_.rows);
        auto left = [&](const Var& r, const Var& k) {
          return Load(query_, {batch, InsideRows(first + begin + r), head, k});
        };
        auto right = [&](const Var& k, const PrimExpr& x) {
          return Load(panels_, {place, block * I(kBlock / width_) + p, k, x});
        };
        auto set = [&](const Var& r, const PrimExpr& x, const PrimExpr& sum) {
          PrimExpr column = p * I(width_) + x, key = block * I(kBlock) + column;
          PrimExpr row = first + begin + r, score = sum * F(scale);
          if (bias_.defined()) score = score + Bias(batch, head, row, key);
          PrimExpr allowed = in_.mask.Allows(row, key, queries_, keys_);
          if (!even_keys_) allowed = allowed && key < keys_;
          if (!IsTrue(allowed))
            score = Select(allowed, score, F(-std::numeric_limits<double>::infinity()));
          return Store(scores_, {begin + r, column}, score);
        };
        return Tile(score_, I(size_), [&](auto&&...) { return F(0); }, left, right, set);
      });
    });
  }
  Stmt Weights() const {
    Buffer parts = Local("parts", {kChains, lanes_}), row = Local("row", {2});
    int64_t rounds = kBlock / lanes_ / kChains;
    PrimExpr top = Load(row, {I(0)}), shrunk = Load(row, {I(1)});
    auto each = [&](auto&& body) {
      return Unrolled("i", kChains, [&](const Var& i) {
        return Vector(lanes_, [&](const Var& x) { return body(i, x); });
      });
    };
    /// All vectors of a row combined into `to`.
    auto reduce = [&](const Buffer& to, const PrimExpr& at, auto&& combine) {
      Stmt joined = Vector(lanes_, [&](const Var& x) {
        PrimExpr value = Load(parts, {I(0), x});
        for (int64_t i = 1; i < kChains; ++i) value = combine(value, Load(parts, {I(i), x}));
        return Store(parts, {I(0), x}, value);
      });
      return Steps({joined, Serial("x", I(lanes_), [&](const Var& x) {
                      return Store(to, {at}, combine(Load(to, {at}), Load(parts, {I(0), x})));
                    })});
    };
    auto larger = [](const PrimExpr& a, const PrimExpr& b) { return max(a, b); };
    auto added = [](const PrimExpr& a, const PrimExpr& b) { return a + b; };
    Stmt rows = Serial("r", I(rows_), [&](const Var& r) {
      auto place = [&](const Var& c, const Var& i, const Var& x) -> Index {
        return {r, (c * I(kChains) + i) * I(lanes_) + x};
      };
      auto over_row = [&](auto&& body) {
        return Serial("c", I(rounds), [&](const Var& c) {
          return each([&](const Var& i, const Var& x) { return body(c, i, x); });
        });
      };
      Stmt find = over_row([&](const Var& c, const Var& i, const Var& x) {
        return Store(parts, {i, x}, max(Load(parts, {i, x}), Load(scores_, place(c, i, x))));
      });
      Stmt weigh = over_row([&](const Var& c, const Var& i, const Var& x) {
        return Store(scores_, place(c, i, x), exp(Load(scores_, place(c, i, x)) - top));
      });
      Stmt add = over_row([&](const Var& c, const Var& i, const Var& x) {
        return Store(parts, {i, x}, Load(parts, {i, x}) + Load(scores_, place(c, i, x)));
      });
      auto fill = [&](const PrimExpr& value) {
        return each([&](const Var& i, const Var& x) { return Store(parts, {i, x}, value); });
      };
      return Steps({fill(Load(largest_, {r})), find, Store(row, {I(0)}, Load(largest_, {r})),
                    reduce(row, I(0), larger), Store(row, {I(1)}, exp(Load(largest_, {r}) - top)),
                    Store(largest_, {r}, top), weigh, fill(F(0)), add,
                    Store(total_, {r}, Load(total_, {r}) * shrunk), reduce(total_, r, added),
                    Vector(out_, [&](const Var& x) {
                      return Store(sums_, {r, x}, Load(sums_, {r, x}) * shrunk);
                    })});
    });
    return WithBuffer(parts, WithBuffer(row, rows));
  }
  Stmt Sums(const PrimExpr& batch, const PrimExpr& head, const PrimExpr& block) const {
    int64_t width = sum_.vectors * lanes_;
    PrimExpr depth = even_keys_ ? I(kBlock) : min(I(kBlock), keys_ - block * I(kBlock));
    return Serial("rows", I(rows_ / sum_.rows), [&](const Var& n) {
      return Serial("columns", I(out_ / width), [&](const Var& m) {
        PrimExpr begin = n * I(sum_.rows), column = m * I(width);
        auto start = [&](const Var& r, const PrimExpr& x) {
          return Load(sums_, {begin + r, column + x});
        };
        auto left = [&](const Var& r, const Var& k) { return Load(scores_, {begin + r, k}); };
        auto right = [&](const Var& k, const PrimExpr& x) {
          return Load(value_, {batch, block * I(kBlock) + k, KeyHead(head), column + x});
        };
        auto set = [&](const Var& r, const PrimExpr& x, const PrimExpr& sum) {
          return Store(sums_, {begin + r, column + x}, sum);
        };
        return Tile(sum_, depth, start, left, right, set);
      });
    });
  }

  const AttentionInputs& in_;
  int64_t lanes_, size_ = 0, out_ = 0, width_ = 0, rows_ = 0;
  RegisterTile score_, sum_;
  PrimExpr batch_, queries_, heads_, keys_, key_heads_, blocks_, tiles_;
  bool even_keys_ = false, even_rows_ = false;
  Buffer query_, key_, value_, bias_, result_, panels_, scores_, sums_, largest_, total_;
};
}  // namespace

std::optional<Tensor> AttentionInOneKernel(const AttentionInputs& inputs) {
  Target target = Target::Current();
  if (!target.defined() || inputs.query->dtype != DataType::Float(32)) return std::nullopt;
  Machine machine = Machine::Of(target);
  auto size = AsConstInt(inputs.query->shape[3]), out = AsConstInt(inputs.value->shape[3]);
  auto queries = AsConstInt(inputs.query->shape[1]), keys = AsConstInt(inputs.key->shape[1]);
  if (!machine->is_host || !machine->takes_vectors || !size || !out || *size == 0 || *out == 0 ||
      (queries && *queries < kLeastRows) || keys == 0)
    return std::nullopt;
  int64_t lanes = std::gcd(*out, int64_t{machine->Lanes(32)});
  if (lanes < 4) return std::nullopt;
  Array<Tensor> tensors = {inputs.query, inputs.key, inputs.value};
  if (inputs.bias) tensors.push_back(*inputs.bias);
  const Shape& q = inputs.query->shape;
  AttentionWriter writer(inputs, lanes, machine);
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& result) {
    return writer.Write(in, result);
  };
  return Extern("attention", tensors,
                {{Shape{q[0], q[1], q[2], inputs.value->shape[3]}, DataType::Float(32)}}, body)[0];
}
}  // namespace tvm::topi::nn
