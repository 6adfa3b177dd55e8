// SPDX-License-Identifier: Apache-2.0
// Traces as plain data (JSON) and as Python.
//
// JSON: [instructions, decisions], an instruction is [kind, inputs, attrs, outputs] and a decision
// [index of the instruction, value]. In inputs a random variable is its name, a text is quoted once
// more; a node (an expression, an index map) is {"$node": its JSON}.
#include <charconv>
#include <cmath>

#include "schedule.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {

constexpr const char* kNode = "$node";

/// The number that an immediate is, or None.
Any PlainNumber(const Any& value) {
  if (auto* n = value.as<IntImmObj>()) {
    if (n->dtype.is_bool()) return n->value != 0;
    return n->value;
  }
  if (auto* n = value.as<FloatImmObj>()) return n->value;
  return nullptr;
}
bool IsNode(const Any& value) {
  return value.type_index() >= ffi::TypeIndex::kTVMFFIDynObjectBegin;
}

/// The expression with random variables replaced by ones that carry their names.
Any WithNames(const Any& value, const RVNames& names) {
  auto* expr = value.as<PrimExprObj>();
  if (!expr) return value;
  Map<Var, PrimExpr> named;
  return Substitute(ffi::GetRef<PrimExpr>(expr), [&](const Var& var) -> PrimExpr {
    std::string name = names.Of(var);
    if (name.empty()) return {};
    if (!named.count(var)) named.Set(var, Var(name, var.dtype()));
    return named[var];
  });
}

// ---- JSON --------------------------------------------------------------------------------------
Any ToJson(const Any& value, const RVNames& names, bool input) {
  if (auto items = value.try_cast<Array<Any>>()) {
    Array<Any> all;
    for (const Any& item : *items) all.push_back(ToJson(item, names, input));
    return all;
  }
  if (auto items = value.try_cast<Map<String, Any>>()) {
    Map<String, Any> all;
    for (const auto& [key, item] : *items) all.Set(key, ToJson(item, names, input));
    return all;
  }
  if (auto text = value.try_cast<String>()) {
    return input ? String("\"" + std::string(*text) + "\"") : *text;
  }
  if (Any number = PlainNumber(value); number != nullptr) return number;
  if (!IsNode(value)) return value;
  if (std::string name = names.Of(value.cast<ObjectRef>()); !name.empty()) return String(name);
  return Map<String, Any>{{kNode, SaveJson(WithNames(value, names))}};
}

struct Reader {
  std::unordered_map<std::string, ObjectRef> named;

  Any FromJson(const Any& value, bool input) const {
    if (auto items = value.try_cast<Array<Any>>()) {
      Array<Any> all;
      for (const Any& item : *items) all.push_back(FromJson(item, input));
      return all;
    }
    if (auto items = value.try_cast<Map<String, Any>>()) {
      if (items->size() == 1 && items->count(kNode)) return Load((*items)[kNode]);
      Map<String, Any> all;
      for (const auto& [key, item] : *items) all.Set(key, FromJson(item, input));
      return all;
    }
    auto text = value.try_cast<String>();
    if (!text || !input) return value;
    std::string_view view = View(*text);
    if (view == "None") return nullptr;  // as some versions write it
    if (view.size() >= 2 && view.front() == '"' && view.back() == '"') {
      return String(std::string(view.substr(1, view.size() - 2)));
    }
    auto it = named.find(std::string(view));
    if (it == named.end()) {
      TVM_FFI_THROW(ValueError) << "Trace: expected a random variable defined before, got '" << view
                                << "'";
    }
    return it->second;
  }
  Any Load(const Any& text) const {
    Any node = LoadJson(text.cast<String>());
    auto* expr = node.as<PrimExprObj>();
    if (!expr) return node;
    return Substitute(ffi::GetRef<PrimExpr>(expr), [&](const Var& var) -> PrimExpr {
      auto it = named.find(std::string(var->name_hint));
      return it == named.end() ? PrimExpr() : Any(it->second).cast<PrimExpr>();
    });
  }
};

