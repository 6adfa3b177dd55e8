// SPDX-License-Identifier: Apache-2.0
// Records in two files of JSON lines, appended under a lock: database_workload.json has one line
// per workload, database_tuning_record.json one per record. Records name their workload by its
// hash, so that lines of several writers may come in any order.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tvm/ffi/extra/json.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/warn.h"
#include "tune/database/memory.h"

namespace tvm::tune {
namespace {
// ---- files -------------------------------------------------------------------------------------
/// An open file with the lock held.
class LockedFile {
 public:
  LockedFile(const std::string& path, bool create) : path_(path) {
    fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0644);
    // A database that may only be read is still a database.
    if (fd_ < 0 && (errno == EACCES || errno == EROFS)) {
      fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    }
    if (fd_ < 0) {
      TVM_FFI_THROW(OSError) << "JSONDatabase: cannot open " << path << ": " << strerror(errno);
    }
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~LockedFile() { close(fd_); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  size_t Size() const {
    struct stat info;
    return fstat(fd_, &info) == 0 ? static_cast<size_t>(info.st_size) : 0;
  }
  std::string ReadAll() const {
    std::string text(Size(), '\0');
    size_t at = 0;
    while (at < text.size()) {
      ssize_t n = pread(fd_, text.data() + at, text.size() - at, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    text.resize(at);
    return text;
  }
  /// All of the line or nothing of it.
  void Append(std::string line) const {
    size_t size = Size();
    char last = '\n';
    if (size > 0 && pread(fd_, &last, 1, static_cast<off_t>(size - 1)) != 1) last = '\n';
    if (last != '\n') line.insert(0, 1, '\n');  // another writer was killed in its line
    line += '\n';
    for (size_t at = 0; at < line.size();) {
      ssize_t n = pwrite(fd_, line.data() + at, line.size() - at, static_cast<off_t>(size + at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        int why = errno;
        if (ftruncate(fd_, static_cast<off_t>(size)) != 0) why = errno;
        TVM_FFI_THROW(OSError) << "JSONDatabase: cannot write " << path_ << ": " << strerror(why);
      }
      at += static_cast<size_t>(n);
    }
  }

 private:
  std::string path_;
  int fd_;
};

/// The whole lines of a file. A last line without end is what a killed writer left: it is left out
/// unless it is complete JSON. The file stays as it is, for it may be somebody else's.
std::shared_ptr<const std::string> Load(const std::string& path) {
  LockedFile file(path, false);
  std::string text = file.ReadAll();
  if (!text.empty() && text.back() != '\n') {
    size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
    String error;
    ffi::json::Parse(String(text.substr(begin)), &error);
    if (!error.empty()) {
      Warn("meta_schedule", "JSONDatabase: the last line of " + path +
                                " is incomplete (a writer was interrupted): it is left out");
      text.resize(begin);
    }
  }
  return std::make_shared<const std::string>(std::move(text));
}
template <class F>
void EachLine(const std::string& text, F&& visit) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    ++number;
    if (end > at) visit(std::string_view(text).substr(at, end - at), number);
    at = end + 1;
  }
}

// ---- lines -------------------------------------------------------------------------------------
Map<String, Any> ParseObject(std::string_view line) {
  String error;
  Any value = ffi::json::Parse(String(line.data(), line.size()), &error);
  if (!error.empty()) TVM_FFI_THROW(ValueError) << error;
  Map<String, Any> result;
  for (const auto& [key, item] : value.cast<Map<Any, Any>>()) result.Set(key.cast<String>(), item);
  return result;
}
std::string Quote(std::string_view s) {
  return std::string(ffi::json::Stringify(String(s.data(), s.size())));
}

/// {"workload": …, "version": …, "program": …, "secs": …, "verdict": …, "error": …, "target": …,
/// "args": …, "trace": …}: what finding and ranking needs comes first, so that a scan of the
/// beginning is enough.
constexpr const char* kKeys[] = {"version", "program", "secs", "verdict",
                                 "error",   "target",  "args", "trace"};
std::string RecordLine(const TuningRecord& record) {
  auto json = record.AsJson();
  auto text = [&](const char* key) { return std::string(ffi::json::Stringify(json[key])); };
  std::string line = "{\"workload\": " + Quote(record->workload->Key());
  for (const char* key : kKeys) line += std::string(", \"") + key + "\": " + text(key);
  return line + "}";
}
/// The parts of a line that loading looks at, as they stand there.
struct Header {
  std::string_view workload, version, program, verdict, error, target, trace;
  double mean = INFINITY;
};
std::optional<Header> Scan(std::string_view line) {
  Header h;
  size_t at = 0;
  auto expect = [&](std::string_view text) {
    if (line.substr(at, text.size()) != text) return false;
    at += text.size();
    return true;
  };
  auto until = [&](std::string_view mark, std::string_view* out) {
    size_t end = line.find(mark, at);
    if (end == std::string_view::npos) return false;
    *out = line.substr(at, end - at);
    at = end;
    return true;
  };
  // Texts come with their quotes.
  std::string_view secs, ignored;
  if (!expect("{\"workload\": \"") || !until("\"", &h.workload) || !expect("\", \"version\": \"") ||
      !until("\"", &h.version) || !expect("\", \"program\": ") ||
      !until(", \"secs\": ", &h.program) || !expect(", \"secs\": ") ||
      !until(", \"verdict\": ", &secs) || !expect(", \"verdict\": ") ||
      !until(", \"error\": ", &h.verdict) || !expect(", \"error\": ") ||
      !until(", \"target\": ", &h.error) || !expect(", \"target\": ") ||
      !until(", \"args\": ", &h.target) || !until(", \"trace\": ", &ignored) ||
      !expect(", \"trace\": ") || line.back() != '}')
    return std::nullopt;
  h.trace = line.substr(at, line.size() - at - 1);
  if (secs.size() > 2 && secs.front() == '[') {
    double sum = 0;
    int count = 0;
    const char *p = secs.data() + 1, *end = secs.data() + secs.size() - 1;
    while (p < end) {
      double value;
      auto [next, error] = std::from_chars(p, end, value);
      if (error != std::errc()) return std::nullopt;
      sum += value;
      ++count;
      for (p = next; p < end && (*p == ',' || *p == ' '); ++p) {
      }
    }
    if (count > 0) h.mean = sum / count;
  }
  return h;
}

RecordOutline OutlineOf(const Header& h) {
  RecordOutline outline;
  outline.secs = h.mean;
  if (h.error.starts_with('"')) {
    outline.error =
        std::string(ffi::json::Parse(String(h.error.data(), h.error.size())).cast<String>());
  }
  if (h.verdict.size() > 2 && h.verdict.front() == '"')
    outline.verdict = std::string(h.verdict.substr(1, h.verdict.size() - 2));
  if (h.target != "null") outline.target = std::hash<std::string_view>()(h.target);
  if (h.program.size() > 2)
    outline.program = HashFromText(h.program.substr(1, h.program.size() - 2));
  static const std::string kNoInstructions(ffi::json::Stringify(Trace({}, {}).AsJson()));
  outline.is_default = h.trace == kNoInstructions;
  return outline;
}

struct JSONDatabaseObj : DatabaseObj {
  String path_workload, path_tuning_record, module_equality = "structural";
  std::shared_ptr<RecordTable> table;
  std::shared_ptr<std::unordered_map<std::string, Workload>> by_key;
  static void Fields(auto&& def) {
    def("path_workload", &JSONDatabaseObj::path_workload);
    def("path_tuning_record", &JSONDatabaseObj::path_tuning_record);
    def("module_equality", &JSONDatabaseObj::module_equality, Default(String("structural")));
  }
  void Init() {
    table = std::make_shared<RecordTable>(module_equality);
    by_key = std::make_shared<std::unordered_map<std::string, Workload>>();
    LoadWorkloads();
    LoadRecords();
  }
  void LoadWorkloads() {
    std::string path(path_workload);
    auto text = Load(path);
    EachLine(*text, [&](std::string_view line, size_t number) {
      try {
        auto json = ParseObject(line);
        Workload workload = Workload::FromJson(json);
        table->Add(workload);
        by_key->emplace(std::string(json["hash"].cast<String>()), workload);
      } catch (const ffi::Error& error) {
        Warn("meta_schedule", "JSONDatabase: line " + std::to_string(number) + " of " + path +
                                  " is damaged and left out: " + error.message());
      }
    });
  }
  void LoadRecords() {
    std::string path(path_tuning_record);
    auto text = Load(path);
    const std::string version(Version());
    size_t other_version = 0, damaged = 0, orphans = 0, first_damaged = 0;
    EachLine(*text, [&](std::string_view line, size_t number) {
      auto header = Scan(line);
      std::string rewritten;  // a line that a tool wrote in another order
      if (!header) {
        try {
          rewritten = Reordered(ParseObject(line));
          header = Scan(rewritten);
        } catch (const ffi::Error&) {
        }
      }
      if (!header) {
        if (damaged++ == 0) first_damaged = number;
        return;
      }
      if (header->version != version) return void(++other_version);
      auto it = by_key->find(std::string(header->workload));
      if (it == by_key->end()) return void(++orphans);
      RecordTable::Entry entry{
          OutlineOf(*header), RecordIdentity(header->target, header->trace), 0, {}, {}};
      entry.make = [text, line, path, number, workload = it->second]() {
        std::optional<TuningRecord> record;
        try {
          record = TuningRecord::FromJson(ParseObject(line), workload);
        } catch (const ffi::Error& error) {
          Warn("meta_schedule", "JSONDatabase: line " + std::to_string(number) + " of " + path +
                                    " is damaged and left out: " + error.message());
        }
        return record;
      };
      table->Put(it->second, std::move(entry));
    });
    auto report = [&](size_t count, const std::string& what) {
      if (count > 0)
        Warn("meta_schedule", "JSONDatabase: " + path + ": " + std::to_string(count) + " " + what);
    };
    report(damaged, "damaged line(s) left out, the first is line " + std::to_string(first_damaged));
    report(other_version, "record(s) made by another version left out (this is " + version + ")");
    report(orphans,
           "record(s) of workloads that are not in " + std::string(path_workload) + " left out");
  }
  static std::string Reordered(const Map<String, Any>& json) {
    auto text = [&](const char* key) {
      auto it = json.find(key);
      Any value = it == json.end() ? Any(nullptr) : (*it).second;
      return "\"" + std::string(key) + "\": " + std::string(ffi::json::Stringify(value));
    };
    std::string line = "{" + text("workload");
    for (const char* key : kKeys) line += ", " + text(key);
    return line + "}";
  }

  bool HasWorkload(const IRModule& mod) final { return table->Find(mod).has_value(); }
  Workload CommitWorkload(const IRModule& mod) final {
    auto [workload, added] = table->Add(Workload(mod));
    if (added) {
      by_key->emplace(workload->Key(), workload);
      auto json = workload.AsJson();
      LockedFile(std::string(path_workload), true).Append(std::string(ffi::json::Stringify(json)));
    }
    return workload;
  }
  void CommitTuningRecord(const TuningRecord& record) final {
    if (!by_key->count(record->workload->Key())) CommitWorkload(record->workload->mod);
    table->Put(record);
    LockedFile(std::string(path_tuning_record), true).Append(RecordLine(record));
  }
  Array<TuningRecord> GetTopK(const Workload& w, int64_t k) final { return table->Top(w, k); }
  Array<TuningRecord> GetAllTuningRecords() final { return table->All(); }
  std::vector<RecordOutline> Outlines(const Workload& w) final { return table->Outlines(w); }
  int64_t Size() final { return table->size(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.JSONDatabase", JSONDatabaseObj, DatabaseObj);
};

TVM_REGISTER() {
  RegisterNode<JSONDatabaseObj>(
      "Records in two files of JSON lines; several processes may write them at the same time.");
  Def(
      "meta_schedule._create_file", [](String path) { LockedFile(std::string(path), true); },
      "Makes an empty file unless there is one.", Arg("path"));
}
}  // namespace
}  // namespace tvm::tune
