// SPDX-License-Identifier: Apache-2.0
// How statements print.
#include "script/tir/range.h"
#include "script/tir/tir.h"
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"

namespace tvm::script {
using namespace tir;

PrintTable& StmtHandlers() {
  static auto* table = new PrintTable();
  return *table;
}
void PrintStmt(Printer& p, const Object* stmt, const void* slot, bool tail) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { PrintStmt(p, stmt, slot, tail); });
  p.CheckSize();
  if (auto* seq = stmt->IsInstance<SeqStmtObj>() ? static_cast<const SeqStmtObj*>(stmt) : nullptr) {
    size_t last = seq->seq.size() - 1, i = 0;
    for (const Any& s : *static_cast<const ffi::ArrayObj*>(seq->seq.get())) {
      PrintStmt(p, s.as<Object>(), &s, tail && i++ == last);
    }
    return;
  }
  auto& state = p.State<TirState>();
  state.FlushBuffers();
  size_t begin = p.Position();
  bool outer = std::exchange(state.tail, tail);
  if (PrintHandler handler = StmtHandlers().Find(stmt->type_index())) {
    handler(p, stmt);
  } else {
    TVM_FFI_THROW(TypeError) << "script: expected a statement with a printed form, got "
                             << stmt->GetTypeKey();
  }
  state.tail = outer;
  p.MarkLine(stmt, slot, begin);
}

