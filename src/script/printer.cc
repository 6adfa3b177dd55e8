// SPDX-License-Identifier: Apache-2.0
// The parts of the printer that know no node: names, literals, metadata, the whole text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "tvm/ir/structural.h"
#include "tvm/script/language.h"

namespace tvm::script {
namespace {
/// Names that mean something in a script, beside Python's keywords.
constexpr std::string_view kReserved[] = {
    "False",  "None",    "True",     "and",      "as",     "assert", "async",  "await",
    "break",  "class",   "cls",      "continue", "def",    "del",    "elif",   "else",
    "except", "finally", "for",      "from",     "global", "if",     "import", "in",
    "is",     "lambda",  "metadata", "nonlocal", "not",    "or",     "pass",   "raise",
    "range",  "return",  "try",      "tvm",      "while",  "with",   "yield"};
constexpr size_t kMaxText = size_t{256} << 20;

/// A hint as a Python identifier.
std::string Identifier(std::string_view hint) {
  std::string name;
  for (char c : hint) {
    bool ok = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80);
    name += ok ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  return name;
}

TypeTable<ValueHandler>& ValueHandlers() {
  static auto* table = new TypeTable<ValueHandler>();
  return *table;
}
/// Languages by rank.
std::vector<const Language*>& Languages() {
  static auto* list = new std::vector<const Language*>();
  return *list;
}
std::string_view PrefixOf(const Language& language, const PrinterConfigObj* config) {
  return language.option ? View(config->*language.option) : language.prefix;
}
}  // namespace

void RegisterLanguage(const Language* language) {
  auto& all = Languages();
  auto later = [](const Language* a, const Language* b) { return a->rank < b->rank; };
  all.insert(std::upper_bound(all.begin(), all.end(), language, later), language);
}
PrintTable& InPlaceHandlers() {
  static auto* table = new PrintTable();
  return *table;
}
PrintTable& WholeHandlers() {
  static auto* table = new PrintTable();
  return *table;
}
void DefPrintValue(int32_t type_index, ValueHandler handler) {
  ValueHandlers().Set(type_index, handler);
}
void PrintAsMetadata(Printer& p, const Object* node) {
  p.Metadata(Any(ffi::GetRef<ObjectRef>(node)));
}

Printer::Printer(const PrinterConfigObj* config, const Any& root)
    : config(config), int_dtype(config->int_dtype), root_(root) {
  for (std::string_view name : kReserved) used_.emplace(name);
  for (const Language* language : Languages()) used_.emplace(PrefixOf(*language, config));
  used_.insert(config->module_alias);
  for (const ObjectRef& object : config->obj_to_underline)
    marked_objects_[object.get()] = Mark::kUnderline;
  for (const auto& [object, note] : config->obj_to_annotate) {
    marked_objects_[object.get()] = AddNote(note);
  }
  FindPaths(root);
}

// ---- text ---------------------------------------------------------------------------------------
Printer& Printer::In(const Language& language, std::string_view name) {
  if (std::find(used_languages_.begin(), used_languages_.end(), &language) ==
      used_languages_.end()) {
    used_languages_.push_back(&language);
  }
  return *this << PrefixOf(language, config) << "." << name;
}
size_t Printer::NewStateSlot() {
  static std::atomic<size_t> count = 0;
  return count++;
}
Printer& Printer::Quote(std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  out_ += '"';
  for (char c : text) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        break;
      case '\\':
        out_ += "\\\\";
        break;
      case '\n':
        out_ += "\\n";
        break;
      case '\r':
        out_ += "\\r";
        break;
      case '\t':
        out_ += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out_ += "\\x";
          out_ += hex[(c >> 4) & 15];
          out_ += hex[c & 15];
        } else {
          out_ += c;
        }
    }
  }
  out_ += '"';
  return *this;
}
void Printer::CheckSize() const {
  // Text repeats what a program shares: a small one can print without end.
  if (out_.size() > kMaxText) {
    TVM_FFI_THROW(ValueError)
        << "script: expected a program of less than 256 MiB of text; it shares "
           "expressions that the text has to repeat";
  }
}

