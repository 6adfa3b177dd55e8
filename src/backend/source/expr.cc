// SPDX-License-Identifier: Apache-2.0
// Expressions: arithmetic with a defined result for every input, conversions, loads.
#include "backend/source/function.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::source {
namespace {
/// Longer expressions are taken apart, which reads better and keeps the nesting below what
/// compilers take.
constexpr size_t kLongest = 120;
/// Shorter ones are repeated where they are used.
constexpr size_t kShared = 24;

/// How often each node is used in an expression.
struct UseCounter : Visitor<UseCounter, PrimExprObj, BufferObj> {
  std::unordered_map<const Object*, int>* uses;
  void Visit(const PrimExprObj* n) {
    if (++(*uses)[n] == 1) VisitChildren(n, *this);
  }
  void Visit(const BufferObj*) {}
};
bool IsWorthKeeping(const PrimExpr& e) {
  return !e.as<VarObj>() && !e.as<IntImmObj>() && !e.as<FloatImmObj>() && !e.as<StringImmObj>();
}

/// A number of 32 or 64 bits as unsigned: without the cast to signed that it may come with.
Value AsUnsigned(const std::string& type, const Value& v) {
  std::string cast = "(" + type.substr(1) + ")";
  if (v.level != kUnary || v.text.rfind(cast, 0) != 0) return CastTo(type, v);
  Value result = v;
  result.text = "(" + type + ")" + v.text.substr(cast.size());
  return result;
}
}  // namespace

Value FunctionWriter::Gen(const PrimExpr& e) {
  if (depth_ == 0) {
    // Expansions of small floats and of functions use parts many times over: written out as a tree
    // they would have millions of nodes.
    UseCounter counter;
    counter.uses = &uses_;
    counter(e);
  }
  auto use = uses_.find(e.get());
  bool is_shared = use != uses_.end() && use->second > 1 && IsWorthKeeping(e);
  if (is_shared) {
    auto it = kept_.find(e.get());
    if (it != kept_.end() && !(it->second.reads && it->second.effects != effects_))
      return it->second.value;
  }
  ++depth_;
  (*this)(e);
  --depth_;
  Value v = std::move(value_);
  bool keeps = e.dtype().is_scalar() && !e.dtype().is_handle() && !e.dtype().is_void();
  if (keeps && v.text.size() > (is_shared ? kShared : kLongest)) {
    bool reads = v.reads;
    v = Keep(v, e.dtype());
    if (is_shared) {
      kept_[e.get()] = {v, reads, effects_};
      kept_order_.push_back(e.get());
    }
  }
  if (depth_ == 0) {
    uses_.clear();
    Forget(0);
  }
  return v;
}
void FunctionWriter::Forget(size_t count) {
  while (kept_order_.size() > count) {
    kept_.erase(kept_order_.back());
    kept_order_.pop_back();
  }
}
std::vector<Value> FunctionWriter::GenAll(const std::vector<PrimExpr>& operands) {
  std::vector<Value> values;
  for (size_t i = 0; i < operands.size(); ++i) {
    size_t mark = code_.size();
    unsigned before = effects_;
    Value v = Gen(operands[i]);
    if (effects_ != before) {
      std::string later = code_.substr(mark);
      code_.resize(mark);
      for (size_t k = 0; k < i; ++k) {
        if (values[k].reads)
          values[k] = Keep(values[k], operands[k].dtype(), "value", /*fresh=*/true);
      }
      code_ += later;
    }
    values.push_back(std::move(v));
  }
  return values;
}
void FunctionWriter::ForgetTexts(size_t count) {
  while (text_order_.size() > count) {
    texts_.erase(text_order_.back());
    text_order_.pop_back();
  }
}
Value FunctionWriter::Keep(const Value& v, DataType t, const char* hint, bool fresh) {
  // Variables never change, memory does.
  fresh |= v.reads;
  std::string key = TypeName(t) + " " + v.text;
  auto it = texts_.find(key);
  if (!fresh && it != texts_.end()) return it->second;
  Value kept = v;
  kept.text = Name(hint);
  kept.level = kPrimary;
  kept.reads = false;
  kept.literal = false;
  Line(TypeName(t) + " " + kept.text + " = " + v.text + ";");
  if (!fresh) {
    text_order_.push_back(key);
    texts_[key] = kept;
  }
  return kept;
}