namespace {
void Indented(Printer& p, const Object* body, const void* slot) {
  Printer::Scope scope(p);
  Printer::Indent indent(p);
  PrintStmt(p, body, slot, true);
}

// ---- definitions for a body ---------------------------------------------------------------------
void PrintLetStmt(Printer& p, const LetStmtObj* n) {
  const VarObj* var = n->var.get();
  bool plain = StructuralEqual(var->type_annotation, PrimType(n->value.dtype()));
  bool known = p.Known(var);  // one variable defined twice stays one
  if (p.State<TirState>().tail && !known) {
    // x: T.int32 = value
    p.Begin();
    p << p.Define(var, var->name_hint) << ": ";
    PrintAnnotation(p, var->type_annotation);
    p << " = ";
    PrintExpr(p, n->value);
    p.End();
    return PrintStmt(p, n->body);
  }
  PrintScoped(
      p, var, var->name_hint,
      [&] {
        Tir(p, "LetStmt");
        Printer::List list(p, "(", ")");
        PrintExpr(list.Item(), n->value);
        if (known)
          list.Keyword("var") << NameOf(p, var);
        else if (!plain)
          PrintAnnotation(list.Item(), var->type_annotation);
      },
      n->body);
}
void PrintAssert(Printer& p, const AssertStmtObj* n) {
  if (p.State<TirState>().tail) {
    p.Begin();
    p << "assert ";
    PrintExpr(p, n->condition);
    p << ", ";
    PrintExpr(p, n->message);
    p.End();
    return PrintStmt(p, n->body);
  }
  PrintScoped(
      p, nullptr, "",
      [&] {
        Tir(p, "Assert(");
        PrintExpr(p, n->condition);
        p << ", ";
        PrintExpr(p, n->message);
        p << ")";
      },
      n->body);
}
/// The type T.allocate gives its variable.
bool HasAllocatedType(const Var& var, DataType dtype) {
  auto* pointer = var->type_annotation.as<PointerTypeObj>();
  auto* element = pointer ? pointer->element_type.as<PrimTypeObj>() : nullptr;
  return element && element->dtype == dtype;
}
void AllocateArgs(Printer& p, Printer::List& list, const Array<PrimExpr>& extents, DataType dtype) {
  list.Item();
  {
    Printer::List shape(p, "[", "]");
    PrintExprs(shape, extents);
  }
  list.Item().Quote(dtype.str());
}
/// A T.decl_buffer without data allocates what it declares.
bool IsAllocatedBuffer(const AllocateObj* n, const DeclBufferObj* decl) {
  const BufferObj* b = decl->buffer.get();
  return b->data.same_as(n->buffer_var) && b->dtype == n->dtype && IsTrue(n->condition) &&
         n->annotations.empty() && HasAllocatedType(n->buffer_var, n->dtype) &&
         StructuralEqual(b->shape, n->extents);
}
void PrintAllocate(Printer& p, const AllocateObj* n) {
  auto* decl = n->body.as<DeclBufferObj>();
  if (decl && p.config->syntax_sugar && !p.Known(n->buffer_var.get()) &&
      !p.Known(decl->buffer.get()) && IsAllocatedBuffer(n, decl)) {
    return DeclareBuffer(p, decl, true);
  }
  const String& scope = n->buffer_var->type_annotation.as<PointerTypeObj>()->storage_scope;
  PrintScoped(
      p, n->buffer_var.get(), n->buffer_var->name_hint,
      [&] {
        Tir(p, "allocate");
        Printer::List list(p, "(", ")");
        AllocateArgs(p, list, n->extents, n->dtype);
        list.Item().Quote(View(scope));
        if (!IsTrue(n->condition)) PrintExpr(list.Keyword("condition"), n->condition);
        if (!n->annotations.empty()) list.Keyword("annotations").Value(n->annotations);
        if (!HasAllocatedType(n->buffer_var, n->dtype)) {
          list.Keyword("type_annotation").Value(n->buffer_var->type_annotation);
        }
      },
      n->body);
}
template <class T>
Any NumberAt(const void* data, int64_t i) {
  T value = static_cast<const T*>(data)[i];
  if constexpr (std::is_same_v<T, uint64_t>)
    return static_cast<int64_t>(value);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value);
  else
    return value;
}
/// The elements of a tensor as a list; types that Python has no number for as their bits: then
/// false.
bool TensorItems(Printer& p, const ffi::Tensor& tensor) {
  DataType t = tensor.dtype();
  bool number = t.is_integer() || t.is_bool() || (t.is_ieee_float() && t.bits() > 16);
  using Get = Any (*)(const void*, int64_t);
  Get get = nullptr;
  if (t.is_ieee_float() && t.bits() == 32)
    get = &NumberAt<float>;
  else if (t.is_ieee_float() && t.bits() == 64)
    get = &NumberAt<double>;
  else if (t.is_bool())
    get = &NumberAt<bool>;
  else if (t.bits() == 8)
    get = t.is_int() ? &NumberAt<int8_t> : &NumberAt<uint8_t>;
  else if (t.bits() == 16)
    get = t.is_int() ? &NumberAt<int16_t> : &NumberAt<uint16_t>;
  else if (t.bits() == 32)
    get = t.is_int() ? &NumberAt<int32_t> : &NumberAt<uint32_t>;
  else if (t.bits() == 64)
    get = &NumberAt<int64_t>;
  if (!get || !t.is_scalar() || tensor.device().device_type != kDLCPU || !tensor.IsContiguous()) {
    TVM_FFI_THROW(TypeError)
        << "script: expected constant data in the memory of the CPU, of a type "
           "of whole bytes, got "
        << t;
  }
  Printer::List list(p, "[", "]");
  for (int64_t i = 0; i < tensor.numel(); ++i) list.Item().Value(get(tensor.data_ptr(), i));
  return number && !(t.is_uint() && t.bits() == 64);
}
void PrintAllocateConst(Printer& p, const AllocateConstObj* n) {
  PrintScoped(
      p, n->buffer_var.get(), n->buffer_var->name_hint,
      [&] {
        Tir(p, "allocate_const");
        Printer::List list(p, "(", ")");
        list.Item();
        bool bits = n->data.has_value() && !TensorItems(p, n->data.value());
        if (!n->data.has_value()) p << "None";
        list.Item().Quote(n->dtype.str());
        list.Item();
        {
          Printer::List shape(p, "[", "]");
          PrintExprs(shape, n->extents);
        }
        if (!n->annotations.empty()) list.Keyword("annotations").Value(n->annotations);
        if (bits) list.Keyword("bits") << "True";
        if (n->irmod_storage_idx.has_value())
          list.Keyword("irmod_storage_idx").Value(n->irmod_storage_idx.value());
        if (!HasAllocatedType(n->buffer_var, n->dtype)) {
          list.Keyword("type_annotation").Value(n->buffer_var->type_annotation);
        }
      },
      n->body);
}
void PrintDeclBuffer(Printer& p, const DeclBufferObj* n) { DeclareBuffer(p, n, false); }
void PrintBufferRealize(Printer& p, const BufferRealizeObj* n) {
  if (!p.Known(n->buffer.get())) DefineBuffer(p, n->buffer.get(), "Buffer");
  PrintScoped(
      p, nullptr, "",
      [&] {
        Tir(p, "realize");
        Printer::List list(p, "(", ")");
        list.Item();
        PrintRegion(p, BufferRegion(n->buffer, n->bounds).get());
        list.Item().Quote(View(n->buffer.scope()));
        if (!IsTrue(n->condition)) PrintExpr(list.Keyword("condition"), n->condition);
      },
      n->body);
}
void PrintAttrStmt(Printer& p, const AttrStmtObj* n) {
  if (auto* iter = n->node.as<IterVarObj>()) {
    const VarObj* var = iter->var.get();
    Range dom = iter->dom.value_or(Range());
    if (n->attr_key == tir::attr::kThreadExtent && iter->iter_type == IterVarType::kThreadIndex &&
        dom.defined() && IsZero(dom->min) && !p.Known(var) && var->dtype == n->value.dtype() &&
        dom->min.dtype() == n->value.dtype() && StructuralEqual(dom->extent, n->value)) {
      return PrintScoped(
          p, var, var->name_hint,
          [&] {
            Tir(p, "launch_thread(").Quote(View(iter->thread_tag)) << ", ";
            PrintExpr(p, n->value);
            p << ")";
          },
          n->body);
    }
    if (!p.Known(var)) DefineVar(p, var);
  }
  PrintScoped(
      p, nullptr, "",
      [&] {
        Tir(p, "attr");
        Printer::List list(p, "(", ")");
        list.Item().Value(n->node);
        list.Item().Quote(View(n->attr_key));
        PrintExpr(list.Item(), n->value);
      },
      n->body);
}

