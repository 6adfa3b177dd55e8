// SPDX-License-Identifier: Apache-2.0
// Which calls of a dataflow block may overwrite an argument.
#include "dataflow_inplace.h"

#include <algorithm>
#include <unordered_set>

#include "tvm/arith/analyzer.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/op.h"

namespace tvm::relax {

std::vector<LiveRange> DataflowLiveness(const DataflowBlock& block) {
  std::vector<LiveRange> ranges;
  std::unordered_map<const Object*, size_t> index;
  auto at = [&](const Var& var) -> LiveRange& {
    auto [it, is_new] = index.try_emplace(var->vid.get(), ranges.size());
    if (is_new) ranges.push_back({var});
    return ranges[it->second];
  };
  auto count = static_cast<int64_t>(block->bindings.size());
  for (int64_t i = 0; i < count; ++i) {
    const Binding& binding = block->bindings[i];
    for (const Var& used : UsedVars(ValueOf(binding))) at(used).end = i;
    LiveRange& own = at(binding->var);
    own.begin = i;
    own.end = binding->var.as<DataflowVarObj>() ? i : count;
  }
  // What is seen behind the block stays so, whatever uses it inside.
  for (LiveRange& range : ranges) {
    if (range.begin >= 0 && !range.var.as<DataflowVarObj>()) range.end = count;
  }
  return ranges;
}

namespace {
using Places = std::set<int64_t>;

/// Whether the result may be the memory of an argument: some kernels turn out to be mere views.
bool MayBeView(const OpObj* op) {
  static const auto* views = new std::unordered_set<const Object*>([] {
    std::unordered_set<const Object*> ops;
    for (const char* name :
         {"relax.astype", "relax.broadcast_to", "relax.to_vdevice", "relax.hint_on_device",
          "relax.wrap_param", "relax.builtin.stop_lift_params", "relax.memory.view",
          "relax.memory.ensure_zero_offset"})
      ops.insert(Op::Get(name).get());
    return ops;
  }());
  const int64_t* pattern = TOpPattern.Find(op);
  return views->count(op) || (pattern && *pattern == kInjective);
}

class AliasFinder {
 public:
  explicit AliasFinder(const Array<Var>& inputs) {
    for (const Var& input : inputs) Set(input, Fresh(GetStructInfo(input)));
  }
  Aliases Run(const DataflowBlock& block) {
    for (const Binding& binding : block->bindings) Set(binding->var, Of(ValueOf(binding)));
    return std::move(result_);
  }

