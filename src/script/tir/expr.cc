// SPDX-License-Identifier: Apache-2.0
// How expressions print. The short form of an operation is used exactly where the operator, applied
// to the operands, gives the very node back: what would fold or convert is written as a
// constructor.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "script/tir/range.h"
#include "script/tir/tir.h"
#include "tvm/expr/op.h"
#include "tvm/expr/signature.h"

namespace tvm::script {
using namespace tir;
namespace {

// ---- binary operations --------------------------------------------------------------------------
struct BinaryForm {
  const char* symbol;    // between the operands; null: a call
  const char* function;  // T.<function>(a, b)
  Precedence precedence;
  PrimExpr (*make)(PrimExpr, PrimExpr, Optional<Span>);
};
const std::unordered_map<int32_t, BinaryForm>& BinaryForms() {
  static const auto* forms = new std::unordered_map<int32_t, BinaryForm>{
      {AddObj::RuntimeTypeIndex(), {"+", nullptr, kSum, &add}},
      {SubObj::RuntimeTypeIndex(), {"-", nullptr, kSum, &sub}},
      {MulObj::RuntimeTypeIndex(), {"*", nullptr, kProduct, &mul}},
      {DivObj::RuntimeTypeIndex(), {"/", "truncdiv", kProduct, &div}},
      {ModObj::RuntimeTypeIndex(), {nullptr, "truncmod", kAtom, &truncmod}},
      {FloorDivObj::RuntimeTypeIndex(), {"//", nullptr, kProduct, &floordiv}},
      {FloorModObj::RuntimeTypeIndex(), {"%", nullptr, kProduct, &floormod}},
      {MinObj::RuntimeTypeIndex(), {nullptr, "min", kAtom, &min}},
      {MaxObj::RuntimeTypeIndex(), {nullptr, "max", kAtom, &max}},
      {EQObj::RuntimeTypeIndex(), {"==", nullptr, kCompare, &equal}},
      {NEObj::RuntimeTypeIndex(), {"!=", nullptr, kCompare, &not_equal}},
      {LTObj::RuntimeTypeIndex(), {"<", nullptr, kCompare, &less}},
      {LEObj::RuntimeTypeIndex(), {"<=", nullptr, kCompare, &less_equal}},
      {GTObj::RuntimeTypeIndex(), {">", nullptr, kCompare, &greater}},
      {GEObj::RuntimeTypeIndex(), {">=", nullptr, kCompare, &greater_equal}},
      {AndObj::RuntimeTypeIndex(), {"and", nullptr, kAnd, &logical_and}},
      {OrObj::RuntimeTypeIndex(), {"or", nullptr, kOr, &logical_or}},
  };
  return *forms;
}
bool IsConstant(const PrimExpr& e) {
  return e.as<IntImmObj>() || e.as<FloatImmObj>() || e.as<BroadcastObj>() || e.as<StringImmObj>();
}
/// Whether make(a, b) is the node itself.
bool Rebuilds(const BinaryForm& form, const Object* node, const PrimExpr& a, const PrimExpr& b) {
  bool numbers = a.dtype().is_integer() || a.dtype().is_float();
  if (numbers && !IsConstant(a) && !IsConstant(b) && !a.same_as(b)) return true;
  if (a.as<StringImmObj>() && b.as<StringImmObj>()) return false;  // Python would compare the texts
  try {
    PrimExpr made = form.make(a, b, {});
    auto* again = static_cast<const BinaryOpFields*>(made.get());
    return made->type_index() == node->type_index() && again->a.same_as(a) && again->b.same_as(b);
  } catch (const ffi::Error&) {
    return false;  // the operator refuses what the node holds
  }
}
/// Prints a binary node; false if it has no short form.
bool PrintBinary(Printer& p, const BinaryForm& form, const BinaryOpFields* n, int min_precedence) {
  if (!Rebuilds(form, n, n->a, n->b)) return false;
  bool infix = form.symbol && (!form.function || n->dtype.is_float());
  if (!infix) {
    Tir(p, form.function);
    Printer::List list(p, "(", ")");
    PrintExpr(list.Item(), n->a);
    PrintExpr(list.Item(), n->b);
    return true;
  }
  bool parentheses = form.precedence < min_precedence;
  if (parentheses) p << "(";
  // Comparisons chain in Python; the others group from the left.
  PrintExpr(p, n->a, form.precedence == kCompare ? kCompare + 1 : form.precedence);
  p << " " << form.symbol << " ";
  PrintExpr(p, n->b, form.precedence + 1);
  if (parentheses) p << ")";
  return true;
}

// ---- constants ----------------------------------------------------------------------------------
void PrintInt(Printer& p, int64_t value, DataType type) {
  if (type.is_bool())
    p << (value ? "True" : "False");
  else if (type.is_uint() && value < 0)
    p << std::to_string(static_cast<uint64_t>(value));
  else
    p << value;
}
void PrintFloat(Printer& p, double value) {
  if (!std::isfinite(value)) {
    p.Quote(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return;
  }
  char buffer[64];
  std::string_view text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr - buffer);
  p << text << (text.find_first_of(".e") == std::string_view::npos ? ".0" : "");
}
void PrintIntImm(Printer& p, const IntImmObj* n) {
  Tir(p, n->dtype.str()) << "(";
  PrintInt(p, n->value, n->dtype);
  p << ")";
}
void PrintFloatImm(Printer& p, const FloatImmObj* n) {
  if (n->dtype == p.config->float_dtype && std::isfinite(n->value)) return PrintFloat(p, n->value);
  Tir(p, n->dtype.str()) << "(";
  PrintFloat(p, n->value);
  p << ")";
}
void PrintStringImm(Printer& p, const StringImmObj* n) {
  Tir(p, "StringImm(").Quote(View(n->value)) << ")";
}

// ---- calls --------------------------------------------------------------------------------------
/// What is needed to print a call as T.<name>(…): how many arguments it takes (at least, where any
/// number may follow) and whether its type is one more argument, at the front or at the end.
struct CallForm {
  std::string_view type;  // "first", "last" or that of the result
  int count;
  bool any_number = false;
  bool may_lack_last = false;
  int typed_by = -1;  // the argument whose type the result has
  bool Takes(int arguments) const {
    if (any_number) return arguments >= count;
    return arguments == count || (may_lack_last && arguments == count - 1);
  }
};
const CallForm* FindCallForm(std::string_view name) {
  static const auto* table = [] {
    auto* result = new std::unordered_map<std::string_view, CallForm>();
    for (const Signature& s : Signatures()) {
      std::vector<std::string_view> params = s.Parameters();
      CallForm form{s.type, static_cast<int>(params.size())};
      form.any_number = !params.empty() && params.back().starts_with("*");
      form.count -= form.any_number;
      form.may_lack_last = !params.empty() && params.back().ends_with("=None");
      if (s.type == "=dtype") {
        form.type = params.front() == "dtype" ? "first" : "last";
        --form.count;
      } else if (s.type.starts_with("=")) {
        form.typed_by = static_cast<int>(std::find(params.begin(), params.end(), s.type.substr(1)) -
                                         params.begin());
      }
      result->emplace(s.name, form);
    }
    return result;
  }();
  auto it = table->find(name);
  return it == table->end() ? nullptr : &it->second;
}
/// Whether the registered function of that name, applied to the arguments, gives the call back.
bool FunctionRebuilds(std::string_view name, const CallObj* n) {
  std::string full = "tir." + std::string(name == "fabs" ? "abs" : name);
  const FnInfo* info = FindFunction(full);
  if (!info || info->args.size() != n->args.size() + 1) return false;  // one more: the span
  std::vector<AnyView> args;
  for (const Any& a : *static_cast<const ffi::ArrayObj*>(n->args.get())) args.push_back(a);
  args.push_back(nullptr);
  try {
    Any result;
    ffi::Function::GetGlobalRequired(full).CallPacked(args.data(), args.size(), &result);
    auto* call = result.as<CallObj>();
    if (!call || !call->op.same_as(n->op) || call->dtype != n->dtype) return false;
    for (size_t i = 0; i < n->args.size(); ++i) {
      if (!call->args[i].same_as(n->args[i])) return false;
    }
    return true;
  } catch (const ffi::Error&) {
    return false;
  }
}
/// Operators whose Python function is stricter than the node.
bool ArgumentsFit(std::string_view name, const CallObj* n) {
  size_t count = n->args.size();
  if (name == "call_extern" || name == "call_pure_extern")
    return count > 0 && n->args[0].as<StringImmObj>();
  if (name == "call_llvm_intrin" || name == "call_llvm_pure_intrin")
    return count > 0 && n->args[0].as<IntImmObj>() && n->args[0].dtype() == DataType::UInt(32);
  if (name == "reinterpret")
    return count == 1 && n->args[0].dtype() != n->dtype &&
           n->args[0].dtype().bits() * n->args[0].dtype().lanes() ==
               n->dtype.bits() * n->dtype.lanes();
  if (name == "address_of") return count == 1 && n->args[0].as<BufferLoadObj>();
  if (name == "ret")
    return count == 0 ? n->dtype.is_void() : count == 1 && n->args[0].dtype() == n->dtype;
  return true;
}
void PrintCallOf(Printer& p, const CallObj* n, const GlobalVarObj* callee) {
  const BaseFuncObj* member = p.FunctionOf(callee);
  auto* func = member && member->IsInstance<PrimFuncObj>() ? static_cast<const PrimFuncObj*>(member)
                                                           : nullptr;
  if (func && n->annotations.empty() && DataTypeOf(func->ret_type) == n->dtype) {
    p.Member(callee);
    Printer::List list(p, "(", ")");
    PrintExprs(list, n->args);
    return;
  }
  Tir(p, "Call");
  Printer::List list(p, "(", ")");
  list.Item().Quote(n->dtype.str());
  list.Item().Node(callee);
  {
    list.Item();
    Printer::List args(p, "[", "]");
    PrintExprs(args, n->args);
  }
  if (!n->annotations.empty()) list.Keyword("annotations").Value(n->annotations);
}
void PrintCall(Printer& p, const CallObj* n) {
  if (auto* callee = n->op.as<GlobalVarObj>()) return PrintCallOf(p, n, callee);
  auto* op = n->op.as<OpObj>();
  std::string_view full = View(op->name);
  std::string_view name = full.starts_with("tir.") ? full.substr(4) : "";
  std::string_view type;
  bool fits = false;
  if (!name.empty() && n->annotations.empty() && ArgumentsFit(name, n)) {
    if (const CallForm* form = FindCallForm(name)) {
      type = form->type;
      bool given = type == "first" || type == "last";
      fits = form->Takes(static_cast<int>(n->args.size()));
      if (fits && !given) {
        DataType expected = form->typed_by >= 0 ? n->args[form->typed_by].dtype()
                            : type == "void"    ? DataType::Void()
                                                : DataType(String(std::string(type)));
        fits = n->dtype == expected;
      }
    } else {
      fits = name == "address_of" ? n->dtype == DataType::Handle()
                                  : name == "ret" || FunctionRebuilds(name, n);
    }
  }
  if (!fits) {
    type = "first";
    Tir(p, "call_intrin");
  } else
    Tir(p, name);
  Printer::List list(p, "(", ")");
  if (type == "first") list.Item().Quote(n->dtype.str());
  if (!fits) list.Item().Quote(full);
  PrintExprs(list, n->args);
  if (type == "last") list.Item().Quote(n->dtype.str());
  if (!n->annotations.empty()) list.Keyword("annotations").Value(n->annotations);
}

// ---- the others ---------------------------------------------------------------------------------
void PrintVar(Printer& p, const VarObj* n) { p << NameOf(p, n); }
void PrintCast(Printer& p, const CastObj* n) {
  Tir(p, "Cast(").Quote(n->dtype.str()) << ", ";
  PrintExpr(p, n->value);
  p << ")";
}
void PrintLet(Printer& p, const LetObj* n) {
  Tir(p, "Let(");
  PrintExpr(p, n->body);
  p << ", where={" << NameOf(p, n->var.get()) << ": ";
  PrintExpr(p, n->value);
  p << "})";
}
void PrintCommReducer(Printer& p, const CommReducerObj* n) {
  // Variables that are others' as well cannot be those of a lambda.
  for (const Array<Var>& side : {n->lhs, n->rhs}) {
    for (const Var& v : side) {
      if (p.Known(v.get())) return p.Construct(n);
    }
  }
  Printer::Scope scope(p);
  Tir(p, "comm_reducer(");
  {
    Printer::List params(p, "lambda ", ": ");
    for (const Array<Var>& side : {n->lhs, n->rhs}) {
      for (const Var& v : side) params.Item() << p.Define(v.get(), v->name_hint);
    }
  }
  if (n->result.size() == 1) {
    PrintExpr(p, n->result[0]);
  } else {
    Printer::List results(p, "(", ")");
    PrintExprs(results, n->result);
  }
  p << ", ";
  {
    Printer::List identity(p, "[", "]");
    PrintExprs(identity, n->identity_element);
  }
  p << ")";
}
void PrintLoad(Printer& p, const BufferLoadObj* n) {
  PrintAccess(p, n->buffer, n->indices, n->predicate);
}
void PrintProducerLoad(Printer& p, const ProducerLoadObj* n) {
  p << p.Name(n->producer.get(), n->producer->GetNameHint()) << "[";
  Printer::List list(p, "", "]");
  PrintExprs(list, n->indices);
}
void PrintRange(Printer& p, const RangeObj* n) {
  PrimExpr end = n->min + n->extent;
  bool exact = IsZero(n->min) || (n->min.as<IntImmObj>() && n->extent.as<IntImmObj>());
  p.Ir(exact ? "Range(" : "Range.from_min_extent(");
  PrintExpr(p, n->min);
  p << ", ";
  PrintExpr(p, exact ? end : n->extent);
  p << ")";
}
constexpr const char* kIterTypes[] = {"DataPar",    "ThreadIndex",  "CommReduce",
                                      "Ordered",    "Opaque",       "Unrolled",
                                      "Vectorized", "Parallelized", "Tensorized"};
void PrintIterVar(Printer& p, const IterVarObj* n) {
  Tir(p, "iter_var");
  Printer::List list(p, "(", ")");
  list.Item() << NameOf(p, n->var.get());
  list.Item();
  if (n->dom.has_value())
    p.Node(n->dom.value().get(), &n->dom);
  else
    p << "None";
  list.Item().Quote(kIterTypes[static_cast<int>(n->iter_type)]);
  list.Item().Quote(View(n->thread_tag));
}
/// An expression's own operands are expressions; everywhere else 1 and T.int32(1) differ.
bool PrintOperand(Printer& p, const Any& value, const void* slot) {
  auto is_expr = [](const Any& a) { return a.as<PrimExprObj>() != nullptr; };
  auto* array = value.as<ffi::ArrayObj>();
  if (is_expr(value)) {
    PrintExpr(p, value.as<Object>(), slot);
  } else if (array && std::all_of(array->begin(), array->end(), is_expr)) {
    Printer::List items(p, "[", "]");
    for (const Any& item : *array) PrintExpr(items.Item(), item.as<Object>(), &item);
  } else {
    return false;
  }
  return true;
}
void PrintConstructor(Printer& p, const PrimExprObj* n) {
  DataType outer = std::exchange(p.int_dtype, p.config->int_dtype);
  p.Construct(n, &PrintOperand);
  p.int_dtype = outer;
}
void PrintDataType(Printer& p, const Any& value) {
  Tir(p, "dtype(").Quote(value.cast<DataType>().str()) << ")";
}
void PrintWholeExpr(Printer& p, const PrimExprObj* n) {
  if (p.config->verbose_expr) DeclareFree(p, ffi::GetRef<PrimExpr>(n));
  PrintExpr(p, n, nullptr);
}
}  // namespace

void PrintExpr(Printer& p, const Object* e, const void* slot, int min_precedence) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { PrintExpr(p, e, slot, min_precedence); });
  p.CheckSize();
  size_t begin = p.Position();
  if (auto it = BinaryForms().find(e->type_index()); it != BinaryForms().end()) {
    if (!PrintBinary(p, it->second, static_cast<const BinaryOpFields*>(e), min_precedence)) {
      PrintConstructor(p, static_cast<const PrimExprObj*>(e));
    }
  } else if (e->IsInstance<NotObj>()) {
    const PrimExpr& a = static_cast<const NotObj*>(e)->a;
    if (AsConstInt(a)) {
      PrintConstructor(p, static_cast<const PrimExprObj*>(e));
    } else {
      bool parentheses = kNot < min_precedence;
      if (parentheses) p << "(";
      p << "not ";
      PrintExpr(p, a, kNot);
      if (parentheses) p << ")";
    }
  } else if (auto* imm = e->IsInstance<IntImmObj>() ? static_cast<const IntImmObj*>(e) : nullptr;
             imm && imm->dtype == p.int_dtype) {
    PrintInt(p, imm->value, imm->dtype);
  } else if (e->IsInstance<StringImmObj>()) {
    p.Quote(View(static_cast<const StringImmObj*>(e)->value));
  } else {
    // Only operators give a bare constant the type of the other operand.
    DataType outer = std::exchange(p.int_dtype, p.config->int_dtype);
    p.Node(e, slot);
    p.int_dtype = outer;
    return;
  }
  if (p.Marks()) [[unlikely]]
    p.AddMark(e, slot, begin, p.Position());
}
void PrintExprs(Printer::List& list, const Array<PrimExpr>& exprs) {
  if (exprs.empty()) return;
  for (const Any& e : *static_cast<const ffi::ArrayObj*>(exprs.get())) {
    PrintExpr(list.Item(), e.as<Object>(), &e);
  }
}
void PrintTuple(Printer& p, const Array<PrimExpr>& exprs) {
  Printer::List list(p, "(", ")", true);
  PrintExprs(list, exprs);
}
void PrintAccess(Printer& p, const ObjectRef& buffer, const Array<PrimExpr>& indices,
                 const Optional<PrimExpr>& predicate) {
  p.Node(buffer.get(), &buffer);
  if (predicate.has_value()) {
    p << ".vload(";
    Printer::List list(p, "[", "]");
    PrintExprs(list, indices);
  } else {
    Printer::List list(p, "[", "]");
    if (indices.empty()) p << "()";
    for (const Any& a : *static_cast<const ffi::ArrayObj*>(indices.get())) {
      list.Item();
      auto* ramp = a.as<RampObj>();
      auto* lanes = ramp ? ramp->lanes.as<IntImmObj>() : nullptr;
      if (lanes && lanes->dtype == DataType::Int(32) && IsOne(ramp->stride)) {
        PrintExpr(p, ramp->base);
        p << ":";
        PrintExpr(p, ramp->base + ramp->lanes);
      } else {
        PrintExpr(p, a.as<Object>(), &a);
      }
    }
    return;
  }
  p << ", predicate=";
  PrintExpr(p, predicate.value());
  p << ")";
}
void PrintRegion(Printer& p, const BufferRegionObj* region) {
  p.Node(region->buffer.get(), &region->buffer);
  Printer::List list(p, "[", "]");
  if (region->region.empty()) p << "()";
  for (const Any& a : *static_cast<const ffi::ArrayObj*>(region->region.get())) {
    auto* range = a.as<RangeObj>();
    PrintExpr(list.Item(), range->min);
    auto* one = range->extent.as<IntImmObj>();
    if (one && one->value == 1 && one->dtype == range->min.dtype()) continue;
    p << ":";
    PrintExpr(p, EndOf(range->min, range->extent));
  }
}

namespace {
TVM_REGISTER() {
  DefPrint<IntImmObj, &PrintIntImm>();
  DefPrint<FloatImmObj, &PrintFloatImm>();
  DefPrint<StringImmObj, &PrintStringImm>();
  DefPrint<VarObj, &PrintVar>();
  DefPrint<CastObj, &PrintCast>();
  DefPrint<LetObj, &PrintLet>();
  DefPrint<CommReducerObj, &PrintCommReducer>();
  DefPrint<CallObj, &PrintCall>();
  DefPrint<BufferLoadObj, &PrintLoad>();
  DefPrint<ProducerLoadObj, &PrintProducerLoad>();
  DefPrint<RangeObj, &PrintRange>();
  DefPrint<IterVarObj, &PrintIterVar>();
  DefPrint<BufferRegionObj, &PrintRegion>();
  // Any other expression is a call of its constructor.
  DefPrint<PrimExprObj, &PrintConstructor>();
  DefPrintWhole<PrimExprObj, &PrintWholeExpr>();
  DefPrintValue(kTVMFFIDataType, &PrintDataType);
}
}  // namespace
}  // namespace tvm::script
