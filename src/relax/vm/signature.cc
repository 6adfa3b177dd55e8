// SPDX-License-Identifier: Apache-2.0
// What goes in and comes out of a function, as the runtime tells it to programs.
#include <tvm/ffi/extra/json.h>

#include "relax/vm/emitter.h"
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {
using SignatureJson = Map<String, Any>;

Any DimOf(const PrimExpr& dim) {
  if (auto extent = AsConstInt(dim)) return *extent;
  return String(TextOf(dim));
}
Array<Any> DimsOf(const Array<PrimExpr>& dims) {
  Array<Any> all;
  for (const PrimExpr& dim : dims) all.push_back(DimOf(dim));
  return all;
}
void SetShape(SignatureJson* entry, const Optional<Array<PrimExpr>>& dims, int64_t ndim) {
  if (dims.has_value()) {
    entry->Set("shape", DimsOf(dims.value()));
  } else if (ndim >= 0) {
    entry->Set("ndim", ndim);
  }
}
SignatureJson ValueEntry(const String& name, const StructInfo& info) {
  SignatureJson entry{{"name", name}};
  if (auto* tensor = info.as<TensorStructInfoObj>()) {
    entry.Set("kind", String("tensor"));
    if (!tensor->dtype.is_void()) entry.Set("dtype", String(tensor->dtype.str()));
    SetShape(&entry, tensor->Dims(), tensor->ndim);
  } else if (auto* shape = info.as<ShapeStructInfoObj>()) {
    entry.Set("kind", String("shape"));
    SetShape(&entry, shape->values, shape->ndim);
  } else if (auto* prim = info.as<PrimStructInfoObj>()) {
    entry.Set("kind", String("scalar"));
    entry.Set("dtype", String(prim->dtype.str()));
  } else if (auto* tuple = info.as<TupleStructInfoObj>()) {
    entry.Set("kind", String("tuple"));
    Array<Any> fields;
    for (const StructInfo& field : tuple->fields) fields.push_back(ValueEntry("", field));
    entry.Set("fields", fields);
  } else {
    entry.Set("kind", String("object"));
  }
  return entry;
}
/// Results one by one, as they are numbered: those of tuples in order.
void AddOutputs(const StructInfo& info, const Array<String>& names, Array<Any>* outputs) {
  if (auto* tuple = info.as<TupleStructInfoObj>()) {
    for (const StructInfo& field : tuple->fields) AddOutputs(field, names, outputs);
    return;
  }
  size_t i = outputs->size();
  String name = i < names.size() ? names[i] : String("output_" + std::to_string(i));
  outputs->push_back(ValueEntry(name, info));
}
}  // namespace

std::string VMSignature(const Function& func) {
  Array<Any> inputs, outputs;
  for (const Var& param : func->params)
    inputs.push_back(ValueEntry(param->name_hint(), GetStructInfo(param)));
  AddOutputs(func->ret_struct_info, func->GetAttr<Array<String>>("output_names").value_or({}),
             &outputs);
  return ffi::json::Stringify(SignatureJson{{"inputs", inputs}, {"outputs", outputs}});
}
}  // namespace tvm::relax
