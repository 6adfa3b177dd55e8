// SPDX-License-Identifier: Apache-2.0
// Kernels whose first blocks a library computes: the library's call, and a kernel for the rest.
#include <algorithm>
#include <unordered_set>

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/callback.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::relax {
namespace {
/// A pattern that one block of a kernel matches: the values of the pattern's variables, in the
/// order in which its buffers name them, and the kernel's buffers for the pattern's parameters.
struct MatchResultObj : NodeObj {
  tir::PrimFunc pattern{nullptr};
  Array<PrimExpr> symbol_values;
  Array<tir::Buffer> matched_buffers;
  static void Fields(auto&& def) {
    def("pattern", &MatchResultObj::pattern);
    def("symbol_values", &MatchResultObj::symbol_values);
    def("matched_buffers", &MatchResultObj::matched_buffers);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.MatchResult", MatchResultObj, NodeObj);
};
TVM_NODE_REF(MatchResult, ObjectRef, MatchResultObj);

/// Buffers in the order in which a program accesses them, and which of them it writes.
struct AccessedBuffers : Visitor<AccessedBuffers, tir::BufferStoreObj, tir::BufferLoadObj> {
  std::vector<tir::Buffer> all;
  std::unordered_set<const Object*> written;
  void Visit(const tir::BufferStoreObj* op) {
    Add(op->buffer);
    written.insert(op->buffer.get());
    VisitChildren(op, *this);
  }
  void Visit(const tir::BufferLoadObj* op) {
    Add(op->buffer);
    VisitChildren(op, *this);
  }
  bool Has(const tir::Buffer& buffer) const {
    return std::any_of(all.begin(), all.end(), [&](auto& b) { return b.same_as(buffer); });
  }

 private:
  void Add(const tir::Buffer& buffer) {
    if (!Has(buffer)) all.push_back(buffer);
  }
};
AccessedBuffers BuffersOf(const tir::Stmt& stmt) {
  AccessedBuffers found;
  found(stmt);
  return found;
}
/// The statements of a function, below its root block.
Array<tir::Stmt> StepsOf(const tir::PrimFunc& func) {
  auto* realize = func->body.as<tir::BlockRealizeObj>();
  tir::Stmt body = realize ? realize->block->body : func->body;
  auto* seq = body.as<tir::SeqStmtObj>();
  return seq ? seq->seq : Array<tir::Stmt>{body};
}

std::optional<MatchResult> Match(const tir::PrimFunc& pattern, const tir::Stmt& step) {
  Array<tir::Stmt> steps = StepsOf(pattern);
  if (steps.size() != 1) return std::nullopt;
  AccessedBuffers theirs = BuffersOf(steps[0]), ours = BuffersOf(step);
  if (theirs.all.size() != ours.all.size()) return std::nullopt;
  // Buffers correspond in the order of access; the dimensions of one give the variables values.
  Map<tir::Var, PrimExpr> values;
  Array<PrimExpr> in_order;
  for (size_t i = 0; i < ours.all.size(); ++i) {
    const tir::Buffer &a = theirs.all[i], &b = ours.all[i];
    if (a->dtype != b->dtype || a->shape.size() != b->shape.size()) return std::nullopt;
    for (size_t k = 0; k < a->shape.size(); ++k) {
      auto var = a->shape[k].as<tir::Var>();
      if (!var || values.count(*var)) continue;
      values.Set(*var, cast((*var).dtype(), b->shape[k]));
      in_order.push_back(b->shape[k]);
    }
  }
  tir::PrimFunc special = tir::Substitute(pattern, values);
  AccessedBuffers specials = BuffersOf(StepsOf(special)[0]);
  Map<tir::Var, tir::Buffer> buffers;
  Array<tir::Buffer> matched;
  for (const tir::Var& param : special->params) {
    tir::Buffer buffer = special.BufferOf(param);
    auto it = std::find_if(specials.all.begin(), specials.all.end(),
                           [&](auto& b) { return b.same_as(buffer); });
    if (it == specials.all.end()) return std::nullopt;
    matched.push_back(ours.all[it - specials.all.begin()]);
    buffers.Set(param, matched.back());
  }
  if (matched.size() != ours.all.size()) return std::nullopt;  // the pattern has buffers inside
  tir::PrimFunc wanted(special->params, StepsOf(special)[0], special->ret_type,
                       special->buffer_map);
  tir::PrimFunc got(special->params, step, special->ret_type, buffers);
  if (!StructuralEqual(wanted, got)) return std::nullopt;
  return New<MatchResult>([&](MatchResultObj* n) {
    n->pattern = pattern;
    n->symbol_values = in_order;
    n->matched_buffers = matched;
  });
}

class CallSplitter : public ExprMutator {
 public:
  CallSplitter(const IRModule& mod, const Array<tir::PrimFunc>& patterns,
               const ffi::Function& codegen)
      : ExprMutator(mod), mod_(mod), patterns_(patterns), codegen_(codegen) {}
  Expr VisitExpr_(const CallObj* op) final {
    static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* args = call && call->Is(call_tir) && call->args.size() == 2 ? call->args[1].as<TupleObj>()
                                                                      : nullptr;
    auto* out = args ? call->sinfo_args[0].as<TensorStructInfoObj>() : nullptr;
    if (!out) return visited;
    auto callee = Any(call->args[0]).cast<GlobalVar>();
    auto func = mod_->Lookup(callee).as<tir::PrimFunc>();
    if (!func || (*func)->params.size() != args->fields.size() + 1) return visited;
    auto split = Split(*func, call, args->fields, callee->name_hint);
    return split ? *split : visited;
  }

 private:
  static bool IsStatic(const tir::Buffer& buffer) {
    return std::all_of(buffer->shape.begin(), buffer->shape.end(),
                       [](const PrimExpr& dim) { return AsConstInt(dim).has_value(); });
  }
  Array<MatchResult> Matches(const Array<tir::Stmt>& steps) const {
    Array<MatchResult> matches;
    for (const tir::Stmt& step : steps) {
      std::optional<MatchResult> match;
      for (size_t i = 0; !match && i < patterns_.size(); ++i) match = Match(patterns_[i], step);
      if (!match) break;
      matches.push_back(*match);
    }
    return matches;
  }
  std::optional<Expr> Split(const tir::PrimFunc& func, const CallObj* call, const Array<Expr>& args,
                            const String& name) {
    Array<tir::Stmt> steps = StepsOf(func);
    Array<MatchResult> matches = Matches(steps);
    if (matches.empty()) return std::nullopt;
    auto answer = CallBack(codegen_, matches).try_cast<Array<Any>>();
    if (!answer || answer->size() != 3) {
      TVM_FFI_THROW(TypeError)
          << "SplitCallTIRByPattern: expected fcodegen to return [code, number "
             "of matched blocks, buffers], got something else";
    }
    auto taken = static_cast<size_t>((*answer)[1].cast<int64_t>());
    if (taken == 0) return std::nullopt;
    if (taken > matches.size()) {
      TVM_FFI_THROW(ValueError) << "SplitCallTIRByPattern: expected at most the " << matches.size()
                                << " matched blocks of '" << name << "', got " << taken;
    }
    auto buffers = (*answer)[2].cast<Array<tir::Buffer>>();
    Array<tir::Stmt> first(steps.begin(), steps.begin() + taken),
        rest(steps.begin() + taken, steps.end());
    return Emitted(func, call, args, name, (*answer)[0].cast<String>(), buffers,
                   tir::SeqStmt::Flatten(first), rest);
  }
  /// The position of a parameter, or none.
  static std::optional<size_t> ParamOf(const tir::PrimFunc& func, const tir::Buffer& buffer) {
    for (size_t i = 0; i < func->params.size(); ++i) {
      if (func.BufferOf(func->params[i]).same_as(buffer)) return i;
    }
    return std::nullopt;
  }
  std::optional<Expr> Emitted(const tir::PrimFunc& func, const CallObj* call,
                              const Array<Expr>& args, const String& name, const String& code,
                              const Array<tir::Buffer>& buffers, const tir::Stmt& first,
                              const Array<tir::Stmt>& rest) {
    static const Op& call_dps_packed = *new Op(Op::Get("relax.call_dps_packed"));
    if (buffers.empty() || !BuffersOf(first).written.count(buffers.back().get())) {
      TVM_FFI_THROW(ValueError) << "SplitCallTIRByPattern: expected the last buffer for '" << name
                                << "' to be one that the matched blocks write";
    }
    const tir::Buffer& result = buffers.back();
    Array<Expr> inputs;
    for (size_t i = 0; i + 1 < buffers.size(); ++i) {
      auto param = ParamOf(func, buffers[i]);
      if (!param || *param >= args.size()) {
        TVM_FFI_THROW(ValueError) << "SplitCallTIRByPattern: expected inputs of '" << name
                                  << "', got the buffer '" << buffers[i]->name << "'";
      }
      inputs.push_back(args[*param]);
    }
    if (!IsStatic(result)) return std::nullopt;
    ExternFunc library(name + "_library");
    library = WithAttr(WithAttr(library, "c_source", code), "c_source_fmt", String("cu"));
    bool is_all = rest.empty();
    StructInfo info =
        is_all ? call->sinfo_args[0]
               : StructInfo(TensorStructInfo(
                     ShapeExpr(AsDims(result->shape, "SplitCallTIRByPattern")), result->dtype));
    Call of_library(call_dps_packed, {library, Tuple(inputs)}, std::nullopt, {info}, call->span);
    if (is_all) return of_library;
    auto [kernel, used] = RestOf(func, result, rest, first, name);
    Array<Expr> rest_args;
    for (size_t i : used) rest_args.push_back(args[i]);
    rest_args.push_back(builder_->Emit(of_library));
    GlobalVar callee = builder_->AddFunction(kernel, "unfused_epilogue");
    return Call(call->op, {callee, Tuple(rest_args)}, call->attrs, call->sinfo_args, call->span);
  }
  /// The kernel without its first blocks, whose result is a parameter; and which of the others
  /// it still has.
  std::pair<tir::PrimFunc, std::vector<size_t>> RestOf(const tir::PrimFunc& func,
                                                       const tir::Buffer& result,
                                                       const Array<tir::Stmt>& rest,
                                                       const tir::Stmt& first,
                                                       const String& name) const {
    tir::Stmt body = tir::SeqStmt::Flatten(rest);
    AccessedBuffers needed = BuffersOf(body), before = BuffersOf(first);
    for (const tir::Buffer& buffer : needed.all) {
      if (before.written.count(buffer.get()) && !buffer.same_as(result)) {
        TVM_FFI_THROW(ValueError) << "SplitCallTIRByPattern: expected the rest of '" << name
                                  << "' to use only '" << result->name << "', got '" << buffer->name
                                  << "'";
      }
    }
    Array<tir::Var> params;
    Map<tir::Var, tir::Buffer> map;
    std::vector<size_t> used;
    auto add = [&](const tir::Var& param, const tir::Buffer& buffer) {
      params.push_back(param);
      map.Set(param, buffer);
    };
    for (size_t i = 0; i + 1 < func->params.size(); ++i) {
      tir::Buffer buffer = func.BufferOf(func->params[i]);
      if (!needed.Has(buffer)) continue;
      used.push_back(i);
      add(func->params[i], buffer);
    }
    add(tir::Var(result->name, DataType::Handle()), result);
    add(func->params.back(), func.BufferOf(func->params.back()));
    Array<tir::Buffer> inside;
    tir::Block root = func->body.as<tir::BlockRealizeObj>()->block;
    for (const tir::Buffer& buffer : root->alloc_buffers) {
      if (needed.Has(buffer) && !buffer.same_as(result)) inside.push_back(buffer);
    }
    Edit(&root)->alloc_buffers = inside;
    Edit(&root)->body = body;
    DictAttrs attrs(Map<String, Any>{{"tir.noalias", true}});
    tir::Stmt whole = tir::BlockRealize({}, MakeConst(DataType::Bool(), 1), root);
    return {tir::RenewDefs(tir::PrimFunc(params, whole, TupleType::Void(), map, attrs)), used};
  }

  IRModule mod_;
  Array<tir::PrimFunc> patterns_;
  ffi::Function codegen_;
};
IRModule SplitCallTIRByPattern(IRModule mod, Array<tir::PrimFunc> patterns,
                               ffi::Function fcodegen) {
  return CallSplitter(mod, patterns, fcodegen).VisitFunctions();
}
TVM_REGISTER() { RegisterNode<MatchResultObj>("A block of a kernel that a pattern matches."); }
}  // namespace
TVM_RELAX_PASS(
    SplitCallTIRByPattern, 0,
    "y = R.call_tir(cls.f, (x, w), ...), whose first blocks match patterns  ->  t = "
    "R.call_dps_packed(\"f_library\", (x, w), ...); y = R.call_tir(cls.unfused_epilogue, (t,), "
    "...). fcodegen gets the MatchResult of each of these blocks and returns [code, how many of "
    "them it computes, their buffers: inputs, then the result]; 0 leaves the call. The code is "
    "the attribute c_source of the external function, which must be there when the model runs.",
    Arg("patterns"), Arg("fcodegen"));
}  // namespace tvm::relax