// ---- names --------------------------------------------------------------------------------------
std::string Printer::Unique(const Object* object, std::string_view hint) {
  std::string base = Identifier(hint);
  if (config->show_object_address) {
    char address[24];
    std::snprintf(address, sizeof address, "_%p", static_cast<const void*>(object));
    base += address;
  }
  if (used_.insert(base).second) return base;
  int& next = next_suffix_[base];
  for (;;) {
    std::string name = base + "_" + std::to_string(++next);
    if (used_.insert(name).second) return name;
  }
}
void Printer::Bind(const Object* object, std::string name) {
  names_[object] = std::move(name);
  log_.push_back(object);
  for (NameObserver* observer : observers) observer->Named(object);
}
const std::string& Printer::Define(const Object* object, const String& hint) {
  if (!Known(object)) Bind(object, Unique(object, View(hint)));
  return names_[object];
}
void Printer::DefineAs(const Object* object, std::string text) {
  if (!Known(object)) Bind(object, std::move(text));
}
const std::string& Printer::Name(const Object* object, const String& hint) {
  if (auto it = names_.find(object); it != names_.end()) return it->second;
  // Free in what is printed: the name holds to the end.
  return names_.emplace(object, Unique(object, View(hint))).first->second;
}
void Printer::Forget(size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) {
    const Object* object = log_.back();
    auto it = names_.find(object);
    const std::string& name = it->second;
    used_.erase(name);
    if (size_t at = name.rfind('_'); at != std::string::npos && at + 1 < name.size()) {
      int suffix = 0;
      auto [end, error] = std::from_chars(name.data() + at + 1, name.data() + name.size(), suffix);
      if (auto next = next_suffix_.find(name.substr(0, at));
          error == std::errc() && end == name.data() + name.size() && next != next_suffix_.end()) {
        next->second = std::min(next->second, suffix - 1);
      }
    }
    names_.erase(it);
    for (NameObserver* observer : observers) observer->Forgotten(object);
  }
}

// ---- values -------------------------------------------------------------------------------------
void Printer::Metadata(const Any& value) {
  const Object* object = value.as<Object>();
  auto it = metadata_index_.find(object);
  if (it == metadata_index_.end()) {
    std::string key = value.GetTypeKey();
    size_t list = 0;
    while (list < metadata_.size() && metadata_[list].first != key) ++list;
    if (list == metadata_.size()) metadata_.emplace_back(key, Array<Any>());
    metadata_[list].second.push_back(value);
    it = metadata_index_.emplace(object, std::pair(list, metadata_[list].second.size() - 1)).first;
  }
  auto [list, index] = it->second;
  *this << "metadata[";
  Quote(metadata_[list].first) << "][" << static_cast<int64_t>(index) << "]";
}