// ---- leaves -------------------------------------------------------------------------------------
Value FunctionWriter::Emit(const PrimExprObj* op) {
  Unsupported(
      "expected an expression that lowering leaves, got " + std::string(String(op->GetTypeKey())),
      op->span);
}
Value FunctionWriter::Emit(const VarObj* op) {
  auto it = vars_.find(op);
  if (it == vars_.end()) {
    TVM_FFI_THROW(ValueError) << file_.language() << " code generation: the variable "
                              << View(op->name_hint) << " is used but not defined in " << Symbol();
  }
  return it->second;
}
Value FunctionWriter::Emit(const IntImmObj* op) {
  if (!op->dtype.is_handle()) return Number(op->dtype, op->value);
  if (op->value == 0) return Made("NULL", kPrimary, {});
  return CastTo("void*", CastTo("intptr_t", Number(DataType::Int(64), op->value)));
}
Value FunctionWriter::Emit(const FloatImmObj* op) { return Number(op->dtype, op->value); }
Value FunctionWriter::Emit(const StringImmObj* op) {
  return CastTo("void*", Made(Quoted(View(op->value)), kPrimary, {}));
}
Value FunctionWriter::Emit(const LetObj* op) {
  Value value = Gen(op->value);
  std::string name = Bind(op->var, value.index, value.nonnegative);
  Line(TypeName(op->var.dtype()) + " " + name + " = " + value.text + ";");
  return Gen(op->body);
}

// ---- arithmetic ---------------------------------------------------------------------------------
Value FunctionWriter::Wrap(const Value& v, DataType t) {
  if (t.is_bool()) return Made("(" + v.text + ") % 2 != 0", kEqual, {v});
  if (t.bits() == HolderBits(t)) return CastTo(TypeName(t), v);
  if (t.is_int()) {
    Value bits = Number(DataType::Int(32), int64_t{t.bits()});
    return CastTo(TypeName(t), Apply(file_.Helper("sign_extend"), {v, bits}));
  }
  auto mask = static_cast<int64_t>((uint64_t{1} << t.bits()) - 1);
  return CastTo(TypeName(t), Infix(v, "&", Number(t, mask), kBits));
}
Value FunctionWriter::Arithmetic(const BinaryOpFields* op, const char* symbol, Level level) {
  DataType t = op->dtype;
  std::vector<Value> v = GenAll({op->a, op->b});
  if (t.is_handle()) Unsupported("arithmetic on handles", op->span);
  if (t.is_float()) return Infix(v[0], symbol, v[1], level);
  if (t.is_index() && v[0].index && v[1].index) {
    if (v[0].literal && v[1].literal) v[0] = CastTo(TypeName(t), v[0]);
    Value result = Infix(v[0], symbol, v[1], level);
    result.index = true;
    result.nonnegative = *symbol != '-' && v[0].nonnegative && v[1].nonnegative;
    return result;
  }
  // Narrow numbers are computed as int, which uint16 * uint16 overflows; wide ones as unsigned.
  bool widen = t.is_int() ? t.bits() > 16 : t.bits() > 8 && t.bits() <= 16 && level == kProduct;
  if (widen) {
    std::string wide = HolderBits(t) == 64 ? "uint64_t" : "uint32_t";
    for (Value& x : v) x = AsUnsigned(wide, x);
  }
  Value result = Infix(v[0], symbol, v[1], level);
  bool exact = t.is_uint() && (t.bits() == 32 || t.bits() == 64);
  return exact ? result : Wrap(result, t);
}
Value FunctionWriter::Emit(const AddObj* op) { return Arithmetic(op, "+", kSum); }
Value FunctionWriter::Emit(const SubObj* op) { return Arithmetic(op, "-", kSum); }
Value FunctionWriter::Emit(const MulObj* op) { return Arithmetic(op, "*", kProduct); }

