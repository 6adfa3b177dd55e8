// SPDX-License-Identifier: Apache-2.0
// A lowered graph of kernels as JSON, for the graph executor: nodes, and memory planned ahead.
#include <tvm/ffi/extra/json.h>

#include <map>
#include <unordered_map>

#include "relax/vm/emitter.h"
#include "runtime/host_tensor.h"
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {
using Json = Map<String, Any>;

/// A value between nodes.
struct Entry {
  std::vector<int64_t> shape;
  DataType dtype;
  int64_t storage = -1;
  int64_t last_use = -1;  // the last node that reads it
};
struct Node {
  std::string op, name, func_name;
  std::vector<std::pair<int64_t, int64_t>> inputs;  // node, output
  int64_t first_entry = 0, num_outputs = 1;
};

class GraphWriter {
 public:
  explicit GraphWriter(const IRModule& mod) : mod_(mod) {}

  Array<Any> Run(const Function& func) {
    for (const Var& param : func->params)
      values_[param->vid.get()] = {AddInput(param->name_hint(), GetStructInfo(param))};
    for (const BindingBlock& block : func->body->blocks) {
      for (const Binding& binding : block->bindings) {
        auto* plain = binding.as<VarBindingObj>();
        if (!plain) Fail("expected bindings without casts", binding);
        values_[plain->var->vid.get()] = Values(plain->value);
      }
    }
    std::vector<Place> heads = Values(func->body->body);
    return {ffi::json::Stringify(Graph(heads)), constants_};
  }

 private:
  using Place = std::pair<int64_t, int64_t>;  // node, output
  [[noreturn]] static void Fail(const char* what, const ObjectRef& where) {
    TVM_FFI_THROW(ValueError) << "relay.build: " << what << ", got " << TextOf(where);
    TVM_FFI_UNREACHABLE();
  }
  void AddEntry(const StructInfo& info) {
    auto* tensor = info.as<TensorStructInfoObj>();
    Entry entry;
    auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
    if (!dims.has_value()) Fail("expected tensors of known shape", info);
    for (const PrimExpr& dim : dims.value()) {
      auto extent = AsConstInt(dim);
      if (!extent) Fail("expected constant dimensions", info);
      entry.shape.push_back(*extent);
    }
    entry.dtype = tensor->dtype;
    entries_.push_back(entry);
  }
  Place AddInput(const std::string& name, const StructInfo& info) {
    nodes_.push_back({"null", name, "", {}, static_cast<int64_t>(entries_.size()), 1});
    AddEntry(info);
    return {static_cast<int64_t>(nodes_.size()) - 1, 0};
  }
  /// A value, or those of a tuple.
  std::vector<Place> Values(const Expr& expr) {
    if (auto* var = expr.as<VarObj>()) return values_.at(var->vid.get());
    if (auto* constant = expr.as<ConstantObj>()) {
      std::string name = "p" + std::to_string(constants_.size());
      constants_.Set(name, runtime::HostTensor(constant->data));
      return {AddInput(name, GetStructInfo(expr))};
    }
    if (auto* tuple = expr.as<TupleObj>()) {
      std::vector<Place> all;
      for (const Expr& field : tuple->fields) {
        std::vector<Place> some = Values(field);
        all.insert(all.end(), some.begin(), some.end());
      }
      return all;
    }
    if (auto* item = expr.as<TupleGetItemObj>()) return {Values(item->tuple_value).at(item->index)};
    auto* call = expr.as<CallObj>();
    if (!call || !call->Is(Op::Get("relax.call_tir")) || call->args.size() != 2)
      Fail("expected calls of kernels only", expr);
    return AddKernel(call);
  }
  std::vector<Place> AddKernel(const CallObj* call) {
    auto var = As<GlobalVar>(call->args[0]);
    Node node{"tvm_op", "", VMSymbol(var, mod_->Lookup(var)), Values(call->args[1]), 0, 1};
    node.name = node.func_name;
    if (int64_t n = used_names_[node.name]++) node.name += "_" + std::to_string(n);
    auto index = static_cast<int64_t>(nodes_.size());
    for (const Place& place : node.inputs) EntryOf(place).last_use = index;
    node.first_entry = static_cast<int64_t>(entries_.size());
    auto* tuple = call->sinfo_args[0].as<TupleStructInfoObj>();
    Array<StructInfo> outs = tuple ? tuple->fields : Array<StructInfo>{call->sinfo_args[0]};
    node.num_outputs = static_cast<int64_t>(outs.size());
    nodes_.push_back(node);
    std::vector<Place> places;
    for (const StructInfo& out : outs) {
      AddEntry(out);
      places.emplace_back(index, static_cast<int64_t>(places.size()));
    }
    return places;
  }
  Entry& EntryOf(const Place& place) {
    return entries_[nodes_[place.first].first_entry + place.second];
  }

  /// Results of kernels reuse the memory of values that nobody reads any more; inputs and results
  /// of the graph have their own.
  void PlanMemory(const std::vector<Place>& heads) {
    for (const Place& head : heads) EntryOf(head).last_use = static_cast<int64_t>(nodes_.size());
    std::multimap<int64_t, int64_t> free;                      // storages by size
    std::multimap<int64_t, std::pair<int64_t, int64_t>> live;  // by last use: storage, size
    std::vector<int64_t> size_of;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      auto here = static_cast<int64_t>(i);
      while (!live.empty() && live.begin()->first < here) {
        auto [storage, size] = live.begin()->second;
        free.emplace(size, storage);
        live.erase(live.begin());
      }
      for (int64_t e = node.first_entry; e < node.first_entry + node.num_outputs; ++e) {
        Entry& entry = entries_[e];
        int64_t size = entry.dtype.bytes();
        for (int64_t extent : entry.shape) size *= extent;
        bool own = node.op == "null" || entry.last_use == static_cast<int64_t>(nodes_.size());
        auto fit = own ? free.end() : free.lower_bound(size);
        if (fit != free.end()) {
          entry.storage = fit->second;
          free.erase(fit);
        } else {
          entry.storage = static_cast<int64_t>(size_of.size());
          size_of.push_back(size);
        }
        if (!own)
          live.emplace(std::max(entry.last_use, here),
                       std::pair(entry.storage, size_of[entry.storage]));
      }
    }
  }
  static Array<Any> Reference(const Place& place) { return {place.first, place.second, 0}; }
  Json Graph(const std::vector<Place>& heads) {
    PlanMemory(heads);
    Array<Any> nodes, arguments, row_ptr{0}, head_list, storage, shapes, types;
    for (const Node& node : nodes_) {
      Array<Any> inputs;
      for (const Place& place : node.inputs) inputs.push_back(Reference(place));
      Json json{{"op", String(node.op)}, {"name", String(node.name)}, {"inputs", inputs}};
      if (node.op == "null") {
        arguments.push_back(static_cast<int64_t>(nodes.size()));
      } else {
        json.Set("attrs", Json{{"func_name", String(node.func_name)},
                               {"num_inputs", String(std::to_string(node.inputs.size()))},
                               {"num_outputs", String(std::to_string(node.num_outputs))},
                               {"flatten_data", String("0")}});
      }
      nodes.push_back(json);
      row_ptr.push_back(node.first_entry + node.num_outputs);
    }
    for (const Place& head : heads) head_list.push_back(Reference(head));
    for (const Entry& entry : entries_) {
      storage.push_back(entry.storage);
      shapes.push_back(Array<Any>(entry.shape.begin(), entry.shape.end()));
      types.push_back(String(entry.dtype.str()));
    }
    auto list = [](const char* kind, const Array<Any>& items) {
      return Array<Any>{String(kind), items};
    };
    Json attrs{{"storage_id", list("list_int", storage)},
               {"shape", list("list_shape", shapes)},
               {"dltype", list("list_str", types)}};
    return {{"nodes", nodes},
            {"arg_nodes", arguments},
            {"heads", head_list},
            {"node_row_ptr", row_ptr},
            {"attrs", attrs}};
  }

  const IRModule& mod_;
  std::vector<Node> nodes_;
  std::vector<Entry> entries_;
  std::unordered_map<const Object*, std::vector<Place>> values_;  // by the id of the variable
  std::map<std::string, int64_t> used_names_;
  Map<String, ffi::Tensor> constants_;
};

/// [JSON, constants by name]
Array<Any> GraphJSON(const IRModule& mod) {
  auto main = mod->Lookup("main").as<Function>();
  if (!main) TVM_FFI_THROW(ValueError) << "relay.build: expected a graph 'main'";
  return GraphWriter(mod).Run(*main);
}
TVM_REGISTER() {
  Def("relax.GraphJSON", &GraphJSON,
      "The graph `main`, lowered to calls of kernels, as JSON, and the constants in it by name.",
      Arg("mod"));
}
}  // namespace
}  // namespace tvm::relax
