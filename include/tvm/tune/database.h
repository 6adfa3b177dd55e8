// SPDX-License-Identifier: Apache-2.0
// What was measured: records of workloads, and where they are kept.
#pragma once
#include <string>

#include "tvm/schedule/schedule.h"
#include "tvm/tune/measure.h"
#include "tvm/tune/user_defined.h"

namespace tvm::tune {
using tir::Schedule, tir::Trace;

/// How modules are told apart: by structure ("structural"), the same without the contents of
/// constants ("ignore-tensor"), or by the block that does the work ("anchor-block").
class ModuleEquality {
 public:
  explicit ModuleEquality(const String& name);
  uint64_t Hash(const IRModule& mod) const;
  bool Equal(const IRModule& a, const IRModule& b) const;
  const String& name() const { return name_; }

 private:
  String name_;
};

/// A module that was tuned.
struct WorkloadObj : NodeObj {
  IRModule mod;
  int64_t shash = 0;
  static void Fields(auto&& def) {
    def("mod", &WorkloadObj::mod);
    def("shash", &WorkloadObj::shash, Computed());
  }
  void Init();
  std::string Key() const;  ///< the hash as 16 hexadecimal digits
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.Workload", WorkloadObj, NodeObj);
};
struct Workload : ObjectRef {
  explicit Workload(IRModule mod);
  /// {"hash", "name", "version", "script", "mod"}
  Map<String, Any> AsJson() const;
  static Workload FromJson(const Map<String, Any>& json);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Workload, ObjectRef, WorkloadObj);
};

/// A schedule, and something to measure it with.
struct MeasureCandidateObj : NodeObj {
  Schedule sch;
  Array<ArgInfo> args_info;
  Optional<String> program;  // hash of what it lowers to, if that is known
  static void Fields(auto&& def) {
    def("sch", &MeasureCandidateObj::sch);
    def("args_info", &MeasureCandidateObj::args_info);
    def("program", &MeasureCandidateObj::program, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MeasureCandidate", MeasureCandidateObj, NodeObj);
};
struct MeasureCandidate : ObjectRef {
  MeasureCandidate(Schedule sch, Array<ArgInfo> args_info, Optional<String> program = std::nullopt);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(MeasureCandidate, ObjectRef, MeasureCandidateObj);
};

/// What can be said of a record without replaying its trace.
struct RecordOutline {
  double secs = 0;          // mean; infinity for a failure
  std::string error;        // why it failed
  uint64_t target = 0;      // TargetKey
  uint64_t program = 0;     // hash of what it lowers to; 0: nobody said
  bool is_default = false;  // no instructions
  std::string verdict;      // of a race, or empty
};
/// Measured in turn with others, so that no luck decides: takes the place of the last measurement
/// of the same schedule.
inline constexpr const char* kRaced = "raced";
/// The same, and not shown to be faster than the default schedule: ranked behind it.
inline constexpr const char* kNoBetter = "no better than the default";
/// Equal for equal targets; 0 for none.
uint64_t TargetKey(const Optional<Target>& target);
/// Hashes as texts: JSON has no integers of 64 bits.
std::string HashText(uint64_t hash);
uint64_t HashFromText(std::string_view text);

/// One measured schedule of a workload; without times a failure, and why it failed.
struct TuningRecordObj : NodeObj {
  Trace trace;
  Workload workload;
  Seconds run_secs;
  Optional<Target> target;
  Optional<Array<ArgInfo>> args_info;
  Optional<String> error_msg;
  Optional<String> program;  // hash of what it lowers to: an earlier run's programs are known by it
  Optional<String> verdict;  // of a race with other records: kRaced or kNoBetter
  static void Fields(auto&& def) {
    def("trace", &TuningRecordObj::trace);
    def("workload", &TuningRecordObj::workload);
    def("run_secs", &TuningRecordObj::run_secs, Default(nullptr));
    def("target", &TuningRecordObj::target, Default(nullptr));
    def("args_info", &TuningRecordObj::args_info, Default(nullptr));
    def("error_msg", &TuningRecordObj::error_msg, Default(nullptr));
    def("program", &TuningRecordObj::program, Default(nullptr));
    def("verdict", &TuningRecordObj::verdict, Default(nullptr));
  }
  void Init();
  RecordOutline Outline() const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.TuningRecord", TuningRecordObj, NodeObj);
};
struct TuningRecord : ObjectRef {
  /// The workload scheduled as the trace says.
  MeasureCandidate AsMeasureCandidate() const;
  /// {"program", "secs", "verdict", "error", "version", "target", "args", "trace"}
  Map<String, Any> AsJson() const;
  static TuningRecord FromJson(const Map<String, Any>& json, const Workload& workload);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TuningRecord, ObjectRef, TuningRecordObj);
};

/// A collection of records. Every commit is one, also of a schedule that was measured before; only
/// a race replaces.
struct DatabaseObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  static constexpr uint32_t _type_child_slots = 8;
  virtual ~DatabaseObj() = default;
  virtual bool HasWorkload(const IRModule& mod) = 0;
  virtual Workload CommitWorkload(const IRModule& mod) = 0;
  virtual void CommitTuningRecord(const TuningRecord& record) = 0;
  /// The fastest ones first; failures are not among them.
  virtual Array<TuningRecord> GetTopK(const Workload& workload, int64_t top_k) = 0;
  virtual Array<TuningRecord> GetAllTuningRecords() = 0;
  /// Of all records of a workload, in the order they were made.
  virtual std::vector<RecordOutline> Outlines(const Workload& workload);
  virtual int64_t Size() = 0;
  virtual Optional<TuningRecord> QueryTuningRecord(const IRModule& mod, const Target& target,
                                                   const String& name);
  virtual Optional<Schedule> QuerySchedule(const IRModule& mod, const Target& target,
                                           const String& name);
  virtual Optional<IRModule> QueryIRModule(const IRModule& mod, const Target& target,
                                           const String& name);
  TVM_FFI_DECLARE_OBJECT_INFO("meta_schedule.Database", DatabaseObj, NodeObj);
};
struct Database : ObjectRef {
  /// The innermost `with database:`, or an undefined one.
  static Database Current();
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Database, ObjectRef, DatabaseObj);
};

/// This project's version, part of every record.
String Version();

}  // namespace tvm::tune