Value FunctionWriter::Divide(const BinaryOpFields* op, const char* name, bool floor,
                             bool remainder) {
  DataType t = op->dtype;
  std::vector<Value> v = GenAll({op->a, op->b});
  const char* suffix = t.bits() == 32 ? "f" : "";
  if (t.is_float()) {
    if (remainder && floor) return Apply(file_.Helper("floormod", t), v);
    if (remainder) return Apply(std::string("fmod") + suffix, v);
    Value q = Infix(v[0], "/", v[1], kProduct);
    return floor ? Apply(std::string("floor") + suffix, {q}) : q;
  }
  if (!t.is_integer()) Unsupported("expected numbers to divide, got " + t.str(), op->span);
  bool index = t.is_index() && v[0].index && v[1].index;
  bool positive = t.is_uint() || (v[0].nonnegative && v[1].nonnegative);
  auto* divisor = op->b.as<IntImmObj>();
  bool safe = divisor && divisor->value != 0 && (t.is_uint() || divisor->value != -1);
  Value result;
  if (divisor && divisor->value == 0) {
    result = Number(t, int64_t{0});
  } else if (safe && (positive || !floor)) {
    result = Infix(v[0], remainder ? "%" : "/", v[1], kProduct);
  } else {
    // Without a sign both roundings are the same.
    const char* helper = t.is_uint() ? (remainder ? "mod" : "div") : name;
    result = Apply(file_.Helper(helper, t), v);
    if (t.is_int() && !remainder && t.bits() != HolderBits(t)) result = Wrap(result, t);
  }
  result.index = index;
  result.nonnegative = t.is_int() && (remainder && floor ? v[1].nonnegative
                                      : remainder        ? v[0].nonnegative
                                                         : positive);
  return result;
}
Value FunctionWriter::Emit(const DivObj* op) { return Divide(op, "div", false, false); }
Value FunctionWriter::Emit(const ModObj* op) { return Divide(op, "mod", false, true); }
Value FunctionWriter::Emit(const FloorDivObj* op) { return Divide(op, "floordiv", true, false); }
Value FunctionWriter::Emit(const FloorModObj* op) { return Divide(op, "floormod", true, true); }

Value FunctionWriter::MinMax(const BinaryOpFields* op, const char* name) {
  std::vector<Value> v = GenAll({op->a, op->b});
  Value result = Apply(file_.Helper(name, op->dtype), v);
  result.index = op->dtype.is_index() && v[0].index && v[1].index;
  bool is_max = name[1] == 'a';
  result.nonnegative =
      is_max ? v[0].nonnegative || v[1].nonnegative : v[0].nonnegative && v[1].nonnegative;
  return result;
}
Value FunctionWriter::Emit(const MinObj* op) { return MinMax(op, "min"); }
Value FunctionWriter::Emit(const MaxObj* op) { return MinMax(op, "max"); }

// ---- comparison and logic -----------------------------------------------------------------------
Value FunctionWriter::Compare(const BinaryOpFields* op, const char* symbol, Level level) {
  std::vector<Value> v = GenAll({op->a, op->b});
  return Infix(v[0], symbol, v[1], level);
}
Value FunctionWriter::Emit(const EQObj* op) { return Compare(op, "==", kEqual); }
Value FunctionWriter::Emit(const NEObj* op) { return Compare(op, "!=", kEqual); }
Value FunctionWriter::Emit(const LTObj* op) { return Compare(op, "<", kCompare); }
Value FunctionWriter::Emit(const LEObj* op) { return Compare(op, "<=", kCompare); }
Value FunctionWriter::Emit(const GTObj* op) { return Compare(op, ">", kCompare); }
Value FunctionWriter::Emit(const GEObj* op) { return Compare(op, ">=", kCompare); }

