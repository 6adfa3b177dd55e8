// SPDX-License-Identifier: Apache-2.0
// Records in memory, by workload; those of the JSON database are made from text when asked for.
#pragma once
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tvm/tune/database.h"

namespace tvm::tune {

/// Workloads and their records. Safe to use from several threads.
class RecordTable {
 public:
  explicit RecordTable(const String& equality) : equality_(equality) {}

  /// A record, or how to make it. An empty result of `make`: the record is damaged.
  struct Entry {
    RecordOutline outline;
    uint64_t identity;  // of target and trace
    size_t order;
    std::optional<TuningRecord> record;
    std::function<std::optional<TuningRecord>()> make;
  };
  Optional<Workload> Find(const IRModule& mod) const;
  /// The workload equal to this one, which is added when there is none; true when it was added.
  std::pair<Workload, bool> Add(const Workload& workload);
  void Put(const Workload& workload, Entry entry);
  void Put(const TuningRecord& record);
  Array<TuningRecord> Top(const Workload& workload, int64_t k);
  Array<TuningRecord> All();
  std::vector<RecordOutline> Outlines(const Workload& workload);
  int64_t size() const { return static_cast<int64_t>(size_); }

 private:
  struct Group {
    Workload workload;
    std::vector<Entry> entries;
    std::vector<size_t> ranking;  // of entries; empty when out of date
    void Rank();
  };
  Group* GroupOf(const IRModule& mod) const;
  Group* GroupOf(const Workload& workload) const;
  static const TuningRecord* Get(Entry* entry);

  ModuleEquality equality_;
  mutable std::recursive_mutex mutex_;
  std::unordered_multimap<uint64_t, std::unique_ptr<Group>> groups_;
  // Hashing a module takes longer than storing a record. Groups keep their keys here alive.
  std::unordered_map<const Object*, Group*> by_workload_;
  size_t size_ = 0, order_ = 0;
};

/// What distinguishes records of one workload: hash of the target's and the trace's JSON.
uint64_t RecordIdentity(std::string_view target, std::string_view trace);

}  // namespace tvm::tune