template <class T>
T Expect(const Any& value, const char* what) {
  auto result = value.try_cast<T>();
  if (!result) {
    TVM_FFI_THROW(ValueError) << "Trace: expected " << what << ", got a value of type "
                              << value.GetTypeKey();
  }
  return *std::move(result);
}

// ---- Python ------------------------------------------------------------------------------------
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}
std::string ToPython(const Any& value, const RVNames& names) {
  if (value == nullptr) return "None";
  if (auto text = value.as<String>()) return Quoted(View(*text));
  if (value.type_index() == ffi::TypeIndex::kTVMFFIBool)
    return value.cast<bool>() ? "True" : "False";
  if (value.type_index() == ffi::TypeIndex::kTVMFFIInt)
    return std::to_string(value.cast<int64_t>());
  if (value.type_index() == ffi::TypeIndex::kTVMFFIFloat) {
    double x = value.cast<double>();
    if (!std::isfinite(x))
      return std::isnan(x) ? "float(\"nan\")" : x > 0 ? "float(\"inf\")" : "float(\"-inf\")";
    char digits[32];  // the shortest text that reads back as the same number
    std::string text(digits, std::to_chars(digits, digits + sizeof(digits), x).ptr);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  auto join = [&](const auto& items, auto&& each) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ", ") + each(item);
    return text;
  };
  if (auto items = value.try_cast<Array<Any>>()) {
    return "[" + join(*items, [&](const Any& item) { return ToPython(item, names); }) + "]";
  }
  if (auto items = value.try_cast<Map<String, Any>>()) {
    return "{" +
           join(*items,
                [&](const auto& kv) {
                  return Quoted(View(kv.first)) + ": " + ToPython(kv.second, names);
                }) +
           "}";
  }
  if (Any number = PlainNumber(value); number != nullptr) return ToPython(number, names);
  if (std::string name = names.Of(value.cast<ObjectRef>()); !name.empty()) return name;
  Array<Var> defined;
  if (auto* map = value.as<IndexMapObj>()) defined = map->initial_indices;
  for (const Var& var : UndefinedVars(value.cast<ObjectRef>(), defined)) {
    // A variable of the program has no name in Python.
    if (names.Of(var).empty()) return "tvm.ir.load_json(" + Quoted(View(SaveJson(value))) + ")";
  }
  if (auto* map = value.as<IndexMapObj>()) {
    std::string args, results;
    for (const Var& v : map->initial_indices) {
      args += (args.empty() ? "" : ", ") + std::string(v->name_hint);
    }
    for (const PrimExpr& e : map->final_indices) results += Text(e) + ", ";
    // The inverse cannot be said in the lambda.
    if (!map->inverse_index_map) return "lambda " + args + ": (" + results + ")";
  } else if (value.as<PrimExprObj>()) {
    return Text(WithNames(value, names).cast<PrimExpr>());
  }
  return "tvm.ir.load_json(" + Quoted(View(SaveJson(value))) + ")";
}

std::string PythonLine(const Instruction& inst, const Any& decision, const RVNames& names) {
  const Primitive& primitive = *inst->kind->primitive;
  std::string text;
  for (size_t i = 0; i < inst->outputs.size(); ++i) {
    text += (i ? ", " : "") + names.Of(inst->outputs[i].cast<ObjectRef>());
  }
  if (primitive.returns_list && inst->outputs.size() == 1) text += ",";
  if (!text.empty()) text += " = ";
  text += "sch." + std::string(primitive.method()) + "(";
  size_t input = 0, attr = 0;
  bool first = true;
  for (size_t i = 0; i < primitive.roles.size(); ++i) {
    std::string_view name = primitive.args[i + 1].name;
    std::string value;
    switch (primitive.roles[i]) {
      case ArgRole::kInput:
        value = ToPython(inst->inputs[input++], names);
        break;
      case ArgRole::kFlatInput:
        value = ToPython(Array<Any>(inst->inputs.begin() + input, inst->inputs.end()), names);
        break;
      case ArgRole::kAttr:
        value = ToPython(inst->attrs[attr++], names);
        break;
      case ArgRole::kDecision:
        value = ToPython(decision, names);
        break;
    }
    text += first ? "" : ", ";
    first = false;
    if (name.front() == '*') {
      text += value.substr(1, value.size() - 2);  // without the brackets
    } else {
      text += std::string(name) + "=" + value;
    }
  }
  return text + ")";
}

}  // namespace

