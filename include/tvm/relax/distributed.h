// SPDX-License-Identifier: Apache-2.0
// Tensors spread over a mesh of devices.
#pragma once
#include "tvm/relax/struct_info.h"

namespace tvm::relax::distributed {

/// Devices in the order of a grid.
struct DeviceMeshObj : GlobalInfoObj {
  ffi::Shape shape;
  Array<int64_t> device_ids;
  Optional<Range> device_range;  // the ids, when they were given as a range
  static void Fields(auto&& def) {
    def("shape", &DeviceMeshObj::shape);
    def("device_ids", &DeviceMeshObj::device_ids);
    def("device_range", &DeviceMeshObj::device_range, Default(nullptr));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.distributed.DeviceMesh", DeviceMeshObj, GlobalInfoObj);
};
TVM_NODE_REF(DeviceMesh, GlobalInfo, DeviceMeshObj);

enum class PlacementSpecKind : int { kSharding = 0, kReplica = 1 };

/// What happens along one dimension of the mesh: axis `axis` of the tensor is split, or the tensor
/// is repeated.
struct PlacementSpecObj : NodeObj {
  int64_t axis = -1;
  PlacementSpecKind kind = PlacementSpecKind::kReplica;
  static void Fields(auto&& def) {
    def("axis", &PlacementSpecObj::axis);
    def("kind", &PlacementSpecObj::kind);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.distributed.PlacementSpec", PlacementSpecObj, NodeObj);
};
struct PlacementSpec : ObjectRef {
  static PlacementSpec Sharding(int64_t axis);
  static PlacementSpec Replica();
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PlacementSpec, ObjectRef, PlacementSpecObj);
};

/// One specification per dimension of the mesh; its text is "S[0], R".
struct PlacementObj : NodeObj {
  Array<PlacementSpec> dim_specs;
  static void Fields(auto&& def) { def("dim_specs", &PlacementObj::dim_specs); }
  String str() const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.distributed.Placement", PlacementObj, NodeObj);
};
struct Placement : ObjectRef {
  static Placement FromText(const String& text);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Placement, ObjectRef, PlacementObj);
};

/// A tensor spread over a mesh.
struct DTensorStructInfoObj : StructInfoObj {
  DeviceMesh device_mesh;
  Placement placement;
  TensorStructInfo tensor_sinfo;
  static constexpr std::string_view kParamOrder = "tensor_sinfo,device_mesh,placement,span";
  static void Fields(auto&& def) {
    def("device_mesh", &DTensorStructInfoObj::device_mesh);
    def("placement", &DTensorStructInfoObj::placement);
    def("tensor_sinfo", &DTensorStructInfoObj::tensor_sinfo);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.DTensorStructInfo", DTensorStructInfoObj, StructInfoObj);
};
struct DTensorStructInfo : StructInfo {
  DTensorStructInfo(TensorStructInfo tensor_sinfo, DeviceMesh device_mesh, Placement placement,
                    Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DTensorStructInfo, StructInfo, DTensorStructInfoObj);
};

}  // namespace tvm::relax::distributed
