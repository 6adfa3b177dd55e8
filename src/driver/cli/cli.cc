// SPDX-License-Identifier: Apache-2.0
// The commands of the program `tvm`.
#include "driver/cli/cli.h"

#include <tvm/ffi/extra/json.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "driver/cli/npy.h"
#include "driver/cli/program.h"
#include "driver/cli/session.h"
#include "tvm/driver/export.h"
#include "tvm/frontend/onnx.h"
#include "tvm/frontend/torch.h"
#include "tvm/ir/backend.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::cli {
namespace {
void PrintJson(const Json& json) { std::cout << ffi::json::Stringify(json, 2) << "\n"; }
std::string Cell(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}
/// Rows of cells under each other; the first row is the head.
void PrintTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string space(width[i] - row[i].size(), ' ');
      line += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    std::cout << line << "\n";
  }
}
// ---- compile ------------------------------------------------------------------------------------
void Compile(const Options& options) {
  if (options.rest().size() != 1 || !options.Has("--output"))
    TVM_FFI_THROW(ValueError)
        << "expected a model (.onnx, .pt2) or a module that was saved as JSON, and -o model.so";
  const std::string& path = options.rest()[0];
  CheckSuffixOf(options.Get("--output"));  // before a long compilation
  CheckFolderOf(options.Get("--output"));
  IRModule mod = ReadProgram(path);
  auto begin = std::chrono::steady_clock::now();
  ffi::Module code = Compiled(mod, options);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ExportOptions export_options;
  export_options.params = options.Get("--params");
  ExportLibrary(code, options.Get("--output"), export_options);
  if (options.Has("--json")) {
    PrintJson({{"output", String(options.Get("--output"))}, {"seconds", seconds.count()}});
  } else {
    std::cout << options.Get("--output") << "  " << Cell(seconds.count()) << " s\n";
  }
}

// ---- running ------------------------------------------------------------------------------------
Json Describe(const Any& entry) { return entry.cast<Json>(); }
std::string ShapeText(const runtime::Tensor& t) {
  std::string text = ffi::DLDataTypeToString(t.dtype()) + "(";
  for (size_t i = 0; i < t.shape().size(); ++i)
    text += (i ? ", " : "") + std::to_string(t.shape()[i]);
  return text + ")";
}
void Run(const Options& options) {
  Session session(options);
  std::vector<runtime::Tensor> results = session.Run(session.Inputs());
  auto outputs = session.Signature()["outputs"].cast<Array<Any>>();
  Array<Any> listed;
  for (size_t i = 0; i < results.size(); ++i) {
    std::string name = i < outputs.size() ? std::string(Describe(outputs[i])["name"].cast<String>())
                                          : "output_" + std::to_string(i);
    Json entry{{"name", String(name)}, {"value", String(ShapeText(results[i]))}};
    if (options.Has("--output")) {
      std::filesystem::create_directories(options.Get("--output"));
      std::string file = options.Get("--output") + "/" + name + ".npy";
      WriteNpy(file, results[i]);
      entry.Set("file", String(file));
    }
    listed.push_back(entry);
    if (!options.Has("--json")) std::cout << name << "  " << ShapeText(results[i]) << "\n";
  }
  if (options.Has("--json")) PrintJson({{"outputs", listed}});
}
void Bench(const Options& options) {
  Session session(options);
  std::vector<Any> inputs = session.Inputs();
  int64_t repeat = options.Count("--repeat", 20);
  for (int i = 0; i < 3; ++i) session.Run(inputs);
  std::vector<double> times;
  for (int64_t i = 0; i < repeat; ++i) {
    auto begin = std::chrono::steady_clock::now();
    session.Run(inputs);
    runtime::GetDeviceAPI(session.device.device_type)
        ->Sync(session.device, runtime::CurrentStream(session.device));
    std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
    times.push_back(ms.count());
  }
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2], least = times.front(), most = times.back();
  if (options.Has("--json")) {
    PrintJson({{"median_ms", median}, {"min_ms", least}, {"max_ms", most}, {"repeat", repeat}});
  } else {
    PrintTable({{"", "median ms", "min", "max", "calls"},
                {session.function, Cell(median), Cell(least), Cell(most), std::to_string(repeat)}});
  }
}
void Profile(const Options& options) {
  Session session(options, /*profiles=*/true);
  std::vector<Any> inputs = session.Inputs();
  String name(session.function);
  std::vector<AnyView> views{name};
  views.insert(views.end(), inputs.begin(), inputs.end());
  Any report;
  runtime::GetFunction(session.machine, "profile")
      .CallPacked(views.data(), static_cast<int32_t>(views.size()), &report);
  if (options.Has("--json")) {
    std::cout << report.cast<String>() << "\n";
    return;
  }
  struct Row {
    double us = 0;
    int64_t calls = 0;
  };
  std::map<std::string, Row> by_name;
  double total = 0;
  for (const Any& any :
       ffi::json::Parse(report.cast<String>()).cast<Json>()["calls"].cast<Array<Any>>()) {
    auto call = any.cast<Json>();
    double us = call["Duration (us)"].cast<Json>()["microseconds"].cast<double>();
    Row& row = by_name[std::string(call["Name"].cast<Json>()["string"].cast<String>())];
    row.us += us;
    ++row.calls;
    total += us;
  }
  std::vector<std::pair<std::string, Row>> sorted(by_name.begin(), by_name.end());
  std::sort(sorted.begin(), sorted.end(),
            [](auto& a, auto& b) { return a.second.us > b.second.us; });
  std::vector<std::vector<std::string>> rows{{"function", "us", "%", "calls"}};
  for (const auto& [function, row] : sorted)
    rows.push_back({function, Cell(row.us), Cell(100 * row.us / total), std::to_string(row.calls)});
  PrintTable(rows);
}

