// SPDX-License-Identifier: Apache-2.0
// The printer: text goes out as the program is walked, once. Each kind of node has one handler.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tvm/script/printer.h"
#include "tvm/tir/function.h"

namespace tvm::script {

/// Python's operator precedence: higher binds tighter.
enum Precedence : int { kLowest = 0, kOr, kAnd, kNot, kCompare, kSum, kProduct, kAtom };

/// A part of the text that is underlined, or has a note.
struct Mark {
  static constexpr int kUnderline = -1;
  size_t begin, end;
  int note = kUnderline;
};
/// The text with `^^^` below what is marked, notes at the ends of lines, and line numbers. With a
/// context that is not negative, only so many lines round the marks.
std::string Decorate(const std::string& text, const std::vector<Mark>& marks,
                     const std::vector<std::string>& notes, bool line_numbers, int64_t context);

class Printer {
 public:
  Printer(const PrinterConfigObj* config, const Any& root);

  // ---- entry ------------------------------------------------------------------------------------
  /// The whole text of the root: imports, metadata, program, underlines.
  std::string Run();
  /// Any value where Python's own literals stand for themselves: attributes, keywords.
  void Value(const Any& value);
  /// A node by its handler; one without a handler as a constructor call or as metadata.
  void Node(const Object* node, const void* slot = nullptr);

  // ---- text -------------------------------------------------------------------------------------
  const PrinterConfigObj* const config;
  Printer& operator<<(std::string_view text) {
    out_ += text;
    return *this;
  }
  Printer& operator<<(int64_t value) { return *this << std::to_string(value); }
  Printer& operator<<(DataType type) { return *this << type.str(); }
  /// "T.exp" and the like; remembers that the import is needed.
  Printer& Tir(std::string_view name);
  Printer& Ir(std::string_view name);
  /// A Python string literal.
  Printer& Quote(std::string_view text);
  void Begin() { out_.append(indent_ * config->indent_spaces, ' '); }
  void End() { out_ += '\n'; }
  /// Items separated by commas: `List list(p, "(", ")"); list.Item(); …`.
  class List {
   public:
    List(Printer& p, std::string_view open, std::string_view close, bool tuple = false)
        : p_(p), close_(close), tuple_(tuple) {
      p << open;
    }
    ~List() { p_ << (tuple_ && count_ == 1 ? "," : "") << close_; }
    Printer& Item() { return count_++ ? p_ << ", " : p_; }
    Printer& Keyword(std::string_view name) { return Item() << name << "="; }

   private:
    Printer& p_;
    std::string_view close_;
    bool tuple_;
    int count_ = 0;
  };

  // ---- expressions ------------------------------------------------------------------------------
  /// Where the parser expects an expression: int32 constants and texts are bare. `slot` is where
  /// the reference is stored, which is how access paths are recognised.
  void Expr(const PrimExpr& e, int min_precedence = kLowest) { Expr(e.get(), &e, min_precedence); }
  void Expr(const Object* e, const void* slot, int min_precedence = kLowest);
  void Exprs(List& list, const Array<PrimExpr>& exprs);
  void Tuple(const Array<PrimExpr>& exprs);
  /// buffer[indices] with ranges and ramps as slices.
  void Access(const ObjectRef& buffer, const Array<PrimExpr>& indices,
              const Optional<PrimExpr>& predicate);
  void Region(const tir::BufferRegionObj* region);
  /// A reference to the metadata section.
  void Metadata(const Any& value);
  /// `T.Foo(a, b)` from the fields of the node.
  void Construct(const Object* node);
  /// A type where an annotation is expected: T.int32.
  void Annotation(const Type& type);
  /// T.int32(), T.handle("float32"): makes a variable of that type.
  void MakeVar(const tir::VarObj* var);

  // ---- names ------------------------------------------------------------------------------------
  /// Names given inside a scope are free again after it.
  class Scope {
   public:
    explicit Scope(Printer& p) : p_(p), mark_(p.log_.size()) {}
    ~Scope() { p_.Forget(mark_); }

   private:
    Printer& p_;
    size_t mark_;
  };
  struct Indent {
    explicit Indent(Printer& p) : p(p) { ++p.indent_; }
    ~Indent() { --p.indent_; }
    Printer& p;
  };
  bool Known(const Object* object) const { return names_.count(object); }
  /// The name of a variable or buffer; one that was never defined gets one now.
  const std::string& Name(const Object* object, const String& hint);
  const std::string& Name(const tir::VarObj* var) { return Name(var, var->name_hint); }
  /// Gives an object a unique name; a name it has stays.
  const std::string& Define(const Object* object, const String& hint);
  /// Makes a text stand for an object: "A.data".
  void DefineAs(const Object* object, std::string text);

