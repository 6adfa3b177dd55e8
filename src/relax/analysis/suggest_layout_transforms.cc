// SPDX-License-Identifier: Apache-2.0
// Layouts of a kernel's inputs and loops that fit wanted layouts of its results.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/relax/analysis.h"
#include "tvm/tir/function.h"
#include "tvm/tir/index_map.h"

namespace tvm::relax {
namespace {
using Suggested = Map<ObjectRef, tir::IndexMap>;

/// The blocks in which elements are stored, in order of the program, and what they access.
struct StoringBlocks
    : Visitor<StoringBlocks, tir::BlockObj, tir::BufferStoreObj, tir::BufferLoadObj> {
  struct Found {
    tir::Block block{nullptr};
    std::vector<const tir::BufferStoreObj*> stores;
    std::vector<const tir::BufferLoadObj*> loads;
  };
  std::vector<Found> found;
  void Visit(const tir::BlockObj* op) {
    Found outer = std::exchange(current_, Found{ffi::GetRef<tir::Block>(op), {}, {}});
    VisitChildren(op, *this);
    if (!current_.stores.empty()) found.push_back(current_);
    current_ = outer;
  }
  void Visit(const tir::BufferStoreObj* op) {
    current_.stores.push_back(op);
    VisitChildren(op, *this);
  }
  void Visit(const tir::BufferLoadObj* op) {
    current_.loads.push_back(op);
    VisitChildren(op, *this);
  }

 private:
  Found current_;
};

/// The iterators that index a buffer, when each of its dimensions has one of its own.
std::optional<std::vector<tir::Var>> Iterators(const Array<PrimExpr>& indices) {
  std::vector<tir::Var> vars;
  for (const PrimExpr& index : indices) {
    auto var = index.as<tir::Var>();
    if (!var || std::find(vars.begin(), vars.end(), *var) != vars.end()) return std::nullopt;
    vars.push_back(*var);
  }
  return vars;
}

class LayoutSuggester {
 public:
  LayoutSuggester(const tir::PrimFunc& func, const Array<tir::IndexMap>& wanted) {
    StoringBlocks blocks;
    blocks(func->body);
    blocks_ = std::move(blocks.found);
    Bind(func, wanted);
  }
  Map<tir::Block, Suggested> Run() {
    Map<tir::Block, Suggested> result;
    // Who reads a buffer comes behind who writes it.
    for (size_t i = blocks_.size(); i-- > 0;) {
      Suggested suggested = OfBlock(blocks_[i]);
      if (!suggested.empty()) result.Set(blocks_[i].block, suggested);
    }
    // A buffer for which readers want different layouts stays as it is.
    for (auto& [block, suggested] : Map<tir::Block, Suggested>(result)) {
      Suggested agreed = suggested;
      for (const auto& [object, map] : suggested) {
        if (object.as<tir::BufferObj>() && refused_.count(object.get())) agreed.erase(object);
      }
      result.Set(block, agreed);
    }
    return result;
  }

 private:
  using Found = StoringBlocks::Found;
  void Bind(const tir::PrimFunc& func, const Array<tir::IndexMap>& wanted) {
    std::unordered_set<const Object*> stored;
    for (const Found& found : blocks_) {
      for (auto* store : found.stores) stored.insert(store->buffer.get());
    }
    size_t outputs = 0;
    for (const tir::Var& param : func->params) {
      tir::Buffer buffer = func.BufferOf(param);
      if (!buffer.defined() || !stored.count(buffer.get())) continue;
      if (outputs < wanted.size()) {
        if (wanted[outputs]->initial_indices.size() != buffer->shape.size()) {
          TVM_FFI_THROW(ValueError) << "suggest_layout_transforms: expected a map of "
                                    << buffer->shape.size() << " indices for '" << buffer->name
                                    << "', got one of " << wanted[outputs]->initial_indices.size();
        }
        maps_.emplace(buffer.get(), wanted[outputs]);
      }
      ++outputs;
    }
    if (outputs != wanted.size()) {
      TVM_FFI_THROW(ValueError) << "suggest_layout_transforms: expected a map for each of the "
                                << outputs << " buffers that are written, got " << wanted.size();
    }
  }
  /// Whether a map takes a box onto a box without gaps.
  static bool IsBijective(const tir::IndexMap& map, const Array<Range>& ranges) {
    arith::Analyzer analyzer;
    try {
      map.Inverse(ranges, &analyzer);
      return true;
    } catch (const ffi::Error&) {
      return false;
    }
  }

