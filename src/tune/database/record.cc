// SPDX-License-Identifier: Apache-2.0
// Workloads and records, and their JSON.
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/structural_equal.h>
#include <tvm/ffi/extra/structural_hash.h>

#include <charconv>

#include "tvm/ir/structural.h"
#include "tvm/tir/analysis.h"
#include "tvm/tune/database.h"

namespace tvm::tune {

String Version() {
  static const String version = Function::GetGlobalRequired("support.libinfo")()
                                    .cast<Map<String, Any>>()["TVM_VERSION"]
                                    .cast<String>();
  return version;
}

// ---- equality of modules -----------------------------------------------------------------------
ModuleEquality::ModuleEquality(const String& name)
    : name_(name == "ignore-ndarray" ? "ignore-tensor" : name) {
  if (name_ != "structural" && name_ != "ignore-tensor" && name_ != "anchor-block") {
    std::string_view text = View(name);
    TVM_FFI_THROW(ValueError)
        << "module_equality: expected 'structural', 'ignore-tensor' or 'anchor-block', got '"
        << name << "'" << DidYouMean(text, {"structural", "ignore-tensor", "anchor-block"});
  }
}
uint64_t ModuleEquality::Hash(const IRModule& mod) const {
  if (name_ == "anchor-block") {
    if (auto block = tir::FindAnchorBlock(mod)) return StructuralHash(*block, true);
  }
  if (name_ == "ignore-tensor") return ffi::StructuralHash::Hash(mod, false, true);
  return StructuralHash(mod);
}
bool ModuleEquality::Equal(const IRModule& a, const IRModule& b) const {
  if (a.same_as(b)) return true;
  if (name_ == "anchor-block") {
    auto x = tir::FindAnchorBlock(a), y = tir::FindAnchorBlock(b);
    if (x && y) return StructuralEqual(*x, *y, true);
  }
  if (name_ == "ignore-tensor") return ffi::StructuralEqual::Equal(a, b, false, true);
  return StructuralEqual(a, b);
}

std::string HashText(uint64_t hash) {
  char text[17];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}
uint64_t HashFromText(std::string_view text) {
  uint64_t hash = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  return error == std::errc() && end == text.data() + text.size() ? hash : 0;
}
uint64_t TargetKey(const Optional<Target>& target) {
  if (!target.has_value()) return 0;
  return std::hash<std::string_view>()(View(ffi::json::Stringify(target.value()->Export())));
}

// ---- workloads ---------------------------------------------------------------------------------
void WorkloadObj::Init() { shash = StructuralHash(mod); }
std::string WorkloadObj::Key() const { return HashText(shash); }
Workload::Workload(IRModule mod) {
  *this = New<Workload>([&](WorkloadObj* n) { n->mod = std::move(mod); });
}
Map<String, Any> Workload::AsJson() const {
  static const Function script = Function::GetGlobalRequired("script._repr");
  String name;
  for (const auto& [var, func] : get()->mod->Sorted()) {
    name = var->name_hint;
    break;
  }
  return {{"hash", String(get()->Key())},
          {"version", Version()},
          {"name", name},
          {"script", script(get()->mod).cast<String>()},
          {"mod", SaveJson(get()->mod)}};
}
Workload Workload::FromJson(const Map<String, Any>& json) {
  auto it = json.find("mod");
  if (it == json.end()) TVM_FFI_THROW(ValueError) << "Workload.from_json: expected a key 'mod'";
  return Workload(LoadJson((*it).second.cast<String>()).cast<IRModule>());
}

// ---- records -----------------------------------------------------------------------------------
MeasureCandidate::MeasureCandidate(Schedule sch, Array<ArgInfo> args_info,
                                   Optional<String> program) {
  *this = New<MeasureCandidate>([&](MeasureCandidateObj* n) {
    n->sch = std::move(sch);
    n->args_info = std::move(args_info);
    n->program = std::move(program);
  });
}
void TuningRecordObj::Init() {
  run_secs = ConstantSeconds(run_secs);
  if (verdict.has_value() && verdict.value() != kRaced && verdict.value() != kNoBetter) {
    TVM_FFI_THROW(ValueError) << "TuningRecord: expected the verdict '" << kRaced << "' or '"
                              << kNoBetter << "', got '" << verdict.value() << "'";
  }
}
RecordOutline TuningRecordObj::Outline() const {
  return {MeanOf(run_secs),     std::string(error_msg.value_or("")),
          TargetKey(target),    program.has_value() ? HashFromText(View(program.value())) : 0,
          trace->insts.empty(), std::string(verdict.value_or(""))};
}
MeasureCandidate TuningRecord::AsMeasureCandidate() const {
  Schedule sch(get()->workload->mod);
  get()->trace.ApplyToSchedule(sch, false);
  auto args = get()->args_info;
  return MeasureCandidate(sch,
                          args.has_value() ? args.value() : ArgsOf(EntryFunc(get()->workload->mod)),
                          get()->program);
}
Map<String, Any> TuningRecord::AsJson() const {
  Map<String, Any> json;
  json.Set("program", get()->program.has_value() ? Any(get()->program.value()) : Any(nullptr));
  Any secs(nullptr);
  if (get()->run_secs.has_value()) {
    secs =
        get()->run_secs.value().Map([](const Any& s) -> Any { return s.as<FloatImmObj>()->value; });
  }
  json.Set("secs", secs);
  json.Set("verdict", get()->verdict.has_value() ? Any(get()->verdict.value()) : Any(nullptr));
  json.Set("error", get()->error_msg.has_value() ? Any(get()->error_msg.value()) : Any(nullptr));
  json.Set("version", Version());
  json.Set("target",
           get()->target.has_value() ? Any(get()->target.value()->Export()) : Any(nullptr));
  Any args(nullptr);
  if (get()->args_info.has_value()) {
    Array<Any> list;
    for (const ArgInfo& info : get()->args_info.value()) list.push_back(info.AsJson());
    args = list;
  }
  json.Set("args", args);
  json.Set("trace", get()->trace.AsJson());
  return json;
}
namespace {
/// JSON objects have keys of any kind; ours are texts.
Map<String, Any> TextKeys(const Any& object) {
  Map<String, Any> result;
  for (const auto& [key, value] : object.cast<Map<Any, Any>>()) {
    bool is_object = value.as<ffi::MapObj>() != nullptr;
    result.Set(key.cast<String>(), is_object ? Any(TextKeys(value)) : value);
  }
  return result;
}
}  // namespace
TuningRecord TuningRecord::FromJson(const Map<String, Any>& json, const Workload& workload) {
  auto get = [&](const char* key) -> Any {
    auto it = json.find(key);
    return it == json.end() ? Any(nullptr) : (*it).second;
  };
  Schedule sch(workload->mod);
  if (get("trace") == nullptr) {
    TVM_FFI_THROW(ValueError) << "TuningRecord.from_json: expected a key 'trace'";
  }
  Trace::ApplyJsonToSchedule(get("trace").cast<Array<Any>>(), sch);
  return New<TuningRecord>([&](TuningRecordObj* n) {
    n->trace = sch.trace();
    n->workload = workload;
    if (Any secs = get("secs"); secs != nullptr) {
      n->run_secs = secs.cast<Array<Any>>();
    }
    if (Any program = get("program"); program != nullptr) n->program = program.cast<String>();
    if (Any verdict = get("verdict"); verdict != nullptr) n->verdict = verdict.cast<String>();
    if (Any error = get("error"); error != nullptr) n->error_msg = error.cast<String>();
    if (Any target = get("target"); target != nullptr) n->target = Target(TextKeys(target));
    if (Any args = get("args"); args != nullptr) {
      Array<ArgInfo> list;
      for (const Any& a : args.cast<Array<Any>>()) list.push_back(ArgInfo::FromJson(a));
      n->args_info = list;
    }
  });
}

namespace {
TVM_REGISTER() {
  RegisterNode<WorkloadObj>("A module that was tuned.");
  RegisterNode<MeasureCandidateObj>("A schedule, and something to measure it with.");
  RegisterNode<TuningRecordObj>(
      "One measured schedule of a workload; without times a failure, and why it failed.");
  Def(
      "meta_schedule.Workload.as_json", [](Workload self) { return self.AsJson(); },
      "The workload as plain data.", Arg("self"));
  Def(
      "meta_schedule._workload_from_json",
      [](Map<String, Any> json) { return Workload::FromJson(json); }, "Reads what as_json gave.",
      Arg("json_obj"));
  Def(
      "meta_schedule.TuningRecord.as_json", [](TuningRecord self) { return self.AsJson(); },
      "The record as plain data, without its workload.", Arg("self"));
  Def(
      "meta_schedule._tuning_record_from_json",
      [](Map<String, Any> json, Workload workload) {
        return TuningRecord::FromJson(json, workload);
      },
      "Reads what as_json gave.", Arg("json_obj"), Arg("workload"));
  Def(
      "meta_schedule.TuningRecord.as_measure_candidate",
      [](TuningRecord self) { return self.AsMeasureCandidate(); },
      "The workload scheduled as the trace says.", Arg("self"));
}
}  // namespace
}  // namespace tvm::tune
