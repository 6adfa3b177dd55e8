// SPDX-License-Identifier: Apache-2.0
// What the kernel of attention does with a tile of keys.
#include "schedule/rules/gpu_attention_kernel.h"

#include <limits>

#include "schedule/rewrite.h"
#include "tir/threads.h"
#include "tvm/arith/pattern.h"

namespace tvm::tir::gpu {
namespace {
/// What the units multiply at once divides it, and lines of shared memory hold it.
int64_t Padded(const Side& side) {
  int64_t size = AsConstInt(side.Extent()).value(), padded = 16;
  while (padded < size && padded < 64) padded *= 2;
  return (size + padded - 1) / padded * padded;
}
PrimExpr Instruction(DataType type, const char* name, Array<PrimExpr> operands) {
  operands.insert(operands.begin(), StringImm(name));
  return Call(type, builtin::call_pure_extern(), operands);
}
}  // namespace

PrimExpr PowerOfTwo(const PrimExpr& e) {
  return Instruction(DataType::Float(32), "ex2.approx.ftz.f32", {e});
}

AttentionWriter::AttentionWriter(const Attention& attention, const AttentionTile& tile)
    : a_(attention), t_(tile), threads_(t_.Warps() * kWarp) {
  int64_t depth = Padded(a_.depth), columns = Padded(a_.columns), chunk = PerChunk();
  query_ = {t_.rows, depth / chunk, chunk, true, I(0)};
  key_ = {t_.keys, depth / chunk, chunk, true, I(query_.Size())};
  value_ = {t_.keys, columns / chunk, chunk, false, I(query_.Size() + kStages * key_.Size())};
}

// ---- copies -------------------------------------------------------------------------------------
Stmt AttentionWriter::CopyTile(const Factor& factor, const SharedMatrix& matrix, const Side& lines,
                               const Side& along, const PrimExpr& first,
                               const PrimExpr& stage) const {
  return SharedAmong(thread_, threads_, matrix.lines * matrix.chunks, [&](const PrimExpr& number) {
    PrimExpr line = floordiv(number, I(matrix.chunks)), chunk = floormod(number, I(matrix.chunks));
    PrimExpr to = stage + matrix.Place(line, chunk), at = first + line;
    return Unrolled("piece", PerChunk() / factor.lanes, [&](const PrimExpr& i) {
      PrimExpr place = chunk * I(PerChunk()) + i * I(factor.lanes);
      Map<Var, PrimExpr> values;
      a_.batch.Decompose(batch_, &values);
      lines.Decompose(at, &values);
      along.Decompose(place, &values);
      PrimExpr inside =
          InRange(lines, at, matrix.lines) && InRange(along, place, matrix.chunks * PerChunk());
      return CopyElements(factor, values, inside, factor.lanes, ring_, to + i * I(factor.lanes));
    });
  });
}

// ---- a tile of keys -----------------------------------------------------------------------------
Stmt AttentionWriter::Scores(const PrimExpr& step) const {
  PrimExpr stage = floormod(step, I(kStages)) * I(key_.Size());
  PrimExpr first = floordiv(thread_, I(kWarp)) * I(t_.warp_rows);
  Stmt clear = Fill(scores_, RowTiles() * KeyTiles() * 4, 0);
  Stmt product = Unrolled("d", query_.chunks / 2, [&](const PrimExpr& d) {
    Stmt left = Unrolled("i", RowTiles(), [&](const PrimExpr& i) {
      return query_.Load(left_regs_, i * I(4), ring_, I(0), true, first + i * I(16), d * I(2),
                         Lane());
    });
    Stmt right = Unrolled("j", KeyTiles() / 2, [&](const PrimExpr& j) {
      return key_.Load(right_regs_, j * I(4), ring_, stage, false, j * I(16), d * I(2), Lane());
    });
    Stmt multiply = Unrolled("j", KeyTiles(), [&](const PrimExpr& j) {
      return Unrolled("i", RowTiles(), [&](const PrimExpr& i) {
        return Mma(left_regs_, i * I(4), j * I(2), scores_, (i * I(KeyTiles()) + j) * I(4));
      });
    });
    return SeqStmt::Flatten({left, right, multiply});
  });
  return SeqStmt::Flatten({clear, product});
}
/// Scores become exponents; those of keys that do not count, minus infinity.
Stmt AttentionWriter::Exponents(const PrimExpr& tile) const {
  auto for_all = [&](const std::function<PrimExpr(const Map<Var, PrimExpr>&, const PrimExpr& inside,
                                                  const PrimExpr& score)>& value) {
    return Unrolled("r", Rows(), [&](const PrimExpr& r) {
      return Unrolled("j", KeyTiles(), [&](const PrimExpr& j) {
        return Unrolled("c", 2, [&](const PrimExpr& c) {
          PrimExpr row = first_row_ + RowAt(r), key = tile * I(t_.keys) + j * I(8) + Pair() + c;
          PrimExpr at = At(r, j, KeyTiles()) + c, score = Get(scores_, at);
          Map<Var, PrimExpr> values = ValuesAt(row);
          a_.keys.Decompose(key, &values);
          PrimExpr inside = InRange(a_.rows, row, t_.rows) && InRange(a_.keys, key, t_.keys);
          return Set(scores_, at, value(values, inside, score));
        });
      });
    });
  };
  PrimExpr none = -infinity(DataType::Float(32));
  Array<Stmt> steps;
  if (!a_.exponent.same_as(a_.score)) {
    steps.push_back(
        for_all([&](Map<Var, PrimExpr> values, const PrimExpr& inside, const PrimExpr& score) {
          values.Set(a_.score, score);
          PrimExpr exponent = Substitute(a_.exponent, values);
          return IsTrue(inside) ? exponent : if_then_else(inside, exponent, none);
        }));
  }
  // Which tiles have keys that do not count.
  PrimExpr first = tile * I(t_.keys), last = first + I(t_.keys - 1);
  bool is_even = IsTrue(InRange(a_.keys, last, t_.keys));
  PrimExpr matters = is_even ? const_false() : last >= a_.keys.Extent();
  for (const Limit& limit : limits_) {
    if (!limit.at.defined()) {
      matters = const_true();
    } else if (limit.is_upper) {
      matters = matters || last > LimitAt(limit, false);
    } else {
      matters = matters || first < LimitAt(limit, true);
    }
  }
  if (is_even && limits_.empty()) return SeqStmt::Flatten(steps);
  steps.push_back(If(
      matters,
      for_all([&](const Map<Var, PrimExpr>& values, const PrimExpr& inside, const PrimExpr& score) {
        return if_then_else(inside && Substitute(AllOf(a_.allowed), values), score, none);
      })));
  return SeqStmt::Flatten(steps);
}
/// Exponents become weights relative to the largest one so far.
Stmt AttentionWriter::Weights() const {
  double scale = a_.scale * kLog2E;
  PrimExpr none = -infinity(DataType::Float(32));
  return Unrolled("r", Rows(), [&](const PrimExpr& r) {
    auto for_all = [&](const std::function<Stmt(const PrimExpr&)>& body) {
      return Unrolled("j", KeyTiles(), [&](const PrimExpr& j) {
        return Unrolled("c", 2, [&](const PrimExpr& c) { return body(At(r, j, KeyTiles()) + c); });
      });
    };
    Stmt largest = SeqStmt::Flatten(
        {Set(high_, r, Get(top_, r)), for_all([&](const PrimExpr& at) {
           return Set(high_, r, max(Get(high_, r), Get(scores_, at)));
         }),
         CombineLanes(high_, r, [](const PrimExpr& a, const PrimExpr& b) { return max(a, b); })});
    // Where no key counted so far, there is nothing that exponents could be relative to.
    Var base("base", DataType::Float(32)), shrink("shrink", DataType::Float(32));
    PrimExpr high = Get(high_, r);
    Stmt weights = for_all([&](const PrimExpr& at) {
      PrimExpr power = PowerOfTwo(Get(scores_, at) * F(scale) - base);
      return SeqStmt::Flatten(
          {Set(scores_, at, power), Set(total_, r, Get(total_, r) + Get(scores_, at))});
    });
    Stmt less = Unrolled("j", ColumnTiles(), [&](const PrimExpr& j) {
      return Unrolled("c", 2, [&](const PrimExpr& c) {
        PrimExpr at = At(r, j, ColumnTiles()) + c;
        return Set(sums_, at, Get(sums_, at) * shrink);
      });
    });
    Stmt rest = SeqStmt::Flatten(
        {Set(top_, r, high), Set(total_, r, Get(total_, r) * shrink), less, weights});
    rest = LetStmt(shrink, PowerOfTwo(Get(top_, r) * F(scale) - base), rest);
    rest = LetStmt(base, Select(equal(high, none), F(0), high * F(scale)), rest);
    return SeqStmt::Flatten({largest, rest});
  });
}
Stmt AttentionWriter::Weighted(const PrimExpr& step) const {
  PrimExpr stage = floormod(step, I(kStages)) * I(value_.Size());
  const char* pack = a_.type->factor.is_float16() ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32";
  return Unrolled("k", t_.keys / 16, [&](const PrimExpr& k) {
    // What a thread has of 16 x 16 weights are the sums of two tiles of scores next to each other.
    Stmt left = Unrolled("i", RowTiles(), [&](const PrimExpr& i) {
      return Unrolled("p", 4, [&](const PrimExpr& p) {
        PrimExpr tile = i * I(KeyTiles()) + k * I(2) + floordiv(p, I(2));
        PrimExpr at = tile * I(4) + floormod(p, I(2)) * I(2);
        PrimExpr both =
            Instruction(DataType::UInt(32), pack, {Get(scores_, at + 1), Get(scores_, at)});
        return Set(left_regs_, i * I(4) + p, both);
      });
    });
    // Values are loaded as they are multiplied: there are no registers for all of them.
    Stmt multiply = Unrolled("j", ColumnTiles() / 2, [&](const PrimExpr& j) {
      Stmt right =
          value_.Load(right_regs_, I(0), ring_, stage, false, j * I(16), k * I(16), Lane());
      Stmt both = Unrolled("c", 2, [&](const PrimExpr& c) {
        return Unrolled("i", RowTiles(), [&](const PrimExpr& i) {
          PrimExpr tile = i * I(ColumnTiles()) + j * I(2) + c;
          return Mma(left_regs_, i * I(4), c * I(2), sums_, tile * I(4));
        });
      });
      return SeqStmt::Flatten({right, both});
    });
    return SeqStmt::Flatten({left, multiply});
  });
}

// ---- which keys count ---------------------------------------------------------------------------
/// Conditions that limit the key, by something that is the same for all rows or grows by one with
/// them.
void AttentionWriter::FindLimits() {
  const Var& key = a_.keys.iters[0]->var;
  for (const PrimExpr& condition : a_.allowed) {
    Limit limit{};
    Array<Optional<PrimExpr>> found = arith::DetectClipBound(condition, {key});
    if (found.size() == 2 && found[0].has_value() != found[1].has_value()) {
      limit.is_upper = found[1].has_value();
      PrimExpr at = limit.is_upper ? found[1].value() : found[0].value();
      bool loads = false;
      PostOrderVisit(at,
                     [&](const ObjectRef& node) { loads |= node.as<BufferLoadObj>() != nullptr; });
      Array<Var> rows;
      for (const IterVar& iter : a_.rows.iters) rows.push_back(iter->var);
      Array<PrimExpr> steps = arith::DetectLinearEquation(at, rows);
      bool moves = rows.size() == 1 && steps.size() == 2 && IsOne(steps[0]);
      bool stays = rows.empty() || (!steps.empty() && UsesVar(at, [&](const VarObj* v) {
                                                        return std::any_of(rows.begin(), rows.end(),
                                                                           [&](const Var& r) {
                                                                             return r.get() == v;
                                                                           });
                                                      }) == false);
      if (!loads && (moves || stays)) limit.at = at;
    }
    limits_.push_back(limit);
  }
}
PrimExpr AttentionWriter::LimitAt(const Limit& limit, bool is_last_row) const {
  PrimExpr row =
      is_last_row ? min(first_row_ + I(t_.rows), a_.rows.Extent()) - 1 : PrimExpr(first_row_);
  return cast(DataType::Int(32), Substitute(limit.at, ValuesAt(row)));
}

// ---- the kernel ---------------------------------------------------------------------------------
Stmt AttentionWriter::Write(Array<Buffer>* memory) {
  DataType f32 = DataType::Float(32), word = DataType::UInt(32);
  auto local = [](int64_t count, DataType type, const char* name) {
    return Buffer::Decl({I(count)}, type, name, "local");
  };
  ring_ = Buffer::Decl({I(SharedElements())}, a_.type->factor, "ring", "shared.dyn");
  left_regs_ = local(RowTiles() * 4, word, "left");
  right_regs_ = local(KeyTiles() * 2, word, "right");
  scores_ = local(RowTiles() * KeyTiles() * 4, f32, "scores");
  sums_ = local(RowTiles() * ColumnTiles() * 4, f32, "sums");
  top_ = local(Rows(), f32, "top");
  high_ = local(Rows(), f32, "high");
  total_ = local(Rows(), f32, "total");
  FindLimits();

  // Rows further down have more keys where a condition says so: they begin first.
  PrimExpr row_tiles = ceildiv(a_.rows.Extent(), I(t_.rows));
  PrimExpr blocks = row_tiles * a_.batch.Extent();
  bool in_parts = t_.parts > 1;
  PrimExpr tile = in_parts ? floormod(block_, blocks) : PrimExpr(block_);
  part_ = in_parts ? floordiv(block_, blocks) : I(0);
  batch_ = floordiv(tile, row_tiles);
  PrimExpr first_row = (row_tiles - 1 - floormod(tile, row_tiles)) * I(t_.rows);
  PrimExpr begin = I(0), end = ceildiv(a_.keys.Extent(), I(t_.keys));
  for (const Limit& limit : limits_) {
    if (!limit.at.defined()) continue;
    if (limit.is_upper) {
      end = min(end, floordiv(LimitAt(limit, true), I(t_.keys)) + 1);
    } else {
      begin = max(begin, floordiv(LimitAt(limit, false), I(t_.keys)));
    }
  }
  if (in_parts) {
    PrimExpr each = ceildiv(max(end - begin, I(0)), I(t_.parts));
    end = min(end, begin + (part_ + 1) * each);
    begin = begin + part_ * each;
    auto partial = [&](const PrimExpr& count, const char* name) {
      Buffer buffer = Buffer::Decl({I(t_.parts) * count}, f32, name, "global");
      memory->push_back(buffer);
      return buffer;
    };
    partial_ = partial(Lines() * a_.columns.Extent(), "partial");
    partial_top_ = partial(Lines(), "partial_top");
    partial_total_ = partial(Lines(), "partial_total");
  }

  Var step("step", DataType::Int(32));
  PrimExpr next = begin_ + step + 1;
  Stmt body = SeqStmt::Flatten({WaitForOlder(), CopyKeys(next, step + 1), Scores(step),
                                Exponents(begin_ + step), Weights(), WaitForOlder(),
                                CopyValues(next, step + 1), Weighted(step)});
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  Stmt all = SeqStmt::Flatten(
      {Fill(sums_, RowTiles() * ColumnTiles() * 4, 0), Fill(total_, Rows(), 0),
       Fill(top_, Rows(), kNone), CopyTile(a_.query, query_, a_.rows, a_.depth, first_row_, I(0)),
       CopyKeys(begin_, I(0)), CopyValues(begin_, I(0)),
       For(step, I(0), max(end_ - begin_, I(0)), ForKind::kSerial, body, {}, InOneLoop()),
       in_parts ? StorePart() : Store()});
  all = LetStmt(first_row_, first_row, LetStmt(begin_, begin, LetStmt(end_, end, all)));
  // Loops are left to the compiler of the text, which is shorter then.
  all = AttrStmt(I(0), attr::kPragmaUnrollExplicit, I(0), all);
  all = AttrStmt(I(0), kOwnBarriers, I(1), all);
  Array<BufferRegion> writes{BufferRegion::Full(in_parts ? partial_ : a_.store->buffer)};
  if (in_parts) {
    writes.push_back(BufferRegion::Full(partial_top_));
    writes.push_back(BufferRegion::Full(partial_total_));
  }
  Block block({}, Reads(), writes, "attention", all, {},
              {ring_, left_regs_, right_regs_, scores_, sums_, top_, high_, total_});
  Stmt kernel = BindTo("threadIdx.x", thread_, I(threads_), BlockRealize({}, const_true(), block));
  kernel = BindTo("blockIdx.x", block_, in_parts ? blocks * I(t_.parts) : blocks, kernel);
  return in_parts ? SeqStmt::Flatten({kernel, CombineParts()}) : kernel;
}
int64_t SharedBytes(const Attention& attention, const AttentionTile& tile) {
  return AttentionWriter(attention, tile).SharedElements() * attention.type->Bytes();
}
Stmt AttentionKernel(const Attention& attention, const AttentionTile& tile, Array<Buffer>* memory) {
  return AttentionWriter(attention, tile).Write(memory);
}

}  // namespace tvm::tir::gpu
