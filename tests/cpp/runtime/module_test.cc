// SPDX-License-Identifier: Apache-2.0
// Packing modules into libraries: what Python cannot build, because it cannot define modules.
#include "tvm/runtime/module.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "driver/elf_write.h"
#include "runtime/elf.h"

namespace tvm::runtime {
namespace {
/// Saves itself, or writes C code, or neither.
class FakeObj final : public ffi::ModuleObj {
 public:
  FakeObj(int mask, std::string text) : mask_(mask), text_(std::move(text)) {}
  const char* kind() const final { return "fake"; }
  int GetPropertyMask() const final { return mask_; }
  Optional<Function> GetFunction(const String& name) final {
    if (name == "text") return Function::FromTyped([t = text_]() -> String { return t; });
    return std::nullopt;
  }
  ffi::Bytes SaveToBytes() const final { return ffi::Bytes(text_); }

 private:
  int mask_;
  std::string text_;
};
Module Fake(int mask, std::string text) {
  return Module(ffi::make_object<FakeObj>(mask, std::move(text)));
}
Module Code() { return Fake(Module::kCompilationExportable, "code"); }
Module Data(std::string text) {
  return Fake(Module::kBinarySerializable | Module::kRunnable, std::move(text));
}

TEST(PackImports, NothingToPackForCodeAlone) {
  Module a = Code();
  a->ImportModule(Code());
  EXPECT_EQ(PackImports(a), "");
  EXPECT_EQ(CompiledModules(a).size(), 2u);
}
TEST(PackImports, RejectsWhatCannotBeSaved) {
  Module a = Code();
  a->ImportModule(Fake(Module::kRunnable, ""));
  EXPECT_THROW(PackImports(a), ffi::Error);
}
TEST(PackImports, RejectsEmptyData) {
  Module a = Code();
  a->ImportModule(Data(""));
  EXPECT_THROW(PackImports(a), ffi::Error);
}
TEST(PackImports, RejectsCyclesThroughTheLibrary) {
  Module a = Code(), b = Data("b");
  b->ImportModule(Code());
  a->ImportModule(b);
  EXPECT_THROW(PackImports(a), ffi::Error);
}

class Export : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("cc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no C compiler";
    folder_ = testing::TempDir() + "export" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// A library with an (empty) piece of code and the packed imports of `mod`, loaded.
  Module RoundTrip(const Module& mod) {
    std::ofstream(folder_ + "/code.c") << "int code(void) { return 0; }\n";
    Run("cc -fPIC -c code.c -o code.o");
    std::string packed = PackImports(mod);
    std::ofstream object(folder_ + "/data.o", std::ios::binary);
    elf::WriteDataObject(object, MappedFile(folder_ + "/code.o").bytes(),
                         {{ffi::symbol::tvm_ffi_library_bin, {packed}}});
    object.close();
    Run("cc -shared code.o data.o -o out.so");
    return LoadModule(folder_ + "/out.so");
  }
  void Run(const std::string& command) {
    ASSERT_EQ(std::system(("cd " + folder_ + " && " + command).c_str()), 0);
  }
  std::string folder_;
};
TEST_F(Export, ImportsComeBack) {
  if (!Function::GetGlobal("ffi.Module.load_from_bytes.fake")) {
    Function::SetGlobal("ffi.Module.load_from_bytes.fake",
                        Function::FromTyped([](ffi::Bytes bytes) {
                          return Data(std::string(bytes.data(), bytes.size()));
                        }));
  }
  Module shared = Data("shared"), left = Data("left"), a = Code();
  left->ImportModule(shared);
  a->ImportModule(left);
  a->ImportModule(shared);
  Module loaded = RoundTrip(a);
  EXPECT_STREQ(loaded->kind(), "library");
  ASSERT_EQ(loaded->imports().size(), 2u);
  auto text = [](const Any& m) {
    return GetFunction(m.cast<Module>(), "text")().cast<std::string>();
  };
  EXPECT_EQ(text(loaded->imports()[0]), "left");
  EXPECT_EQ(text(loaded->imports()[1]), "shared");
  Module again = loaded->imports()[0].cast<Module>();
  EXPECT_TRUE(again->imports()[0].cast<Module>().same_as(loaded->imports()[1].cast<Module>()));

  Module root = Data("root");
  root->ImportModule(Code());
  Module tree = RoundTrip(root);
  EXPECT_EQ(text(Any(tree)), "root");
  EXPECT_STREQ(tree->imports()[0].cast<Module>()->kind(), "library");
}
TEST_F(Export, MissingLoaderIsAnError) {
  class OtherObj : public ffi::ModuleObj {
   public:
    const char* kind() const final { return "nobody_loads_this"; }
    int GetPropertyMask() const final { return Module::kBinarySerializable; }
    Optional<Function> GetFunction(const String&) final { return std::nullopt; }
    ffi::Bytes SaveToBytes() const final { return ffi::Bytes("bytes", 5); }
  };
  Module a = Code();
  a->ImportModule(Module(ffi::make_object<OtherObj>()));
  try {
    RoundTrip(a);
    FAIL() << "no error";
  } catch (const ffi::Error& e) {
    EXPECT_NE(std::string(e.message()).find("nobody_loads_this"), std::string::npos);
  }
}
}  // namespace
}  // namespace tvm::runtime
