// SPDX-License-Identifier: Apache-2.0
// Loops as functions that call themselves:
//
//   loop(i, go, carried…, captured…, collected…) =
//     if i < count and go: loop(i + 1, turn(i, carried…)…)  else: (carried…, collected…)
#include "frontend/onnx/op/loop.h"

#include "tvm/expr/substitute.h"

namespace tvm::frontend::onnx {

void FreeNames(const Graph& graph, std::set<Name>* names) {
  std::set<Name> defined, used;
  for (const ValueInfo& v : graph.inputs) defined.insert(v.name);
  for (const TensorProto& t : graph.initializers) defined.insert(t.name);
  for (const NodeProto& node : graph.nodes) {
    used.insert(node.inputs.begin(), node.inputs.end());
    defined.insert(node.outputs.begin(), node.outputs.end());
    for (const Attribute& attr : node.attributes) {
      if (attr.graph) FreeNames(*attr.graph, &used);
    }
  }
  for (const ValueInfo& v : graph.outputs) used.insert(v.name);
  for (Name name : used) {
    if (!name.empty() && !defined.count(name)) names->insert(name);
  }
}

namespace {
const DataType kCount = DataType::Int(64);

/// The loop as a function, built until the shapes of what is carried fit all turns.
class LoopBuilder {
 public:
  LoopBuilder(Node& n, const LoopSpec& loop) : n_(n), loop_(loop), builder_(n.importer.builder()) {
    for (size_t k = 0; k < loop.carried.size(); ++k) {
      Value value = loop.carried[k];
      bool is_object = value.Otherwise() != nullptr;
      if (value.IsStrings()) n.Unsupported("a loop that carries strings");
      initial_.push_back(is_object ? n.importer.ObjectOf(&value) : n.importer.TensorOf(&value));
      objects_.push_back(nullptr);
      bool declared = k < loop.types.size() && loop.types[k].kind != TypeProto::kUnknown;
      if (is_object)
        objects_[k] =
            declared ? std::make_shared<TypeProto>(loop.types[k]) : n.importer.ObjectType(value);
    }
    for (Name name : loop.names) {
      const Value* value = outside().Find(name);
      if (!value || !value->defined() || IsConstant(*value)) continue;
      Value copy = *value;
      bool is_object = value->sequence || value->object;
      Expr e = is_object ? n.importer.ObjectOf(&copy) : value->expr;
      captured_.push_back({name, is_object || value->IsStrings() ? e : n.importer.TensorOf(&copy),
                           value->words, is_object ? n.importer.ObjectType(*value) : nullptr});
    }
    for (size_t k = 0; k < initial_.size(); ++k) {
      std::vector<bool> changes;
      if (!objects_[k]) {
        for (const PrimExpr& d : Node::Shape(initial_[k])) changes.push_back(!AsConstInt(d));
      }
      varies_.push_back(changes);
    }
  }
  std::vector<Value> Run() {
    // Each try fixes at least one dimension that changes.
    while (!TryBuild()) {
    }
    Array<Expr> args{n_.Scalar(0, kCount),
                     loop_.condition.value_or(n_.Scalar(1, DataType::Bool()))};
    if (loop_.count) {
      args.push_back(is_endless_ ? n_.importer.CallRuntime("check_turns", {*loop_.count},
                                                           relax::TensorStructInfo(Dims{}, kCount))
                                 : *loop_.count);
    }
    for (const Expr& e : initial_) args.push_back(e);
    for (const Captured& c : captured_) {
      args.push_back(c.expr);
      if (c.words.defined()) args.push_back(c.words);
    }
    for (const Collected& c : collected_) {
      Dims shape = c.outside;
      shape.insert(shape.begin(), Num(0));
      args.push_back(c.is_array ? n_.importer.CallRuntime("sequence.make", {})
                                : n_("zeros", relax::ShapeExpr(shape), c.dtype));
    }
    Expr all = n_.Emit(relax::Call(function_, args));
    std::vector<Value> results;
    size_t count = initial_.size() + collected_.size();
    for (size_t i = 0; i < count; ++i) {
      Expr item = n_.Item(all, static_cast<int64_t>(i));
      if (i < initial_.size()) {
        results.emplace_back(item);
        results.back().object = objects_[i];
        continue;
      }
      const Collected& c = collected_[i - initial_.size()];
      results.emplace_back(c.is_array ? Stacked(item, c) : item);
    }
    return results;
  }

