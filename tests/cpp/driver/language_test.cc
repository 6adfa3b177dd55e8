// SPDX-License-Identifier: Apache-2.0
// A language of its own class of functions is built without a change elsewhere.
#include "tvm/ir/language.h"

#include <gtest/gtest.h>

#include "tvm/driver/build.h"
#include "tvm/runtime/module.h"
#include "tvm/runtime/tensor.h"
#include "tvm/te/te.h"

namespace tvm {
namespace {
/// A function that is one kernel by another name.
struct AliasObj : BaseFuncObj {
  tir::PrimFunc kernel;
  static void Fields(auto&& def) {
    def("kernel", &AliasObj::kernel);
    def("attrs", &BaseFuncObj::attrs, Default(DictAttrs(Map<String, Any>())));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.Alias", AliasObj, BaseFuncObj);
};
TVM_NODE_REF(Alias, BaseFunc, AliasObj);
/// A class of functions that no language has.
struct StrangeObj : BaseFuncObj {
  static void Fields(auto&& def) {
    def("attrs", &BaseFuncObj::attrs, Default(DictAttrs(Map<String, Any>())));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("test.Strange", StrangeObj, BaseFuncObj);
};
TVM_NODE_REF(Strange, BaseFunc, StrangeObj);

int linked = 0;
bool forgets = false;

Compiled Lower(IRModule mod, Target, Optional<transform::Pass>) {
  if (forgets) return {mod, std::nullopt};
  Map<GlobalVar, BaseFunc> functions;
  for (const auto& [var, func] : mod->functions) {
    auto* alias = func.as<AliasObj>();
    functions.Set(
        var, alias ? BaseFunc(WithAttr(alias->kernel, attr::kGlobalSymbol, var->name_hint)) : func);
  }
  auto link = [](Optional<ffi::Module> code) {
    ++linked;
    return code.value();
  };
  return {IRModule(functions), Function::FromTyped(link)};
}
TVM_REGISTER() {
  RegisterNode<AliasObj>("A kernel by another name.");
  RegisterNode<StrangeObj>("A function of no language.");
  RegisterLanguage({"alias", "test.Alias", 1, &Lower});
}

tir::PrimFunc PlusOne() {
  te::Tensor a = te::placeholder({4}, DataType::Float(32), "A");
  te::Tensor b = te::compute({4}, [&](const Array<tir::Var>& i) { return a(i) + 1.0f; }, "B");
  return te::CreatePrimFunc({a, b});
}
IRModule WithAlias() {
  return IRModule({{GlobalVar("other"), New<Alias>([](AliasObj* n) { n->kernel = PlusOne(); })},
                   {GlobalVar("main"), WithAttr(PlusOne(), attr::kGlobalSymbol, String("main"))}});
}
std::string ErrorOf(const IRModule& mod) {
  try {
    Build(mod, Target("c"));
  } catch (const ffi::Error& error) {
    return error.kind() + ": " + error.message();
  }
  return "";
}
}  // namespace

TEST(Language, FunctionsOfSeveralLanguagesAreBuilt) {
  linked = 0;
  ffi::Module mod = Build(WithAlias(), Target("c"));
  EXPECT_EQ(linked, 1);
  for (const char* name : {"main", "other"}) {
    auto x = runtime::Empty({4}, DLDataType{kDLFloat, 32, 1}, {kDLCPU, 0}), y = x;
    y = runtime::Empty({4}, DLDataType{kDLFloat, 32, 1}, {kDLCPU, 0});
    for (int i = 0; i < 4; ++i) static_cast<float*>(x.data_ptr())[i] = static_cast<float>(i);
    mod->GetFunction(name).value()(x, y);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<float*>(y.data_ptr())[i], i + 1.0f);
  }
}
TEST(Language, FunctionsThatStayAreAnError) {
  forgets = true;
  EXPECT_NE(ErrorOf(WithAlias())
                .find("ValueError: build: expected the language alias to leave "
                      "none of its functions, got 'other'"),
            std::string::npos);
  forgets = false;
}
TEST(Language, UnknownClassesAreAnError) {
  IRModule mod({{GlobalVar("f"), New<Strange>([](StrangeObj*) {})}});
  EXPECT_NE(ErrorOf(mod).find("TypeError: build: expected functions of the classes"),
            std::string::npos);
  EXPECT_NE(ErrorOf(mod).find("got 'f', a test.Strange"), std::string::npos);
}
TEST(Language, AClassHasOneLanguage) {
  EXPECT_THROW(RegisterLanguage({"again", "test.Alias", 1, &Lower}), ffi::Error);
}
}  // namespace tvm