void Printer::Value(const Any& value) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { Value(value); });
  CheckSize();
  switch (value.type_index()) {
    case kTVMFFINone:
      *this << "None";
      return;
    case kTVMFFIBool:
      *this << (value.cast<bool>() ? "True" : "False");
      return;
    case kTVMFFIInt:
      *this << value.cast<int64_t>();
      return;
    case kTVMFFIFloat: {
      double number = value.cast<double>();
      if (std::isfinite(number)) {
        char text[64];
        auto end = std::to_chars(text, text + sizeof text, number).ptr;
        std::string_view view(text, end - text);
        *this << view << (view.find_first_of(".e") == std::string_view::npos ? ".0" : "");
      } else {
        *this << "float(";
        Quote(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf") << ")";
      }
      return;
    }
    case kTVMFFIStr:
    case kTVMFFISmallStr: {
      auto text = value.cast<String>();
      Quote(View(text));
      return;
    }
    case kTVMFFIArray: {
      List list(*this, "[", "]");
      for (const Any& item : *value.as<ffi::ArrayObj>()) list.Item().Value(item);
      return;
    }
    case kTVMFFIMap: {
      // By key: the text shall not depend on the order of insertion.
      std::vector<std::pair<String, const Any*>> items;
      bool text_keys = true;
      const auto& map = *value.as<ffi::MapObj>();
      for (const auto& [key, item] : map) {
        if (auto name = key.as<String>())
          items.emplace_back(*name, &item);
        else
          text_keys = false;
      }
      List list(*this, "{", "}");
      if (text_keys) {
        std::sort(items.begin(), items.end(),
                  [](const auto& a, const auto& b) { return View(a.first) < View(b.first); });
        for (const auto& [key, item] : items) {
          list.Item().Quote(View(key)) << ": ";
          Value(*item);
        }
      } else {
        for (const auto& [key, item] : map) {
          list.Item().Value(key);
          *this << ": ";
          Value(item);
        }
      }
      return;
    }
    default:
      if (value.type_index() < kTVMFFIStaticObjectBegin) {
        if (ValueHandler handler = ValueHandlers().Find(value.type_index()))
          return handler(*this, value);
        TVM_FFI_THROW(TypeError) << "script: expected a value that can be written, got "
                                 << value.GetTypeKey();
      }
      Node(value.as<Object>(), &value);
  }
}
void Printer::Node(const Object* node, const void* slot) {
  size_t begin = out_.size();
  if (PrintHandler handler = InPlaceHandlers().Find(node->type_index())) {
    handler(*this, node);
  } else if (node->IsInstance<NodeObj>()) {
    Construct(node);
  } else {
    PrintAsMetadata(*this, node);
  }
  if (Marks()) [[unlikely]]
    AddMark(node, slot, begin, out_.size());
}
void Printer::Construct(const Object* node, Operand operand) {
  const NodeInfo& info = InfoOf(node->type_index());
  std::string_view key = info.key;
  const Language* language = nullptr;
  for (const Language* candidate : Languages()) {
    if (key.starts_with(candidate->keys)) language = candidate;
  }
  std::string_view name = language ? key.substr(language->keys.size()) : "";
  if (name.empty() || name.find('.') != std::string_view::npos || !info.create) {
    return PrintAsMetadata(*this, node);
  }
  auto slot_of = [&](const Field* f) {
    return const_cast<char*>(reinterpret_cast<const char*>(node)) + f->offset;
  };
  std::vector<std::pair<const Field*, Any>> values;
  for (const Field* f : info.params) {
    if (std::string_view(f->name) == "span") continue;
    TVMFFIAny raw;
    if (f->ops->get(slot_of(f), &raw) != 0) throw ffi::detail::MoveFromSafeCallRaised();
    values.emplace_back(f, ffi::detail::AnyUnsafe::MoveTVMFFIAnyToAny(&raw));
  }
  auto is_default = [](const std::pair<const Field*, Any>& v) {
    return v.first->HasDefault() && StructuralEqual(v.first->value, v.second);
  };
  while (!values.empty() && is_default(values.back())) values.pop_back();
  In(*language, name);
  List list(*this, "(", ")");
  for (const auto& [field, value] : values) {
    list.Item();
    if (auto type = value.as<DataType>(); type && value.type_index() == kTVMFFIDataType) {
      Quote(type->str());
    } else if (!operand || !operand(*this, value, slot_of(field))) {
      Value(value);
    }
  }
}

// ---- the whole text -----------------------------------------------------------------------------
std::string Printer::Header() const {
  std::string text;
  if (root_.as<BaseFuncObj>() || root_.as<IRModuleObj>()) {
    for (const Language* language : Languages()) {
      if (std::count(used_languages_.begin(), used_languages_.end(), language) == 0) continue;
      text += "# from tvm.script import " + std::string(language->module) + " as " +
              std::string(PrefixOf(*language, config)) + "\n";
    }
    if (!text.empty()) text += "\n";
  }
  if (metadata_.empty()) return text;
  if (!config->show_meta) {
    return text + "# Metadata omitted. Use show_meta=True in script() method to show it.\n";
  }
  Map<String, Any> map;
  for (const auto& [key, values] : metadata_) map.Set(key, values);
  Printer quoted(config, nullptr);
  quoted << "metadata = tvm.ir.load_json(";
  quoted.Quote(View(SaveJson(map))) << ")\n";
  return text + quoted.out_;
}
std::string Printer::Run() {
  const Object* node = root_.as<Object>();
  if (PrintHandler whole = node ? WholeHandlers().Find(node->type_index()) : nullptr)
    whole(*this, node);
  else
    Value(root_);
  while (!out_.empty() && out_.back() == '\n') out_.pop_back();
  std::string header = Header();
  for (Mark& mark : marks_) {
    mark.begin += header.size();
    mark.end += header.size();
  }
  return Decorate(header + out_, marks_, notes_, config->print_line_numbers,
                  config->num_context_lines);
}