 private:
  const Scope& outside() const { return loop_.scope ? *loop_.scope : *n_.scope; }
  /// A value from outside: `words` of strings, `object` of a sequence or optional.
  struct Captured {
    Name name;
    Expr expr, words;
    std::shared_ptr<const TypeProto> object;
  };
  /// A value of each turn. They are joined to one tensor that grows where their shape is known
  /// before the loop, and kept in an array until its end otherwise.
  struct Collected {
    DataType dtype;
    int64_t rank = 0;
    bool is_array = false;
    Dims inside = {}, outside = {};  // as the function and its caller see its shape
  };
  Expr Stacked(const Expr& array, const Collected& c) {
    return n_.importer.CallRuntime(
        "sequence.stack", {array, relax::DataTypeImm(c.dtype), relax::PrimValue(Num(c.rank))},
        relax::TensorStructInfo(c.dtype, c.rank + 1));
  }
  static bool IsConstant(const Value& value) {
    if (value.expr.defined() && value.expr.as<relax::ConstantObj>()) return true;
    if (!value.known) return false;
    return std::all_of(value.known->elements.begin(), value.known->elements.end(),
                       [](const PrimExpr& e) { return AsConstInt(e) || e.as<FloatImmObj>(); });
  }
  relax::Var Param(const std::string& name, const Dims& dims, DataType dtype) {
    return relax::Var(name, relax::TensorStructInfo(dims, dtype));
  }
  /// The dimension as the function sees it: variables are those of its parameters.
  PrimExpr Inside(const PrimExpr& dim) {
    if (AsConstInt(dim)) return dim;
    if (auto var = dim.as<tir::Var>()) {
      if (!inside_.count(*var)) {
        tir::Var inner = n_.importer.FreshDim(var.value()->name_hint);
        inside_.Set(*var, inner);
        outside_.Set(inner, *var);
      }
      return inside_[*var];
    }
    for (const auto& [inner, outer] : outside_) {
      if (builder_->analyzer()->CanProveEqual(outer, dim)) return inner;
    }
    tir::Var inner = n_.importer.FreshDim();
    outside_.Set(inner, dim);
    return inner;
  }
  bool TryBuild() {
    inside_ = {};
    outside_ = {};
    Array<relax::Var> params{Param("i", {}, kCount), Param("go", {}, DataType::Bool())};
    if (loop_.count) params.push_back(Param("count", {}, kCount));
    std::vector<Value> carried;
    for (size_t k = 0; k < initial_.size(); ++k) {
      if (objects_[k]) {
        params.push_back(relax::Var("carried", relax::ObjectStructInfo::Get()));
        carried.push_back(Value::Object(params.back(), objects_[k]));
        continue;
      }
      Dims dims = Node::Shape(initial_[k]);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (varies_[k][d]) dims.Set(d, n_.importer.FreshDim("carried"));
      }
      params.push_back(Param("carried", dims, Node::TypeOf(initial_[k])));
      carried.emplace_back(Expr(params.back()));
    }
    Scope scope;
    scope.outer = &outside();
    for (const Captured& c : captured_) {
      if (c.object) {
        params.push_back(relax::Var("captured", relax::ObjectStructInfo::Get()));
        scope.values[c.name] = Value::Object(params.back(), c.object);
        continue;
      }
      Dims dims = Node::Shape(c.expr).Map([&](const PrimExpr& d) { return Inside(d); });
      params.push_back(Param("captured", dims, Node::TypeOf(c.expr)));
      Value value{Expr(params.back())};
      if (c.words.defined()) {
        params.push_back(relax::Var("words", relax::ObjectStructInfo::Get()));
        value.words = params.back();
      }
      scope.values[c.name] = value;
    }
    first_ = params.size();
    // How the collected values look is known once the body has been built.
    bool is_first = collected_.empty() && loop_.num_collected > 0;
    std::vector<relax::Var> collections;
    for (const Collected& c : collected_) {
      Dims dims = c.inside;
      dims.insert(dims.begin(), n_.importer.FreshDim("turns"));
      collections.push_back(c.is_array ? relax::Var("collected", relax::ObjectStructInfo::Get())
                                       : Param("collected", dims, c.dtype));
      params.push_back(collections.back());
    }
    relax::TupleStructInfo result = ResultInfo(carried);
    function_ = builder_->AddFunction(relax::Function::CreateEmpty(params, result), "loop");
    builder_->BeginScope(params);
    builder_->BeginSequence();
    Expr i = params[0], go = params[1];
    if (loop_.count) go = n_("logical_and", go, n_("less", i, params[2]));
    builder_->BeginSequence();
    Turn turn = loop_.turn(i, carried, scope);
    bool fits = Fits(turn, carried, is_first);
    if (!fits) {
      builder_->EndSequence();
      builder_->EndSequence();
      builder_->EndScope();
      return false;
    }
    is_endless_ = !turn.condition || IsTrue(&*turn.condition);
    relax::SeqExpr next = MakeNext(turn, params, i, collections);
    Array<Expr> last;
    for (const Value& v : carried) last.push_back(v.expr);
    for (const relax::Var& v : collections) last.push_back(v);
    Expr body = builder_->Emit(relax::If(go, next, relax::SeqExpr::Of(relax::Tuple(last))), "gv");
    auto blocks = builder_->EndSequence();
    relax::Function func(params, relax::MakeSeq(relax::SeqExpr({}, body), blocks, body), result);
    builder_->EndScope();
    builder_->UpdateFunction(function_, func);
    return true;
  }
  bool IsTrue(Value* condition) {
    const Known* known = n_.importer.KnownOf(condition);
    return known && known->elements.size() == 1 && IsOne(known->elements[0]);
  }
  /// Shapes of what is carried are those of the parameters where they do not change.
  relax::TupleStructInfo ResultInfo(const std::vector<Value>& carried) {
    Array<StructInfo> fields;
    for (size_t k = 0; k < carried.size(); ++k) {
      if (objects_[k]) {
        fields.push_back(relax::ObjectStructInfo::Get());
        continue;
      }
      Dims dims = Node::Shape(carried[k].expr);
      bool varies = std::count(varies_[k].begin(), varies_[k].end(), true) != 0;
      DataType t = Node::TypeOf(carried[k].expr);
      fields.push_back(varies ? relax::TensorStructInfo(t, static_cast<int64_t>(dims.size()))
                              : relax::TensorStructInfo(dims, t));
    }
    for (const Collected& c : collected_) {
      StructInfo info = relax::ObjectStructInfo::Get();
      if (!c.is_array) info = relax::TensorStructInfo(c.dtype, c.rank + 1);
      fields.push_back(info);
    }
    return relax::TupleStructInfo(fields);
  }
  /// Whether the turn gives what the parameters expect; otherwise what it gives is noted.
  bool Fits(Turn& turn, const std::vector<Value>& carried, bool is_first) {
    bool fits = !is_first;
    for (size_t k = 0; k < carried.size(); ++k) {
      if (objects_[k]) {
        auto type = n_.importer.ObjectType(turn.carried[k]);
        if (SaysElements(*type) && !SaysElements(*objects_[k])) {
          objects_[k] = type;
          fits = false;
        }
        continue;
      }
      Expr e = n_.importer.TensorOf(&turn.carried[k]);
      Dims now = Node::Shape(e), then = Node::Shape(carried[k].expr);
      if (now.size() != then.size() || Node::TypeOf(e) != Node::TypeOf(carried[k].expr))
        n_.Unsupported("a loop that changes the rank or type of what it carries");
      for (size_t d = 0; d < now.size(); ++d) {
        if (varies_[k][d] || builder_->analyzer()->CanProveEqual(now[d], then[d])) continue;
        varies_[k][d] = true;
        fits = false;
      }
    }
    if (fits) return true;
    collected_.clear();
    auto is_outside = [&](const tir::VarObj* var) {
      return !outside_.count(ffi::GetRef<tir::Var>(var));
    };
    for (Value& value : turn.collected) {
      Expr e = n_.importer.TensorOf(&value);
      Collected c{Node::TypeOf(e), Node::Rank(e)};
      for (const PrimExpr& d : Node::Shape(e)) {
        c.is_array |= tir::UsesVar(d, is_outside);
        // The function's parameters are made again: only constants can be named in advance.
        c.inside.push_back(AsConstInt(d) ? d : PrimExpr(n_.importer.FreshDim()));
        c.outside.push_back(tir::Substitute(d, outside_));
      }
      collected_.push_back(c);
    }
    return false;
  }
  relax::SeqExpr MakeNext(Turn& turn, const Array<relax::Var>& params, const Expr& i,
                          const std::vector<relax::Var>& collections) {
    Expr go = n_.Scalar(1, DataType::Bool());
    if (turn.condition) go = n_.Reshape(n_.importer.TensorOf(&*turn.condition), {});
    Array<Expr> args{n_("add", i, n_.Scalar(1, kCount)), go};
    if (loop_.count) args.push_back(params[2]);
    for (size_t k = 0; k < turn.carried.size(); ++k) {
      Value& value = turn.carried[k];
      args.push_back(objects_[k] ? n_.importer.ObjectOf(&value) : n_.importer.TensorOf(&value));
    }
    for (size_t k = args.size(); k < first_; ++k) args.push_back(params[k]);
    for (size_t k = 0; k < collections.size(); ++k) {
      if (collected_[k].is_array) {
        Value none;
        args.push_back(n_.importer.CallRuntime(
            "sequence.insert", {collections[k], n_.importer.TensorOf(&turn.collected[k]),
                                n_.importer.ObjectOf(&none)}));
        continue;
      }
      Expr one = n_("expand_dims", n_.importer.TensorOf(&turn.collected[k]), List({0}));
      args.push_back(Concatenated(n_, {collections[k], one}, 0));
    }
    Expr call = builder_->Emit(relax::Call(function_, args), "gv");
    return relax::MakeSeq(relax::SeqExpr({}, call), builder_->EndSequence(), call);
  }
  Node& n_;
  const LoopSpec& loop_;
  relax::BlockBuilder builder_;
  std::vector<Expr> initial_;
  std::vector<std::shared_ptr<const TypeProto>> objects_;  // of those that are no tensors
  std::vector<Captured> captured_;
  std::vector<std::vector<bool>> varies_;  // of the carried values, by dimension
  Map<tir::Var, PrimExpr> inside_, outside_;
  std::vector<Collected> collected_;
  GlobalVar function_;
  bool is_endless_ = false;  // nothing but the number of turns ends it
  size_t first_ = 0;         // the first parameter for collected values
};
}  // namespace

std::vector<Value> EmitLoop(Node& n, const LoopSpec& loop) { return LoopBuilder(n, loop).Run(); }

}  // namespace tvm::frontend::onnx
