// SPDX-License-Identifier: Apache-2.0
// Stages over the same rows on GPUs: a row is read once, and all stages of it run in one kernel.
#include <algorithm>
#include <bit>

#include "schedule/rules/gpu.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir::gpu {
namespace {
/// Of all that a block writes.
void SetScopes(const Schedule& sch, const BlockRV& block, const char* scope) {
  int64_t count = static_cast<int64_t>(sch.Get(block)->writes.size());
  for (int64_t i = 0; i < count; ++i) sch.SetScope(block, i, scope);
}
bool Reads(const BlockLook& look, const Buffer& buffer) {
  return std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    return !access.is_store && access.buffer.same_as(buffer);
  });
}
/// What has one value for a row: every thread computes it once, wherever it stands.
void InlineScalars(const Schedule& sch, const BlockRV& root) {
  Array<BlockRV> blocks = sch.GetChildBlocks(root);
  if (blocks.empty()) return;
  size_t rank = LookAt(sch, blocks.back()).axes.size();
  for (const BlockRV& block : blocks) {
    Attempt(sch, [&] {
      BlockLook look = LookAt(sch, block);
      size_t moving = 0;
      for (const Axis& axis : look.axes) moving += axis.size != 1;
      if (look.has_reduction || moving >= rank) return false;
      sch.ComputeInline(block);
      return true;
    });
  }
}
/// Threads of a row and elements that each takes at once; no threads where they do not divide it.
std::pair<int64_t, int64_t> Divided(const BlockLook& last, int64_t length, const Machine& machine) {
  // Many rows hide what each waits for, and few threads take little time to add up; of few rows
  // the time of each is what counts.
  constexpr int64_t kRowsOfCore = 16, kThreadsOfRow = 512;
  auto rows = last.Size([&](const Axis& axis) { return &axis != &last.axes.back(); });
  bool has_many = !rows || *rows >= machine->cores * kRowsOfCore;
  int64_t wanted = has_many ? 32 : 16, most = has_many ? 64 : 16;  // elements of a thread
  int64_t lanes = LanesAlong(last, last.axes.size() - 1);
  // What stages hand on is in registers, whatever its width.
  if (lanes > 1) lanes = kVectorBytes / BytesOf(last.Store().buffer);
  while (length % lanes != 0) lanes /= 2;
  auto threads = static_cast<int64_t>(std::bit_ceil(
      static_cast<uint64_t>(std::clamp<int64_t>(length / wanted, kWarp, kThreadsOfRow))));
  while (threads >= kWarp && length % (threads * lanes) != 0) threads /= 2;
  bool fits = threads >= kWarp && length / threads <= most;
  return {fits ? threads : 0, lanes};
}
/// A block of threads has a row: each keeps its part of what several stages read, and of what they
/// hand on element by element, in registers; results of reductions are in shared memory.
bool KeepInRegisters(const Schedule& sch, const std::vector<BlockLook>& looks, size_t rows,
                     int64_t length, const Machine& machine) {
  const BlockLook& last = looks.back();
  auto [threads, lanes] = Divided(last, length, machine);
  if (last.axes.size() != rows + 1 || threads == 0) return false;
  size_t rank = last.axes.size();
  // Element j of a row is number v of vector o of thread t.
  auto divide = [&, threads = threads, lanes = lanes](const BlockRV& block) {
    Array<Var> from;
    Array<PrimExpr> to;
    for (size_t i = 0; i < rank; ++i) from.push_back(Var("i", DataType::Int(32)));
    for (size_t i = 0; i + 1 < rank; ++i) to.push_back(from[i]);
    PrimExpr j = from.back();
    to.push_back(floordiv(j, Int(threads * lanes)));
    to.push_back(floordiv(floormod(j, Int(threads * lanes)), Int(lanes)));
    to.push_back(floormod(j, Int(lanes)));
    sch.TransformLayout(block, Array<Any>{String("write"), int64_t{0}}, IndexMap(from, to, {}));
  };
  // What stages hand on.
  std::vector<BlockRV> blocks;
  for (size_t i = 0; i + 1 < looks.size(); ++i) {
    const BlockLook& look = looks[i];
    if (look.axes.size() != rank) return false;
    if (look.has_reduction) continue;
    for (const BlockLook& user : looks) {
      if (Reads(user, look.Store().buffer) && !ReadsInPlace(user, look.Store().buffer))
        return false;
    }
    if (look.block->writes.size() != 1) return false;
  }
  // What several stages read.
  std::vector<Buffer> seen;
  for (const BlockLook& look : looks) {
    for (const BufferRegion& read : look.block->reads) {
      const Buffer& buffer = read->buffer;
      bool is_known =
          std::any_of(seen.begin(), seen.end(), [&](const Buffer& b) { return b.same_as(buffer); });
      bool is_made = std::any_of(looks.begin(), looks.end(), [&](const BlockLook& l) {
        return std::any_of(l.block->writes.begin(), l.block->writes.end(),
                           [&](const BufferRegion& w) { return w->buffer.same_as(buffer); });
      });
      if (is_known || is_made) continue;
      seen.push_back(buffer);
      Array<BlockRV> users;
      bool in_place = true;
      for (const BlockLook& user : looks) {
        if (!Reads(user, buffer)) continue;
        users.push_back(user.rv);
        in_place &= ReadsInPlace(user, buffer);
      }
      if (users.size() < 2 || !in_place) continue;
      Array<BufferRegion> reads = sch.Get(users[0])->reads;
      int64_t at = 0;
      while (!reads[at]->buffer.same_as(buffer)) ++at;
      blocks.push_back(sch.CacheRead(users[0], at, "local", users));
      divide(blocks.back());
    }
  }
  size_t copies = blocks.size();
  for (const BlockLook& look : looks) blocks.push_back(look.rv);
  Array<LoopRV> outer;
  for (size_t i = 0; i < rows; ++i) outer.push_back(last.axes[i].loop);
  LoopRV row = FuseAll(sch, outer);
  for (size_t i = blocks.size() - 1; i-- > 0;) {
    bool is_copy = i < copies;
    if (!is_copy && looks[i - copies].has_reduction) {
      SetScopes(sch, blocks[i], "shared");
    } else if (!is_copy) {
      sch.SetScope(blocks[i], 0, "local");
      divide(blocks[i]);
    }
    sch.ComputeAt(blocks[i], row, true);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    LoopRV along = sch.GetLoops(blocks[i]).back();
    if (!IsConstInt(sch.Get(along)->extent, length)) return false;
    Array<LoopRV> parts = sch.Split(along, {std::nullopt, Int(threads), Int(lanes)});
    sch.Bind(parts[1], "threadIdx.x");
    bool is_end = i < copies || i + 1 == blocks.size();
    if (!is_end) sch.Reorder({parts[1], parts[0], parts[2]});
    sch.Unroll(parts[0]);
    if (is_end && lanes > 1)
      sch.Vectorize(parts[2]);
    else
      sch.Unroll(parts[2]);
  }
  sch.Bind(row, "blockIdx.x");
  return true;
}
}  // namespace