String Print(const Any& node, const PrinterConfig& config) {
  PrinterConfig c = config.defined() ? config : New<PrinterConfig>([](PrinterConfigObj*) {});
  return OnDeepStack([&] { return String(Printer(c.get(), node).Run()); });
}
String Repr(const Any& node) {
  const Object* object = node.as<Object>();
  if (object && (InPlaceHandlers().Find(object->type_index()) ||
                 WholeHandlers().Find(object->type_index()))) {
    return Print(node);
  }
  static const ffi::Function raw = ffi::Function::GetGlobalRequired("ir.Repr");
  return raw(node).cast<String>();
}

void PrinterConfigObj::Fields(auto&& def) {
  using C = PrinterConfigObj;
  def("binding_names", &C::binding_names, Default(Array<String>()));
  def("show_meta", &C::show_meta, Default(false));
  def("ir_prefix", &C::ir_prefix, Default(String("I")));
  def("tir_prefix", &C::tir_prefix, Default(String("T")));
  def("relax_prefix", &C::relax_prefix, Default(String("R")));
  def("module_alias", &C::module_alias, Default(String("cls")));
  def("buffer_dtype", &C::buffer_dtype, Default(DataType::Float(32)));
  def("int_dtype", &C::int_dtype, Default(DataType::Int(32)));
  def("float_dtype", &C::float_dtype, Default(DataType::Void()));
  def("verbose_expr", &C::verbose_expr, Default(false));
  def("indent_spaces", &C::indent_spaces, Default(4));
  def("print_line_numbers", &C::print_line_numbers, Default(false));
  def("num_context_lines", &C::num_context_lines, Default(-1));
  def("syntax_sugar", &C::syntax_sugar, Default(true));
  def("show_object_address", &C::show_object_address, Default(false));
  def("show_all_struct_info", &C::show_all_struct_info, Default(true));
  def("path_to_underline", &C::path_to_underline, Default(Array<ffi::reflection::AccessPath>()));
  def("path_to_annotate", &C::path_to_annotate,
      Default(Map<ffi::reflection::AccessPath, String>()));
  def("obj_to_underline", &C::obj_to_underline, Default(Array<ObjectRef>()));
  def("obj_to_annotate", &C::obj_to_annotate, Default(Map<ObjectRef, String>()));
}
void PrinterConfigObj::Init() {
  if (indent_spaces < 1 || indent_spaces > 64) {
    TVM_FFI_THROW(ValueError) << "PrinterConfig: expected indent_spaces between 1 and 64, got "
                              << indent_spaces;
  }
}

namespace {
String PrintUnderlined(const Any& node, const Array<ObjectRef>& about) {
  constexpr int64_t kAll = 150, kAround = 12;  // lines that are shown at all, and round a spot
  auto print = [&](int64_t context) {
    return Print(node, New<PrinterConfig>([&](PrinterConfigObj* n) {
                   n->obj_to_underline = about;
                   n->num_context_lines = context;
                 }));
  };
  String all = print(-1);
  auto lines = std::count(all.data(), all.data() + all.size(), '\n');
  return lines <= kAll ? all : print(kAround);
}

/// Arrays and maps, which are tvm-ffi's, ask for the text of what they hold.
void PrintInContainers() {
  static const Any repr = Function::FromTyped(
      [](const Object* node, const Any&) { return Print(ffi::GetRef<ObjectRef>(node)); });
  static std::set<int32_t> done;
  auto types = ffi::Function::GetGlobalRequired("ir.NodeTypes")().cast<Array<int64_t>>();
  for (int64_t wide : types) {
    auto type = static_cast<int32_t>(wide);
    bool is_printed = InPlaceHandlers().Find(type) || WholeHandlers().Find(type);
    if (!is_printed || !done.insert(type).second) continue;
    TVMFFIByteArray name{"__ffi_repr__", 12};
    TVM_FFI_CHECK_SAFE_CALL(
        TVMFFITypeRegisterAttr(type, &name, reinterpret_cast<const TVMFFIAny*>(&repr)));
  }
}

TVM_REGISTER() {
  RegisterNode<PrinterConfigObj>("How a program is printed.");
  Def("script._print_underlined", &PrintUnderlined, "A program with some nodes underlined.",
      Arg("node"), Arg("about"));
  Def("script._print", &Print, "The TVMScript of a node.", Arg("node"), Arg("config", nullptr));
  Def("script._print_in_containers", &PrintInContainers,
      "Makes arrays and maps show nodes as TVMScript.");
  Def("script._repr", &Repr, "The TVMScript of a node, or its raw form.", Arg("node"));
}
}  // namespace
}  // namespace tvm::script