// ---- looking ------------------------------------------------------------------------------------
void Inspect(const Options& options) {
  // What is asked of the compiled model is told of that.
  if (options.rest().size() == 1 && !options.Has("--code") && !options.Has("--json")) {
    const std::string& path = options.rest()[0];
    bool is_onnx = HasSuffix(path, ".onnx");
    if (is_onnx || HasSuffix(path, ".pt2")) {
      std::cout << (is_onnx ? frontend::InspectOnnx(path) : frontend::InspectTorchArchive(path))
                << "\n";
      return;
    }
  }
  Session session(options);
  Json functions;
  for (const String& name : runtime::FunctionNames(session.executable)) {
    auto text =
        runtime::GetFunction(session.machine, "get_function_signature")(name).cast<String>();
    functions.Set(name, text.empty() ? Any(nullptr) : ffi::json::Parse(text));
  }
  auto text_of = [&](const char* what) {
    return runtime::GetFunction(session.executable, what)().cast<String>();
  };
  if (options.Has("--json")) {
    PrintJson({{"functions", functions}, {"stats", text_of("stats")}});
  } else {
    for (const auto& [name, signature] : functions)
      std::cout << name << " " << ffi::json::Stringify(signature, 2) << "\n";
    std::cout << text_of(options.Has("--code") ? "as_text" : "stats");
  }
}
Json BuildFacts() { return ffi::Function::GetGlobalRequired("support.libinfo")().cast<Json>(); }
void Info(const Options& options) {
  if (!options.rest().empty())
    TVM_FFI_THROW(ValueError) << "info: expected options only, got '" << options.rest()[0] << "'";
  Json facts = BuildFacts();
  facts.Set("target", DefaultHost()->str());
  facts.Set("threads", runtime::NumThreads());
  facts.Set("cache", ffi::Function::GetGlobalRequired("runtime.cache_info")().cast<Json>());
  if (options.Has("--json")) return PrintJson(facts);
  for (const auto& [key, value] : facts)
    std::cout << key << ": " << ffi::json::Stringify(value) << "\n";
}