// The second operand is evaluated only when it decides: it may be a load that the first one guards.
Value FunctionWriter::Logic(const BinaryOpFields* op, const char* symbol, Level level) {
  Value a = Gen(op->a), b;
  std::string statements = Capture([&] { b = Gen(op->b); });
  if (statements.empty()) {
    return Made(a.At(kEqual) + " " + symbol + " " + b.At(kEqual), level, {a, b});
  }
  std::string name = Name("decided");
  Line("bool " + name + " = " + a.text + ";");
  Line("if (" + std::string(level == kAnd ? "" : "!") + name + ") {");
  code_ += statements;
  ++indent_;
  Line(name + " = " + b.text + ";");
  --indent_;
  Line("}");
  return Made(name, kPrimary, {});
}
Value FunctionWriter::Emit(const AndObj* op) { return Logic(op, "&&", kAnd); }
Value FunctionWriter::Emit(const OrObj* op) { return Logic(op, "||", kOr); }
Value FunctionWriter::Emit(const NotObj* op) {
  if (auto* same = op->a.as<NotObj>()) return Gen(same->a);
  Value a = Gen(op->a);
  return Made("!" + a.At(kUnary), kUnary, {a});
}
namespace {
Value Ternary(const std::vector<Value>& v) {
  Value result = Made(v[0].At(kEqual) + " ? " + v[1].At(kEqual) + " : " + v[2].text, kChoice, v);
  result.index = v[1].index && v[2].index;
  result.nonnegative = v[1].nonnegative && v[2].nonnegative;
  return result;
}
}  // namespace
Value FunctionWriter::Emit(const SelectObj* op) {
  return Ternary(GenAll({op->condition, op->true_value, op->false_value}));
}
/// One of the values, without evaluating the other.
Value FunctionWriter::Choose(const PrimExpr& cond, const PrimExpr& yes, const PrimExpr& no) {
  Value c = Gen(cond), t, f;
  std::string for_t = Capture([&] { t = Gen(yes); }), for_f = Capture([&] { f = Gen(no); });
  if (for_t.empty() && for_f.empty()) return Ternary({c, t, f});
  std::string name = Name("chosen");
  Line(TypeName(yes.dtype()) + " " + name + ";");
  auto branch = [&](const std::string& statements, const Value& v) {
    code_ += statements;
    ++indent_;
    Line(name + " = " + v.text + ";");
    --indent_;
  };
  Line("if (" + c.text + ") {");
  branch(for_t, t);
  Line("} else {");
  branch(for_f, f);
  Line("}");
  Value result = Made(name, kPrimary, {});
  result.index = t.index && f.index;
  result.nonnegative = t.nonnegative && f.nonnegative;
  return result;
}

// ---- conversions --------------------------------------------------------------------------------
Value FunctionWriter::Convert(const Value& v, DataType from, DataType to) {
  if (from == to) return v;
  std::string type = TypeName(to);
  if (from.is_handle() || to.is_handle()) {
    if (from.is_handle() && to.is_handle()) return v;
    return CastTo(type, CastTo("intptr_t", v));
  }
  const DataType f32 = DataType::Float(32), f64 = DataType::Float(64);
  if (from.is_float16()) return Convert(Apply(file_.Helper("f32_from_f16"), {v}), f32, to);
  if (to.is_float16()) {
    // An integer is rounded once: float64 holds all that are in the range of float16.
    if (from.is_float() && from.bits() == 32) return Apply(file_.Helper("f16_from_f32"), {v});
    return Apply(file_.Helper("f16_from_f64"), {Convert(v, from, f64)});
  }
  if (to.is_bfloat16())
    return Apply(file_.Helper("bf16_from_f32"), {v});  // see BF16StorageLegalize
  if (to.is_bool()) return Made(v.At(kSum) + " != 0", kEqual, {v});
  if (from.is_float() && !to.is_float()) return Apply(file_.Helper("cast", to, from), {v});
  if (to.is_float() || from.is_bool()) return CastTo(type, v);
  // Integers; a literal takes the type it needs from where it stands.
  Value result = Wrap(v, to);
  bool widens = to.bits() >= from.bits() && (from.is_uint() == to.is_uint());
  result.index = v.index && widens && to.is_index() && from.is_index();
  result.nonnegative = v.nonnegative && widens;
  return result;
}
Value FunctionWriter::Emit(const CastObj* op) {
  return Convert(Gen(op->value), op->value.dtype(), op->dtype);
}

