// SPDX-License-Identifier: Apache-2.0
// What databases have in common, and those made of other databases or functions.
#include "tvm/tune/database.h"

#include <cmath>
#include <vector>

#include "tvm/ir/structural.h"

namespace tvm::tune {

// ---- queries -----------------------------------------------------------------------------------
namespace {
/// Code for one target runs well on the other: same kind and options, whatever the host.
bool SameTarget(const Target& a, const Target& b) { return a->str() == b->str(); }
}  // namespace

Optional<TuningRecord> DatabaseObj::QueryTuningRecord(const IRModule& mod, const Target& target,
                                                      const String&) {
  if (!HasWorkload(mod)) return std::nullopt;
  Workload workload = CommitWorkload(mod);
  for (int64_t k = 1;; k *= 8) {  // the best one is nearly always for this target
    Array<TuningRecord> records = GetTopK(workload, k);
    for (const TuningRecord& r : records) {
      if (!r->target.has_value() || SameTarget(r->target.value(), target)) return r;
    }
    if (static_cast<int64_t>(records.size()) < k) return std::nullopt;
  }
}
Optional<Schedule> DatabaseObj::QuerySchedule(const IRModule& mod, const Target& target,
                                              const String& name) {
  auto record = QueryTuningRecord(mod, target, name);
  if (!record.has_value()) return std::nullopt;
  Schedule sch(mod);
  record.value()->trace.ApplyToSchedule(sch, false);
  return sch;
}
Optional<IRModule> DatabaseObj::QueryIRModule(const IRModule& mod, const Target& target,
                                              const String& name) {
  auto sch = QuerySchedule(mod, target, name);
  if (!sch.has_value()) return std::nullopt;
  return sch.value().mod();
}

std::vector<RecordOutline> DatabaseObj::Outlines(const Workload& workload) {
  std::vector<RecordOutline> result;
  for (const TuningRecord& record : GetAllTuningRecords()) {
    bool same =
        record->workload.same_as(workload) || StructuralEqual(record->workload->mod, workload->mod);
    if (same) result.push_back(record->Outline());
  }
  return result;
}

// ---- the current one ---------------------------------------------------------------------------
namespace {
std::vector<Database>& Scopes() {
  thread_local std::vector<Database> scopes;
  return scopes;
}
}  // namespace
Database Database::Current() { return Scopes().empty() ? Database() : Scopes().back(); }

// ---- other kinds -------------------------------------------------------------------------------
namespace {
/// Queries go to others; nothing can be stored.
struct ReadOnlyDatabaseObj : DatabaseObj {
  [[noreturn]] void Refuse(const char* what) const {
    TVM_FFI_THROW(NotImplementedError)
        << GetTypeKey() << "." << what << ": expected a database that stores records itself";
    TVM_FFI_UNREACHABLE();
  }
  bool HasWorkload(const IRModule&) override { Refuse("has_workload"); }
  Workload CommitWorkload(const IRModule&) override { Refuse("commit_workload"); }
  void CommitTuningRecord(const TuningRecord&) override { Refuse("commit_tuning_record"); }
  Array<TuningRecord> GetTopK(const Workload&, int64_t) override { Refuse("get_top_k"); }
  Array<TuningRecord> GetAllTuningRecords() override { Refuse("get_all_tuning_records"); }
  int64_t Size() override { Refuse("__len__"); }
};

struct UnionDatabaseObj : ReadOnlyDatabaseObj {
  Array<Database> databases;
  static void Fields(auto&& def) { def("databases", &UnionDatabaseObj::databases); }
  Optional<TuningRecord> QueryTuningRecord(const IRModule& mod, const Target& target,
                                           const String& name) final {
    Optional<TuningRecord> best;
    for (const Database& db : databases) {
      auto found = db->QueryTuningRecord(mod, target, name);
      if (found.has_value() &&
          (!best.has_value() || MeanOf(found.value()->run_secs) < MeanOf(best.value()->run_secs)))
        best = found;
    }
    return best;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.UnionDatabase", UnionDatabaseObj, DatabaseObj);
};
struct OrderedUnionDatabaseObj : ReadOnlyDatabaseObj {
  Array<Database> databases;
  static void Fields(auto&& def) { def("databases", &OrderedUnionDatabaseObj::databases); }
  Optional<TuningRecord> QueryTuningRecord(const IRModule& mod, const Target& target,
                                           const String& name) final {
    for (const Database& db : databases) {
      if (auto found = db->QueryTuningRecord(mod, target, name)) return found;
    }
    return std::nullopt;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.OrderedUnionDatabase", OrderedUnionDatabaseObj,
                                    DatabaseObj);
};
struct ScheduleFnDatabaseObj : ReadOnlyDatabaseObj {
  Function schedule_fn;  // (Schedule) -> whether it knows the program and has scheduled it
  String module_equality = "structural";
  static void Fields(auto&& def) {
    def("schedule_fn", &ScheduleFnDatabaseObj::schedule_fn);
    def("module_equality", &ScheduleFnDatabaseObj::module_equality, Default(String("structural")));
  }
  void Init() { ModuleEquality checked(module_equality); }
  Optional<TuningRecord> QueryTuningRecord(const IRModule& mod, const Target& target,
                                           const String& name) final {
    auto sch = QuerySchedule(mod, target, name);
    if (!sch.has_value()) return std::nullopt;
    return New<TuningRecord>([&](TuningRecordObj* n) {
      n->trace = sch.value().trace();
      n->workload = Workload(mod);
      n->run_secs = Array<Any>{0.0};
      n->target = target;
    });
  }
  Optional<Schedule> QuerySchedule(const IRModule& mod, const Target&, const String& name) final {
    Schedule sch(mod);
    if (mod->FindGlobalVar(name).defined()) sch.WorkOn(name);
    if (!schedule_fn(sch).cast<bool>()) return std::nullopt;
    return sch;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.ScheduleFnDatabase", ScheduleFnDatabaseObj,
                                    DatabaseObj);
};
struct PyDatabaseObj : DatabaseObj {
  TVM_USER_DEFINED(PyDatabaseObj)
  bool HasWorkload(const IRModule& mod) final { return CallUser<bool>("has_workload", mod); }
  Workload CommitWorkload(const IRModule& mod) final {
    return CallUser<Workload>("commit_workload", mod);
  }
  void CommitTuningRecord(const TuningRecord& r) final {
    CallUser<void>("commit_tuning_record", r);
  }
  Array<TuningRecord> GetTopK(const Workload& w, int64_t k) final {
    return CallUser<Array<TuningRecord>>("get_top_k", w, k);
  }
  Array<TuningRecord> GetAllTuningRecords() final {
    return CallUser<Array<TuningRecord>>("get_all_tuning_records");
  }
  int64_t Size() final { return CallUser<int64_t>("__len__"); }
  Optional<TuningRecord> QueryTuningRecord(const IRModule& mod, const Target& target,
                                           const String& name) final {
    if (!Defines("query_tuning_record")) return DatabaseObj::QueryTuningRecord(mod, target, name);
    return CallUser<Optional<TuningRecord>>("query_tuning_record", mod, target, name);
  }
  Optional<Schedule> QuerySchedule(const IRModule& mod, const Target& target,
                                   const String& name) final {
    if (!Defines("query_schedule")) return DatabaseObj::QuerySchedule(mod, target, name);
    return CallUser<Optional<Schedule>>("query_schedule", mod, target, name);
  }
  Optional<IRModule> QueryIRModule(const IRModule& mod, const Target& target,
                                   const String& name) final {
    if (!Defines("query_ir_module")) return DatabaseObj::QueryIRModule(mod, target, name);
    return CallUser<Optional<IRModule>>("query_ir_module", mod, target, name);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.PyDatabase", PyDatabaseObj, DatabaseObj);
};

/// The best record of each workload, into another database.
void DumpPruned(Database self, Database destination) {
  std::unordered_map<const Object*, Workload> workloads;
  for (const TuningRecord& record : self->GetAllTuningRecords())
    workloads.emplace(record->workload.get(), record->workload);
  for (const auto& [key, workload] : workloads) {
    for (const TuningRecord& best : self->GetTopK(workload, 1)) {
      destination->CommitWorkload(workload->mod);
      destination->CommitTuningRecord(best);
    }
  }
}

TVM_REGISTER() {
  RegisterBase<DatabaseObj>("A collection of records.");
  RegisterNode<UnionDatabaseObj>("Answers with the fastest record of several databases.");
  RegisterNode<OrderedUnionDatabaseObj>(
      "Answers with the record of the first database that has one.");
  RegisterNode<ScheduleFnDatabaseObj>("Answers with what a function makes of the schedule.");
  RegisterNode<PyDatabaseObj>("A database defined by a user.");
  Def(
      "meta_schedule.Database.has_workload",
      [](Database self, IRModule mod) { return self->HasWorkload(mod); },
      "Whether the workload is known.", Arg("self"), Arg("mod"));
  Def(
      "meta_schedule.Database.commit_workload",
      [](Database self, IRModule mod) { return self->CommitWorkload(mod); },
      "The workload of a module, added when it is new.", Arg("self"), Arg("mod"));
  Def(
      "meta_schedule.Database.commit_tuning_record",
      [](Database self, TuningRecord record) { self->CommitTuningRecord(record); },
      "Stores a record.", Arg("self"), Arg("record"));
  Def(
      "meta_schedule.Database.get_top_k",
      [](Database self, Workload workload, int64_t top_k) {
        return self->GetTopK(workload, top_k);
      },
      "The fastest records of a workload, best first; failures are not among them.", Arg("self"),
      Arg("workload"), Arg("top_k"));
  Def(
      "meta_schedule.Database.get_all_tuning_records",
      [](Database self) { return self->GetAllTuningRecords(); },
      "All records, in the order they came, failures among them.", Arg("self"));
  Def(
      "meta_schedule._database_size", [](Database self) { return self->Size(); },
      "How many records there are.", Arg("self"));
  Def(
      "meta_schedule.Database._outlines",
      [](Database self, Workload workload, Optional<Target> target) {
        Array<Array<Any>> result;
        for (const RecordOutline& o : self->Outlines(workload)) {
          bool same = o.target == 0 || o.target == TargetKey(target);
          result.push_back({std::isfinite(o.secs) ? Any(o.secs) : Any(nullptr),
                            o.error.empty() ? Any(nullptr) : Any(String(o.error)), same,
                            o.is_default});
        }
        return result;
      },
      "[seconds or None, why it failed, whether it is for the target, whether nothing was "
      "scheduled] for every record of a workload.",
      Arg("self"), Arg("workload"), Arg("target"));
  Def(
      "meta_schedule.Database.query_tuning_record",
      [](Database self, IRModule mod, Target target, String name) {
        return self->QueryTuningRecord(mod, target, name);
      },
      "The best record of a module for a target, or None.", Arg("self"), Arg("mod"), Arg("target"),
      Arg("workload_name", String("main")));
  Def(
      "meta_schedule.Database.query_schedule",
      [](Database self, IRModule mod, Target target, String name) {
        return self->QuerySchedule(mod, target, name);
      },
      "The module scheduled by its best record, or None.", Arg("self"), Arg("mod"), Arg("target"),
      Arg("workload_name", String("main")));
  Def(
      "meta_schedule.Database.query_ir_module",
      [](Database self, IRModule mod, Target target, String name) {
        return self->QueryIRModule(mod, target, name);
      },
      "The module as its best record schedules it, or None.", Arg("self"), Arg("mod"),
      Arg("target"), Arg("workload_name", String("main")));
  Def("meta_schedule.Database.dump_pruned", &DumpPruned,
      "Copies the best record of each workload into another database.", Arg("self"),
      Arg("destination"));
  Def(
      "meta_schedule._enter_database", [](Database self) { Scopes().push_back(self); },
      "Makes a database the current one.", Arg("self"));
  Def(
      "meta_schedule._exit_database",
      [] {
        if (Scopes().empty())
          TVM_FFI_THROW(RuntimeError) << "Database: expected a scope to leave, got none";
        Scopes().pop_back();
      },
      "Ends the innermost scope.");
  Def(
      "meta_schedule._current_database",
      []() -> Optional<Database> {
        Database current = Database::Current();
        return current.defined() ? Optional<Database>(current) : std::nullopt;
      },
      "The innermost `with database:`.");
}
}  // namespace
}  // namespace tvm::tune
