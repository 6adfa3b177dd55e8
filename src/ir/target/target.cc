// SPDX-License-Identifier: Apache-2.0
// Targets: parsing strings, dicts, JSON and tags; printing; the current target.
#include "tvm/ir/target.h"

#include <tvm/ffi/extra/json.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "ir/target/scope.h"
#include "ir/target/target_tables.h"
#include "ir/warn.h"
#include "tvm/runtime/type_of.h"

namespace tvm {
namespace {
std::map<std::string, std::string, std::less<>>& Tags() {
  static auto* tags = new std::map<std::string, std::string, std::less<>>(BuiltinTags());
  return *tags;
}
thread_local std::vector<Target> entered;

const TargetOption* FindOption(const TargetKindRow& row, std::string_view name) {
  for (const auto* options : {&row.options, &CommonTargetOptions()}) {
    for (const TargetOption& o : *options) {
      if (name == o.name) return &o;
    }
  }
  return nullptr;
}
[[noreturn]] void ThrowUnknownOption(const TargetKindRow& row, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto* options : {&row.options, &CommonTargetOptions()}) {
    for (const TargetOption& o : *options) names.push_back(o.name);
  }
  TVM_FFI_THROW(ValueError) << "Target: expected an option of kind " << row.name << ", got '"
                            << std::string(name) << "'" << DidYouMean(name, names);
  TVM_FFI_UNREACHABLE();
}
[[noreturn]] void ThrowBadValue(std::string_view option, const char* expected,
                                const std::string& got) {
  TVM_FFI_THROW(TypeError) << "Target: expected " << expected << " for option '"
                           << std::string(option) << "', got " << got;
  TVM_FFI_UNREACHABLE();
}
Array<String> SplitAt(std::string_view text, char separator) {
  Array<String> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}
/// The value of an option given as text.
Any ParseValue(const TargetOption& option, std::string_view text) {
  std::string quoted = "'" + std::string(text) + "'";
  switch (option.type) {
    case OptionType::kInt: {
      int64_t value = 0;
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && end == text.data() + text.size()) return value;
      if (text == "true" || text == "false") return int64_t{text == "true"};
      ThrowBadValue(option.name, "an integer", quoted);
    }
    case OptionType::kBool:
      if (text == "true" || text == "True" || text == "1") return true;
      if (text == "false" || text == "False" || text == "0") return false;
      ThrowBadValue(option.name, "true or false", quoted);
    case OptionType::kString:
      return String(std::string(text));
    default:
      return SplitAt(text, ',');
  }
}
int64_t InLimits(const TargetOption& option, int64_t value) {
  if (value >= option.least && value <= option.most) return value;
  bool is_open = option.most == std::numeric_limits<int64_t>::max();
  TVM_FFI_THROW(ValueError) << "Target: expected " << option.name
                            << (is_open ? " of at least " : " from ") << option.least
                            << (is_open ? "" : " to " + std::to_string(option.most)) << ", got "
                            << value;
  TVM_FFI_UNREACHABLE();
}
/// The value of an option given in a dict.
Any CheckValue(const TargetOption& option, const Any& value) {
  switch (option.type) {
    case OptionType::kInt:
      if (auto v = value.try_cast<int64_t>()) return InLimits(option, *v);
      ThrowBadValue(option.name, "an integer", TypeOf(value));
    case OptionType::kBool:
      if (auto v = value.try_cast<bool>()) return *v;
      ThrowBadValue(option.name, "a bool", TypeOf(value));
    case OptionType::kString:
      if (auto v = value.try_cast<String>()) return *v;
      ThrowBadValue(option.name, "a string", TypeOf(value));
    case OptionType::kStrings:
      if (auto v = value.try_cast<Array<String>>()) return *v;
      if (auto v = value.try_cast<String>()) return SplitAt(View(*v), ',');
      ThrowBadValue(option.name, "a list of strings", TypeOf(value));
    default:
      return value;
  }
}
/// Whether targets of old versions had the option; warns that it has no effect.
bool IsDead(std::string_view name) {
  auto it = DeadTargetOptions().find(name);
  if (it == DeadTargetOptions().end()) return false;
  Warn("target", "Target: the option '" + it->first + "' has no effect: " + it->second);
  return true;
}
/// "-a=1 -b 2 -c": words, with quotes around what has blanks.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (char c : text) {
    if (quote ? c == quote : c == '"' || c == '\'') {
      quote = quote ? 0 : c;
      in_word = true;
    } else if (!quote && (c == ' ' || c == '\t' || c == '\n')) {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote)
    TVM_FFI_THROW(ValueError) << "Target: expected a closing quote in '" << std::string(text)
                              << "'";
  if (in_word) words.push_back(word);
  return words;
}
Map<String, Any> ParseString(const String& text) {
  std::vector<std::string> words = Words(View(text));
  if (words.empty()) TVM_FFI_THROW(ValueError) << "Target: expected the name of a kind, got ''";
  const TargetKindRow& row = RowOf(TargetKind::Get(words[0]));
  Map<String, Any> config{{"kind", String(words[0])}};
  for (size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word[0] != '-') {
      TVM_FFI_THROW(ValueError) << "Target: expected an option such as -mcpu=..., got '" << words[i]
                                << "' in '" << text << "'";
    }
    word.remove_prefix(word.substr(0, 2) == "--" ? 2 : 1);
    size_t equal = word.find('=');
    std::string name(word.substr(0, equal));
    if (name == "target" && FindOption(row, "mtriple")) name = "mtriple";  // until 0.6
    const TargetOption* option = FindOption(row, name);
    bool is_dead = !option && DeadTargetOptions().count(name) > 0;
    if (!option && !is_dead) ThrowUnknownOption(row, name);
    if (config.count(name))
      TVM_FFI_THROW(ValueError) << "Target: expected option '" << name << "' once, got it twice";
    std::string value = "true";
    if (equal != std::string_view::npos) {
      value = word.substr(equal + 1);
    } else if (i + 1 < words.size() && words[i + 1][0] != '-') {
      value = words[++i];
    } else if (!is_dead && option->type != OptionType::kBool) {
      TVM_FFI_THROW(ValueError) << "Target: expected a value for option '" << name << "'";
    }
    config.Set(name, is_dead ? Any(String(value)) : ParseValue(*option, value));
  }
  return config;
}
Map<String, Any> ParseJson(const String& text) {
  static const Function parse = Function::GetGlobalRequired("ffi.json.Parse");
  try {
    return parse(text).cast<Map<String, Any>>();
  } catch (const ffi::Error& e) {
    TVM_FFI_THROW(ValueError) << "Target: expected a JSON object, got '" << text
                              << "': " << e.message();
  }
  TVM_FFI_UNREACHABLE();
}
Map<String, Any> ParseText(const String& text) {
  std::string_view view = View(text);
  size_t begin = std::min(view.find_first_not_of(" \t\n"), view.size());
  if (begin < view.size() && view[begin] == '{') return ParseJson(text);
  if (auto tag = Tags().find(view); tag != Tags().end()) {
    Map<String, Any> config = ParseText(tag->second);
    config.Set("tag", text);
    return config;
  }
  if (view.find('/') != std::string_view::npos && view.find(' ') == std::string_view::npos) {
    std::vector<std::string_view> names;
    for (const auto& [name, json] : Tags()) names.push_back(name);
    TVM_FFI_THROW(ValueError) << "Target: expected a target tag, got '" << text << "'"
                              << DidYouMean(view, names);
  }
  return ParseString(text);
}
Target ParseAny(const Any& value) {
  if (auto t = value.as<Target>()) return *t;
  if (auto s = value.try_cast<String>()) return Target(*s);
  return Target(value.cast<Map<String, Any>>());
}
}  // namespace

