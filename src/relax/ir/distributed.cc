// SPDX-License-Identifier: Apache-2.0
// Meshes of devices, placements and the struct info of distributed tensors.
#include "tvm/relax/distributed.h"

#include <charconv>

#include "tir/text.h"
#include "tvm/expr/op.h"

namespace tvm::relax::distributed {

void DeviceMeshObj::Init() {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  if (device_range.has_value() && device_ids.empty()) {
    auto min = AsConstInt(device_range.value()->min);
    auto extent = AsConstInt(device_range.value()->extent);
    if (!min || !extent) {
      TVM_FFI_THROW(ValueError) << "DeviceMesh: expected a range of constants, got "
                                << tir::TextOf(device_range.value());
    }
    for (int64_t i = 0; i < *extent; ++i) device_ids.push_back(*min + i);
  }
  if (static_cast<int64_t>(device_ids.size()) != size) {
    TVM_FFI_THROW(ValueError) << "DeviceMesh: expected one device id for each of the " << size
                              << " places of the mesh, got " << device_ids.size();
  }
}

PlacementSpec PlacementSpec::Sharding(int64_t axis) {
  return New<PlacementSpec>([&](PlacementSpecObj* n) {
    n->axis = axis;
    n->kind = PlacementSpecKind::kSharding;
  });
}
PlacementSpec PlacementSpec::Replica() {
  return New<PlacementSpec>([](PlacementSpecObj*) {});
}

String PlacementObj::str() const {
  std::string text;
  for (const PlacementSpec& spec : dim_specs) {
    bool is_split = spec->kind == PlacementSpecKind::kSharding;
    text += (text.empty() ? "" : ", ");
    text += is_split ? "S[" + std::to_string(spec->axis) + "]" : "R";
  }
  return text;
}
Placement Placement::FromText(const String& text) {
  Array<PlacementSpec> specs;
  std::string_view rest = View(text);
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    int64_t axis = -1;
    const char* end = word.data() + word.size();
    if (word == "R") {
      specs.push_back(PlacementSpec::Replica());
    } else if (word.size() > 3 && word.substr(0, 2) == "S[" && word.back() == ']' &&
               std::from_chars(word.data() + 2, end - 1, axis).ptr == end - 1) {
      specs.push_back(PlacementSpec::Sharding(axis));
    } else {
      TVM_FFI_THROW(ValueError) << "Placement: expected words \"R\" or \"S[axis]\", got '"
                                << std::string(word) << "'";
    }
  }
  return New<Placement>([&](PlacementObj* n) { n->dim_specs = specs; });
}

DTensorStructInfo::DTensorStructInfo(TensorStructInfo tensor_sinfo, DeviceMesh device_mesh,
                                     Placement placement, Optional<Span> span) {
  *this = New<DTensorStructInfo>([&](DTensorStructInfoObj* n) {
    n->tensor_sinfo = std::move(tensor_sinfo);
    n->device_mesh = std::move(device_mesh);
    n->placement = std::move(placement);
    n->span = std::move(span);
  });
}
void DTensorStructInfoObj::Init() {
  if (placement->dim_specs.size() != device_mesh->shape.size()) {
    TVM_FFI_THROW(ValueError) << "DTensorStructInfo: expected one placement for each of the "
                              << device_mesh->shape.size() << " dimensions of the mesh, got "
                              << placement->dim_specs.size();
  }
  for (const PlacementSpec& spec : placement->dim_specs) {
    bool is_split = spec->kind == PlacementSpecKind::kSharding;
    if (is_split && (spec->axis < 0 || spec->axis >= tensor_sinfo->ndim)) {
      TVM_FFI_THROW(ValueError) << "DTensorStructInfo: expected an axis of a tensor of "
                                << tensor_sinfo->ndim << " dimensions, got " << spec->axis;
    }
  }
}

namespace {
TVM_REGISTER() {
  RegisterNode<DeviceMeshObj>("Devices in the order of a grid.");
  RegisterNode<PlacementSpecObj>("What happens along one dimension of a mesh.");
  RegisterNode<PlacementObj>("One specification per dimension of a mesh.");
  RegisterNode<DTensorStructInfoObj>("A tensor spread over a mesh.");
  Def("relax.distributed.Placement._from_text", &Placement::FromText, "From \"S[0], R\".",
      Arg("text"));
  Def(
      "relax.distributed.Placement._text", [](Placement self) { return self->str(); },
      "The text \"S[0], R\".", Arg("self"));
}
}  // namespace
}  // namespace tvm::relax::distributed
