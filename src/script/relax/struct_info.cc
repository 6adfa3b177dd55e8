// SPDX-License-Identifier: Apache-2.0
// How struct info prints.
#include "script/relax/relax.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/distributed.h"

namespace tvm::script {
using namespace relax;

void PrintDim(Printer& p, const PrimExpr& e) {
  auto print = [&] {
    DataType outer = std::exchange(p.int_dtype, DataType::Int(64));
    PrintExpr(p, e);
    p.int_dtype = outer;
  };
  if (p.State<RelaxState>().signature && !e.as<IntImmObj>() && !e.as<FloatImmObj>())
    p.Quote(p.Captured(print));
  else
    print();
}

namespace {
void PrintDims(Printer& p, const Array<PrimExpr>& dims, bool tuple) {
  Printer::List list(p, tuple ? "(" : "[", tuple ? ")" : "]", tuple);
  for (const PrimExpr& dim : dims) {
    list.Item();
    PrintDim(p, dim);
  }
}
void PrintObjectInfo(Printer& p, const ObjectStructInfoObj*) { Relax(p, "Object"); }
void PrintPrimInfo(Printer& p, const PrimStructInfoObj* n) {
  Relax(p, "Prim");
  Printer::List list(p, "(", ")");
  if (n->value.has_value())
    PrintDim(list.Keyword("value"), n->value.value());
  else
    list.Item().Quote(n->dtype.str());
}
void PrintShapeInfo(Printer& p, const ShapeStructInfoObj* n) {
  Relax(p, "Shape");
  if (!n->values.has_value() && n->ndim < 0) return;
  Printer::List list(p, "(", ")");
  if (n->values.has_value())
    PrintDims(list.Item(), n->values.value(), false);
  else
    list.Keyword("ndim") << n->ndim;
}
/// "cuda:0:global" for a device of the module: its place among those of one kind.
std::string NameOfDevice(Printer& p, const VDeviceObj* device) {
  if (!p.module) return "";
  auto it = p.module->global_infos.find("vdevice");
  if (it == p.module->global_infos.end()) return "";
  int64_t index = 0;
  for (const GlobalInfo& info : (*it).second) {
    auto* other = info.as<VDeviceObj>();
    if (!other || other->target->kind->name != device->target->kind->name) continue;
    if (StructuralEqual(info, ffi::GetRef<VDevice>(device))) {
      return std::string(other->target->kind->name) + ":" + std::to_string(index) + ":" +
             std::string(other->memory_scope);
    }
    ++index;
  }
  return "";
}
void PrintDevice(Printer& p, const VDeviceObj* n) {
  if (std::string name = NameOfDevice(p, n); !name.empty())
    p.Quote(name);
  else
    p.Node(n);
}
/// The arguments that R.Tensor and R.DTensor share.
void TensorArgs(Printer& p, Printer::List& list, const TensorStructInfoObj* n) {
  if (n->shape.has_value()) {
    list.Item();
    if (auto* shape = n->shape.value().as<ShapeExprObj>())
      PrintDims(p, shape->values, true);
    else
      PrintRelax(p, n->shape.value());
  }
  if (!n->IsUnknownDtype()) list.Keyword("dtype").Quote(n->dtype.str());
  if (n->vdevice.has_value()) PrintDevice(list.Keyword("vdevice"), n->vdevice.value().get());
  if (!n->shape.has_value() && !n->IsUnknownNdim()) list.Keyword("ndim") << n->ndim;
}
void PrintTensorInfo(Printer& p, const TensorStructInfoObj* n) {
  Relax(p, "Tensor");
  if (!n->shape.has_value() && n->IsUnknownDtype() && n->IsUnknownNdim() && !n->vdevice.has_value())
    return;
  Printer::List list(p, "(", ")");
  TensorArgs(p, list, n);
}
void PrintTupleInfo(Printer& p, const TupleStructInfoObj* n) {
  Relax(p, "Tuple");
  if (n->fields.empty()) return;
  Printer::List list(p, "(", ")");
  for (const StructInfo& field : n->fields) list.Item().Node(field.get());
}
void PrintFuncInfo(Printer& p, const FuncStructInfoObj* n) {
  Relax(p, "Callable");
  bool opaque = n->IsOpaque();
  if (opaque && !n->purity && !n->derive_func.has_value() && n->ret.as<ObjectStructInfoObj>())
    return;
  Printer::List list(p, "(", ")");
  if (opaque) {
    list.Keyword("ret").Node(n->ret.get());
    list.Keyword("purity") << (n->purity ? "True" : "False");
    if (n->derive_func.has_value())
      list.Keyword("derive_func").Quote(View(n->derive_func.value()->name));
    return;
  }
  {
    list.Item();
    Printer::List params(p, "(", ")", true);
    for (const StructInfo& param : n->params.value()) params.Item().Node(param.get());
  }
  list.Item().Node(n->ret.get());
  list.Item() << (n->purity ? "True" : "False");
}

// ---- tensors spread over devices ----------------------------------------------------------------
void PrintDTensorInfo(Printer& p, const distributed::DTensorStructInfoObj* n) {
  Relax(p, "DTensor");
  Printer::List list(p, "(", ")");
  TensorArgs(p, list, n->tensor_sinfo.get());
  list.Keyword("device_mesh").Node(n->device_mesh.get());
  list.Keyword("placement").Quote(View(n->placement->str()));
}
void PrintDeviceMesh(Printer& p, const distributed::DeviceMeshObj* n) {
  Relax(p, "device_mesh");
  Printer::List list(p, "(", ")");
  {
    list.Item();
    Printer::List shape(p, "(", ")", true);
    for (int64_t extent : n->shape) shape.Item() << extent;
  }
  list.Item();
  if (n->device_range.has_value()) {
    p.Node(n->device_range.value().get());
  } else {
    Printer::List ids(p, "[", "]");
    for (int64_t id : n->device_ids) ids.Item() << id;
  }
}

void PrintWholeInfo(Printer& p, const StructInfoObj* n) {
  DeclareFreeRelax(p, ffi::GetRef<StructInfo>(n));
  p.Node(n);
}
TVM_REGISTER() {
  DefPrint<ObjectStructInfoObj, &PrintObjectInfo>();
  DefPrint<PrimStructInfoObj, &PrintPrimInfo>();
  DefPrint<ShapeStructInfoObj, &PrintShapeInfo>();
  DefPrint<TensorStructInfoObj, &PrintTensorInfo>();
  DefPrint<TupleStructInfoObj, &PrintTupleInfo>();
  DefPrint<FuncStructInfoObj, &PrintFuncInfo>();
  DefPrint<distributed::DTensorStructInfoObj, &PrintDTensorInfo>();
  DefPrint<distributed::DeviceMeshObj, &PrintDeviceMesh>();
  DefPrintWhole<StructInfoObj, &PrintWholeInfo>();
}
}  // namespace
}  // namespace tvm::script
