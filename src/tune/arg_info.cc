// SPDX-License-Identifier: Apache-2.0
// Parameters of tuned functions, and the nodes around building and running.
#include <limits>
#include <numeric>

#include "tvm/expr/op.h"
#include "tvm/tune/measure.h"

namespace tvm::tune {
using tir::PrimFunc, tir::PrimFuncObj;

TensorInfo::TensorInfo(DataType dtype, ffi::Shape shape) {
  *this = New<TensorInfo>([&](TensorInfoObj* n) { n->dtype = dtype, n->shape = std::move(shape); });
}
ArgInfo ArgInfo::FromJson(const Any& json) {
  auto list = json.as<Array<Any>>();
  if (!list || list->size() != 3 || (*list)[0].as<String>().value_or("") != "TENSOR") {
    TVM_FFI_THROW(ValueError) << "ArgInfo.from_json: expected [\"TENSOR\", dtype, [extents]]";
  }
  std::vector<int64_t> shape;
  for (const Any& e : (*list)[2].cast<Array<Any>>()) shape.push_back(e.cast<int64_t>());
  return TensorInfo(DataType((*list)[1].cast<String>()), ffi::Shape(shape.begin(), shape.end()));
}
Any ArgInfo::AsJson() const {
  auto* tensor = as<TensorInfoObj>();
  if (!tensor) TVM_FFI_THROW(TypeError) << "ArgInfo.as_json: expected a TensorInfo";
  Array<Any> shape;
  for (int64_t e : tensor->shape) shape.push_back(e);
  return Array<Any>{String("TENSOR"), ffi::DLDataTypeToString(tensor->dtype), shape};
}
Array<ArgInfo> ArgsOf(const PrimFunc& func) {
  Array<ArgInfo> result;
  for (const tir::Var& param : func->params) {
    auto it = func->buffer_map.find(param);
    if (it == func->buffer_map.end()) {
      TVM_FFI_THROW(ValueError) << "meta_schedule: expected parameters that are tensors, got '"
                                << param->name_hint << "' of type " << param.dtype();
    }
    const tir::Buffer& buffer = (*it).second;
    std::vector<int64_t> shape;
    for (const PrimExpr& e : buffer->shape) {
      auto extent = AsConstInt(e);
      if (!extent) {
        TVM_FFI_THROW(ValueError)
            << "meta_schedule: expected tensors of constant shape, got a symbolic extent of '"
            << buffer->name << "'; specialise the function to the shapes to tune for";
      }
      shape.push_back(*extent);
    }
    result.push_back(TensorInfo(buffer->dtype, ffi::Shape(shape.begin(), shape.end())));
  }
  return result;
}
PrimFunc EntryFunc(const IRModule& mod) {
  Optional<PrimFunc> only, main;
  int count = 0;
  for (const auto& [var, func] : mod->Sorted()) {
    auto prim = func.as<PrimFunc>();
    if (!prim) continue;
    if (prim.value()->HasNonzeroAttr(tir::attr::kIsEntryFunc)) return *prim;
    if (var->name_hint == "main") main = *prim;
    only = *prim;
    ++count;
  }
  if (main.has_value()) return main.value();
  if (count == 1) return only.value();
  TVM_FFI_THROW(ValueError) << "meta_schedule: expected a module with one PrimFunc, or one called "
                               "'main', got "
                            << count;
  TVM_FFI_UNREACHABLE();
}
Seconds ConstantSeconds(const Seconds& secs) {
  if (!secs.has_value()) return secs;
  return secs.value().Map([](const Any& s) -> Any {
    if (s.as<FloatImmObj>()) return s;
    if (auto number = s.try_cast<double>()) return FloatImm(DataType::Float(64), *number);
    if (auto imm = s.as<IntImmObj>())
      return FloatImm(DataType::Float(64), static_cast<double>(imm->value));
    TVM_FFI_THROW(TypeError) << "run_secs: expected numbers, got " << s.GetTypeKey();
    TVM_FFI_UNREACHABLE();
  });
}
double MeanOf(const Seconds& secs) {
  if (!secs.has_value() || secs.value().empty()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const Any& s : secs.value()) sum += s.as<FloatImmObj>()->value;
  return sum / static_cast<double>(secs.value().size());
}

namespace {
TVM_REGISTER() {
  RegisterBase<ArgInfoObj>("A parameter of the function that is tuned.");
  RegisterNode<TensorInfoObj>("A tensor parameter: its dtype and shape.");
  RegisterNode<BuilderInputObj>("A module to build, for a target.");
  RegisterNode<BuilderResultObj>("The path of a library, or why there is none.");
  RegisterNode<RunnerInputObj>("A library to measure, and the arguments to call it with.");
  RegisterNode<RunnerResultObj>("Seconds of one call, or what went wrong.");
  Def(
      "meta_schedule.ArgInfo.as_json", [](ArgInfo self) { return self.AsJson(); },
      "[\"TENSOR\", dtype, [extents]]", Arg("self"));
  Def("meta_schedule._arg_info_from_json", &ArgInfo::FromJson, "Reads what as_json gave.",
      Arg("json_obj"));
  Def("meta_schedule._arg_info_from_prim_func", &ArgsOf, "One per parameter.", Arg("func"));
  Def(
      "meta_schedule._arg_info_from_entry_func",
      [](IRModule mod) { return ArgsOf(EntryFunc(mod)); }, "One per parameter of a module's entry.",
      Arg("mod"));
  Def("meta_schedule._entry_func", &EntryFunc, "The function of a module that tuning is about.",
      Arg("mod"));
}
}  // namespace
}  // namespace tvm::tune