// ---- loops and branches -------------------------------------------------------------------------
bool IsGridLoop(const ForObj* n) {
  return n->kind == ForKind::kSerial && IsZero(n->min) && !n->step.has_value() &&
         n->annotations.empty() && !n->thread_binding.has_value();
}
bool Uses(const PrimExpr& e, const std::vector<const ForObj*>& loops) {
  struct Finder : Visitor<Finder, VarObj> {
    const std::vector<const ForObj*>* loops;
    bool found = false;
    void Visit(const VarObj* var) {
      for (const ForObj* loop : *loops) found |= loop->loop_var.get() == var;
    }
  } finder;
  finder.loops = &loops;
  finder(e);
  return finder.found;
}
void LoopHeader(Printer& p, const ForObj* n) {
  constexpr const char* kinds[] = {"serial", "parallel", "vectorized", "unroll", "thread_binding"};
  const IterVarObj* thread = nullptr;
  if (n->thread_binding.has_value()) {
    thread = n->thread_binding.value().get();
    if (thread->dom.has_value() && !p.Known(thread->var.get())) DefineVar(p, thread->var.get());
  }
  bool thread_loop = n->kind == ForKind::kThreadBinding;
  p.Begin();
  p << "for " << p.Define(n->loop_var.get(), n->loop_var->name_hint) << " in ";
  bool range = n->kind == ForKind::kSerial && n->annotations.empty() && !thread;
  if (range)
    p << "range";
  else
    Tir(p, kinds[static_cast<int>(n->kind)]);
  Printer::List list(p, "(", ")");
  if (!IsZero(n->min) || (range && n->step.has_value())) PrintExpr(list.Item(), n->min);
  PrintExpr(list.Item(), EndOf(n->min, n->extent));
  if (thread) {
    list.Keyword("thread");
    bool plain = thread_loop && !thread->dom.has_value() &&
                 thread->iter_type == IterVarType::kThreadIndex &&
                 thread->var->dtype == n->loop_var->dtype;
    if (plain)
      p.Quote(View(thread->thread_tag));
    else
      p.Node(thread);
  }
  if (!n->annotations.empty()) list.Keyword("annotations").Value(n->annotations);
  if (n->step.has_value()) {
    if (range)
      list.Item();
    else
      list.Keyword("step");
    PrintExpr(p, n->step.value());
  }
}
void PrintFor(Printer& p, const ForObj* n) {
  size_t begin = p.Position();
  std::vector<const ForObj*> nest{n};
  std::vector<const void*> slots{nullptr};
  if (p.config->syntax_sugar && IsGridLoop(n)) {
    while (auto* inner = nest.back()->body.as<ForObj>()) {
      if (!IsGridLoop(inner) || Uses(inner->extent, nest) || p.Known(inner->loop_var.get())) break;
      slots.push_back(&nest.back()->body);
      nest.push_back(inner);
    }
  }
  Printer::Scope scope(p);
  if (nest.size() == 1) {
    LoopHeader(p, n);
  } else {
    p.Begin();
    p << "for ";
    {
      Printer::List names(p, "", "");
      for (const ForObj* loop : nest) {
        names.Item() << p.Define(loop->loop_var.get(), loop->loop_var->name_hint);
      }
    }
    p << " in ";
    Tir(p, "grid");
    Printer::List list(p, "(", ")");
    for (const ForObj* loop : nest) PrintExpr(list.Item(), loop->extent);
  }
  p << ":";
  p.End();
  for (size_t i = 1; i < nest.size(); ++i) p.MarkLine(nest[i], slots[i], begin);
  Printer::Indent indent(p);
  for (const ForObj* loop : nest) p.State<TirState>().loops[loop->loop_var.get()] = loop;
  PrintStmt(p, nest.back()->body);
  for (const ForObj* loop : nest) p.State<TirState>().loops.erase(loop->loop_var.get());
}
void PrintWhile(Printer& p, const WhileObj* n) {
  p.Begin();
  p << "while ";
  PrintExpr(p, n->condition);
  p << ":";
  p.End();
  Indented(p, n->body.get(), &n->body);
}
void PrintIf(Printer& p, const IfThenElseObj* n) {
  const char* keyword = "if ";
  for (;;) {
    p.Begin();
    p << keyword;
    PrintExpr(p, n->condition);
    p << ":";
    p.End();
    Indented(p, n->then_case.get(), &n->then_case);
    if (!n->else_case.has_value()) return;
    Stmt other = n->else_case.value();
    auto* next = other.as<IfThenElseObj>();
    if (!next) {
      p.Begin();
      p << "else:";
      p.End();
      return Indented(p, other.get(), &n->else_case);
    }
    n = next;
    keyword = "elif ";
  }
}

