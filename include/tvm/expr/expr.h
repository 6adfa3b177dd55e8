// SPDX-License-Identifier: Apache-2.0
// Primitive expressions. The rules all of them obey:
// - An expression has no side effect, except calls of operators whose effect says otherwise.
// - Both operands of a binary node have one type; the functions in op.h insert the casts.
// - int32 and int64 arithmetic over loop and shape variables does not overflow by contract; all
// other
//   integer arithmetic wraps. Division by zero gives 0, NaN propagates through min and max.
#pragma once
#include "tvm/expr/buffer.h"
#include "tvm/ir/op.h"

namespace tvm::tir {

/// A text: an argument of calls such as call_extern.
struct StringImmObj : PrimExprObj {
  String value;
  static void Fields(auto&& def) { def("value", &StringImmObj::value); }
  void Init() { dtype = DataType::Handle(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.StringImm", StringImmObj, PrimExprObj);
};
struct StringImm : PrimExpr {
  explicit StringImm(String value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(StringImm, PrimExpr, StringImmObj);
};

/// `value` in another type. Float to integer saturates, NaN becomes 0; integers wrap.
struct CastObj : PrimExprObj {
  PrimExpr value;
  static void Fields(auto&& def) {
    def("dtype", &PrimExprObj::dtype);
    def("value", &CastObj::value);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Cast", CastObj, PrimExprObj);
};
struct Cast : PrimExpr {
  Cast(DataType dtype, PrimExpr value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Cast, PrimExpr, CastObj);
};

/// Two operands of one type. Not a type of its own in the interface: a shared implementation.
struct BinaryOpFields : PrimExprObj {
  PrimExpr a, b;
};
void CheckBinaryOperands(const BinaryOpFields* node, const char* name, bool logical);

/// Arithmetic keeps the type of its operands, comparisons and logic give bool.
#define TVM_BINARY_NODE(Name, ResultType, logical)                           \
  struct Name##Obj : BinaryOpFields {                                        \
    static void Fields(auto&& def) {                                         \
      def("a", static_cast<PrimExpr Name##Obj::*>(&Name##Obj::a));           \
      def("b", static_cast<PrimExpr Name##Obj::*>(&Name##Obj::b));           \
    }                                                                        \
    void Init() {                                                            \
      CheckBinaryOperands(this, #Name, logical);                             \
      dtype = ResultType;                                                    \
    }                                                                        \
    TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir." #Name, Name##Obj, PrimExprObj); \
  };                                                                         \
  struct Name : PrimExpr {                                                   \
    Name(PrimExpr a, PrimExpr b, Optional<Span> span = {}) {                 \
      *this = New<Name>([&](Name##Obj* n) {                                  \
        n->a = std::move(a), n->b = std::move(b), n->span = std::move(span); \
      });                                                                    \
    }                                                                        \
    TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Name, PrimExpr, Name##Obj);   \
  }
#define TVM_BINARY_NODES(ROW)                                 \
  ROW(Add, a.dtype(), false);                                 \
  ROW(Sub, a.dtype(), false);                                 \
  ROW(Mul, a.dtype(), false);                                 \
  ROW(Div, a.dtype(), false);      /* rounds towards zero */  \
  ROW(Mod, a.dtype(), false);      /* sign of the dividend */ \
  ROW(FloorDiv, a.dtype(), false); /* rounds down */          \
  ROW(FloorMod, a.dtype(), false); /* sign of the divisor */  \
  ROW(Min, a.dtype(), false);                                 \
  ROW(Max, a.dtype(), false);                                 \
  ROW(EQ, DataType::Bool(a.dtype().raw_lanes()), false);      \
  ROW(NE, DataType::Bool(a.dtype().raw_lanes()), false);      \
  ROW(LT, DataType::Bool(a.dtype().raw_lanes()), false);      \
  ROW(LE, DataType::Bool(a.dtype().raw_lanes()), false);      \
  ROW(GT, DataType::Bool(a.dtype().raw_lanes()), false);      \
  ROW(GE, DataType::Bool(a.dtype().raw_lanes()), false);      \
  ROW(And, a.dtype(), true);                                  \
  ROW(Or, a.dtype(), true)
TVM_BINARY_NODES(TVM_BINARY_NODE);

struct NotObj : PrimExprObj {
  PrimExpr a;
  static void Fields(auto&& def) { def("a", &NotObj::a); }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Not", NotObj, PrimExprObj);
};
struct Not : PrimExpr {
  explicit Not(PrimExpr a, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Not, PrimExpr, NotObj);
};

/// condition ? true_value : false_value, where both values may be evaluated (see if_then_else).
struct SelectObj : PrimExprObj {
  PrimExpr condition, true_value, false_value;
  static void Fields(auto&& def) {
    def("condition", &SelectObj::condition);
    def("true_value", &SelectObj::true_value);
    def("false_value", &SelectObj::false_value);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Select", SelectObj, PrimExprObj);
};
struct Select : PrimExpr {
  Select(PrimExpr condition, PrimExpr true_value, PrimExpr false_value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Select, PrimExpr, SelectObj);
};

/// buffer[indices]; the last index may be a vector. Lanes whose predicate is false read nothing.
struct BufferLoadObj : PrimExprObj {
  Buffer buffer;
  Array<PrimExpr> indices;
  Optional<PrimExpr> predicate;
  static void Fields(auto&& def) {
    def("buffer", &BufferLoadObj::buffer);
    def("indices", &BufferLoadObj::indices);
    def("predicate", &BufferLoadObj::predicate, Default(nullptr));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BufferLoad", BufferLoadObj, PrimExprObj);
};
struct BufferLoad : PrimExpr {
  BufferLoad(Buffer buffer, Array<PrimExpr> indices, Optional<PrimExpr> predicate = {},
             Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BufferLoad, PrimExpr, BufferLoadObj);
};

/// The type of what `indices` address in a buffer; errors begin with the name of the node.
DataType AccessType(const Buffer& buffer, const Array<PrimExpr>& indices, const char* node);

/// An element of a tensor that is not a buffer yet.
struct ProducerLoadObj : PrimExprObj {
  DataProducer producer;
  Array<PrimExpr> indices;
  static void Fields(auto&& def) {
    def("producer", &ProducerLoadObj::producer, NotVisited());
    def("indices", &ProducerLoadObj::indices);
  }
  void Init() { dtype = producer->GetDataType(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.ProducerLoad", ProducerLoadObj, PrimExprObj);
};
struct ProducerLoad : PrimExpr {
  ProducerLoad(DataProducer producer, Array<PrimExpr> indices, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ProducerLoad, PrimExpr, ProducerLoadObj);
};

/// The vector [base, base + stride, …]; `lanes` is an IntImm or vscale() * IntImm.
struct RampObj : PrimExprObj {
  PrimExpr base, stride, lanes;
  static void Fields(auto&& def) {
    def("base", &RampObj::base);
    def("stride", &RampObj::stride);
    def("lanes", &RampObj::lanes);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Ramp", RampObj, PrimExprObj);
};
struct Ramp : PrimExpr {
  Ramp(PrimExpr base, PrimExpr stride, PrimExpr lanes, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Ramp, PrimExpr, RampObj);
};

/// The vector [value, value, …].
struct BroadcastObj : PrimExprObj {
  PrimExpr value, lanes;
  static void Fields(auto&& def) {
    def("value", &BroadcastObj::value);
    def("lanes", &BroadcastObj::lanes);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Broadcast", BroadcastObj, PrimExprObj);
};
struct Broadcast : PrimExpr {
  Broadcast(PrimExpr value, PrimExpr lanes, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Broadcast, PrimExpr, BroadcastObj);
};

/// Elements chosen by constant indices from the concatenation of the vectors.
struct ShuffleObj : PrimExprObj {
  Array<PrimExpr> vectors, indices;
  static void Fields(auto&& def) {
    def("vectors", &ShuffleObj::vectors);
    def("indices", &ShuffleObj::indices);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Shuffle", ShuffleObj, PrimExprObj);
};
struct Shuffle : PrimExpr {
  Shuffle(Array<PrimExpr> vectors, Array<PrimExpr> indices, Optional<Span> span = {});
  /// The vectors one after the other.
  static PrimExpr Concat(Array<PrimExpr> vectors, Optional<Span> span = {});
  static PrimExpr Extract(PrimExpr vector, int64_t index, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Shuffle, PrimExpr, ShuffleObj);
};

/// A call of an operator (Op: see builtin.h) or of a function of the module (GlobalVar).
struct CallObj : PrimExprObj {
  RelaxExpr op;
  Array<PrimExpr> args;
  Map<String, Any> annotations;
  static void Fields(auto&& def) {
    def("dtype", &PrimExprObj::dtype);
    def("op", &CallObj::op);
    def("args", &CallObj::args);
    def("annotations", &CallObj::annotations, Default(Map<String, Any>()));
  }
  void Init();
  /// Whether the call is of the operator with this row in the table: `call->Is("tir.exp")`.
  bool Is(const Op& other) const { return op.same_as(other); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Call", CallObj, PrimExprObj);
};
struct Call : PrimExpr {
  Call(DataType dtype, RelaxExpr op, Array<PrimExpr> args, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Call, PrimExpr, CallObj);
};

/// `body` with `var` standing for `value`.
struct LetObj : PrimExprObj {
  Var var;
  PrimExpr value, body;
  static void Fields(auto&& def) {
    def("var", &LetObj::var, Binds());
    def("value", &LetObj::value);
    def("body", &LetObj::body);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Let", LetObj, PrimExprObj);
};
struct Let : PrimExpr {
  Let(Var var, PrimExpr value, PrimExpr body, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Let, PrimExpr, LetObj);
};

/// A commutative, associative combination with an identity: result(lhs, rhs). Several values at
/// once (argmax) are tuples.
struct CommReducerObj : NodeObj {
  Array<Var> lhs, rhs;
  Array<PrimExpr> result, identity_element;
  Optional<Span> span;
  static void Fields(auto&& def) {
    def("lhs", &CommReducerObj::lhs, Binds());
    def("rhs", &CommReducerObj::rhs, Binds());
    def("result", &CommReducerObj::result);
    def("identity_element", &CommReducerObj::identity_element);
    def("span", &CommReducerObj::span, Default(nullptr), Ignored());
  }
  void Init();
  /// The combination of two tuples of values.
  Array<PrimExpr> Combine(const Array<PrimExpr>& a, const Array<PrimExpr>& b) const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.CommReducer", CommReducerObj, NodeObj);
};
struct CommReducer : ObjectRef {
  CommReducer(Array<Var> lhs, Array<Var> rhs, Array<PrimExpr> result,
              Array<PrimExpr> identity_element, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(CommReducer, ObjectRef, CommReducerObj);
};

/// The reduction of `source` over `axis` where `condition` holds, as value number `value_index`.
struct ReduceObj : PrimExprObj {
  CommReducer combiner;
  Array<PrimExpr> source;
  Array<PrimExpr> init;  // empty: the identity
  Array<IterVar> axis;
  PrimExpr condition;
  int64_t value_index = 0;
  static constexpr std::string_view kParamOrder =
      "combiner,source,axis,condition,value_index,init,span";
  static void Fields(auto&& def) {
    def("combiner", &ReduceObj::combiner);
    def("axis", &ReduceObj::axis, Binds());
    def("source", &ReduceObj::source);
    def("init", &ReduceObj::init, Default(Array<PrimExpr>()));
    def("condition", &ReduceObj::condition);
    def("value_index", &ReduceObj::value_index);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Reduce", ReduceObj, PrimExprObj);
};
struct Reduce : PrimExpr {
  Reduce(CommReducer combiner, Array<PrimExpr> source, Array<IterVar> axis, PrimExpr condition,
         int64_t value_index, Array<PrimExpr> init = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Reduce, PrimExpr, ReduceObj);
};

}  // namespace tvm::tir
