// SPDX-License-Identifier: Apache-2.0
// Blocks that bring weights into another layout as PrimFuncs of their own.
#include <unordered_set>

#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::relax {
namespace {
constexpr const char* kPreprocessing = "meta_schedule.layout_rewrite_preproc";

/// Whether a statement of the root block only rewrites a layout, and the buffers that it copies.
struct CopyFinder : Visitor<CopyFinder, tir::BlockObj> {
  tir::Buffer from, to;
  void Visit(const tir::BlockObj* block) {
    if (!block->annotations.count(kPreprocessing)) return;
    auto* store = block->body.as<tir::BufferStoreObj>();
    auto* load = store ? store->value.as<tir::BufferLoadObj>() : nullptr;
    if (!load) {
      TVM_FFI_THROW(ValueError) << "SplitLayoutRewritePreproc: expected block " << block->name_hint
                                << " to copy elements of one buffer to another";
    }
    from = load->buffer;
    to = store->buffer;
  }
};

struct Split {
  tir::PrimFunc prepack{nullptr}, rest{nullptr};
  std::vector<size_t> weights;  // parameters of the whole function that prepack takes
  Array<StructInfo> packed;     // what it returns for them
};

/// The root block with another body.
tir::Stmt RootWith(tir::Block root, const Array<tir::Buffer>& allocated,
                   const Array<tir::Stmt>& body) {
  Edit(&root)->alloc_buffers = allocated;
  Edit(&root)->body = tir::SeqStmt::Flatten(body);
  return tir::BlockRealize({}, MakeConst(DataType::Bool(), 1), root);
}

/// The function in two, where it begins with blocks that rewrite parameters.
std::optional<Split> SplitFunc(const tir::PrimFunc& func) {
  auto* realize = func->body.as<tir::BlockRealizeObj>();
  if (!realize) return std::nullopt;
  const tir::Block& root = realize->block;
  Array<tir::Stmt> copies, rest;
  std::unordered_map<const Object*, tir::Buffer> rewritten;  // source -> its new layout
  auto* seq = root->body.as<tir::SeqStmtObj>();
  for (const tir::Stmt& stmt : seq ? seq->seq : Array<tir::Stmt>{root->body}) {
    CopyFinder copy;
    copy(stmt);
    if (copy.to.defined()) rewritten[copy.from.get()] = copy.to;
    (copy.to.defined() ? copies : rest).push_back(stmt);
  }
  // A function that only copies is what is split off.
  if (copies.empty() || rest.empty()) return std::nullopt;
  Split split;
  Array<tir::Var> prepack_params, rest_params = func->params;
  Array<tir::Var> outputs;
  Map<tir::Var, tir::Buffer> prepack_map, rest_map = func->buffer_map;
  Array<tir::Buffer> allocated;
  for (const tir::Buffer& buffer : root->alloc_buffers) {
    bool is_packed = false;
    for (const auto& [from, to] : rewritten) is_packed |= to.same_as(buffer);
    if (!is_packed) allocated.push_back(buffer);
  }
  for (size_t i = 0; i < func->params.size(); ++i) {
    const tir::Var param = func->params[i];
    tir::Buffer buffer = func.BufferOf(param);
    auto it = rewritten.find(buffer.get());
    if (it == rewritten.end()) continue;
    split.weights.push_back(i);
    tir::Buffer packed = it->second;
    rewritten.erase(it);
    prepack_params.push_back(param);
    prepack_map.Set(param, buffer);
    tir::Var output(packed->name, DataType::Handle());
    outputs.push_back(output);
    prepack_map.Set(output, packed);
    rest_map.erase(param);
    rest_map.Set(output, packed);
    rest_params.Set(i, output);
    split.packed.push_back(
        TensorStructInfo(AsDims(packed->shape, "SplitLayoutRewritePreproc"), packed->dtype));
  }
  if (!rewritten.empty()) {
    TVM_FFI_THROW(ValueError) << "SplitLayoutRewritePreproc: expected what is rewritten into '"
                              << rewritten.begin()->second->name << "' to be a parameter";
  }
  for (const tir::Var& output : outputs) prepack_params.push_back(output);
  DictAttrs attrs(Map<String, Any>{{"tir.noalias", true}});
  // Both functions have the packed buffers, each as its own.
  split.prepack = tir::RenewDefs(tir::PrimFunc(prepack_params, RootWith(root, {}, copies),
                                               TupleType::Void(), prepack_map, attrs));
  split.rest = func;
  auto* edited = Edit(&split.rest);
  edited->params = rest_params;
  edited->buffer_map = rest_map;
  edited->body = RootWith(root, allocated, rest);
  edited->attrs = WithoutAttr(edited->attrs, "layout_free_buffers");
  return split;
}

class Splitter : public ExprMutator {
 public:
  explicit Splitter(const IRModule& mod) : ExprMutator(mod), mod_(mod) {}
  IRModule Run() { return WithoutUnused(VisitFunctions()); }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
    if (!call || !call->Is(call_tir) || !call->args[1].as<TupleObj>()) return visited;
    auto callee = Any(call->args[0]).cast<GlobalVar>();
    auto [it, is_new] = split_.try_emplace(callee->name_hint);
    if (is_new) {
      auto func = mod_->Lookup(callee).as<tir::PrimFunc>();
      if (func) it->second.first = SplitFunc(*func);
      if (it->second.first) {
        const Split& split = *it->second.first;
        it->second.second = {
            builder_->AddFunction(split.prepack, callee->name_hint + "_weight_prepack"),
            builder_->AddFunction(split.rest, callee->name_hint + "_prepacked")};
      }
    }
    if (!it->second.first) return visited;
    const Split& split = *it->second.first;
    const auto& [prepack, rest] = it->second.second;
    Array<Expr> args = call->args[1].as<TupleObj>()->fields, weights;
    for (size_t i : split.weights) weights.push_back(args[i]);
    bool one = weights.size() == 1;
    Var packed =
        builder_->Emit(Call(call_tir, {prepack, Tuple(weights)}, std::nullopt,
                            {one ? split.packed[0] : StructInfo(TupleStructInfo(split.packed))}));
    for (size_t i = 0; i < split.weights.size(); ++i)
      args.Set(split.weights[i],
               one ? Expr(packed) : Expr(TupleGetItem(packed, static_cast<int64_t>(i))));
    Array<Expr> now = call->args;
    now.Set(0, rest);
    now.Set(1, Tuple(args));
    return Call(call->op, now, call->attrs, call->sinfo_args, call->span);
  }

