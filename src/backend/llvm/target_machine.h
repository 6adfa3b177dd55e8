// SPDX-License-Identifier: Apache-2.0
// What LLVM needs to know of a target, and the machines made for it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tvm/ir/target.h"

namespace llvm {
class MCSubtargetInfo;
class Target;
class TargetMachine;
}  // namespace llvm

namespace tvm::codegen {

/// The options of an `llvm` target, checked: triple, CPU and features are ones LLVM knows.
struct MachineOptions {
  std::string triple, cpu, features, abi, float_abi;
  int opt_level = 3;
  int vector_width = 0;  ///< Bits of the vectors LLVM shall prefer; 0: its own choice for the CPU.
  bool nnan = false, ninf = false, nsz = false, arcp = false, contract = true, reassoc = false;
  bool debug_info = false;   ///< Lines of the program, from spans.
  bool quick_entry = false;  ///< Packed entries are not optimised.
  /// (name, value) of options of LLVM's command line, which hold while this machine's code is made.
  std::vector<std::pair<std::string, std::string>> command_line;

  /// ValueError for a name LLVM does not know, or a triple without a code generator.
  static MachineOptions From(const Target& target);
  static MachineOptions Host();
  /// Equal for equal machines.
  std::string Key() const;
};

/// Registers the parts of LLVM that `triple` needs, and only those: others cost load time.
const llvm::Target* FindBackend(const std::string& triple);
/// The features, processors and widths of a CPU; features as LLVM writes them: "+avx2,-sse4a".
std::unique_ptr<llvm::MCSubtargetInfo> SubtargetOf(const std::string& triple,
                                                   const std::string& cpu,
                                                   const std::string& features);
/// Names of the features that are on for these options, sorted.
std::vector<std::string> EnabledFeatures(const MachineOptions& options);

/// Whether a feature is instructions that a processor may lack, not advice on what is fast on it.
bool IsInstructionSet(const std::string& feature);

/// A machine for one compilation at a time, from a pool: making one costs more than compiling a
/// small function.
class MachineLease {
 public:
  explicit MachineLease(const MachineOptions& options);
  ~MachineLease();
  MachineLease(const MachineLease&) = delete;
  MachineLease& operator=(const MachineLease&) = delete;
  llvm::TargetMachine* operator->() const { return machine_.get(); }
  llvm::TargetMachine& operator*() const { return *machine_; }

 private:
  std::string key_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

/// Parses the options of `cl-opt`: "-name=value" or "-name:type=value". ValueError for a name that
/// LLVM does not have.
std::vector<std::pair<std::string, std::string>> ParseCommandLine(const Array<String>& options);

/// The options that we set otherwise than LLVM for all compilations, as text.
std::string OurCommandLine();

/// LLVM's command line with some options set. They are variables of the whole process: compilations
/// without any may run at the same time, one with options runs alone, and puts the old values back.
class CommandLineScope {
 public:
  explicit CommandLineScope(const std::vector<std::pair<std::string, std::string>>& options);
  ~CommandLineScope();
  CommandLineScope(const CommandLineScope&) = delete;
  CommandLineScope& operator=(const CommandLineScope&) = delete;

 private:
  const std::vector<std::pair<std::string, std::string>>& options_;
};

/// The name, triple and features of this machine's processor.
std::string HostCpu();
std::string HostTriple();
std::string HostFeatures();

}  // namespace tvm::codegen