  Suggested OfBlock(const Found& found) {
    if (found.stores.empty()) return {};
    tir::Buffer written = found.stores[0]->buffer;
    auto map = maps_.find(written.get());
    auto vars = Iterators(found.stores[0]->indices);
    bool one = std::all_of(found.stores.begin(), found.stores.end(), [&](auto* store) {
      return store->buffer.same_as(written) &&
             Iterators(store->indices) == Iterators(found.stores[0]->indices);
    });
    if (map == maps_.end() || refused_.count(written.get()) || !vars || !one) return {};
    // The result's indices in its new layout are the block's new iterators; those that are summed
    // over follow.
    arith::Analyzer analyzer;
    Array<PrimExpr> spatial =
        map->second.MapIndices(Array<PrimExpr>(vars->begin(), vars->end()), &analyzer);
    Array<PrimExpr> final = spatial;
    Array<tir::Var> iterators;
    Array<Range> ranges;
    for (const tir::IterVar& iter : found.block->iter_vars) {
      iterators.push_back(iter->var);
      ranges.push_back(iter->dom.value());
      if (std::find(vars->begin(), vars->end(), iter->var) == vars->end())
        final.push_back(iter->var);
    }
    tir::IndexMap of_block = Renewed(iterators, final);
    if (!IsBijective(of_block, ranges)) return {};
    Suggested suggested{{found.block, of_block}, {written, map->second}};
    for (auto* load : found.loads) {
      if (load->buffer.same_as(written)) continue;
      auto of_read = OfRead(load->indices, *vars, spatial);
      if (!of_read || !Agree(load->buffer, *of_read)) {
        refused_.insert(load->buffer.get());
      } else {
        suggested.Set(load->buffer, *of_read);
      }
    }
    return suggested;
  }
  /// The indices of the result that a read shares with it, in their new order, and then what it
  /// does not share, as far as each new index depends on the one or on the other.
  std::optional<tir::IndexMap> OfRead(const Array<PrimExpr>& indices,
                                      const std::vector<tir::Var>& written,
                                      const Array<PrimExpr>& spatial) {
    auto read = Iterators(indices);
    if (!read) return std::nullopt;
    auto contains = [](const std::vector<tir::Var>& vars, const tir::Var& var) {
      return std::find(vars.begin(), vars.end(), var) != vars.end();
    };
    Array<PrimExpr> final;
    for (const PrimExpr& e : spatial) {
      size_t inside = 0, outside = 0;
      for (const tir::Var& var : written) {
        if (tir::UsesVar(e, [&](const tir::VarObj* v) { return v == var.get(); }))
          ++(contains(*read, var) ? inside : outside);
      }
      if (inside > 0 && outside > 0) return std::nullopt;
      if (inside > 0) final.push_back(e);
    }
    for (const tir::Var& var : *read) {
      if (!contains(written, var)) final.push_back(var);
    }
    return Renewed(Array<tir::Var>(read->begin(), read->end()), final);
  }
  /// A map with variables of its own.
  static tir::IndexMap Renewed(const Array<tir::Var>& initial, const Array<PrimExpr>& final) {
    Array<tir::Var> vars;
    Map<tir::Var, PrimExpr> values;
    for (const tir::Var& var : initial) {
      vars.push_back(tir::Var(var->name_hint, var.dtype()));
      values.Set(var, vars.back());
    }
    arith::Analyzer analyzer;
    return tir::IndexMap(vars, final.Map([&](const PrimExpr& e) {
      return analyzer.Simplify(Substitute(e, values));
    }));
  }
  bool Agree(const tir::Buffer& buffer, const tir::IndexMap& map) {
    auto [it, is_new] = maps_.emplace(buffer.get(), map);
    return is_new || it->second.IsEquivalentTo(map);
  }

  std::vector<Found> blocks_;
  std::unordered_map<const Object*, tir::IndexMap> maps_;
  std::unordered_set<const Object*> refused_;
};

TVM_REGISTER() {
  Def(
      "relax.analysis._suggest_layout_transforms",
      [](tir::PrimFunc func, Array<tir::IndexMap> write_buffer_transforms) {
        return LayoutSuggester(func, write_buffer_transforms).Run();
      },
      "For each block the maps of its iterators and of the buffers that it accesses which follow "
      "from maps of the buffers that the function writes.",
      Arg("func"), Arg("write_buffer_transforms"));
}
}  // namespace
}  // namespace tvm::relax
