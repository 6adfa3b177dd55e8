// SPDX-License-Identifier: Apache-2.0
// The printer, which knows no language, and what a language of TVMScript registers with it.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tvm/ir/module.h"
#include "tvm/script/printer.h"

namespace tvm::script {

/// A language of TVMScript: `from tvm.script import <module> as <prefix>`.
struct Language {
  std::string_view module, prefix;
  std::string_view keys;                        // a node of type key <keys>Name is <prefix>.Name(…)
  int rank = 100;                               // place among the imports
  String PrinterConfigObj::* option = nullptr;  // the option that gives another prefix
};
void RegisterLanguage(const Language* language);

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

/// Hears which objects get a name, and which lose it at the end of a scope.
struct NameObserver {
  virtual void Named(const Object* object) = 0;
  virtual void Forgotten(const Object* object) = 0;

 protected:
  ~NameObserver() = default;
};

/// Text goes out as the program is walked, once. Each kind of node has one handler.
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
  Printer& In(const Language& language, std::string_view name);
  /// A name of the language of modules: "I.Range".
  Printer& Ir(std::string_view name);
  /// A Python string literal.
  Printer& Quote(std::string_view text);
  void Begin() { out_.append(indent_ * config->indent_spaces, ' '); }
  void End() { out_ += '\n'; }
  size_t Position() const { return out_.size(); }
  /// What was printed last.
  char Last() const { return out_.back(); }
  /// Takes the last character back.
  void Unprint() { out_.pop_back(); }
  /// Raises where the text becomes too long.
  void CheckSize() const;
  /// What `print` prints, as a text of its own.
  template <class F>
  std::string Captured(F&& print) {
    size_t begin = out_.size();
    print();
    std::string text = out_.substr(begin);
    out_.resize(begin);
    return text;
  }
  /// Integer constants of this type are bare where an expression is expected.
  DataType int_dtype;
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

  // ---- nodes ------------------------------------------------------------------------------------
  /// A reference to the metadata section.
  void Metadata(const Any& value);
  /// `T.Foo(a, b)` from the fields of the node. `operand` may print a field in its own way; it says
  /// whether it did.
  using Operand = bool (*)(Printer&, const Any& value, const void* slot);
  void Construct(const Object* node, Operand operand = nullptr);

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
  /// Gives an object a unique name; a name it has stays.
  const std::string& Define(const Object* object, const String& hint);
  /// Makes a text stand for an object: "A.data".
  void DefineAs(const Object* object, std::string text);
  std::vector<NameObserver*> observers;

  // ---- modules ----------------------------------------------------------------------------------
  /// The module being printed: its functions are cls.f.
  const IRModuleObj* module = nullptr;
  std::string module_name = "Module";
  /// The function of the module that a variable names, or null.
  const BaseFuncObj* FunctionOf(const GlobalVarObj* var) const;
  /// `cls = Module`: begins a function that names others.
  void NameModule();
  /// `cls.f`
  Printer& Member(const GlobalVarObj* var);

  // ---- marks ------------------------------------------------------------------------------------
  /// Whether anything is to be underlined or noted.
  bool Marks() const { return !marked_objects_.empty() || !marked_slots_.empty(); }
  /// Marks a part of the text if the object, or the place that holds it, is to be underlined.
  void AddMark(const Object* object, const void* slot, size_t begin, size_t end);
  /// The same for the line that begins at `begin`.
  void MarkLine(const Object* object, const void* slot, size_t begin);

  // ---- state ------------------------------------------------------------------------------------
  /// What a language remembers while it prints; made from the printer on first use.
  template <class S>
  S& State() {
    static const size_t slot = NewStateSlot();
    if (slot >= states_.size()) states_.resize(slot + 1);
    if (!states_[slot]) states_[slot] = std::make_shared<S>(*this);
    return *static_cast<S*>(states_[slot].get());
  }

 private:
  static size_t NewStateSlot();
  void Forget(size_t mark);
  std::string Unique(const Object* object, std::string_view hint);
  void Bind(const Object* object, std::string name);
  int AddNote(const String& note);
  void FindPaths(const Any& root);
  std::string Header() const;

  std::string out_;
  int64_t indent_ = 0;
  Any root_;
  std::vector<const Language*> used_languages_;
  std::vector<std::shared_ptr<void>> states_;

