// SPDX-License-Identifier: Apache-2.0
// How TIR prints: what its handlers share. Other languages print their scalar expressions with it.
#pragma once
#include <unordered_map>
#include <vector>

#include "tvm/script/language.h"
#include "tvm/tir/function.h"

namespace tvm::script {

/// `T.name`
extern const Language kTir;
inline Printer& Tir(Printer& p, std::string_view name) { return p.In(kTir, name); }

// ---- expressions --------------------------------------------------------------------------------
/// Where the parser expects an expression: int32 constants and texts are bare. `slot` is where the
/// reference is stored, which is how access paths are recognised.
void PrintExpr(Printer& p, const Object* e, const void* slot, int min_precedence = kLowest);
inline void PrintExpr(Printer& p, const PrimExpr& e, int min_precedence = kLowest) {
  PrintExpr(p, e.get(), &e, min_precedence);
}
void PrintExprs(Printer::List& list, const Array<PrimExpr>& exprs);
void PrintTuple(Printer& p, const Array<PrimExpr>& exprs);
void PrintRegion(Printer& p, const tir::BufferRegionObj* region);
/// buffer[indices] with ranges and ramps as slices.
void PrintAccess(Printer& p, const ObjectRef& buffer, const Array<PrimExpr>& indices,
                 const Optional<PrimExpr>& predicate);

// ---- variables and buffers ----------------------------------------------------------------------
inline const std::string& NameOf(Printer& p, const tir::VarObj* var) {
  return p.Name(var, var->name_hint);
}
/// A type where an annotation is expected: T.int32.
void PrintAnnotation(Printer& p, const Type& type);
/// T.int32(), T.handle("float32"): makes a variable of that type.
void PrintMakeVar(Printer& p, const tir::VarObj* var);
/// x = T.int32()
void DefineVar(Printer& p, const tir::VarObj* var);
/// A = T.match_buffer(a, …) and its relatives: what differs from a default buffer as keywords.
void DefineBuffer(Printer& p, const tir::BufferObj* buffer, std::string_view function,
                  const ObjectRef& source = ObjectRef());
/// T.decl_buffer for the body of the statement; without data it allocates, too.
void DeclareBuffer(Printer& p, const tir::DeclBufferObj* stmt, bool allocates);
/// Declares the variables and buffers that `body` uses and nothing defines. Buffers of memory that
/// is defined in it follow once their variables are in scope.
void DeclareFree(Printer& p, const ObjectRef& body);

// ---- statements ---------------------------------------------------------------------------------
/// DefPrintStmt<ForObj, &PrintFor>(): how a kind of statement prints, as whole lines.
PrintTable& StmtHandlers();
template <class Obj, void (*fn)(Printer&, const Obj*)>
void DefPrintStmt() {
  StmtHandlers().Set(Obj::RuntimeTypeIndex(), kHandler<Obj, fn>);
}
/// A statement; `tail` says that nothing follows it in its Python block, so that what it defines
/// for its body needs no `with`.
void PrintStmt(Printer& p, const Object* stmt, const void* slot, bool tail);
inline void PrintStmt(Printer& p, const tir::Stmt& stmt, bool tail = true) {
  PrintStmt(p, stmt.get(), &stmt, tail);
}
void PrintBlockBody(Printer& p, const tir::BlockObj* block, const tir::BlockRealizeObj* realize,
                    bool root);

/// What printing TIR has to remember.
class TirState : NameObserver {
 public:
  explicit TirState(Printer& p) : p_(p) { p.observers.push_back(this); }
  /// Buffers that no statement declares; they wait for the variables they need.
  void SetUndeclared(const std::vector<const tir::BufferObj*>& buffers);
  /// Declares those whose variables are in scope by now.
  void FlushBuffers();
  /// Whether the statement being printed is in tail position.
  bool tail = true;
  /// Loops in scope, for T.axis.remap.
  std::unordered_map<const Object*, const tir::ForObj*> loops;

 private:
  struct UndeclaredBuffer {
    const tir::BufferObj* buffer;
    int missing;  // variables it needs that are not in scope
  };
  void Named(const Object* object) override;
  void Forgotten(const Object* object) override;

  Printer& p_;
  std::vector<UndeclaredBuffer> undeclared_;
  std::unordered_map<const Object*, std::vector<size_t>> undeclared_by_var_;
  std::vector<size_t> ready_;
};

/// `call` prints what defines something for `body`: as `name = call`, or in a `with`.
template <class F>
void PrintScoped(Printer& p, const Object* defined, const String& hint, F&& call,
                 const tir::Stmt& body) {
  if (p.State<TirState>().tail) {
    p.Begin();
    if (defined) p << p.Define(defined, hint) << " = ";
    call();
    p.End();
    return PrintStmt(p, body);
  }
  Printer::Scope scope(p);
  if (defined) p.Define(defined, hint);
  p.Begin();
  p << "with ";
  call();
  if (defined) p << " as " << p.Define(defined, hint);
  p << ":";
  p.End();
  Printer::Indent indent(p);
  PrintStmt(p, body);
}

}  // namespace tvm::script