// ---- memory -------------------------------------------------------------------------------------
FunctionWriter::Place FunctionWriter::ElementOf(const Buffer& buffer, const Value& index) {
  DataType t = buffer->dtype;
  Value base = Gen(buffer->data), at = index;
  auto* offset = buffer->elem_offset.as<IntImmObj>();
  if (!offset || offset->value != 0) {
    // In 64 bits: a view of a large buffer may begin beyond 2^31.
    Value start = CastTo("int64_t", Gen(buffer->elem_offset));
    at = index.literal && index.text == "0" ? start : Infix(start, "+", index, kSum);
  }
  Place place;
  auto element = element_.find(buffer->data.get());
  bool typed = element != element_.end();
  if (IsPacked(t)) {
    place.address = typed && MemoryName(element->second) == "uint8_t"
                        ? base.text
                        : CastTo("uint8_t*", base).text;
    place.index = at.text;
    return place;
  }
  std::string type = MemoryName(t);
  bool is_volatile = volatile_vars_.count(buffer->data.get());
  if (is_volatile) {
    place.lvalue = "((volatile " + type + "*)" + base.At(kUnary) + ")[" + at.text + "]";
  } else if (!typed) {
    place.lvalue = "((" + type + "*)" + base.At(kUnary) + ")[" + at.text + "]";
  } else if (MemoryName(element->second) == type) {
    place.lvalue = base.text + "[" + at.text + "]";
  } else if (!StrictAliasing()) {
    place.lvalue = "((" + type + "*)" + base.At(kUnary) + ")[" + at.text + "]";
  }
  // C forbids access through a pointer to another type than the memory has.
  place.address =
      "(char*)" + base.At(kUnary) + " + (int64_t)sizeof(" + type + ") * " + at.At(kUnary);
  return place;
}
Value FunctionWriter::Emit(const BufferLoadObj* op) {
  if (op->indices.size() != 1) {
    Unsupported("expected FlattenBuffer to leave one index of " + std::string(op->buffer->name) +
                    ", got " + std::to_string(op->indices.size()),
                op->span);
  }
  DataType t = op->buffer->dtype;
  Place place = ElementOf(op->buffer, Gen(op->indices[0]));
  Value v;
  if (IsPacked(t)) {
    v.text = file_.Helper("packed_load") + "(" + place.address + ", " + place.index + ", " +
             std::to_string(t.bits()) + ")";
    if (t.is_int()) v = Wrap(v, t);
  } else if (place.lvalue.empty()) {
    DataType held = t.is_bool() ? DataType::UInt(8) : t;
    v.text = file_.Helper("load", held) + "(" + place.address + ")";
  } else {
    v.text = place.lvalue;
  }
  if (t.is_bool()) {
    v.text += " != 0";
    v.level = kEqual;
  }
  v.reads = true;
  return v;
}
Value FunctionWriter::AddressOf(const BufferLoadObj* load) {
  Place place = ElementOf(load->buffer, Gen(load->indices[0]));
  Value v;
  v.level = kUnary;
  if (IsPacked(load->buffer->dtype)) {
    v.text = "(void*)(" + place.address + " + (" + place.index + ") * " +
             std::to_string(load->buffer->dtype.bits()) + " / 8)";
  } else if (place.lvalue.empty() || volatile_vars_.count(load->buffer->data.get())) {
    v.text = "(void*)(" + place.address + ")";
  } else {
    v.text = "(void*)&" + place.lvalue;
  }
  return v;
}

}  // namespace tvm::codegen::source