// ---- leaves -------------------------------------------------------------------------------------
void PrintStore(Printer& p, const BufferStoreObj* n) {
  p.Begin();
  if (n->predicate.has_value()) {
    p.Node(n->buffer.get(), &n->buffer);
    p << ".vstore(";
    {
      Printer::List list(p, "[", "]");
      PrintExprs(list, n->indices);
    }
    p << ", ";
    PrintExpr(p, n->value);
    p << ", predicate=";
    PrintExpr(p, n->predicate.value());
    p << ")";
  } else {
    PrintAccess(p, n->buffer, n->indices, {});
    p << " = ";
    PrintExpr(p, n->value);
  }
  p.End();
}
void PrintEvaluate(Printer& p, const EvaluateObj* n) {
  p.Begin();
  auto* call = n->value.as<CallObj>();
  bool plain = call && call->annotations.empty();
  if (plain && call->Is(builtin::ret()) && call->args.size() == 1 &&
      call->args[0].dtype() == call->dtype) {
    p << "return ";
    PrintExpr(p, call->args[0]);
  } else if (plain && call->Is(builtin::ret()) && call->args.empty() && call->dtype.is_void()) {
    p << "return";
  } else if (plain && call->args.empty() && call->dtype == DataType::Int(32) &&
             (call->Is(builtin::break_loop()) || call->Is(builtin::continue_loop()))) {
    p << (call->Is(builtin::break_loop()) ? "break" : "continue");
  } else if (call) {
    PrintExpr(p, n->value);
  } else {
    Tir(p, "evaluate(");
    PrintExpr(p, n->value);
    p << ")";
  }
  p.End();
}

void PrintWholeStmt(Printer& p, const StmtObj* n) {
  if (p.config->verbose_expr) DeclareFree(p, ffi::GetRef<Stmt>(n));
  PrintStmt(p, n, nullptr, true);
}
void PrintStmtInPlace(Printer& p, const StmtObj* n) { PrintAsMetadata(p, n); }

TVM_REGISTER() {
  DefPrint<StmtObj, &PrintStmtInPlace>();
  DefPrintWhole<StmtObj, &PrintWholeStmt>();
  DefPrintStmt<LetStmtObj, &PrintLetStmt>();
  DefPrintStmt<AssertStmtObj, &PrintAssert>();
  DefPrintStmt<AllocateObj, &PrintAllocate>();
  DefPrintStmt<AllocateConstObj, &PrintAllocateConst>();
  DefPrintStmt<DeclBufferObj, &PrintDeclBuffer>();
  DefPrintStmt<BufferRealizeObj, &PrintBufferRealize>();
  DefPrintStmt<AttrStmtObj, &PrintAttrStmt>();
  DefPrintStmt<ForObj, &PrintFor>();
  DefPrintStmt<WhileObj, &PrintWhile>();
  DefPrintStmt<IfThenElseObj, &PrintIf>();
  DefPrintStmt<BufferStoreObj, &PrintStore>();
  DefPrintStmt<EvaluateObj, &PrintEvaluate>();
}
}  // namespace
}  // namespace tvm::script