 private:
  void Set(const Var& var, Places places) {
    index_[var->vid.get()] = result_.places.size();
    result_.places.emplace_back(var, std::move(places));
  }
  /// A new place, for a tuple with new ones for its fields.
  Places Fresh(const StructInfo& info) {
    int64_t place = next_++;
    if (auto* tuple = info.as<TupleStructInfoObj>()) {
      std::vector<Places> fields = Recurse([&] {
        std::vector<Places> made;
        for (const StructInfo& field : tuple->fields) made.push_back(Fresh(field));
        return made;
      });
      result_.tuples[place] = std::move(fields);
    }
    return {place};
  }
  Places Of(const Expr& expr) {
    if (auto* var = expr.as<VarObj>()) {
      auto it = index_.find(var->vid.get());
      return it == index_.end() ? Places{Aliases::kAnywhere} : result_.places[it->second].second;
    }
    if (auto* tuple = expr.as<TupleObj>()) {
      int64_t place = next_++;
      std::vector<Places> fields;
      for (const Expr& field : tuple->fields) fields.push_back(Recurse([&] { return Of(field); }));
      result_.tuples[place] = std::move(fields);
      return {place};
    }
    if (auto* item = expr.as<TupleGetItemObj>()) {
      Places places;
      for (int64_t tuple : Of(item->tuple_value)) {
        auto it = result_.tuples.find(tuple);
        bool is_known =
            it != result_.tuples.end() && item->index < static_cast<int64_t>(it->second.size());
        Places field = is_known ? it->second[item->index] : Places{Aliases::kAnywhere};
        places.insert(field.begin(), field.end());
      }
      return places;
    }
    auto* call = expr.as<CallObj>();
    if (!call) return Fresh(GetStructInfo(expr));
    auto* op = call->op.as<OpObj>();
    return op ? OfOperator(call, op) : Places{Aliases::kAnywhere};
  }
  Places OfOperator(const CallObj* call, const OpObj* op) {
    static const OpObj *inplace = Op::Get("relax.call_tir_inplace").get(),
                       *packed = Op::Get("relax.call_pure_packed").get(),
                       *inplace_packed = Op::Get("relax.call_inplace_packed").get(),
                       *closure = Op::Get("relax.invoke_pure_closure").get();
    if (op == packed || op == inplace_packed || op == closure) return {Aliases::kAnywhere};
    StructInfo info = GetStructInfo(ffi::GetRef<Expr>(call));
    Places places = Fresh(info);
    if (op == inplace) {
      auto* args = call->args[1].as<TupleObj>();
      const Ints& indices = call->attrs.value().as<CallTIRInplaceAttrsObj>()->inplace_indices;
      auto tuple = result_.tuples.find(*places.begin());
      for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i]->value < 0) continue;
        Places argument = args ? Of(args->fields[indices[i]->value]) : Places{Aliases::kAnywhere};
        (tuple == result_.tuples.end() ? places : tuple->second[i]) = argument;
      }
      return places;
    }
    if (!MayBeView(op)) return places;
    if (info.as<TupleStructInfoObj>()) return {Aliases::kAnywhere};
    for (const Expr& arg : call->args) {
      if (!GetStructInfoAs<TensorStructInfoObj>(arg) && !arg.as<TupleObj>()) continue;
      for (int64_t place : Flat(Of(arg))) places.insert(place);
    }
    return places;
  }
  /// With the places of tuples' fields.
  Places Flat(const Places& places) const {
    Places all;
    std::vector<int64_t> open(places.begin(), places.end());
    while (!open.empty()) {
      int64_t place = open.back();
      open.pop_back();
      auto it = result_.tuples.find(place);
      if (it == result_.tuples.end()) {
        all.insert(place);
        continue;
      }
      for (const Places& field : it->second) open.insert(open.end(), field.begin(), field.end());
    }
    return all;
  }
  Aliases result_;
  std::unordered_map<const Object*, size_t> index_;
  int64_t next_ = 0;
};
}  // namespace

Aliases DataflowAliases(const DataflowBlock& block, const Array<Var>& inputs) {
  return AliasFinder(inputs).Run(block);
}

namespace {
/// Elementwise operators: element i of the result depends on elements i alone.
bool IsElementwise(const OpObj* op) {
  const int64_t* pattern = TOpPattern.Find(op);
  return pattern && *pattern <= kBroadcast && FLegalize.Find(op) && !MayBeView(op);
}

class InplaceFinder {
 public:
  InplaceFinder(const DataflowBlock& block, const Array<Var>& inputs)
      : block_(block), aliases_(DataflowAliases(block, inputs)) {
    std::unordered_map<const Object*, int64_t> end_of;
    for (const LiveRange& range : DataflowLiveness(block)) end_of[range.var->vid.get()] = range.end;
    size_t i = 0;
    for (const auto& [var, places] : aliases_.places) {
      places_of_[var->vid.get()] = &places;
      bool is_input = i++ < inputs.size();
      auto it = end_of.find(var->vid.get());
      int64_t end = it == end_of.end() ? -1 : it->second;
      // Arguments of the function are the caller's.
      if (is_input) end = static_cast<int64_t>(block->bindings.size());
      Hold(places, end);
    }
  }
  InplaceChoices Run() {
    InplaceChoices result;
    for (size_t i = 0; i < block_->bindings.size(); ++i) {
      auto* call = ValueOf(block_->bindings[i]).as<CallObj>();
      auto* op = call ? call->op.as<OpObj>() : nullptr;
      if (!op || !IsElementwise(op)) continue;
      InplaceChoice large{static_cast<int64_t>(i), {}}, exact = large;
      for (size_t arg = 0; arg < call->args.size(); ++arg) {
        int fit = FitOf(call, arg);
        if (fit == 0 || !IsFree(call, arg, static_cast<int64_t>(i))) continue;
        large.args.push_back(static_cast<int64_t>(arg));
        if (fit == 2) exact.args.push_back(static_cast<int64_t>(arg));
      }
      if (!large.args.empty()) result.large_enough.push_back(large);
      if (!exact.args.empty()) result.exact.push_back(exact);
    }
    return result;
  }

