// SPDX-License-Identifier: Apache-2.0
// A function as C-like text: expressions, statements, and what a language adds to them.
// What arrives has been through the TIR pipeline: flat buffers, no blocks; small floats are
// computed in wider ones, and vectors have become loops (scalarize.cc).
// - A value has the C type of its TIR type, bool is one byte in memory, float16 is its bits.
// - Index arithmetic (loop and shape variables) is written plainly, data arithmetic wraps: it is
//   done on unsigned numbers, since C leaves the overflow of signed ones undefined.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/source/file.h"
#include "tvm/arith/analyzer.h"

namespace tvm::codegen {
template <class Generator, class Value>
class CallTable;
}
namespace tvm::codegen::source {

/// What a language has of vectors.
struct Vectors {
  bool moves = false;  ///< B[ramp] = A[ramp], in pieces of several elements.
  int bits = 0;        ///< B[ramp] = A[ramp] * broadcast(x): arithmetic on vectors up to this size.
};
/// The function with loops over lanes in the place of vectors, but for statements that the language
/// has: stores of one run of memory, whose values are made of such runs and of broadcasts.
PrimFunc Scalarize(PrimFunc func, const FileWriter& file, Vectors vectors = {});
/// The largest number of bytes, a power of two up to kMoveBytes, in which a vector that lies in one
/// run of memory can be moved: its size and its alignment are multiples of it. 0 for one that does
/// not lie so.
int64_t MoveBytes(arith::Analyzer& analyzer, const Buffer& buffer, const Array<PrimExpr>& indices);
inline constexpr int64_t kMoveBytes = 16;

class FunctionWriter
    : public Visitor<FunctionWriter, PrimExprObj, VarObj, IntImmObj, FloatImmObj, StringImmObj,
                     CastObj, AddObj, SubObj, MulObj, DivObj, ModObj, FloorDivObj, FloorModObj,
                     MinObj, MaxObj, EQObj, NEObj, LTObj, LEObj, GTObj, GEObj, AndObj, OrObj,
                     NotObj, SelectObj, BufferLoadObj, CallObj, LetObj, StmtObj, LetStmtObj,
                     AssertStmtObj, ForObj, WhileObj, BufferStoreObj, AllocateObj, AllocateConstObj,
                     DeclBufferObj, AttrStmtObj, SeqStmtObj, IfThenElseObj, EvaluateObj> {
 public:
  FunctionWriter(FileWriter& file, const FunctionInfo& info);
  virtual ~FunctionWriter() = default;

  template <class T>
  void Visit(const T* node) {
    if constexpr (std::is_base_of_v<PrimExprObj, T>) {
      value_ = Emit(node);
    } else {
      Emit(node);
    }
  }

 protected:
  // ---- what a language adds ----
  /// Calls beyond those all languages write alike; they end in this one.
  virtual Value Emit(const CallObj*);
  virtual void Emit(const LetStmtObj*);
  virtual void Emit(const AssertStmtObj*) = 0;
  virtual void Emit(const ForObj*);
  virtual void Emit(const BufferStoreObj*);
  virtual void Emit(const AllocateObj*) = 0;
  virtual void Emit(const AttrStmtObj*);
  virtual void Emit(const IfThenElseObj*);
  virtual void Emit(const EvaluateObj*);
  /// The definition of an array of constants at the top of the file.
  virtual std::string ConstantArray(const std::string& type, const std::string& name,
                                    const std::string& list) const = 0;
  /// How a loop begins; languages say here which ones are unrolled.
  virtual void BeforeLoop(const ForObj*) {}
  /// Whether memory must not be accessed through pointers to other types than its own.
  virtual bool StrictAliasing() const { return true; }
  /// The name of the function as it is linked.
  virtual std::string Symbol() const { return info_.symbol; }
  /// Memory that must be given back when a jump leaves a block: how much is held, and giving back
  /// what is held beyond that.
  virtual size_t Held() const { return 0; }
  virtual void Release(size_t) {}
  virtual void BlockBody(const Stmt& body) { Gen(body); }
  /// Checks of a jump out of the innermost loop.
  virtual void CheckJump(const CallObj*, bool /*leaves*/) {}

  [[noreturn]] void Unsupported(const std::string& what, const Optional<Span>& span = {}) const {
    file_.Unsupported(what, span);
  }

  /// The value of an expression; a part that is used several times in it is computed once.
  Value Gen(const PrimExpr& e);
  void Gen(const Stmt& s) { (*this)(s); }
  /// The operands in order: one that reads memory is kept in a variable when a later one has
  /// effects.
  std::vector<Value> GenAll(const std::vector<PrimExpr>& operands);

  // ---- expressions (expr.cc, call.cc) ----
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
  Value UnaryMath(const CallObj* op, const char* function);
  Value Bitwise(const CallObj* op, const char* symbol);
  Value BitwiseNot(const CallObj* op);
  Value Shift(const CallObj* op, bool left);
  Value CountBits(const CallObj* op, const char* helper);
  Value IsNaN(const CallObj* op);
  Value Reinterpret(const CallObj* op);
  Value Jump(const CallObj* op, bool leave);

  // ---- memory ----
  /// An element as something that can be read and assigned, or its address.
  struct Place {
    std::string lvalue;   ///< Empty where memory must be accessed by helpers.
    std::string address;  ///< As a byte pointer, or the array of packed elements.
    std::string index;    ///< Of packed elements.
  };
  Place ElementOf(const Buffer& buffer, const Value& index);
  Value AddressOf(const BufferLoadObj* load);

  // ---- statements (stmt.cc) ----
  void Emit(const StmtObj*);
  void Emit(const WhileObj*);
  void Emit(const AllocateConstObj*);
  void Emit(const DeclBufferObj*);
  void Emit(const SeqStmtObj*);
  /// Declares the variable of a binding; gives its name.
  std::string Declare(const LetStmtObj* op);
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
    Forget(kept);
    ForgetTexts(texts);
    return std::exchange(code_, std::move(outer));
  }
  /// Drops what was kept since there were `count` values: the block that holds them ends.
  void Forget(size_t count);
  void ForgetTexts(size_t count);
  /// `head { body`, without the closing brace; gives whether the end of the body is never reached.
  bool Block(const std::string& head, const Stmt& body);
  /// A new name like `hint`, which no other variable of the function has.
  std::string Name(std::string_view hint);
  /// The value in a variable: a new one, unless one holds the same text already.
  Value Keep(const Value& v, DataType t, const char* hint = "value", bool fresh = false);
  /// The C name of a TIR variable from here on.
  std::string Bind(const Var& var, bool index = false, bool nonnegative = false);

  FileWriter& file_;
  const FunctionInfo& info_;
  std::string code_;
  int indent_ = 1;
  Value value_;
  unsigned effects_ = 0;  ///< Statements with effects that were written so far.
  bool ended_ = false;    ///< What follows is not reached.
  std::unordered_map<const Object*, Value> vars_;
  std::unordered_map<const Object*, DataType> element_;  ///< Of pointer variables.
  std::unordered_set<const Object*> shape_vars_, nonnegative_vars_, volatile_vars_;
  std::vector<size_t> loops_;  ///< For each loop, how much was held before it.

 private:
  friend class CallTable<FunctionWriter, Value>;
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
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> next_suffix_;
};

}  // namespace tvm::codegen::source