// ---- the table ----------------------------------------------------------------------------------
struct Command {
  const char *name, *arguments, *doc;
  std::vector<OptionRow> options;
  void (*run)(const Options&);  // null: Python does it
};
std::vector<OptionRow> With(std::vector<OptionRow> rows, const std::vector<OptionRow>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}
const std::vector<Command>& Commands() {
  static const auto* commands = new std::vector<Command>{
      {"compile",
       "model.onnx -o model.so",
       "compiles a model (.onnx, .pt2), or a module saved as JSON, to a library",
       {{"--target", "a target", "this machine by default"},
        {"--output", "a file", "the library; also -o"},
        {"--params", "a file", "gets the constants, as safetensors; beside the library"},
        {"--json", "", "prints JSON"}},
       &Compile},
      {"run", "model.so|model.onnx", "runs a model once",
       With(SessionOptions(), {{"--output", "a folder", "results as .npy; also -o"}}), &Run},
      {"bench", "model.so|model.onnx", "measures a model",
       With(SessionOptions(), {{"--repeat", "a number", "calls that are measured; 20 by default"}}),
       &Bench},
      {"profile", "model.so|model.onnx", "shows where the time goes", SessionOptions(), &Profile},
      {"inspect", "model.so|model.onnx|model.pt2", "shows what a model takes, gives and holds",
       With(SessionOptions(), {{"--code", "", "the instructions"}}), &Inspect},
      {"verify",
       "model.onnx|model.pt2",
       "compares a model with its own framework (by Python)",
       {},
       nullptr},
      {"explain",
       "model.onnx|model.pt2",
       "the kernels of a model, and how fast they are (by Python)",
       {},
       nullptr},
      {"info", "", "shows this build and this machine", {{"--json", "", "prints JSON"}}, &Info},
  };
  return *commands;
}
void PrintHelp(const Command* command) {
  if (!command) {
    std::cout << "usage: tvm <command> …\n\n";
    for (const Command& c : Commands()) std::printf("  %-8s %s\n", c.name, c.doc);
    std::cout << "\ntvm <command> --help says more.\n";
    return;
  }
  std::cout << "usage: tvm " << command->name << " " << command->arguments << "\n"
            << command->doc << "\n";
  for (const OptionRow& row : command->options) {
    std::string left = std::string(row.name) + " " + row.value;
    std::printf("  %-26s %s\n", left.c_str(), row.doc);
  }
  std::fflush(stdout);
}
int Dispatch(std::vector<std::string> words) {
  auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  bool help = has("--help") || has("-h") || (!words.empty() && words[0] == "help");
  if (help && words[0] == "help") words.erase(words.begin());
  if (words.empty() || (help && words[0][0] == '-')) {
    PrintHelp(nullptr);
    return help ? 0 : 2;
  }
  if (words[0] == "--version") {
    std::cout << "tvm " << BuildFacts()["TVM_VERSION"].cast<String>() << "\n";
    return 0;
  }
  const auto& all = Commands();
  auto it =
      std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.name == words[0]; });
  if (it == all.end()) {
    std::vector<std::string_view> names;
    for (const Command& c : all) names.emplace_back(c.name);
    TVM_FFI_THROW(ValueError) << "unknown command '" << words[0] << "'"
                              << DidYouMean(words[0], names) << "; tvm --help lists them";
  }
  if (help) {
    PrintHelp(&*it);
    return 0;
  }
  if (!it->run)
    TVM_FFI_THROW(RuntimeError) << it->name << ": needs Python with the package tvm: python -m tvm "
                                << it->name;
  it->run(Options(it->options, {words.begin() + 1, words.end()}));
  return 0;
}
}  // namespace

int Main(int argc, const char* const* argv) {
  try {
    Initialize();
    return Dispatch({argv + std::min(argc, 1), argv + argc});
  } catch (const ffi::Error& error) {
    std::cerr << "tvm: " << error.message() << "\n";
  } catch (const std::exception& error) {
    std::cerr << "tvm: " << error.what() << "\n";
  }
  return 1;
}
}  // namespace tvm::cli