 private:
  /// The places are needed until that binding, the fields of tuples too.
  void Hold(const Places& places, int64_t end) {
    for (int64_t place : places) {
      int64_t& needed = needed_until_.try_emplace(place, -1).first->second;
      if (needed >= end) continue;
      needed = end;
      auto it = aliases_.tuples.find(place);
      if (it == aliases_.tuples.end()) continue;
      Recurse([&] {
        for (const Places& field : it->second) Hold(field, end);
      });
    }
  }
  /// 2: the argument has the shape and type of the result, 1: it is large enough, 0: it is not.
  int FitOf(const CallObj* call, size_t arg) {
    auto* out = GetStructInfoAs<TensorStructInfoObj>(ffi::GetRef<Expr>(call));
    auto* in = GetStructInfoAs<TensorStructInfoObj>(call->args[arg]);
    if (!call->args[arg].as<VarObj>() || !out || !in || in->dtype != out->dtype) return 0;
    auto have = in->Dims(), want = out->Dims();
    if (!have || !want) return 0;
    bool same = have.value().size() == want.value().size();
    for (size_t i = 0; same && i < have.value().size(); ++i)
      same = Equal(have.value()[i], want.value()[i]);
    if (same) return 2;
    auto product = [](const Dims& dims) {
      PrimExpr all = Dim(1);
      for (const PrimExpr& dim : dims) all = all * dim;
      return all;
    };
    return analyzer_.CanProve(product(have.value()) >= product(want.value())) ? 1 : 0;
  }
  bool Equal(const PrimExpr& a, const PrimExpr& b) {
    return a.same_as(b) || analyzer_.CanProveEqual(a, b);
  }
  /// Whether nobody needs the argument's memory behind the binding, nor under another name in it.
  bool IsFree(const CallObj* call, size_t arg, int64_t binding) const {
    auto it = places_of_.find(call->args[arg].as<VarObj>()->vid.get());
    if (it == places_of_.end()) return false;
    const Places& places = *it->second;
    for (int64_t place : places) {
      if (place == Aliases::kAnywhere || needed_until_.at(place) > binding) return false;
    }
    auto anywhere = needed_until_.find(Aliases::kAnywhere);
    if (anywhere != needed_until_.end() && anywhere->second > binding) return false;
    for (size_t other = 0; other < call->args.size(); ++other) {
      auto* var = call->args[other].as<VarObj>();
      if (other == arg || !var) continue;
      auto at = places_of_.find(var->vid.get());
      if (at == places_of_.end()) continue;
      for (int64_t place : *at->second) {
        if (place == Aliases::kAnywhere || places.count(place)) return false;
      }
    }
    return true;
  }
  DataflowBlock block_;
  Aliases aliases_;
  arith::Analyzer analyzer_;
  std::unordered_map<const Object*, const Places*> places_of_;
  std::unordered_map<int64_t, int64_t> needed_until_;
};
}  // namespace

InplaceChoices FindInplaceChoices(const DataflowBlock& block, const Array<Var>& inputs) {
  return InplaceFinder(block, inputs).Run();
}

}  // namespace tvm::relax