  // ---- statements -------------------------------------------------------------------------------
  /// A statement; `tail` says that nothing follows it in its Python block, so that what it defines
  /// for its body needs no `with`.
  void Stmt(const tir::Stmt& stmt, bool tail = true) { Stmt(stmt.get(), &stmt, tail); }
  void Stmt(const Object* stmt, const void* slot, bool tail);
  /// Whether the statement being printed is in tail position.
  bool tail() const { return tail_; }
  /// `call` is the text of what defines something for `body`: as `name = call`, or in a `with`.
  template <class F>
  void Scoped(const Object* defined, const String& hint, F&& call, const tir::Stmt& body);
  /// Marks the line that begins at `begin` if the object is to be underlined.
  void MarkLine(const Object* object, const void* slot, size_t begin);
  size_t Position() const { return out_.size(); }

  /// Declarations of buffers that no statement declares and whose variables are in scope by now.
  void FlushBuffers();

  // ---- buffers and functions --------------------------------------------------------------------
  /// A = T.match_buffer(a, …) and its relatives: what differs from a default buffer as keywords.
  void DefineBuffer(const tir::BufferObj* buffer, std::string_view function,
                    const ObjectRef& source = ObjectRef());
  void BufferArgs(List& list, const tir::BufferObj* buffer, bool with_data);
  /// `x = T.int32()` for variables of the buffer that nothing has defined.
  void DefineVarsOf(const tir::BufferObj* buffer);
  /// T.decl_buffer for the body of the statement; without data it allocates, too.
  void DeclareBuffer(const tir::DeclBufferObj* stmt, bool allocates);
  void DefineVar(const tir::VarObj* var);
  void BlockBody(const tir::BlockObj* block, const tir::BlockRealizeObj* realize, bool root);
  void Function(const tir::PrimFuncObj* func, const String& name);
  /// Declares the variables and buffers that `body` uses and nothing defines. Buffers of memory
  /// that is defined in it follow once their variables are in scope.
  void DeclareFree(const ObjectRef& body);
  /// The module being printed: calls of its functions are cls.f(…).
  const IRModuleObj* module = nullptr;
  std::string module_name = "Module";
  /// Loops in scope, for T.axis.remap.
  std::unordered_map<const Object*, const tir::ForObj*> loops;

 private:
  struct UndeclaredBuffer {
    const tir::BufferObj* buffer;
    int missing;  // variables it needs that are not in scope
  };
  void Forget(size_t mark);
  void SetUndeclared(const std::vector<const tir::BufferObj*>& buffers);
  std::string Unique(const Object* object, std::string_view hint);
  void Bind(const Object* object, std::string name);
  void CheckSize() const;
  int AddNote(const String& note);
  void FindPaths(const Any& root);
  void AddMark(const Object* object, const void* slot, size_t begin, size_t end);
  bool Marks() const { return !marked_objects_.empty() || !marked_slots_.empty(); }
  std::string Header() const;

  std::string out_;
  int64_t indent_ = 0;
  bool tail_ = true, uses_tir_ = false, uses_ir_ = false;
  Any root_;

  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_suffix_;
  std::vector<const Object*> log_;  // in the order of definition, for Forget

  // Buffers that no statement declares, by the variables they need.
  std::vector<UndeclaredBuffer> undeclared_;
  std::unordered_map<const Object*, std::vector<size_t>> undeclared_by_var_;
  std::vector<size_t> ready_;

  std::vector<std::pair<std::string, Array<Any>>> metadata_;
  std::unordered_map<const Object*, std::pair<size_t, size_t>> metadata_index_;
  // To the note that goes with it, or kUnderline.
  std::unordered_map<const Object*, int> marked_objects_;
  std::unordered_map<const void*, int> marked_slots_;
  std::vector<std::string> notes_;
  std::vector<Mark> marks_;
};

using PrintHandler = void (*)(Printer&, const Object*);
void RegisterPrintHandler(int32_t type_index, PrintHandler handler);
PrintHandler FindPrintHandler(int32_t type_index);
/// DefPrint<ForObj, &PrintFor>(): how a kind of node prints. Expressions and values print inline,
/// statements whole lines.
template <class Obj, void (*fn)(Printer&, const Obj*)>
void DefPrint() {
  RegisterPrintHandler(Obj::RuntimeTypeIndex(), [](Printer& p, const Object* node) {
    fn(p, static_cast<const Obj*>(node));
  });
}

template <class F>
void Printer::Scoped(const Object* defined, const String& hint, F&& call, const tir::Stmt& body) {
  if (tail_) {
    Begin();
    if (defined) *this << Define(defined, hint) << " = ";
    call();
    End();
    return Stmt(body);
  }
  Scope scope(*this);
  if (defined) Define(defined, hint);
  Begin();
  *this << "with ";
  call();
  if (defined) *this << " as " << Define(defined, hint);
  *this << ":";
  End();
  Indent indent(*this);
  Stmt(body);
}

}  // namespace tvm::script
