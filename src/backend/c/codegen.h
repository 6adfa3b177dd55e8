// SPDX-License-Identifier: Apache-2.0
// TIR -> C. A ModuleText makes one C file of lowered functions, a FunctionText one function of it.
// What arrives has been through the TIR pipeline: flat buffers, packed entries, no blocks; float16
// is computed in float32, and vectors have become loops (scalarize.cc).
// - A value has the C type of its TIR type, bool is one byte in memory, float16 is its bits.
// - A function gives 0, or -1 with the error of tvm-ffi set; callers pass -1 on.
// - Index arithmetic (loop and shape variables) is written plainly, data arithmetic wraps: it is
//   done on unsigned numbers, since C leaves the overflow of signed ones undefined.
// - The text is C99 and C++ at once, for compilers that take every file for C++.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/host_function.h"

namespace tvm::codegen::c {

/// Error for a construct that earlier passes should have lowered or that C code cannot express.
[[noreturn]] void Unsupported(const std::string& what, const Optional<Span>& span = {});

/// The function with loops over lanes in the place of vectors.
PrimFunc Scalarize(PrimFunc func);

/// How tightly the outermost operator of an expression binds.
enum Level { kChoice, kOr, kAnd, kEqual, kCompare, kBits, kSum, kProduct, kUnary, kPrimary };

/// A C expression.
struct Value {
  std::string text;
  Level level = kPrimary;
  bool index = false;        ///< Computed from loop and shape variables alone.
  bool nonnegative = false;  ///< Known of signed numbers.
  bool reads = false;        ///< Depends on memory: must be evaluated before later effects.
  bool literal = false;

  /// The text as an operand of an operator of this level.
  std::string At(Level least) const { return level < least ? "(" + text + ")" : text; }
};

// ---- types ----
std::string TypeName(DataType t);    ///< In expressions: bool, int32_t, float, void*.
std::string MemoryName(DataType t);  ///< In memory: bool and what is below a byte are uint8_t.
std::string ShortName(DataType t);   ///< In names of helpers: i32, u8, f16.
/// Bits of the C type that holds an integer type.
int HolderBits(DataType t);
bool IsPacked(DataType t);  ///< Elements below a byte.
/// A C string literal.
std::string Quoted(std::string_view text);
/// A constant of a numeric type.
Value Number(DataType t, int64_t value);
Value Number(DataType t, double value);
/// The call in `if call != 0: return -1`, or null.
const CallObj* StatusCheck(const IfThenElseObj* op);
/// The name with what C does not allow in it replaced.
std::string Identifier(std::string_view name);

class ModuleText {
 public:
  explicit ModuleText(const FunctionList& functions);
  /// The C file, and its header.
  std::string Source() const;
  std::string Header() const;

  /// The name of a helper function (helpers.cc), which is then part of the file.
  std::string Helper(const std::string& name, DataType t = {}, DataType from = {});
  /// Declares a C function; NotImplementedError when it is used with other types elsewhere.
  void DeclareExtern(const std::string& name, const std::string& result,
                     const std::vector<std::string>& params);
  /// Text at the top level, before the function that is being written.
  void AddTop(const std::string& text) { body_ += text; }
  /// The static variable for a function that is looked up by name.
  std::string PackedSlot(const std::string& name);
  std::string UniqueGlobal(const std::string& name);

  const FunctionInfo* Find(const std::string& name) const;
  /// Whether a call gives the status of a function of the module, and nothing else.
  bool IsStatus(const CallObj* call) const;
  std::string SymbolOf(const FunctionInfo& info) const;
  std::string Prototype(const FunctionInfo& info, const std::vector<std::string>& params) const;
  /// Names that local variables must not hide.
  const std::unordered_set<std::string>& reserved() const { return reserved_; }

