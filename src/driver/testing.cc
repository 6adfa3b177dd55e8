// SPDX-License-Identifier: Apache-2.0
// Functions that tests of the function interface call: they take and return values of each kind.
// tvm-ffi has some more of them.
#include "tvm/expr/op.h"
#include "tvm/ir/attrs.h"
#include "tvm/ir/expr.h"
#include "tvm/ir/node.h"
#include "tvm/runtime/def.h"

namespace tvm {
namespace {

/// Attributes with and without defaults.
struct TestAttrsObj : AttrsObj {
  int64_t axis = 10;
  String name;
  Array<PrimExpr> padding;
  Any func;
  static void Fields(auto&& def) {
    def("axis", &TestAttrsObj::axis, Default(10));
    def("name", &TestAttrsObj::name);
    def("padding", &TestAttrsObj::padding, Default(Array<PrimExpr>{0, 0}));
    def("func", &TestAttrsObj::func, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("attrs.TestAttrs", TestAttrsObj, AttrsObj);
};

using TextOrExpr = Variant<String, PrimExpr>;

String KindOf(const TextOrExpr& value) {
  if (value.as<String>()) return "ffi.String";
  return value.get<PrimExpr>()->GetTypeKey();
}

/// Raises when both differ.
void ErrorTest(int64_t x, int64_t y) {
  if (x != y)
    TVM_FFI_THROW(InternalError) << "Check failed: (x == y) is false: expect x and y to be equal.";
}

TVM_REGISTER() {
  RegisterNode<TestAttrsObj>("Attributes with and without defaults, for tests.");
  auto same = [](Any value) { return value; };
  Def("testing.identity_cpp", same, "The argument.", Arg("value"));
  Def("testing.device_test", same, "The argument.", Arg("device"));
  Def(
      "testing.test_wrap_callback",
      [](Function callback) { return Function::FromTyped([callback] { return callback(); }); },
      "A function that calls another one.", Arg("callback"));
  Def(
      "testing.test_check_eq_callback",
      [](String message) {
        return Function::FromTyped([message](int64_t x, int64_t y) {
          if (x != y) TVM_FFI_THROW(RuntimeError) << message;
        });
      },
      "A function that raises when its arguments differ.", Arg("message"));
  Def("testing.ErrorTest", &ErrorTest, "Raises when both differ.", Arg("x"), Arg("y"));
  Def("testing.AcceptsBool", [](bool value) { return value; }, "", Arg("value"));
  Def("testing.AcceptsInt", [](int64_t value) { return value; }, "", Arg("value"));
  Def("testing.AcceptsPrimExpr", [](PrimExpr value) { return value; }, "", Arg("value"));
  Def(
      "testing.AcceptsObjectRefArray", [](Array<ObjectRef> values) { return values[0]; },
      "The first.", Arg("values"));
  Def(
      "testing.AcceptsArrayOfPrimExpr", [](Array<PrimExpr> values) { return values[0]; },
      "The first.", Arg("values"));
  Def(
      "testing.AcceptsArrayOfVariant", [](Array<TextOrExpr> values) { return values[0]; },
      "The first.", Arg("values"));
  Def("testing.AcceptsVariant", &KindOf, "The kind of the argument.", Arg("value"));
  Def(
      "testing.AcceptsMapOfPrimExpr",
      [](Map<Any, PrimExpr> map) {
        for (const auto& [key, value] : map) return value;
        TVM_FFI_THROW(ValueError) << "AcceptsMapOfPrimExpr: expected a map with an entry";
        TVM_FFI_UNREACHABLE();
      },
      "The value of the first entry.", Arg("map"));
  Def("testing.AcceptsMapReturnsMap", [](Map<Any, Any> map) { return map; }, "", Arg("map"));
  Def(
      "testing.AcceptsMapReturnsValue",
      [](Map<Any, Any> map, Any key) -> Any { return map.at(key); }, "", Arg("map"), Arg("key"));
  Def(
      "testing.ReturnsVariant",
      [](int64_t x) -> Variant<String, IntImm> {
        if (x % 2 == 0) return IntImm(DataType::Int(64), x / 2);
        return String("argument was odd");
      },
      "Half of an even number, or a text.", Arg("x"));
}

}  // namespace
}  // namespace tvm