Array<Any> Trace::AsJson(bool remove_postproc) const {
  RVNames names;
  Array<Any> insts, decisions;
  for (const Instruction& inst : Selected(*this, remove_postproc)) {
    auto convert = [&](bool input) {
      return [&, input](const Any& value) { return ToJson(value, names, input); };
    };
    Array<Any> inputs = inst->inputs.Map(convert(true)), attrs = inst->attrs.Map(convert(false));
    names.Define(inst->outputs);
    Any decision = get()->GetDecision(inst);
    if (decision != nullptr) {
      decisions.push_back(
          Array<Any>{static_cast<int64_t>(insts.size()), ToJson(decision, names, false)});
    }
    insts.push_back(Array<Any>{inst->kind->name, inputs, attrs, inst->outputs.Map(convert(true))});
  }
  return {insts, decisions};
}

void Trace::ApplyJsonToSchedule(const Array<Any>& json, const Schedule& sch) {
  if (json.size() != 2) {
    TVM_FFI_THROW(ValueError) << "Trace: expected [instructions, decisions], got a list of "
                              << json.size();
  }
  std::unordered_map<int64_t, Any> decisions;
  for (const Any& item : Expect<Array<Any>>(json[1], "a list of decisions")) {
    auto pair = Expect<Array<Any>>(item, "a decision [index, value]");
    if (pair.size() != 2) TVM_FFI_THROW(ValueError) << "Trace: expected [index, value]";
    decisions[Expect<int64_t>(pair[0], "the index of an instruction")] = pair[1];
  }
  Reader reader;
  int64_t index = 0;
  for (const Any& item : Expect<Array<Any>>(json[0], "a list of instructions")) {
    auto parts = Expect<Array<Any>>(item, "an instruction");
    if (parts.size() != 4) {
      TVM_FFI_THROW(ValueError) << "Trace: expected [kind, inputs, attrs, outputs], got a list of "
                                << parts.size();
    }
    auto read = [&](int i, bool input) {
      return Expect<Array<Any>>(parts[i], "a list").Map([&](const Any& value) {
        return reader.FromJson(value, input);
      });
    };
    auto kind = InstructionKind::Get(Expect<String>(parts[0], "the name of a primitive"));
    auto decision = decisions.find(index++);
    Array<Any> results = ApplyInstruction(
        sch.get(), kind, read(1, true), read(2, false),
        decision == decisions.end() ? Any(nullptr) : reader.FromJson(decision->second, false));
    auto outputs = Expect<Array<Any>>(parts[3], "a list of names");
    if (outputs.size() != results.size()) {
      TVM_FFI_THROW(ValueError) << "Trace: expected " << outputs.size() << " results of "
                                << kind->name << ", got " << results.size();
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      reader.named[Expect<String>(outputs[i], "a name")] = results[i].cast<ObjectRef>();
    }
  }
}

Array<String> Trace::AsPython(bool remove_postproc) const {
  RVNames names;
  Array<String> lines;
  for (const Instruction& inst : Selected(*this, remove_postproc)) {
    names.Define(inst->outputs);
    lines.push_back(PythonLine(inst, get()->GetDecision(inst), names));
  }
  return lines;
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.schedule._instruction_text",
      [](Instruction inst) { return String(PythonLine(inst, nullptr, RVNames("_"))); },
      "The call of an instruction; its random variables have no names.", Arg("inst"));
}
}  // namespace

}  // namespace tvm::tir
