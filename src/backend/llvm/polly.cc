// SPDX-License-Identifier: Apache-2.0
// Distributions build LLVM's pass registry with Polly in it; this empty plugin is linked in its
// place.
#if __has_include(<llvm/Plugins/PassPlugin.h>)
#include <llvm/Plugins/PassPlugin.h>  // since LLVM 22
#else
#include <llvm/Passes/PassPlugin.h>
#endif

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "0", [](llvm::PassBuilder&) {}};
}