TargetKind TargetKind::Get(const String& name) {
  static const auto* kinds = [] {
    auto* all = new std::map<std::string, TargetKind, std::less<>>();
    for (const TargetKindRow& row : TargetKindTable()) {
      (*all)[row.name] = New<TargetKind>([&](TargetKindObj* n) {
        n->name = row.name;
        n->default_device_type = row.device_type;
        for (const char* key : row.keys) n->default_keys.push_back(key);
      });
    }
    return all;
  }();
  auto it = kinds->find(View(name));
  if (it != kinds->end()) return it->second;
  std::vector<std::string_view> names;
  for (const auto& [known, kind] : *kinds) names.push_back(known);
  // Words for devices are no names of code generators.
  const char* meant = name == "cpu" || name == "x86" ? "llvm" : name == "gpu" ? "cuda" : nullptr;
  TVM_FFI_THROW(ValueError) << "Target: expected the name of a target kind, got '" << name << "'"
                            << DidYouMean(meant ? meant : View(name), names);
  TVM_FFI_UNREACHABLE();
}
const TargetKindRow& RowOf(const TargetKind& kind) {
  for (const TargetKindRow& row : TargetKindTable()) {
    if (kind->name == row.name) return row;
  }
  TVM_FFI_THROW(InternalError) << "no row for " << kind->name;
  TVM_FFI_UNREACHABLE();
}

