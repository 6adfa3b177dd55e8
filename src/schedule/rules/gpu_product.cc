// SPDX-License-Identifier: Apache-2.0
// Which blocks are products that get a kernel of their own on a GPU, and in which tiles.
#include "schedule/rules/gpu_product.h"

#include <algorithm>

#include "schedule/rewrite.h"
#include "tir/analysis/reduction.h"
#include "tvm/arith/analyzer.h"
#include "tvm/arith/pattern.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"

namespace tvm::tir::gpu {
namespace {
const ProductType kProductTypes[] = {
    {DataType::Float(16), DataType::Float(32), "fp16", "fp32"},
    {DataType::BFloat16(), DataType::Float(32), "bf16", "fp32"},
    {DataType::Int(8), DataType::Int(32), "int8", "int32"},
    {DataType::UInt(8), DataType::Int(32), "uint8", "int32"},
    {DataType::Float(32), DataType::Float(32), nullptr, nullptr},
};
const ProductType kTf32 = {DataType::Float(32), DataType::Float(32), "tf32", "fp32"},
                  kTf32InParts = {DataType::Float(32), DataType::Float(32), "tf32", "fp32", 3};
/// Larger tiles read less and keep the units busier; smaller ones reach more multiprocessors. The
/// last one is for where nothing is known of sizes and addresses.
const std::vector<ProductTile> kMmaTiles = {
    {128, 256, 64, 64, 1.0}, {256, 128, 64, 64, 1.0}, {128, 128, 64, 64, 0.97},
    {64, 256, 32, 64, 0.8},  {64, 128, 32, 32, 0.65}, {128, 64, 32, 32, 0.65},
    {32, 128, 16, 32, 0.45}, {32, 64, 16, 16, 0.35},  {16, 128, 16, 16, 0.3},
    {16, 64, 16, 16, 0.2},   {64, 64, 32, 16, 0.5},
};
/// Of warpgroups: what a multiprocessor does with them beside the best it does with warps.
const std::vector<ProductTile> kWarpgroupTiles = {
    {128, 256, 64, 256, 1.8}, {256, 128, 128, 128, 1.8}, {128, 128, 64, 128, 1.5},
    {64, 256, 64, 256, 1.2},  {64, 128, 64, 128, 0.9},
};
const std::vector<ProductTile> kCoreTiles = {
    {128, 128, 32, 64, 1.0}, {256, 128, 64, 64, 0.95}, {128, 256, 64, 64, 0.95},
    {64, 128, 16, 64, 0.8},  {32, 64, 16, 32, 0.45},   {16, 64, 16, 32, 0.3},
    {64, 64, 16, 32, 0.65},
};
/// Registers hold both parts of a number then.
const std::vector<ProductTile> kMmaTilesInParts = {
    {128, 128, 64, 32, 1.0},
    {128, 64, 32, 32, 0.8},
    {64, 64, 32, 32, 0.6},
    {32, 64, 16, 16, 0.35},
};
const std::vector<ProductTile>& TilesFor(const Product& p) {
  return !p.type->IsMma() ? kCoreTiles : p.type->terms > 1 ? kMmaTilesInParts : kMmaTiles;
}
/// How those of float32 are computed: exactly, unless the user asks for less.
const ProductType* TypeOfFloats(const ProductType* exact) {
  String how = ::tvm::transform::PassContext::Current()->GetConfig<String>("tir.float32_products");
  if (View(how) == "float32") return exact;
  if (View(how) == "tf32") return &kTf32;
  if (View(how) == "3xtf32") return &kTf32InParts;
  TVM_FFI_THROW(ValueError) << "tir.float32_products: expected float32, tf32 or 3xtf32, got '"
                            << View(how) << "'";
  TVM_FFI_UNREACHABLE();
}
/// Those that fit a product, as they may be on a machine.
std::vector<ProductTile> CandidatesFor(const Product& p, const Machine& machine) {
  auto asked =
      ::tvm::transform::PassContext::Current()->GetConfig<Optional<bool>>("tir.warpgroup_products");
  std::vector<ProductTile> tiles;
  if (asked.value_or(true) && machine->Has("warpgroup-mma") && FitsWarpgroups(p)) {
    tiles = kWarpgroupTiles;
    for (ProductTile& tile : tiles) tile.by_warpgroups = true;
    if (asked) return tiles;
  }
  const std::vector<ProductTile>& warps = TilesFor(p);
  tiles.insert(tiles.end(), warps.begin(), warps.end());
  return tiles;
}
constexpr int64_t kCopyBytes = 16;  // at once, at most
/// A size that is not known counts as one that is large.
constexpr int64_t kUnknownSize = 4096;

std::optional<int64_t> SizeOf(const IterVar& iter) { return AsConstInt(iter->dom.value()->extent); }
}  // namespace

PrimExpr WithoutCast(PrimExpr e) {
  while (auto* cast = e.as<CastObj>()) e = cast->value;
  return e;
}

// ---- what a block computes ----------------------------------------------------------------------
const ProductType* FindProductType(DataType factor, DataType sum) {
  for (const ProductType& type : kProductTypes) {
    // A sum of small floats is one of float32, rounded at the end.
    if (type.factor == factor && (sum == type.sum || sum == factor)) {
      return sum == factor && factor.is_integer() ? nullptr : &type;
    }
  }
  return nullptr;
}
bool MatchFactor(PrimExpr e, Factor* factor) {
  e = WithoutCast(e);
  auto* call = e.as<CallObj>();
  if (call && call->Is(builtin::if_then_else())) {
    PrimExpr other = WithoutCast(call->args[2]);
    auto* number = other.as<FloatImmObj>();
    if (!IsZero(other) && !(number && number->value == 0)) return false;
    factor->condition = call->args[0];
    e = WithoutCast(call->args[1]);
  }
  auto load = e.as<BufferLoad>();
  if (!load || (*load)->predicate || !e.dtype().is_scalar()) return false;
  factor->load = *load;
  return View((*load)->buffer.scope()) == "global" && (*load)->buffer->axis_separators.empty();
}
bool Uses(const Factor& factor, const Var& var) {
  auto is_it = [&](const VarObj* v) { return v == var.get(); };
  return UsesVar(factor.load, is_it) ||
         (factor.condition.defined() && UsesVar(factor.condition, is_it));
}
void LayOut(Factor* factor, Side* side, Side* depth, bool may_reorder, int64_t most) {
  arith::Analyzer analyzer;
  PrimExpr flat = factor->load->buffer->FlatIndices(factor->load->indices)[0];
  Array<Var> vars;
  std::vector<IterVar> all = side->iters;
  all.insert(all.end(), depth->iters.begin(), depth->iters.end());
  for (const IterVar& iter : all) vars.push_back(iter->var);
  Array<PrimExpr> steps = arith::DetectLinearEquation(analyzer.Simplify(flat), vars);
  if (steps.empty()) return;
  std::optional<size_t> inner;
  for (size_t i = 0; i < all.size(); ++i) {
    if (IsOne(analyzer.Simplify(steps[i])) && SizeOf(all[i]) != 1) inner = i;
  }
  if (!inner) return;
  size_t rows = side->iters.size();
  factor->along_depth = *inner >= rows;
  std::vector<IterVar>& own = factor->along_depth ? depth->iters : side->iters;
  auto at = own.begin() + static_cast<std::ptrdiff_t>(*inner - (factor->along_depth ? rows : 0));
  if (factor->along_depth && !may_reorder && at + 1 != own.end()) return;
  std::rotate(at, at + 1, own.end());
  const IterVar& along = own.back();
  if (factor->condition.defined() &&
      UsesVar(factor->condition, [&](const VarObj* v) { return v == along->var.get(); }))
    return;
  // A chunk begins where everything else is a multiple of it.
  Array<PrimExpr> others{along->dom.value()->extent, factor->load->buffer->elem_offset,
                         steps.back()};
  for (size_t i = 0; i < all.size(); ++i) {
    if (i != *inner) others.push_back(steps[i]);
  }
  for (int64_t lanes = most; lanes > 1; lanes /= 2) {
    std::vector<PrimExpr> demands;
    bool fits = true;
    for (const PrimExpr& e : others) {
      PrimExpr rest = analyzer.Simplify(floormod(e, MakeConst(e.dtype(), lanes)));
      if (IsZero(rest)) continue;
      fits &= !AsConstInt(rest) && !UsesVar(rest, [&](const VarObj* v) {
        return std::any_of(vars.begin(), vars.end(), [&](const Var& u) { return u.get() == v; });
      });
      demands.push_back(equal(rest, MakeZero(rest.dtype())));
    }
    if (!fits) continue;
    factor->lanes = lanes;
    factor->demands = demands;
    return;
  }
}
bool RunsThroughItsDomain(const BlockLook& look) {
  return look.axes.size() == look.block->iter_vars.size() &&
         std::all_of(look.axes.begin(), look.axes.end(),
                     [](const Axis& axis) { return axis.iter.defined(); });
}
namespace {
bool MatchProduct(const Schedule& sch, const BlockRV& rv, Product* product) {
  BlockLook look = LookAt(sch, rv);
  const BlockRealizeObj* realize = sch.state().realize({sch.IdOf(rv)});
  const Block& block = look.block;
  if (!IsTrue(realize->predicate) || !RunsThroughItsDomain(look)) return false;
  Reduction form;
  if (!WhyNoReducer(block.get(), &form).empty() || form.buffers.size() != 1) return false;
  auto* times = form.sources[0].as<MulObj>();
  if (!times || !form.reducer->result[0].as<AddObj>()) return false;
  Product& p = *product;
  if (!MatchFactor(times->a, &p.left) || !MatchFactor(times->b, &p.right)) return false;
  p.result = form.buffers[0];
  p.at = form.indices;
  DataType type = p.left.load.dtype();
  p.type = FindProductType(type, p.result->dtype);
  if (!p.type || p.right.load.dtype() != type) return false;
  if (type == DataType::Float(32)) p.type = TypeOfFloats(p.type);
  // What is multiplied is what is stored, or as precise.
  DataType computed = times->dtype;
  if (computed != type && computed.bits() < p.type->sum.bits()) return false;
  for (const IterVar& iter : block->iter_vars) {
    bool left = Uses(p.left, iter->var), right = Uses(p.right, iter->var);
    if (!IsZero(iter->dom.value()->min)) return false;
    if (SizeOf(iter) == 1) {
      p.batch.iters.push_back(iter);
      continue;
    }
    if (iter->iter_type == IterVarType::kCommReduce) {
      if (!left || !right) return false;
      p.depth.iters.push_back(iter);
    } else if (left && right) {
      p.batch.iters.push_back(iter);
    } else if (left || right) {
      (left ? p.rows : p.columns).iters.push_back(iter);
    } else {
      return false;
    }
  }
  if (p.depth.iters.empty()) return false;
  // Columns are what the result has next to each other.
  PrimExpr last = p.at.empty() ? PrimExpr() : p.at.back();
  auto is_row = [&](const IterVar& iter) { return last.same_as(iter->var); };
  if (std::any_of(p.rows.iters.begin(), p.rows.iters.end(), is_row)) {
    std::swap(p.left, p.right);
    std::swap(p.rows, p.columns);
  }
  int64_t most = kCopyBytes / p.type->Bytes();
  LayOut(&p.left, &p.rows, &p.depth, true, most);
  LayOut(&p.right, &p.columns, &p.depth, !p.left.along_depth || p.left.lanes == 1, most);
  // Bytes cannot be transposed on their way into registers.
  if (p.type->Bytes() == 1) return p.left.along_depth && p.right.along_depth;
  for (Factor* factor : {&p.left, &p.right}) {
    // Plain cores want lines across the depth, matrix units those of float32 along it: others are
    // transposed when they are copied.
    bool is_mma = p.type->IsMma();
    if ((is_mma && p.type->Bytes() < 4) || factor->along_depth == is_mma) continue;
    factor->lanes = 1;
    factor->demands.clear();
  }
  return true;
}

// ---- what uses its result -----------------------------------------------------------------------
/// The store of the block that alone reads the result, element by element, in terms of the
/// product's iterators.
bool MatchLastStep(const Schedule& sch, const BlockRV& user, Product* p) {
  Block block = sch.Get(user);
  const BlockRealizeObj* realize = sch.state().realize({sch.IdOf(user)});
  auto* store = block->body.as<BufferStoreObj>();
  BlockLook look = LookAt(sch, user);
  if (!store || block->init || !IsTrue(realize->predicate) || store->predicate ||
      !RunsThroughItsDomain(look))
    return false;
  // A result that is read elsewhere has to be stored.
  const State& state = sch.state();
  Block root = ffi::GetRef<Block>(state.block(state.ScopeOf({sch.IdOf(user)})));
  if (std::none_of(root->alloc_buffers.begin(), root->alloc_buffers.end(),
                   [&](const Buffer& b) { return b.same_as(p->result); }))
    return false;
  Array<PrimExpr> at;
  bool same = true;
  PostOrderVisit(ffi::GetRef<Stmt>(store), [&](const ObjectRef& node) {
    auto* load = node.as<BufferLoadObj>();
    if (!load || !load->buffer.same_as(p->result)) return;
    if (at.empty()) at = load->indices;
    for (size_t i = 0; i < at.size(); ++i) same &= ExprDeepEqual(at[i], load->indices[i]);
  });
  if (!same || at.size() != p->at.size()) return false;
  // Every iterator of the user is one of the product's.
  Map<Var, PrimExpr> values;
  for (size_t i = 0; i < at.size(); ++i) {
    auto var = at[i].as<Var>();
    if (!var && IsZero(at[i]) && IsOne(p->result->shape[i])) continue;
    if (!var || values.count(*var)) return false;
    values.Set(*var, p->at[i]);
  }
  arith::Analyzer analyzer;
  for (const IterVar& iter : block->iter_vars) {
    if (iter->iter_type != IterVarType::kDataPar) return false;
    if (!values.count(iter->var)) {
      if (!IsOne(iter->dom.value()->extent)) return false;
      values.Set(iter->var, MakeZero(iter->var.dtype()));
    }
  }
  for (size_t i = 0; i < at.size(); ++i) {
    auto var = at[i].as<Var>();
    if (!var) continue;
    for (const IterVar& iter : block->iter_vars) {
      if (iter->var.same_as(*var) &&
          !analyzer.CanProveEqual(iter->dom.value()->extent, p->result->shape[i]))
        return false;
    }
  }
  p->store = Substitute(ffi::GetRef<BufferStore>(store), values);
  return true;
}

// ---- tiles --------------------------------------------------------------------------------------
/// The tile with as many stages as there is shared memory for.
ProductTile WithStages(ProductTile tile, const Product& p, const Machine& machine) {
  constexpr int64_t kReserved = 1 << 10;  // of each block, by the driver
  // As many next to each other as all banks of shared memory; of lines across the depth, a few.
  tile.depth = p.type->IsMma() ? 128 / p.type->Bytes() : 16;
  // Two blocks of smaller tiles share a multiprocessor: one computes while the other waits.
  int64_t blocks = tile.by_warpgroups || tile.rows * tile.columns > 128 * 128 ? 1 : 2;
  constexpr int64_t kMargins = 8;
  int64_t bytes = (tile.rows + tile.columns + kMargins) * tile.depth * p.type->Bytes();
  tile.stages = std::min<int64_t>((machine->l1_bytes / blocks - kReserved) / bytes, 4);
  return tile;
}
/// The tile, and the parts of the reduction, with which the multiprocessors are done first.
std::optional<ProductTile> ChooseTile(const Product& p, const Machine& machine) {
  // What a multiprocessor multiplies and adds up in a microsecond, what a second kernel takes, and
  // the bytes that it reads and writes in one.
  double rate = p.type->IsMma() ? 3e6 / p.type->Bytes() / p.type->terms : 0.19e6;
  constexpr double kLaunch = 2.5, kBytes = 2e6;
  constexpr int64_t kFewSteps = 4, kMostParts = 16;
  auto size = [](const Side& side) { return AsConstInt(side.Extent()).value_or(kUnknownSize); };
  bool is_known = true;
  for (const Side* side : {&p.batch, &p.rows, &p.columns, &p.depth})
    is_known &= AsConstInt(side->Extent()).has_value();
  int64_t rows = size(p.rows), columns = size(p.columns), batch = size(p.batch);
  auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  std::optional<ProductTile> best;
  double least = 0;
  for (ProductTile tile : CandidatesFor(p, machine)) {
    tile = WithStages(tile, p, machine);
    if (tile.stages < 2) continue;
    int64_t tiles = batch * up(rows, tile.rows) * up(columns, tile.columns);
    int64_t steps = std::max<int64_t>(up(size(p.depth), tile.depth), 1), last = 0;
    for (int64_t parts = 1; parts <= kMostParts; ++parts) {
      bool is_one = parts == 1;
      if (!is_one && (!is_known || tiles * parts > machine->cores || steps < parts * kFewSteps))
        break;
      if (up(steps, parts) == last) continue;
      last = up(steps, parts);
      tile.parts = up(steps, last);  // none is empty
      auto waves = static_cast<double>(up(tiles * parts, machine->cores));
      double work = waves * static_cast<double>(tile.rows * tile.columns * tile.depth * last);
      double more = kLaunch + static_cast<double>(parts * batch * rows * columns * 8) / kBytes;
      double time = work / (tile.speed * rate) + (is_one ? 0 : more);
      if (best && time >= least) continue;
      best = tile;
      least = time;
    }
  }
  return best;
}
/// Whether the memory of a buffer begins where so many of its elements may be copied at once: that
/// of other libraries may begin anywhere.
PrimExpr BeginsAtMultiple(const Buffer& buffer, int64_t elements) {
  DataType word = DataType::UInt(64);
  int64_t bytes = elements * buffer->dtype.bits() / 8;
  PrimExpr rest = bitwise_and(reinterpret(word, buffer->data), MakeConst(word, bytes - 1));
  return equal(rest, MakeZero(word));
}
}  // namespace

void TakeDemands(Factor* factor, std::vector<PrimExpr>* demands) {
  if (factor->lanes == 1) return;
  demands->insert(demands->end(), factor->demands.begin(), factor->demands.end());
  demands->push_back(BeginsAtMultiple(factor->load->buffer, factor->lanes));
  factor->lanes = 1;
}
const StmtObj* NestOf(const State& state, BlockId block) {
  auto loops = state.LoopsAbove(block);
  return loops.empty() ? static_cast<const StmtObj*>(state.realize(block)) : state.loop(loops[0]);
}

namespace {
/// The product and, where there is one, its last step become a kernel; a second one is for sizes
/// and addresses of which nothing is known.
void ReplaceByKernel(const Schedule& sch, const BlockRV& block, const BlockRV& user,
                     const Product& p, const ProductTile& tile, const Machine& machine) {
  State& state = sch.state();
  BlockId id{sch.IdOf(block)};
  BlockId scope = state.ScopeOf(id);
  auto write = p.type->IsMma() ? &MmaKernel : &CoreKernel;
  Array<Buffer> memory;
  Stmt kernel =
      tile.by_warpgroups ? WarpgroupKernel(p, tile, machine, &memory) : write(p, tile, &memory);
  Block root = ffi::GetRef<Block>(state.block(scope));
  std::vector<PrimExpr> demands;
  Product plain = p;
  for (Factor* factor : {&plain.left, &plain.right}) TakeDemands(factor, &demands);
  if (!demands.empty()) {
    ProductTile any = WithStages(TilesFor(p).back(), plain, machine);
    kernel = IfThenElse(AllOf(demands), kernel, write(plain, any, &memory));
  }
  StmtMap with;
  if (user.defined()) {
    with[NestOf(state, id)] = Evaluate::Nothing();
    with[NestOf(state, {sch.IdOf(user)})] = kernel;
    root = WithoutAllocated(root, p.result);
  } else {
    with[NestOf(state, id)] = kernel;
  }
  for (const Buffer& buffer : memory) Edit(&root)->alloc_buffers.push_back(buffer);
  Commit(state, scope, WithBody(root, ReplaceStmts(root->body, with)));
}
bool AloneInNest(const Schedule& sch, const BlockRV& block) {
  Array<LoopRV> loops = sch.GetLoops(block);
  return !loops.empty() && sch.GetChildBlocks(loops[0]).size() == 1;
}
bool TryProduct(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  Product p;
  if (!AloneInNest(sch, block) || !MatchProduct(sch, block, &p)) return false;
  // A vector is not worth a tile.
  for (const Side* side : {&p.rows, &p.columns}) {
    if (AsConstInt(side->Extent()).value_or(2) <= 1) return false;
  }
  BlockRV user;
  Array<BlockRV> users = sch.GetConsumers(block);
  if (users.size() == 1 && AloneInNest(sch, users[0]) && MatchLastStep(sch, users[0], &p))
    user = users[0];
  std::optional<ProductTile> tile = ChooseTile(p, machine);
  if (!tile) return false;
  ReplaceByKernel(sch, block, user, p, *tile, machine);
  return true;
}
}  // namespace

bool ScheduleProductKernel(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  if (!machine->Has("async-copy")) return false;
  // Margins of zeros need no array of their own.
  bool with_margins = Attempt(sch, [&] {
    Array<BlockRV> producers = sch.GetProducers(block);
    if (producers.empty()) return false;
    for (const BlockRV& producer : producers) sch.ComputeInline(producer);
    return TryProduct(sch, block, machine);
  });
  return with_margins || Attempt(sch, [&] { return TryProduct(sch, block, machine); });
}

}  // namespace tvm::tir::gpu
