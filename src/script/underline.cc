// SPDX-License-Identifier: Apache-2.0
// Underlines and notes on parts of a printed program, line numbers, and the lines round a spot.
#include <algorithm>

#include "tvm/script/language.h"

namespace tvm::script {

/// A path leads to the place where a reference is stored. The printer passes these places along
/// with the objects, so that of two equal operands the right one is found.
void Printer::FindPaths(const Any& root) {
  auto find = [&](const ffi::reflection::AccessPath& path, int note) {
    Any at = root;
    const void* slot = nullptr;
    for (const auto& step : path->ToSteps()) {
      const Object* object = at.as<Object>();
      switch (step->kind) {
        case ffi::reflection::AccessKind::kAttr: {
          if (!object) return;
          String name = step->key.cast<String>();
          const TVMFFIFieldInfo* field = nullptr;
          const TVMFFITypeInfo* type = TVMFFIGetTypeInfo(object->type_index());
          auto look = [&](const TVMFFITypeInfo* info) {
            for (int32_t i = 0; i < info->num_fields; ++i) {
              if (std::string_view(info->fields[i].name.data, info->fields[i].name.size) ==
                  View(name)) {
                field = &info->fields[i];
              }
            }
          };
          for (int32_t i = 0; i < type->type_depth; ++i) look(type->type_ancestors[i]);
          look(type);
          if (!field) return;
          slot = reinterpret_cast<const char*>(object) + field->offset;
          TVMFFIAny raw;
          if (field->getter(const_cast<void*>(slot), &raw) != 0)
            throw ffi::detail::MoveFromSafeCallRaised();
          at = ffi::detail::AnyUnsafe::MoveTVMFFIAnyToAny(&raw);
          break;
        }
        case ffi::reflection::AccessKind::kArrayItem: {
          auto* array = at.as<ffi::ArrayObj>();
          int64_t i = step->key.cast<int64_t>();
          if (!array || i < 0 || i >= static_cast<int64_t>(array->size())) return;
          const Any& item = *(array->begin() + i);
          slot = &item;
          at = Any(item);
          break;
        }
        case ffi::reflection::AccessKind::kMapItem: {
          auto* map = at.as<ffi::MapObj>();
          if (!map) return;
          auto it = map->find(step->key);
          if (it == map->end()) return;
          slot = &it->second;
          at = Any(it->second);
          break;
        }
        default:
          return;  // what is missing has no text
      }
    }
    if (slot) {
      marked_slots_[slot] = note;
    } else if (const Object* object = root.as<Object>()) {
      marked_objects_[object] = note;
    }
  };
  for (const auto& path : config->path_to_underline) find(path, Mark::kUnderline);
  const auto& notes = *static_cast<const ffi::MapObj*>(config->path_to_annotate.get());
  for (const auto& [path, note] : notes) {
    find(path.cast<ffi::reflection::AccessPath>(), AddNote(note.cast<String>()));
  }
}

int Printer::AddNote(const String& note) {
  notes_.push_back(note);
  return static_cast<int>(notes_.size()) - 1;
}
void Printer::AddMark(const Object* object, const void* slot, size_t begin, size_t end) {
  if (auto it = marked_objects_.find(object); it != marked_objects_.end()) {
    marks_.push_back({begin, end, it->second});
  }
  if (auto it = marked_slots_.find(slot); it != marked_slots_.end()) {
    marks_.push_back({begin, end, it->second});
  }
}
void Printer::MarkLine(const Object* object, const void* slot, size_t begin) {
  if (!Marks()) return;
  begin = out_.find_first_not_of(' ', begin);
  if (begin != std::string::npos) AddMark(object, slot, begin, out_.find('\n', begin));
}

std::string Decorate(const std::string& text, const std::vector<Mark>& marks,
                     const std::vector<std::string>& notes, bool line_numbers, int64_t context) {
  if (marks.empty() && !line_numbers) return text;
  struct Line {
    std::string_view text;
    std::string underline = {}, notes = {};
    bool shown = false;
  };
  std::vector<Line> lines;
  std::vector<size_t> starts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    starts.push_back(at);
    lines.push_back({std::string_view(text).substr(at, end - at)});
    at = end + 1;
  }
  int64_t count = static_cast<int64_t>(lines.size());
  bool all = marks.empty() || context < 0;
  for (const Mark& mark : marks) {
    int64_t first = std::upper_bound(starts.begin(), starts.end(), mark.begin) - starts.begin() - 1;
    size_t end = std::min(mark.end, text.size());
    for (int64_t i = first; i < count && starts[i] < std::max(end, mark.begin + 1); ++i) {
      Line& line = lines[i];
      if (mark.note != Mark::kUnderline) {
        line.notes += "  # " + notes[mark.note];
        break;
      }
      size_t from = std::max(mark.begin, starts[i]) - starts[i];
      size_t to = std::min(end - starts[i], line.text.size());
      from = std::max(from, std::min(line.text.find_first_not_of(' '), line.text.size()));
      if (from >= to) continue;
      if (line.underline.size() < to) line.underline.resize(to, ' ');
      std::fill(line.underline.begin() + from, line.underline.begin() + to, '^');
    }
    if (all) continue;
    int64_t last = std::upper_bound(starts.begin(), starts.end(), end) - starts.begin() - 1;
    int64_t around = std::min(context, count);
    for (int64_t i = std::max<int64_t>(0, first - around); i <= std::min(count - 1, last + around);
         ++i) {
      lines[i].shown = true;
    }
  }
  std::string result;
  size_t width = std::to_string(count).size();
  for (int64_t i = 0; i < count; ++i) {
    if (!all && !lines[i].shown) {
      int64_t next = i;
      while (next < count && !lines[next].shown) ++next;
      result += "(... " + std::to_string(next - i) + " lines skipped ...)\n";
      i = next - 1;
      continue;
    }
    std::string number = std::to_string(i + 1);
    std::string margin = line_numbers ? std::string(width - number.size(), ' ') + number + " " : "";
    result += margin + std::string(lines[i].text) + lines[i].notes + "\n";
    if (!lines[i].underline.empty())
      result += std::string(margin.size(), ' ') + lines[i].underline + "\n";
  }
  result.pop_back();
  return result;
}

namespace {
TVM_REGISTER() {
  Def(
      "script._decorate",
      [](String text, Array<int64_t> begins, Array<int64_t> ends, bool line_numbers,
         int64_t context) {
        std::vector<Mark> marks;
        for (size_t i = 0; i < std::min(begins.size(), ends.size()); ++i) {
          marks.push_back({static_cast<size_t>(begins[i]), static_cast<size_t>(ends[i])});
        }
        return String(Decorate(text, marks, {}, line_numbers, context));
      },
      "A text with some of its bytes underlined.", Arg("text"), Arg("begins"), Arg("ends"),
      Arg("line_numbers"), Arg("context"));
}
}  // namespace
}  // namespace tvm::script
