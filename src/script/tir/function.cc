// SPDX-License-Identifier: Apache-2.0
// How functions print: the signature, what has to be declared before the body, the implicit root
// block.
#include <algorithm>
#include <unordered_set>

#include "script/tir/tir.h"
#include "tvm/expr/op.h"
#include "tvm/ir/target.h"

namespace tvm::script {
using namespace tir;
const Language kTir{"tir", "T", "tir.", 10, &PrinterConfigObj::tir_prefix};

// ---- buffers that no statement declares ---------------------------------------------------------
void TirState::SetUndeclared(const std::vector<const BufferObj*>& buffers) {
  undeclared_.clear();
  undeclared_by_var_.clear();
  ready_.clear();
  struct Vars : Visitor<Vars, VarObj> {
    std::vector<const Object*> found;
    void Visit(const VarObj* var) { found.push_back(var); }
  };
  for (const BufferObj* buffer : buffers) {
    Vars vars;
    VisitChildren(buffer, vars);
    std::sort(vars.found.begin(), vars.found.end());
    vars.found.erase(std::unique(vars.found.begin(), vars.found.end()), vars.found.end());
    size_t index = undeclared_.size();
    undeclared_.push_back({buffer, 0});
    for (const Object* var : vars.found) {
      undeclared_by_var_[var].push_back(index);
      undeclared_[index].missing += !p_.Known(var);
    }
    if (undeclared_[index].missing == 0) ready_.push_back(index);
  }
}
void TirState::FlushBuffers() {
  while (!ready_.empty()) {
    std::vector<size_t> ready;
    std::swap(ready, ready_);
    for (size_t i : ready) {
      const UndeclaredBuffer& b = undeclared_[i];
      if (b.missing == 0 && !p_.Known(b.buffer)) DefineBuffer(p_, b.buffer, "Buffer");
    }
  }
}
void TirState::Named(const Object* object) {
  auto it = undeclared_by_var_.find(object);
  if (it == undeclared_by_var_.end()) return;
  for (size_t i : it->second) {
    if (--undeclared_[i].missing == 0) ready_.push_back(i);
  }
}
void TirState::Forgotten(const Object* object) {
  auto it = undeclared_by_var_.find(object);
  if (it == undeclared_by_var_.end()) return;
  for (size_t i : it->second) ++undeclared_[i].missing;
}

namespace {

/// What a function uses, and what in it defines something: the difference has to be declared.
struct Scan : Visitor<Scan, VarObj, BufferObj, ForObj, LetStmtObj, AllocateObj, AllocateConstObj,
                      DeclBufferObj, BufferRealizeObj, AttrStmtObj, BlockObj, GlobalVarObj,
                      CommReducerObj> {
  std::unordered_set<const Object*> defined, seen;
  std::vector<const VarObj*> vars;
  std::vector<const BufferObj*> buffers;
  bool has_block = false, has_global = false;

  void Visit(const VarObj* var) {
    if (seen.insert(var).second) vars.push_back(var);
  }
  void Visit(const BufferObj* buffer) {
    if (!seen.insert(buffer).second) return;
    buffers.push_back(buffer);
    VisitChildren(buffer, *this);
  }
  void Visit(const GlobalVarObj*) { has_global = true; }
  void Visit(const CommReducerObj* n) {
    for (const Array<Var>& side : {n->lhs, n->rhs}) {
      for (const Var& v : side) defined.insert(v.get());
    }
    VisitChildren(n, *this);
  }
  void Visit(const ForObj* n) {
    // The statement declares the variable of a bound thread; see LoopHeader.
    if (n->thread_binding.has_value()) defined.insert(n->thread_binding.value()->var.get());
    Defines(n->loop_var, n);
  }
  void Visit(const LetStmtObj* n) { Defines(n->var, n); }
  void Visit(const AllocateObj* n) { Defines(n->buffer_var, n); }
  void Visit(const AllocateConstObj* n) { Defines(n->buffer_var, n); }
  void Visit(const DeclBufferObj* n) { Defines(n->buffer, n); }
  void Visit(const BufferRealizeObj* n) {
    DefinesBuffer(n->buffer.get());
    VisitChildren(n, *this);
  }
  void Visit(const AttrStmtObj* n) {
    // The statement declares the variable of a thread; see PrintAttrStmt.
    if (auto* iter = n->node.as<IterVarObj>()) defined.insert(iter->var.get());
    VisitChildren(n, *this);
  }
  void Visit(const BlockObj* n) {
    has_block = true;
    for (const IterVar& iter : n->iter_vars) defined.insert(iter->var.get());
    for (const Buffer& b : n->alloc_buffers) DefinesBuffer(b.get());
    for (const MatchBufferRegion& m : n->match_buffers) DefinesBuffer(m->buffer.get());
    VisitChildren(n, *this);
  }
  void Defines(const ObjectRef& what, const Object* node) {
    defined.insert(what.get());
    VisitChildren(node, *this);
  }
  /// The declaration of a buffer declares its data and the variables of its shape.
  void DefinesBuffer(const BufferObj* buffer) {
    defined.insert(buffer);
    struct Vars : Visitor<Vars, VarObj> {
      std::unordered_set<const Object*>* defined;
      void Visit(const VarObj* var) { defined->insert(var); }
    } inner;
    inner.defined = &defined;
    VisitChildren(buffer, inner);
  }
};

bool IsConstantShape(const BufferObj* b) {
  for (const PrimExpr& e : b->shape) {
    if (!e.as<IntImmObj>()) return false;
  }
  return true;
}
/// Whether `A: T.Buffer(shape, dtype)` says all about a parameter and its buffer.
bool IsPlainParameter(const VarObj* param, const BufferObj* b, const Object* data_owner) {
  auto* type = param->type_annotation.as<PrimTypeObj>();
  auto* pointer = b->data->type_annotation.as<PointerTypeObj>();
  auto* element = pointer->element_type.as<PrimTypeObj>();
  auto* offset = b->elem_offset.as<IntImmObj>();
  return type && type->dtype == DataType::Handle() && !param->IsInstance<SizeVarObj>() &&
         IsConstantShape(b) && b->strides.empty() && b->axis_separators.empty() && element &&
         element->dtype == b->dtype && pointer->storage_scope == "global" && offset &&
         offset->value == 0 && offset->dtype == b->IndexType() && b->data_alignment == 64 &&
         b->offset_factor == 1 && b->buffer_type == BufferType::kDefault && data_owner == b;
}
/// A root block the parser puts round the body by itself.
bool IsImplicitRoot(const Stmt& body) {
  auto* realize = body.as<BlockRealizeObj>();
  if (!realize || !realize->iter_values.empty() || !IsTrue(realize->predicate)) return false;
  const BlockObj* b = realize->block.get();
  if (b->name_hint != "root" || !b->iter_vars.empty() || !b->reads.empty() || !b->writes.empty() ||
      !b->annotations.empty() || !b->match_buffers.empty() || b->init.has_value()) {
    return false;
  }
  if (!b->alloc_buffers.empty()) return true;
  auto* inner = b->body.as<BlockRealizeObj>();
  if (inner && inner->block->iter_vars.empty()) return false;
  Scan scan;
  scan(b->body);
  return scan.has_block;
}
bool IsRootBlock(const Stmt& body) {
  auto* realize = body.as<BlockRealizeObj>();
  return realize && realize->block->iter_vars.empty();
}
}  // namespace

void DeclareFree(Printer& p, const ObjectRef& body) {
  Scan scan;
  scan(body);
  std::vector<const BufferObj*> undeclared;
  std::unordered_set<const Object*> named_by_buffer;
  for (const BufferObj* b : scan.buffers) {
    if (scan.defined.count(b) || p.Known(b)) continue;
    undeclared.push_back(b);
    auto* pointer = b->data->type_annotation.as<PointerTypeObj>();
    auto* element = pointer->element_type.as<PrimTypeObj>();
    if (!scan.defined.count(b->data.get()) && element && element->dtype == b->dtype) {
      named_by_buffer.insert(b->data.get());
    }
  }
  for (const VarObj* var : scan.vars) {
    if (!scan.defined.count(var) && !p.Known(var) && !named_by_buffer.count(var)) DefineVar(p, var);
  }
  // Pointers that nothing defines come with the first buffer that uses them.
  for (const BufferObj* b : undeclared) {
    if (named_by_buffer.count(b->data.get()) && !p.Known(b->data.get()))
      DefineBuffer(p, b, "Buffer");
  }
  std::erase_if(undeclared, [&](const BufferObj* b) { return p.Known(b); });
  auto& state = p.State<TirState>();
  state.SetUndeclared(undeclared);
  state.FlushBuffers();
}

namespace {
void PrintPrimFunc(Printer& p, const PrimFuncObj* f, const String& name) {
  auto symbol = f->GetAttr<String>(tvm::attr::kGlobalSymbol);
  Scan scan;
  scan(f->body);
  bool sugar = p.config->syntax_sugar;
  bool implicit_root = sugar && IsImplicitRoot(f->body);
  bool no_root = scan.has_block && !implicit_root && !IsRootBlock(f->body);

  p.Begin();
  p << "@";
  Tir(p, "prim_func");
  if (!symbol.has_value() || no_root) {
    Printer::List list(p, "(", ")");
    if (!symbol.has_value()) list.Keyword("private") << "True";
    if (no_root) list.Keyword("root_block") << "False";
  }
  p.End();
  size_t begin = p.Position();
  Printer::Scope scope(p);
  p.Begin();
  p << "def " << View(name);
  std::unordered_map<const Object*, const Object*> data_owners;
  std::vector<std::pair<const VarObj*, const BufferObj*>> matched;
  {
    Printer::List params(p, "(", ")");
    for (const Var& param : f->params) {
      auto it = f->buffer_map.find(param);
      const BufferObj* b = it == f->buffer_map.end() ? nullptr : (*it).second.get();
      const Object* owner = b ? data_owners.emplace(b->data.get(), b).first->second : nullptr;
      // A handle that the body uses is more than the name of a buffer.
      bool shared = b && (p.Known(b->data.get()) || scan.seen.count(param.get()));
      if (b && sugar && !shared && IsPlainParameter(param.get(), b, owner) && !p.Known(b)) {
        // A copy: naming another object may move the table of names.
        std::string buffer_name = p.Define(b, b->name);
        params.Item() << buffer_name << ": ";
        Tir(p, "Buffer(");
        PrintTuple(p, b->shape);
        p << ", ";
        p.Quote(b->dtype.str()) << ")";
        p.DefineAs(b->data.get(), buffer_name + ".data");
        continue;
      }
      params.Item() << p.Define(param.get(), param->name_hint) << ": ";
      if (param->IsInstance<SizeVarObj>())
        PrintMakeVar(p, param.get());
      else
        PrintAnnotation(p, param->type_annotation);
      if (b) matched.emplace_back(param.get(), b);
    }
  }
  if (!IsVoidType(f->ret_type)) {
    p << " -> ";
    PrintAnnotation(p, f->ret_type);
  }
  p << ":";
  p.End();
  p.MarkLine(f, nullptr, begin);
  Printer::Indent indent(p);

  Map<String, Any> attrs;
  for (const auto& [key, value] : f->attrs->dict) {
    if (key == tvm::attr::kGlobalSymbol && symbol == name) continue;
    attrs.Set(key, value);
  }
  if (!attrs.empty()) {
    p.Begin();
    Tir(p, "func_attr(");
    p.Value(attrs);
    p << ")";
    p.End();
  }
  if (p.module && scan.has_global) p.NameModule();
  for (auto [param, buffer] : matched) {
    DefineBuffer(p, buffer, "match_buffer", ffi::GetRef<Var>(param));
  }
  DeclareFree(p, f->body);
  if (implicit_root) {
    auto* realize = f->body.as<BlockRealizeObj>();
    p.Begin();
    p << "# with ";
    Tir(p, "block(\"root\"):");
    p.End();
    PrintBlockBody(p, realize->block.get(), realize, true);
  } else {
    PrintStmt(p, f->body);
  }
  p.State<TirState>().SetUndeclared({});
}
void PrintTarget(Printer& p, const TargetObj* n) {
  Tir(p, "target(");
  p.Value(n->Export());
  p << ")";
}
TVM_REGISTER() {
  RegisterLanguage(&kTir);
  DefPrintFunction<PrimFuncObj, &PrintPrimFunc, 10>();
  DefPrint<TargetObj, &PrintTarget>();
}
}  // namespace
}  // namespace tvm::script
