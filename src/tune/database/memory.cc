// SPDX-License-Identifier: Apache-2.0
// The table of records, and the database that is nothing else.
#include "tune/database/memory.h"

#include <tvm/ffi/extra/json.h>

#include <algorithm>
#include <cmath>

namespace tvm::tune {

uint64_t RecordIdentity(std::string_view target, std::string_view trace) {
  std::hash<std::string_view> hash;
  return hash(trace) * 0x9e3779b97f4a7c15ull ^ hash(target);
}

RecordTable::Group* RecordTable::GroupOf(const IRModule& mod) const {
  auto [begin, end] = groups_.equal_range(equality_.Hash(mod));
  for (auto it = begin; it != end; ++it) {
    if (equality_.Equal(it->second->workload->mod, mod)) return it->second.get();
  }
  return nullptr;
}
RecordTable::Group* RecordTable::GroupOf(const Workload& workload) const {
  auto it = by_workload_.find(workload.get());
  return it != by_workload_.end() ? it->second : GroupOf(workload->mod);
}
Optional<Workload> RecordTable::Find(const IRModule& mod) const {
  std::lock_guard lock(mutex_);
  Group* group = GroupOf(mod);
  return group ? Optional<Workload>(group->workload) : std::nullopt;
}
std::pair<Workload, bool> RecordTable::Add(const Workload& workload) {
  std::lock_guard lock(mutex_);
  if (Group* group = GroupOf(workload)) return {group->workload, false};
  auto group = std::make_unique<Group>();
  group->workload = workload;
  by_workload_[workload.get()] = group.get();
  groups_.emplace(equality_.Hash(workload->mod), std::move(group));
  return {workload, true};
}
void RecordTable::Put(const Workload& workload, Entry entry) {
  std::lock_guard lock(mutex_);
  Group* group = GroupOf(workload);
  if (!group) {
    Add(workload);
    group = GroupOf(workload);
  }
  group->ranking.clear();
  auto& entries = group->entries;
  auto earlier = entry.outline.verdict.empty()
                     ? entries.rend()
                     : std::find_if(entries.rbegin(), entries.rend(),
                                    [&](const Entry& e) { return e.identity == entry.identity; });
  if (earlier != entries.rend()) {
    entry.order = earlier->order;
    *earlier = std::move(entry);
    return;
  }
  entry.order = order_++;
  entries.push_back(std::move(entry));
  ++size_;
}
void RecordTable::Put(const TuningRecord& record) {
  auto text = [](const Any& value) { return std::string(ffi::json::Stringify(value)); };
  std::string target = record->target.has_value() ? text(record->target.value()->Export()) : "";
  std::string trace = text(record->trace.AsJson());
  Put(record->workload, {record->Outline(), RecordIdentity(target, trace), 0, record, nullptr});
}
const TuningRecord* RecordTable::Get(Entry* entry) {
  if (!entry->record && entry->make) {
    entry->record = entry->make();
    entry->make = nullptr;
    if (!entry->record) entry->outline.secs = INFINITY;
  }
  return entry->record ? &*entry->record : nullptr;
}
void RecordTable::Group::Rank() {
  std::unordered_map<uint64_t, double> defaults;  // target: seconds of the default in its race
  for (const Entry& e : entries) {
    if (e.outline.is_default && !e.outline.verdict.empty())
      defaults[e.outline.target] = e.outline.secs;
  }
  std::vector<double> secs;
  for (const Entry& e : entries) {
    const RecordOutline& o = e.outline;
    secs.push_back(o.verdict == kNoBetter && defaults.count(o.target)
                       ? std::max(o.secs, defaults[o.target])
                       : o.secs);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (std::isfinite(secs[i])) ranking.push_back(i);
  }
  std::stable_sort(ranking.begin(), ranking.end(), [&](size_t a, size_t b) {
    // What ties because it was not shown to be better comes second.
    bool a_ties = entries[a].outline.verdict == kNoBetter;
    bool b_ties = entries[b].outline.verdict == kNoBetter;
    return std::pair(secs[a], a_ties) < std::pair(secs[b], b_ties);
  });
}
Array<TuningRecord> RecordTable::Top(const Workload& workload, int64_t k) {
  if (k < 0) TVM_FFI_THROW(ValueError) << "get_top_k: expected top_k of at least 0, got " << k;
  std::lock_guard lock(mutex_);
  Group* group = GroupOf(workload);
  Array<TuningRecord> result;
  if (!group) return result;
  auto& entries = group->entries;
  if (group->ranking.empty()) group->Rank();
  for (size_t i : group->ranking) {
    if (static_cast<int64_t>(result.size()) >= k) break;
    if (auto* record = Get(&entries[i])) result.push_back(*record);
  }
  return result;
}
Array<TuningRecord> RecordTable::All() {
  std::lock_guard lock(mutex_);
  std::vector<Entry*> entries;
  for (auto& [hash, group] : groups_)
    for (Entry& e : group->entries) entries.push_back(&e);
  std::sort(entries.begin(), entries.end(), [](Entry* a, Entry* b) { return a->order < b->order; });
  Array<TuningRecord> result;
  for (Entry* e : entries)
    if (auto* record = Get(e)) result.push_back(*record);
  return result;
}
std::vector<RecordOutline> RecordTable::Outlines(const Workload& workload) {
  std::lock_guard lock(mutex_);
  std::vector<RecordOutline> result;
  Group* group = GroupOf(workload);
  if (!group) return result;
  for (const Entry& entry : group->entries) result.push_back(entry.outline);
  return result;
}

namespace {
struct MemoryDatabaseObj : DatabaseObj {
  String module_equality = "structural";
  std::shared_ptr<RecordTable> table;
  static void Fields(auto&& def) {
    def("module_equality", &MemoryDatabaseObj::module_equality, Default(String("structural")));
  }
  void Init() { table = std::make_shared<RecordTable>(module_equality); }
  bool HasWorkload(const IRModule& mod) final { return table->Find(mod).has_value(); }
  Workload CommitWorkload(const IRModule& mod) final { return table->Add(Workload(mod)).first; }
  void CommitTuningRecord(const TuningRecord& record) final { table->Put(record); }
  Array<TuningRecord> GetTopK(const Workload& w, int64_t k) final { return table->Top(w, k); }
  Array<TuningRecord> GetAllTuningRecords() final { return table->All(); }
  std::vector<RecordOutline> Outlines(const Workload& w) final { return table->Outlines(w); }
  int64_t Size() final { return table->size(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.MemoryDatabase", MemoryDatabaseObj, DatabaseObj);
};
TVM_REGISTER() { RegisterNode<MemoryDatabaseObj>("Records that live as long as the object."); }
}  // namespace
}  // namespace tvm::tune