Target::Target(const String& text) : Target(ParseText(text)) {}

Target::Target(const Map<String, Any>& config) {
  auto kind_name = config.count("kind") ? config["kind"].try_cast<String>() : std::nullopt;
  if (!kind_name) TVM_FFI_THROW(ValueError) << "Target: expected a dict with the key 'kind'";
  TargetKind kind = TargetKind::Get(*kind_name);
  const TargetKindRow& row = RowOf(kind);
  Array<String> keys;
  auto add_key = [&](const String& key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  };
  Map<String, Any> attrs;
  Optional<ObjectRef> host;
  String tag;
  bool has_keys = false;
  for (const auto& [key, value] : config) {
    if (key == "kind") continue;
    const TargetOption* option = FindOption(row, View(key));
    if (!option) {
      if (View(key).substr(0, 8) == "feature.") continue;  // computed; written by other versions
      if (IsDead(View(key))) continue;
      ThrowUnknownOption(row, View(key));
    }
    if (key == "host") {
      host = ParseAny(value);
    } else if (key == "tag") {
      tag = CheckValue(*option, value).cast<String>();
    } else if (key == "keys") {
      for (const String& k : CheckValue(*option, value).cast<Array<String>>()) add_key(k);
      has_keys = true;
    } else {
      attrs.Set(key, CheckValue(*option, value));
    }
  }
  if (auto device = attrs.count("device") ? attrs["device"].as<String>() : std::nullopt) {
    if (!has_keys) keys.insert(keys.begin(), *device);
  }
  if (!has_keys) {
    auto cpu = attrs.count("mcpu") ? attrs["mcpu"].as<String>() : std::nullopt;
    if (cpu && View(*cpu).starts_with("cortex-m")) add_key("arm_cpu");
    for (const String& k : kind->default_keys) add_key(k);
  }
  for (const TargetOption& o : row.options) {
    if (!attrs.count(o.name) && o.fallback != nullptr) attrs.Set(o.name, o.fallback);
  }
  if (auto features = attrs.find("mattr"); features != attrs.end())
    CheckFeatures((*features).second.cast<Array<String>>());
  if (kind->name == "llvm") DetectHost(&attrs);
  if (kind->name == "cuda") DetectGpu(&attrs);
  *this = New<Target>([&](TargetObj* n) {
    n->kind = kind;
    n->host = host;
    n->tag = tag;
    n->keys = keys;
    n->attrs = attrs;
  });
}

