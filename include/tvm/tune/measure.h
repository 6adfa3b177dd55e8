// SPDX-License-Identifier: Apache-2.0
// What goes into building and running candidates, and what comes out.
#pragma once
#include "tvm/ir/target.h"
#include "tvm/runtime/tensor.h"
#include "tvm/tir/function.h"

namespace tvm::tune {

/// A parameter of the function that is tuned.
struct ArgInfoObj : NodeObj {
  static constexpr uint32_t _type_child_slots = 2;
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.ArgInfo", ArgInfoObj, NodeObj);
};
struct ArgInfo : ObjectRef {
  /// ["TENSOR", dtype, [extents]]
  static ArgInfo FromJson(const Any& json);
  Any AsJson() const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ArgInfo, ObjectRef, ArgInfoObj);
};

struct TensorInfoObj : ArgInfoObj {
  DataType dtype;
  ffi::Shape shape;
  static void Fields(auto&& def) {
    def("dtype", &TensorInfoObj::dtype);
    def("shape", &TensorInfoObj::shape);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.TensorInfo", TensorInfoObj, ArgInfoObj);
};
struct TensorInfo : ArgInfo {
  TensorInfo(DataType dtype, ffi::Shape shape);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TensorInfo, ArgInfo, TensorInfoObj);
};

/// One per parameter; ValueError for a parameter that is no tensor of constant shape.
Array<ArgInfo> ArgsOf(const tir::PrimFunc& func);
/// The function of a module that tuning is about: its only one, "main", or the one that says it is
/// the entry.
tir::PrimFunc EntryFunc(const IRModule& mod);

struct BuilderInputObj : NodeObj {
  IRModule mod;
  Target target;
  Optional<Map<String, ffi::Tensor>> params;
  static void Fields(auto&& def) {
    def("mod", &BuilderInputObj::mod);
    def("target", &BuilderInputObj::target);
    def("params", &BuilderInputObj::params, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.BuilderInput", BuilderInputObj, NodeObj);
};
TVM_NODE_REF(BuilderInput, ObjectRef, BuilderInputObj);

/// A library on disk, or why there is none.
struct BuilderResultObj : NodeObj {
  Optional<String> artifact_path, error_msg;
  static void Fields(auto&& def) {
    def("artifact_path", &BuilderResultObj::artifact_path);
    def("error_msg", &BuilderResultObj::error_msg);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.BuilderResult", BuilderResultObj, NodeObj);
};
TVM_NODE_REF(BuilderResult, ObjectRef, BuilderResultObj);

/// A library to measure. `reference` is one that computes what this one should; `best_secs` the
/// time to beat, so that a runner may give up early on slower ones.
struct RunnerInputObj : NodeObj {
  String artifact_path, device_type;
  Array<ArgInfo> args_info;
  Optional<String> reference;
  Optional<double> best_secs;
  static void Fields(auto&& def) {
    def("artifact_path", &RunnerInputObj::artifact_path);
    def("device_type", &RunnerInputObj::device_type);
    def("args_info", &RunnerInputObj::args_info);
    def("reference", &RunnerInputObj::reference, Default(nullptr));
    def("best_secs", &RunnerInputObj::best_secs, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RunnerInput", RunnerInputObj, NodeObj);
};
TVM_NODE_REF(RunnerInput, ObjectRef, RunnerInputObj);

/// Measured seconds; constants, because scripts ask them for `.value`. Numbers are taken as well.
using Seconds = Optional<Array<Any>>;
/// The same as constants; TypeError for what is no number.
Seconds ConstantSeconds(const Seconds& secs);
/// Infinity where nothing was measured.
double MeanOf(const Seconds& secs);

/// Seconds of one call, or what went wrong.
struct RunnerResultObj : NodeObj {
  Seconds run_secs;
  Optional<String> error_msg;
  static void Fields(auto&& def) {
    def("run_secs", &RunnerResultObj::run_secs);
    def("error_msg", &RunnerResultObj::error_msg);
  }
  void Init() { run_secs = ConstantSeconds(run_secs); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RunnerResult", RunnerResultObj, NodeObj);
};
TVM_NODE_REF(RunnerResult, ObjectRef, RunnerResultObj);

/// The program that code is generated from; what distinguishes candidates. The result is kept until
/// `Build` asks for the same module.
IRModule LowerForBuild(const IRModule& mod, const Target& target);
/// Compiles and links each module into `folder`/<i>.so on up to `num_threads` threads, none of them
/// longer than `timeout` seconds.
Array<BuilderResult> BuildAll(const Array<BuilderInput>& inputs, const String& folder,
                              int64_t num_threads, double timeout);

}  // namespace tvm::tune