  std::unordered_map<const Object*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_suffix_;
  std::vector<const Object*> log_;  // in the order of definition, for Forget

  std::vector<std::pair<std::string, Array<Any>>> metadata_;
  std::unordered_map<const Object*, std::pair<size_t, size_t>> metadata_index_;
  // To the note that goes with it, or kUnderline.
  std::unordered_map<const Object*, int> marked_objects_;
  std::unordered_map<const void*, int> marked_slots_;
  std::vector<std::string> notes_;
  std::vector<Mark> marks_;
};

// ---- what a language registers ------------------------------------------------------------------
/// What is registered for a class, or for the nearest class it derives from.
template <class Fn>
class TypeTable {
 public:
  void Set(int32_t type_index, Fn fn) { table_[type_index] = fn; }
  Fn Find(int32_t type_index) const {
    if (type_index >= kMaxTypes) return nullptr;
    if (Fn fn = table_[type_index]) return fn;
    const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(type_index);
    for (int32_t depth = info->type_depth - 1; depth > 0; --depth) {
      int32_t parent = info->type_ancestors[depth]->type_index;
      if (parent < kMaxTypes) {
        if (Fn fn = table_[parent]) return fn;
      }
    }
    return nullptr;
  }

 private:
  std::array<std::atomic<Fn>, kMaxTypes> table_{};
};
using PrintHandler = void (*)(Printer&, const Object*);
using PrintTable = TypeTable<PrintHandler>;
PrintTable& InPlaceHandlers();
PrintTable& WholeHandlers();
template <class Obj, void (*fn)(Printer&, const Obj*)>
constexpr PrintHandler kHandler =
    [](Printer& p, const Object* node) { fn(p, static_cast<const Obj*>(node)); };
/// DefPrint<AddObj, &PrintAdd>(): how a kind of node prints inside a line.
template <class Obj, void (*fn)(Printer&, const Obj*)>
void DefPrint() {
  InPlaceHandlers().Set(Obj::RuntimeTypeIndex(), kHandler<Obj, fn>);
}
/// How it prints as a text of its own, where that differs.
template <class Obj, void (*fn)(Printer&, const Obj*)>
void DefPrintWhole() {
  WholeHandlers().Set(Obj::RuntimeTypeIndex(), kHandler<Obj, fn>);
}
/// For what is whole lines, and so cannot stand inside one.
void PrintAsMetadata(Printer& p, const Object* node);

/// How values print that are no objects: types, devices.
using ValueHandler = void (*)(Printer&, const Any&);
void DefPrintValue(int32_t type_index, ValueHandler handler);

/// How a kind of function prints under a name, alone or in a module, and its place there: functions
/// of a lower rank come first.
struct FunctionForm {
  void (*print)(Printer&, const BaseFuncObj*, const String& name);
  int rank;
};
void RegisterFunctionForm(int32_t type_index, const FunctionForm* form);
template <class Obj, void (*fn)(Printer&, const Obj*, const String&), int rank>
void DefPrintFunction() {
  static constexpr FunctionForm form{[](Printer& p, const BaseFuncObj* func, const String& name) {
                                       fn(p, static_cast<const Obj*>(func), name);
                                     },
                                     rank};
  RegisterFunctionForm(Obj::RuntimeTypeIndex(), &form);
}

/// What the builder of programs needs of a node: where its name is kept, so that an assignment can
/// give it one, and its place in the text.
using NameHandler = void (*)(const Object* node, const String& name);
TypeTable<NameHandler>& NameHandlers();
template <class Obj, void (*fn)(const Obj*, const String&)>
void DefName() {
  NameHandlers().Set(Obj::RuntimeTypeIndex(), [](const Object* node, const String& name) {
    fn(static_cast<const Obj*>(node), name);
  });
}
/// Names what has no name yet.
inline void SetIfEmpty(const String& field, const String& name) {
  if (field == "") const_cast<String&>(field) = name;
}
/// The span of a node, or null for one that belongs to no place (a variable), and in `also` what
/// was made together with it.
using SpanHandler = const Optional<Span>* (*)(const Object* node, ObjectRef* also);
TypeTable<SpanHandler>& SpanHandlers();

}  // namespace tvm::script