 private:
  FunctionList functions_;
  std::unordered_map<std::string, size_t> by_name_;
  std::unordered_set<std::string> reserved_, globals_;
  std::set<std::string> helpers_, externs_;
  std::map<std::string, std::string> extern_types_, slots_;
  std::string helper_text_, extern_text_, body_;
};

class FunctionText
    : public Visitor<FunctionText, PrimExprObj, VarObj, IntImmObj, FloatImmObj, StringImmObj,
                     CastObj, AddObj, SubObj, MulObj, DivObj, ModObj, FloorDivObj, FloorModObj,
                     MinObj, MaxObj, EQObj, NEObj, LTObj, LEObj, GTObj, GEObj, AndObj, OrObj,
                     NotObj, SelectObj, BufferLoadObj, CallObj, LetObj, StmtObj, LetStmtObj,
                     AssertStmtObj, ForObj, WhileObj, BufferStoreObj, AllocateObj, AllocateConstObj,
                     DeclBufferObj, AttrStmtObj, SeqStmtObj, IfThenElseObj, EvaluateObj> {
 public:
  FunctionText(ModuleText& module, const FunctionInfo& info);
  /// The definition of the function.
  std::string Define();

  template <class T>
  void Visit(const T* node) {
    if constexpr (std::is_base_of_v<PrimExprObj, T>) {
      value_ = Emit(node);
    } else {
      Emit(node);
    }
  }

 private:
  /// The value of an expression; a part that is used several times in it is computed once.
  Value Gen(const PrimExpr& e);
  void Gen(const Stmt& s) { (*this)(s); }
  /// The operands in order: one that reads memory is kept in a variable when a later one has
  /// effects.
  std::vector<Value> GenAll(const std::vector<PrimExpr>& operands);

  // ---- expressions (codegen_expr.cc, codegen_call.cc, codegen_packed.cc) ----
  Value Emit(const PrimExprObj*);
  Value Emit(const VarObj*);
  Value Emit(const IntImmObj*);
  Value Emit(const FloatImmObj*);
  Value Emit(const StringImmObj*);
  Value Emit(const CastObj*);
#define DECLARE(Name, ...) Value Emit(const Name##Obj*)
  TVM_BINARY_NODES(DECLARE);
#undef DECLARE
  Value Emit(const NotObj*);
  Value Emit(const SelectObj*);
  Value Emit(const BufferLoadObj*);
  Value Emit(const CallObj*);
  Value Emit(const LetObj*);
  Value Arithmetic(const BinaryOpFields* op, const char* symbol, Level level);
  Value Compare(const BinaryOpFields* op, const char* symbol, Level level);
  Value MinMax(const BinaryOpFields* op, const char* name);
  Value Divide(const BinaryOpFields* op, const char* name, bool floor, bool remainder);
  Value Logic(const BinaryOpFields* op, const char* symbol, Level level);
  Value Choose(const PrimExpr& cond, const PrimExpr& yes, const PrimExpr& no);
  Value Convert(const Value& v, DataType from, DataType to);
  /// `v` cut to the width of an integer type.
  Value Wrap(const Value& v, DataType t);
  Value Bitwise(const CallObj* op, const char* symbol);
  Value Shift(const CallObj* op, bool left);
  /// A helper or C function applied to operands.
  static Value Apply(const std::string& function, const std::vector<Value>& args);
  Value UnaryMath(const CallObj* op, const char* function);
  Value CallExtern(const CallObj* op, bool pure);
  Value CallFunction(const CallObj* op, const GlobalVarObj* var);
  Value CallPackedLowered(const CallObj* op, bool by_symbol);
  Value StructField(const CallObj* op, bool set);
  Value StackAlloca(const CallObj* op);
  Value AtomicAdd(const CallObj* op);
  Value Jump(const CallObj* op, const char* statement);
  Value Return(const CallObj* op);
  /// Leaves with an error: (class, printf format, values).
  void Raise(const std::string& cls, const std::string& format, const std::vector<Value>& values,
             const std::vector<DataType>& types);

  // ---- memory ----
  /// An element as something that can be read and assigned, or its address.
  struct Place {
    std::string lvalue;   ///< Empty where memory must be accessed by helpers.
    std::string address;  ///< As a byte pointer, or the array of packed elements.
    std::string index;    ///< Of packed elements.
  };
  Place ElementOf(const Buffer& buffer, const Value& index);
  Value AddressOf(const BufferLoadObj* load);

  // ---- statements (codegen_stmt.cc) ----
  void Emit(const StmtObj*);
  void Emit(const LetStmtObj*);
  void Emit(const AssertStmtObj*);
  void Emit(const ForObj*);
  void Emit(const WhileObj*);
  void Emit(const BufferStoreObj*);
  void Emit(const AllocateObj*);
  void Emit(const AllocateConstObj*);
  void Emit(const DeclBufferObj*);
  void Emit(const AttrStmtObj*);
  void Emit(const SeqStmtObj*);
  void Emit(const IfThenElseObj*);
  void Emit(const EvaluateObj*);
  void EmitParallel(const ForObj* op);
  void EmitLoop(const ForObj* op, const Value& begin, const std::string& end,
                const std::string& step);

  // ---- text ----
  void Line(const std::string& text);
  /// Runs `write` one level deeper and gives its text instead of adding it.
  template <class F>
  std::string Capture(F&& write) {
    std::string outer = std::exchange(code_, {});
    size_t kept = kept_order_.size(), texts = text_order_.size();
    ++indent_;
    write();
    --indent_;
    Forget(kept), ForgetTexts(texts);
    return std::exchange(code_, std::move(outer));
  }
  /// Drops what was kept since there were `count` values: the block that holds them ends.
  void Forget(size_t count);
  void ForgetTexts(size_t count);
  /// `head { body }`; gives whether the end of the body is never reached.
  bool Block(const std::string& head, const Stmt& body);
  /// A new name like `hint`, which no other variable of the function has.
  std::string Name(std::string_view hint);
  /// The value in a variable: a new one, unless one holds the same text already.
  Value Keep(const Value& v, DataType t, const char* hint = "value", bool fresh = false);
  /// The C name of a TIR variable from here on.
  std::string Bind(const Var& var, bool index = false, bool nonnegative = false);
  std::string PointerType(const Var& var) const;
  /// Leaves when `status` is not 0.
  void Propagate(const std::string& status);
  /// The statements that leave the function with a status.
  void Leave(const std::string& status);
  void FreeWorkspaces(size_t down_to);

  ModuleText& module_;
  const FunctionInfo& info_;
  std::string code_, locals_;
  int indent_ = 1;
  Value value_;
  unsigned effects_ = 0;  ///< Statements with effects that were written so far.
  /// Of the expression that is being written: how often its nodes are used, and the values kept.
  std::unordered_map<const Object*, int> uses_;
  struct Kept {
    Value value;
    bool reads;
    unsigned effects;
  };
  std::unordered_map<const Object*, Kept> kept_;
  std::vector<const Object*> kept_order_;
  std::unordered_map<std::string, Value> texts_;  ///< Variables, by type and text of their value.
  std::vector<std::string> text_order_;
  int depth_ = 0;
  bool ended_ = false;  ///< What follows is not reached.
  std::unordered_map<const Object*, Value> vars_;
  std::unordered_map<const Object*, DataType> element_;        ///< Of pointer variables.
  std::unordered_map<const Object*, std::string> any_arrays_;  ///< Parameters of packed entries.
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> next_suffix_;
  std::unordered_set<const Object*> shape_vars_, nonnegative_vars_, volatile_vars_;
  std::vector<size_t> loops_;  ///< For each loop, how many workspaces were there.
  std::vector<std::string> workspaces_;
  uint64_t stack_bytes_ = 0;
  bool in_parallel_ = false;
};

}  // namespace tvm::codegen::c