 private:
  /// What was split stays only where others use it.
  IRModule WithoutUnused(const IRModule& mod) const {
    std::unordered_set<std::string> used;
    for (const auto& [var, base] : mod->functions) {
      if (!base.as<FunctionObj>()) continue;
      for (const GlobalVar& global : AllGlobalVars(base)) used.insert(global->name_hint);
    }
    Map<GlobalVar, BaseFunc> functions = mod->functions;
    for (const auto& [name, split] : split_) {
      GlobalVar var = mod->GetGlobalVar(name);
      if (split.first && !used.count(name) &&
          !mod->Lookup(var)->GetAttr<String>(attr::kGlobalSymbol))
        functions.erase(var);
    }
    return IRModule(functions, mod->attrs, mod->global_infos);
  }
  IRModule mod_;
  std::unordered_map<std::string, std::pair<std::optional<Split>, std::pair<GlobalVar, GlobalVar>>>
      split_;
};
IRModule SplitLayoutRewritePreproc(IRModule mod) { return Splitter(mod).Run(); }
}  // namespace
TVM_RELAX_PASS(SplitLayoutRewritePreproc, 0,
               "R.call_tir(cls.f, (x, w), ...), where f begins with a block marked "
               "meta_schedule.layout_rewrite_preproc  ->  p = R.call_tir(cls.f_weight_prepack, "
               "(w,), ...); R.call_tir(cls.f_prepacked, (x, p), ...)");
}  // namespace tvm::relax
