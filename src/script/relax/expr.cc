// SPDX-License-Identifier: Apache-2.0
// How Relax expressions print inside a line. A call of an operator follows the operator's schema.
#include <algorithm>

#include "script/relax/relax.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/attribute.h"

namespace tvm::script {
using namespace relax;
namespace {

// ---- leaves -------------------------------------------------------------------------------------
void PrintRelaxVar(Printer& p, const relax::VarObj* n) { p << p.Name(n, n->name_hint()); }
void PrintExprs(Printer& p, const Array<Expr>& exprs, Printer::List& list) {
  for (const Expr& e : exprs) PrintRelax(list.Item(), e);
}
void PrintRelaxTuple(Printer& p, const TupleObj* n) {
  if (n->fields.empty()) {
    Relax(p, "tuple()");
    return;
  }
  Printer::List list(p, "(", ")", true);
  PrintExprs(p, n->fields, list);
}
void PrintGetItem(Printer& p, const TupleGetItemObj* n) {
  PrintRelax(p, n->tuple_value);
  p << "[" << n->index << "]";
}
void PrintShape(Printer& p, const ShapeExprObj* n) {
  Relax(p, "shape([");
  {
    Printer::List list(p, "", "");
    for (const PrimExpr& e : n->values) PrintDim(list.Item(), e);
  }
  p << "])";
}
void PrintPrimValue(Printer& p, const PrimValueObj* n) {
  Relax(p, "prim_value(");
  PrintDim(p, n->value);
  p << ")";
}
void PrintRelaxString(Printer& p, const relax::StringImmObj* n) {
  Relax(p, "str(").Quote(View(n->value)) << ")";
}
void PrintTypeValue(Printer& p, const DataTypeImmObj* n) {
  Relax(p, "dtype(").Quote(n->value.is_void() ? "" : n->value.str()) << ")";
}
/// The number in a tensor of no dimensions that Python can write: None otherwise.
Any ScalarOf(const ffi::Tensor& tensor) {
  DataType t = tensor.dtype();
  if (tensor.ndim() != 0 || !t.is_scalar() || tensor.device().device_type != kDLCPU) return nullptr;
  const void* data = tensor.data_ptr();
  auto get = [&]<class T>(T) { return *static_cast<const T*>(data); };
  if (t.is_bool()) return get(bool{});
  if (t.is_ieee_float() && t.bits() == 32) return static_cast<double>(get(float{}));
  if (t.is_ieee_float() && t.bits() == 64) return get(double{});
  bool is_signed = t.is_int();
  if (!is_signed && !t.is_uint()) return nullptr;
  switch (t.bits()) {
    case 8:
      return static_cast<int64_t>(is_signed ? get(int8_t{}) : get(uint8_t{}));
    case 16:
      return static_cast<int64_t>(is_signed ? get(int16_t{}) : get(uint16_t{}));
    case 32:
      return is_signed ? static_cast<int64_t>(get(int32_t{}))
                       : static_cast<int64_t>(get(uint32_t{}));
    case 64:
      if (is_signed) return get(int64_t{});
  }
  return nullptr;
}
void PrintConstant(Printer& p, const ConstantObj* n) {
  Any number = ScalarOf(n->data);
  // A constant can say less, or more, than its data: a device.
  bool plain = number != nullptr && n->struct_info_.has_value() &&
               StructuralEqual(n->struct_info_.value(),
                               TensorStructInfo(Array<PrimExpr>(), DataType(n->data.dtype())));
  if (!plain) return p.Metadata(ffi::GetRef<Constant>(n));
  Relax(p, "const(");
  p.Value(number);
  p << ", ";
  p.Quote(DataType(n->data.dtype()).str()) << ")";
}
// ---- calls --------------------------------------------------------------------------------------
void PrintInfos(Printer& p, const Array<StructInfo>& infos, bool tuple) {
  Printer::List list(p, tuple ? "(" : "[", tuple ? ")" : "]", tuple);
  for (const StructInfo& info : infos) list.Item().Node(info.get());
}
/// Attributes by the names of their fields.
void PrintFields(Printer& p, Printer::List& list, const Attrs& attrs) {
  if (auto* dict = attrs.as<DictAttrsObj>()) {
    for (const auto& [key, value] : dict->dict) list.Keyword(View(key)).Value(value);
  }
}
/// The fields of attributes say what they hold: types are texts, int32 constants numbers.
void PrintAttribute(Printer& p, const Any& value) {
  auto* number = value.as<IntImmObj>();
  if (auto type = value.as<DataType>(); type && value.type_index() == kTVMFFIDataType) {
    p.Quote(type->is_void() ? "void" : type->str());
  } else if (number && number->dtype == DataType::Int(32)) {
    p << number->value;
  } else if (auto* array = value.as<ffi::ArrayObj>()) {
    Printer::List list(p, "[", "]");
    for (const Any& item : *array) PrintAttribute(list.Item(), item);
  } else {
    p.Value(value);
  }
}
/// R.Call(op, [args], attrs, [sinfo_args]): what no other form says.
void PrintPlainCall(Printer& p, const relax::CallObj* n) {
  Relax(p, "Call");
  Printer::List list(p, "(", ")");
  PrintRelax(list.Item(), n->op);
  {
    list.Item();
    Printer::List args(p, "[", "]");
    PrintExprs(p, n->args, args);
  }
  if (n->attrs.has_value()) list.Keyword("attrs").Value(n->attrs.value());
  if (!n->sinfo_args.empty()) PrintInfos(list.Keyword("sinfo_args"), n->sinfo_args, false);
}
/// Whether the call is one that the function can make: as many arguments as it takes, and all else
/// in its parameters.
bool Fits(const OperatorForm& form, const relax::CallObj* n) {
  size_t count = n->args.size();
  if (!form.function || count < form.required || (count > form.arguments && !form.has_rest))
    return false;
  auto takes = [&](std::string_view name, OperatorForm::Role role) {
    for (size_t i = 0; i < form.roles.size(); ++i) {
      if (form.roles[i] == role && name == form.function->args[i].name) return true;
    }
    return false;
  };
  if (n->attrs.has_value()) {
    if (auto* dict = n->attrs.value().as<DictAttrsObj>()) {
      for (const auto& [key, value] : dict->dict) {
        if (!takes(View(key), OperatorForm::kAttribute)) return false;
      }
    } else {
      for (const Field* field : InfoOf(n->attrs.value()->type_index()).params) {
        if (!takes(field->name, OperatorForm::kAttribute)) return false;
      }
    }
  }
  return n->sinfo_args.empty() ||
         std::count(form.roles.begin(), form.roles.end(), OperatorForm::kInfo) == 1;
}
// ---- operators whose functions take their arguments in another order ----------------------------
/// R.print(x, format=R.str("{}")): the format is the first argument of the call.
void PrintPrint(Printer& p, const relax::CallObj* n) {
  Relax(p, "print");
  Printer::List list(p, "(", ")");
  for (size_t i = 1; i < n->args.size(); ++i) PrintRelax(list.Item(), n->args[i]);
  PrintRelax(list.Keyword("format"), n->args[0]);
}
/// R.assert_op(c, x, format=R.str("{}")): it is the second.
void PrintAssert(Printer& p, const relax::CallObj* n) {
  Relax(p, "assert_op");
  Printer::List list(p, "(", ")");
  PrintRelax(list.Item(), n->args[0]);
  if (n->args.size() == 3) {
    PrintRelax(list.Item(), n->args[2]);
  } else if (n->args.size() > 3) {
    list.Item();
    Printer::List values(p, "[", "]");
    for (size_t i = 2; i < n->args.size(); ++i) PrintRelax(values.Item(), n->args[i]);
  }
  PrintRelax(list.Keyword("format"), n->args[1]);
}
/// R.hint_on_device(x, R.device(1, 0)): a device is two attributes of the call.
void PrintHint(Printer& p, const relax::CallObj* n) {
  auto value = [&](const char* name) {
    Any found;
    FindAttribute(n->attrs.value(), name, &found);
    return found;
  };
  Relax(p, "hint_on_device(");
  PrintRelax(p, n->args[0]);
  p << ", ";
  Relax(p, "device(") << value("device_type").cast<int64_t>() << ", "
                      << value("index").cast<int64_t>() << "), ";
  p.Quote(View(value("memory_scope").cast<String>())) << ")";
}
struct OwnForm {
  std::string_view name;
  size_t arguments;  // at least
  bool attributes;
  void (*print)(Printer&, const relax::CallObj*);
};
constexpr OwnForm kOwnForms[] = {{"relax.print", 1, false, &PrintPrint},
                                 {"relax.assert_op", 2, false, &PrintAssert},
                                 {"relax.hint_on_device", 1, true, &PrintHint}};

void PrintOperatorCall(Printer& p, const OperatorForm& form, const relax::CallObj* n) {
  auto* op = n->op.as<OpObj>();
  Relax(p, std::string_view(form.function->name).substr(sizeof("relax.op.") - 1));
  Printer::List list(p, "(", ")");
  size_t next = 0;         // argument of the call
  bool positional = true;  // nothing was left out so far
  for (size_t i = 0; i < form.roles.size(); ++i) {
    std::string_view name = form.function->args[i].name;
    switch (form.roles[i]) {
      case OperatorForm::kRest:
        while (next < n->args.size()) PrintRelax(list.Item(), n->args[next++]);
        positional = false;
        break;
      case OperatorForm::kAttribute: {
        positional = false;
        Any value;
        if (n->attrs.has_value() && FindAttribute(n->attrs.value(), name, &value))
          PrintAttribute(list.Keyword(name), value);
        break;
      }
      case OperatorForm::kInfo: {
        positional = false;
        if (n->sinfo_args.empty()) break;
        list.Keyword(name);
        auto* tuple = n->sinfo_args[0].as<TupleStructInfoObj>();
        if (!form.says_info)
          PrintInfos(p, n->sinfo_args, true);
        else if (tuple && !tuple->fields.empty())
          PrintInfos(p, tuple->fields, false);
        else
          p.Node(n->sinfo_args[0].get());
        break;
      }
      case OperatorForm::kArgument: {
        if (next >= n->args.size()) {
          positional = false;
          break;
        }
        bool is_function = op->arguments[next]->type_info == "Func";
        const Expr& arg = n->args[next++];
        if (positional)
          list.Item();
        else
          list.Keyword(name);
        auto* packed = arg.as<ExternFuncObj>();
        if (is_function && packed)
          p.Quote(View(packed->global_symbol));
        else
          PrintRelax(p, arg);
      }
    }
  }
}
void PrintRelaxCall(Printer& p, const relax::CallObj* n) {
  if (auto* op = n->op.as<OpObj>()) {
    for (const OwnForm& own : kOwnForms) {
      if (View(op->name) == own.name && n->args.size() >= own.arguments &&
          n->attrs.has_value() == own.attributes && n->sinfo_args.empty()) {
        return own.print(p, n);
      }
    }
    const OperatorForm& form = FormOf(p, op);
    return Fits(form, n) ? PrintOperatorCall(p, form, n) : PrintPlainCall(p, n);
  }
  auto* dict = n->attrs.has_value() ? n->attrs.value().as<DictAttrsObj>() : nullptr;
  if (auto* packed = n->op.as<ExternFuncObj>(); packed && (!n->attrs.has_value() || dict)) {
    Relax(p, "call_packed");
    Printer::List list(p, "(", ")");
    list.Item().Quote(View(packed->global_symbol));
    PrintExprs(p, n->args, list);
    if (!n->sinfo_args.empty()) PrintInfos(list.Keyword("sinfo_args"), n->sinfo_args, true);
    if (n->attrs.has_value()) PrintFields(p, list, n->attrs.value());
    return;
  }
  if (n->attrs.has_value() || !n->sinfo_args.empty()) return PrintPlainCall(p, n);
  PrintRelax(p, n->op);
  Printer::List list(p, "(", ")");
  PrintExprs(p, n->args, list);
}
void PrintVDevice(Printer& p, const VDeviceObj* n) {
  p.Ir("vdevice");
  Printer::List list(p, "(", ")");
  list.Item().Value(n->target->Export());
  list.Item() << n->vdevice_id;
  list.Item().Quote(View(n->memory_scope));
}
void PrintBlockInPlace(Printer& p, const BindingBlockObj* n) { PrintAsMetadata(p, n); }
void PrintBindingInPlace(Printer& p, const BindingObj* n) { PrintAsMetadata(p, n); }
void PrintSeqInPlace(Printer& p, const SeqExprObj* n) { PrintAsMetadata(p, n); }
void PrintIfInPlace(Printer& p, const IfObj* n) { PrintAsMetadata(p, n); }
}  // namespace

void PrintExtern(Printer& p, const ExternFuncObj* n) {
  Relax(p, "ExternFunc");
  Printer::List list(p, "(", ")");
  list.Item().Quote(View(n->global_symbol));
  if (n->struct_info_.has_value() &&
      !StructuralEqual(n->struct_info_.value(),
                       ExternFunc(n->global_symbol)->struct_info_.value())) {
    list.Item().Node(n->struct_info_.value().get());
  }
}
const OperatorForm& FormOf(Printer& p, const OpObj* op) {
  auto [it, is_new] = p.State<RelaxState>().forms.try_emplace(op);
  OperatorForm& form = it->second;
  std::string_view name = View(op->name);
  if (!is_new || !name.starts_with("relax.")) return form;
  form.function = FindFunction("relax.op." + std::string(name.substr(6)));
  if (!form.function) return form;
  for (const Arg& parameter : form.function->args) {
    std::string_view param = parameter.name;
    bool is_argument = std::any_of(op->arguments.begin(), op->arguments.end(),
                                   [&](const ArgumentInfo& a) { return View(a->name) == param; });
    bool is_rest = param.starts_with("*");
    bool is_info = param == "out_sinfo" || param == "sinfo_args";
    form.roles.push_back(is_rest       ? OperatorForm::kRest
                         : is_argument ? OperatorForm::kArgument
                         : is_info     ? OperatorForm::kInfo
                                       : OperatorForm::kAttribute);
    form.has_rest |= is_rest;
    form.says_info |= param == "out_sinfo";
    form.arguments += is_argument && !is_rest;
    form.required += is_argument && !is_rest && !parameter.has_default;
  }
  return form;
}
void PrintRelax(Printer& p, const Expr& e) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { PrintRelax(p, e); });
  p.CheckSize();
  p.Node(e.get(), &e);
}

namespace {
TVM_REGISTER() {
  DefPrint<relax::VarObj, &PrintRelaxVar>();
  DefPrint<TupleObj, &PrintRelaxTuple>();
  DefPrint<TupleGetItemObj, &PrintGetItem>();
  DefPrint<ShapeExprObj, &PrintShape>();
  DefPrint<PrimValueObj, &PrintPrimValue>();
  DefPrint<relax::StringImmObj, &PrintRelaxString>();
  DefPrint<DataTypeImmObj, &PrintTypeValue>();
  DefPrint<ConstantObj, &PrintConstant>();
  DefPrint<relax::CallObj, &PrintRelaxCall>();
  DefPrint<VDeviceObj, &PrintVDevice>();
  DefPrint<BindingBlockObj, &PrintBlockInPlace>();
  DefPrint<BindingObj, &PrintBindingInPlace>();
  DefPrint<SeqExprObj, &PrintSeqInPlace>();
  DefPrint<IfObj, &PrintIfInPlace>();
}
}  // namespace
}  // namespace tvm::script
