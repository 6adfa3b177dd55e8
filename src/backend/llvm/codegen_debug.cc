// SPDX-License-Identifier: Apache-2.0
// Debug information: which line of the program an instruction comes from.
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DIBuilder.h>

#include <filesystem>

#include "backend/llvm/codegen.h"
#include "tvm/ir/source.h"

namespace tvm::codegen {

void ModuleGen::StartDebugInfo() {
  debug_ = std::make_unique<llvm::DIBuilder>(*module);
  module->addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module->addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  auto* file = debug_->createFile("tvm", ".");
#if LLVM_VERSION_MAJOR >= 22
  llvm::DISourceLanguageName language(llvm::dwarf::DW_LANG_C);
#else
  unsigned language = llvm::dwarf::DW_LANG_C;
#endif
  debug_unit_ = debug_->createCompileUnit(language, file, "tvm", true, "", 0);
}
llvm::DIFile* ModuleGen::DebugFile(const Optional<Span>& span) {
  if (!span) return debug_unit_->getFile();
  std::filesystem::path path(std::string((*span)->source_name->name));
  return debug_->createFile(path.filename().string(), path.parent_path().string());
}
llvm::DISubprogram* ModuleGen::DebugFunction(llvm::Function* f, const Optional<Span>& span) {
  if (!debug_) return nullptr;
  auto* file = DebugFile(span);
  unsigned line = span ? static_cast<unsigned>((*span)->line) : 0;
  auto* type = debug_->createSubroutineType(debug_->getOrCreateTypeArray({}));
  auto* scope = debug_->createFunction(
      file, f->getName(), f->getName(), file, line, type, line, llvm::DINode::FlagArtificial,
      llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  f->setSubprogram(scope);
  return scope;
}

llvm::DILocation* ModuleGen::DebugLocation(llvm::DISubprogram* function, const Span& span) {
  llvm::DILocalScope* scope = function;
  auto* file = DebugFile(span);
  if (file != function->getFile()) scope = debug_->createLexicalBlockFile(function, file);
  return llvm::DILocation::get(context, static_cast<unsigned>(span->line),
                               static_cast<unsigned>(span->column), scope);
}

void FunctionGen::Locate(const Optional<Span>& span) {
  if (!scope_ || !span) return;
  b_.SetCurrentDebugLocation(gen_.DebugLocation(scope_, *span));
}

}  // namespace tvm::codegen