bool TargetObj::HasKey(const String& key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}
int64_t TargetObj::DeviceType() const {
  return GetAttr<int64_t>("target_device_type", kind->default_device_type);
}
namespace {
std::string TextOf(const Any& value) {
  if (auto s = value.try_cast<Array<String>>()) {
    std::string out;
    for (const String& item : *s) out += (out.empty() ? "" : ",") + std::string(item);
    return out;
  }
  if (value.type_index() == kTVMFFIBool) return value.cast<bool>() ? "true" : "false";
  if (auto i = value.try_cast<int64_t>()) return std::to_string(*i);
  return value.cast<String>();
}
}  // namespace
String TargetObj::str() const {
  std::string out = kind->name;
  if (!keys.empty()) out += " -keys=" + TextOf(keys);
  std::map<std::string, std::string> sorted;
  for (const auto& [key, value] : attrs) {
    if (value.as<Array<Target>>()) continue;
    sorted[key] = TextOf(value);
  }
  for (auto& [key, value] : sorted) {
    bool quote = value.find(' ') != std::string::npos;
    out += " -" + key + "=" + (quote ? "\"" + value + "\"" : value);
  }
  return out;
}
Map<String, Any> TargetObj::Export() const {
  Map<String, Any> out{{"kind", kind->name}, {"tag", tag}, {"keys", keys}};
  for (const auto& [key, value] : attrs) out.Set(key, value);
  if (host.has_value()) out.Set("host", host.value().as<TargetObj>()->Export());
  return out;
}
Target Target::WithHost(const Target& host) const {
  Target copy = *this;
  Edit(&copy)->host = host;
  return copy;
}
Optional<Target> Target::Host() const {
  if (!get()->host.has_value()) return std::nullopt;
  return get()->host.value().as<Target>();
}
Target Target::Current() { return entered.empty() ? Target() : entered.back(); }
TargetScope::TargetScope(const Target& target) : entered_(target.defined()) {
  if (entered_) entered.push_back(target);
}
TargetScope::~TargetScope() {
  if (entered_) entered.pop_back();
}

namespace {
TVM_REGISTER() {
  RegisterNode<TargetKindObj>("A kind of target.");
  RegisterNode<TargetObj>("What code is generated for.");
  Def(
      "target.Target_", [](Any value) { return ParseAny(value); },
      "A target from a string, tag, JSON or dict.", Arg("target"));
  Def(
      "target.Target.with_host_", [](Target t, Target host) { return t.WithHost(host); },
      "A copy with another host.", Arg("self"), Arg("host"));
  Def(
      "target.Target.export", [](Target t) { return t->Export(); }, "The JSON form, as a dict.",
      Arg("self"));
  Def("target.Target.str_", [](Target t) { return t->str(); }, "The string form.", Arg("self"));
  Def(
      "target.Target.has_feature", [](Target t, String f) { return t->HasFeature(f); },
      "Whether an instruction-set feature such as \"avx512f\" is on.", Arg("self"), Arg("feature"));
  Def(
      "target.Target.get_target_device_type", [](Target t) { return t->DeviceType(); },
      "The DLPack number of the device.", Arg("self"));
  Def("target.EnterTarget", [](Target t) { entered.push_back(t); }, "", Arg("target"));
  Def(
      "target.ExitTarget",
      [](Target t) {
        if (entered.empty() || !entered.back().same_as(t)) {
          TVM_FFI_THROW(RuntimeError)
              << "Target: expected targets to be left in the reverse order of entering";
        }
        entered.pop_back();
      },
      "", Arg("target"));
  Def(
      "target.CurrentTarget",
      []() -> Optional<Target> {
        return entered.empty() ? Optional<Target>() : Optional<Target>(entered.back());
      },
      "");
  Def(
      "target.ListTargetKinds",
      [] {
        Array<String> names;
        for (const TargetKindRow& row : TargetKindTable()) names.push_back(row.name);
        return names;
      },
      "The names of all kinds.");
  Def(
      "target.KindOptions",
      [](String name) {
        const char* const types[] = {"int", "bool", "str", "list[str]", "list[Target]"};
        Map<String, String> options;
        const TargetKindRow& row = RowOf(TargetKind::Get(name));
        for (const auto* table : {&row.options, &CommonTargetOptions()}) {
          for (const TargetOption& o : *table) options.Set(o.name, types[static_cast<int>(o.type)]);
        }
        return options;
      },
      "The options of a kind and their types.", Arg("kind_name"));
  Def(
      "target.ListTags",
      [] {
        Array<String> names;
        for (const auto& [name, json] : Tags()) names.push_back(name);
        return names;
      },
      "All target tags.");
  Def(
      "target.RegisterTag",
      [](String name, String config, bool override_) {
        if (Tags().count(name) && !override_)
          TVM_FFI_THROW(ValueError)
              << "register_tag: the tag '" << name << "' exists; pass override=True";
        Tags()[name] = config;
        return Target(name);
      },
      "Adds a tag.", Arg("name"), Arg("config"), Arg("override", false));
}
}  // namespace
}  // namespace tvm
