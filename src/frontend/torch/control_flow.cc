// SPDX-License-Identifier: Apache-2.0
// Branches and loops: torch.cond, while_loop, scan and map, whose bodies are programs of their own.
#include "converter.h"
#include "tvm/relax/bind.h"

namespace tvm::frontend::torch {
using relax::Function, relax::SeqExpr, relax::TupleStructInfo;
namespace {

Program BodyOf(const Conversion& c, size_t i) {
  if (auto* program = c[i].as<ProgramObj>()) return ffi::GetRef<Program>(program);
  TVM_REFUSE(c, TypeError) << "expected a graph, got " << c[i].GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
Array<Any> ListAt(const Conversion& c, size_t i) {
  return c.Given(i) ? c[i].cast<Array<Any>>() : Array<Any>();
}
Array<Any> Joined(const Array<Any>& a, const Array<Any>& b) {
  Array<Any> all = a;
  for (const Any& item : b) all.push_back(item);
  return all;
}
Array<Any> Results(const Any& value) {
  auto list = ListOf(value);
  return list ? *list : Array<Any>{value};
}
/// What `compute` gives, with its bindings, as a sequence.
SeqExpr Sequence(const BlockBuilder& bb, const std::function<Expr()>& compute) {
  bb->BeginSequence();
  Expr body = bb->NormalizeArgument(compute());
  return relax::MakeSeq(SeqExpr::Of(body), bb->EndSequence(), body);
}
Expr TupleOf(Conversion& c, const Any& values) {
  Array<Expr> fields;
  for (const Any& value : Results(values)) {
    fields.push_back(IsTensor(value) ? value.cast<Expr>() : PrimValue(AsSize(value)));
  }
  return relax::Tuple(fields);
}
Expr Condition(Conversion& c, const Any& value) {
  if (IsTensor(value)) {
    Expr x = value.cast<Expr>();
    return RankOf(x) == 0 ? x : c.Reshape(x, {});
  }
  if (auto* e = value.as<PrimExprObj>()) return PrimValue(ffi::GetRef<PrimExpr>(e));
  return c.As(value, DataType::Bool());
}

Any Cond(Conversion& c) {
  Array<Any> operands = ListAt(c, 3);
  // A condition that is known decides now.
  if (c[0].type_index() == kTVMFFIBool) {
    return c.importer()->Inline(BodyOf(c, c.Flag(0) ? 1 : 2), operands);
  }
  Expr condition = Condition(c, c[0]);
  auto branch = [&](size_t i) {
    return Sequence(c.bb, [&] { return TupleOf(c, c.importer()->Inline(BodyOf(c, i), operands)); });
  };
  SeqExpr then = branch(1), otherwise = branch(2);
  return c.Bind(relax::If(condition, then, otherwise));
}

/// A function that calls itself as long as the condition holds.
Any WhileLoop(Conversion& c) {
  Array<Any> carried = ListAt(c, 2), constant = ListAt(c, 3);
  Array<relax::Var> params;
  Array<Any> values;
  Array<Expr> arguments;
  for (const Any& item : Joined(carried, constant)) {
    Expr value = IsTensor(item) ? item.cast<Expr>() : PrimValue(AsSize(item));
    relax::Var var("state", IsTensor(item) ? relax::GetStructInfo(value)
                                           : StructInfo(relax::PrimStructInfo(DataType::Int(64))));
    params.push_back(var);
    values.push_back(var);
    arguments.push_back(value);
  }
  auto first = [&](const Array<Any>& all) {
    return Array<Any>(all.begin(), all.begin() + carried.size());
  };
  Array<StructInfo> fields;
  for (size_t i = 0; i < carried.size(); ++i) fields.push_back(relax::GetStructInfo(params[i]));
  TupleStructInfo result(fields);
  GlobalVar self = c.bb->AddFunction(Function::CreateEmpty(params, result), "while_loop");
  c.bb->BeginScope(params);
  SeqExpr body = Sequence(c.bb, [&]() -> Expr {
    Any holds = Results(c.importer()->Inline(BodyOf(c, 0), values))[0];
    Expr condition = Condition(c, holds);
    SeqExpr again = Sequence(c.bb, [&]() -> Expr {
      Array<Expr> next;
      for (const Any& item : Results(c.importer()->Inline(BodyOf(c, 1), values))) {
        next.push_back(IsTensor(item) ? item.cast<Expr>() : PrimValue(AsSize(item)));
      }
      for (size_t i = carried.size(); i < params.size(); ++i) next.push_back(params[i]);
      return c.bb->Emit(relax::Call(self, next));
    });
    SeqExpr done = Sequence(c.bb, [&] { return TupleOf(c, first(values)); });
    return c.bb->Emit(relax::If(condition, again, done));
  });
  c.bb->EndScope();
  // The function's sizes are variables of its own.
  c.bb->UpdateFunction(self, relax::CopyWithNewVars(Function(params, body, result)));
  return c.Bind(relax::Call(self, arguments));
}

/// The parts of tensors at one position of their first axis.
Array<Any> At(Conversion& c, const Array<Any>& tensors, int64_t i) {
  Array<Any> parts;
  for (const Any& x : tensors) parts.push_back(c.Emit("take", x.cast<Expr>(), c.Const(i), 0));
  return parts;
}
int64_t Length(Conversion& c, const Array<Any>& xs) {
  auto n = xs.empty() ? std::nullopt : AsConstInt(ShapeOf(xs[0].cast<Expr>())[0]);
  if (!n) TVM_REFUSE(c, NotImplementedError) << "expected a constant number of steps";
  return *n;
}
/// Steps one after the other; `step` gives the results of one, which are stacked.
Array<Any> Unrolled(Conversion& c, int64_t n, const std::function<Array<Any>(int64_t)>& step) {
  std::vector<Array<Expr>> columns;
  for (int64_t i = 0; i < n; ++i) {
    Array<Any> row = step(i);
    columns.resize(row.size());
    for (size_t k = 0; k < row.size(); ++k) columns[k].push_back(row[k].cast<Expr>());
  }
  Array<Any> stacked;
  for (const Array<Expr>& column : columns) {
    stacked.push_back(c.Emit("stack", relax::Tuple(column), 0));
  }
  return stacked;
}
Any MapOver(Conversion& c) {
  Program body = BodyOf(c, 0);
  Array<Any> xs = ListAt(c, 1), constant = ListAt(c, 2);
  return Unrolled(c, Length(c, xs), [&](int64_t i) {
    return Results(c.importer()->Inline(body, Joined(At(c, xs, i), constant)));
  });
}
Any Scan(Conversion& c) {
  Program body = BodyOf(c, 0);
  Array<Any> state = ListAt(c, 1), xs = ListAt(c, 2), constant = ListAt(c, 3);
  size_t n = state.size();
  Array<Any> rows = Unrolled(c, Length(c, xs), [&](int64_t i) {
    Array<Any> args = Joined(Joined(state, At(c, xs, i)), constant);
    Array<Any> results = Results(c.importer()->Inline(body, args));
    state = Array<Any>(results.begin(), results.begin() + n);
    return Array<Any>(results.begin() + n, results.end());
  });
  return Joined(state, rows);
}

/// What no_grad() and the like surround, which says nothing about the results.
Any WithGrad(Conversion& c) { return c.importer()->Inline(BodyOf(c, 1), ListAt(c, 2)); }
Any WithAutocast(Conversion& c) {
  if (c.Flag(2)) {
    TVM_REFUSE(c, NotImplementedError)
        << "expected no types that are chosen by torch.autocast; "
           "exported_program.run_decompositions() makes casts of them";
  }
  return c.importer()->Inline(BodyOf(c, 4), ListAt(c, 5));
}

TVM_REGISTER() {
  Converter("higher_order.wrap_with_set_grad_enabled", "enabled, body, *operands", &WithGrad);
  Converter("higher_order.wrap_with_autocast",
            "device_type, dtype, enabled, cache_enabled, body, *operands", &WithAutocast);
  Converter("higher_order.cond", "pred, true_graph, false_graph, operands=None", &Cond);
  Converter("higher_order.while_loop",
            "cond_graph, body_graph, carried_inputs, additional_inputs=None", &WhileLoop);
  Converter("higher_order.map_impl", "f, xs, pos_args=None", &MapOver);
  Converter("higher_order.scan", "combine_fn, init, xs, additional_inputs=None", &Scan);
}

}  // namespace

Any ImporterObj::Inline(const Program& program, const Array<Any>& args) {
  // Names of the inner program are its own.
  auto outer_env = std::move(env);
  auto outer_items = std::move(items_);
  auto outer_views = std::move(views_);
  auto outer_order = std::move(view_order_);
  env.clear();
  items_.clear();
  views_.clear();
  view_order_.clear();
  if (program->inputs.size() != args.size()) {
    TVM_FFI_THROW(ValueError) << "a graph inside of the program: expected "
                              << program->inputs.size() << " inputs, got " << args.size();
  }
  for (size_t i = 0; i < args.size(); ++i) env[program->inputs[i]->name] = args[i];
  ConvertNodes(program->nodes);
  Any result = Resolve(program->outputs);
  env = std::move(outer_env);
  items_ = std::move(outer_items);
  views_ = std::move(outer_views);
  view_order_ = std::move(outer_order);
  return result;
}

}  // namespace tvm::frontend::torch