bool RowByRow(const Schedule& sch, BlockRV root, const Machine& machine) {
  InlineCheap(sch, root);
  InlineScalars(sch, root);
  Array<BlockRV> blocks = sch.GetChildBlocks(root);
  if (blocks.size() < 2) return false;
  std::vector<BlockLook> looks;
  for (const BlockRV& block : blocks) looks.push_back(LookAt(sch, block));
  const BlockLook& last = looks.back();
  if (last.has_reduction || last.axes.size() < 2 || !sch.GetConsumers(last.rv).empty())
    return false;
  // Rows are the leading axes that the results of reductions are indexed by.
  size_t rows = 0;
  bool reduces = false;
  for (const BlockLook& look : looks) {
    if (!look.has_reduction) continue;
    reduces = true;
    if (!IsRowReduction(look)) return false;
    for (const Access& access : last.accesses) {
      if (access.is_store || !access.buffer.same_as(look.Store().buffer)) continue;
      for (size_t i = 0; i < last.axes.size(); ++i) {
        if (access.Moves(i)) rows = std::max(rows, i + 1);
      }
    }
  }
  if (!reduces || rows == 0 || rows == last.axes.size()) return false;
  auto is_row = [&](const Axis& a) {
    return &a - last.axes.data() < static_cast<std::ptrdiff_t>(rows);
  };
  auto length = last.Size([&](const Axis& a) { return !is_row(a); });
  if (!length) return false;
  if (Attempt(sch, [&] { return KeepInRegisters(sch, looks, rows, *length, machine); }))
    return true;
  // A block of threads has a row, and keeps what stages hand on in shared memory.
  int64_t bytes = 0;
  for (size_t i = 0; i + 1 < looks.size(); ++i)
    bytes += (looks[i].has_reduction ? 1 : *length) * BytesOf(looks[i].Store().buffer);
  if (bytes > kSharedBytes) return false;

  int64_t threads = ThreadsFor(length);
  Array<LoopRV> outer, inner;
  for (const Axis& axis : last.axes) (is_row(axis) ? outer : inner).push_back(axis.loop);
  LoopRV row = FuseAll(sch, outer);
  for (size_t i = blocks.size() - 1; i-- > 0;) {
    SetScopes(sch, blocks[i], "shared");
    sch.ComputeAt(blocks[i], row, true);
  }
  auto bind = [&](const Array<LoopRV>& loops) {
    Array<LoopRV> parts = sch.Split(FuseAll(sch, loops), {std::nullopt, Int(threads)});
    sch.Bind(parts[1], "threadIdx.x");
  };
  for (size_t i = 0; i + 1 < blocks.size(); ++i) {
    Array<LoopRV> own;
    BlockLook look = LookAt(sch, blocks[i]);
    bool is_inside = false;
    for (const Axis& axis : look.axes) {
      bool is_shared = sch.IdOf(axis.loop) == sch.IdOf(row);
      if (is_inside && (look.has_reduction ? axis.reduce : true)) own.push_back(axis.loop);
      is_inside |= is_shared;
    }
    if (own.empty()) return false;
    bind(own);
  }
  int64_t lanes = inner.size() == 1 ? LanesAlong(last, last.axes.size() - 1) : 1;
  while (lanes > 1 && *length / lanes < threads) lanes /= 2;
  if (lanes > 1) {
    Array<LoopRV> parts = sch.Split(inner[0], {std::nullopt, Int(threads), Int(lanes)});
    sch.Bind(parts[1], "threadIdx.x");
    sch.Vectorize(parts[2]);
  } else {
    bind(inner);
  }
  sch.Bind(row, "blockIdx.x");
  return true;
}

}  // namespace tvm::tir::gpu
