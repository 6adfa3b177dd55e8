// SPDX-License-Identifier: Apache-2.0
// Lifetime of nodes that C++ code makes.
#include "tvm/ir/node.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace tvm {
namespace {

struct CountedObj : NodeObj {
  static inline int alive = 0;
  CountedObj() { ++alive; }
  CountedObj(const CountedObj& other) : NodeObj(other) { ++alive; }
  ~CountedObj() { --alive; }
  static constexpr uint32_t _type_child_slots = 1;
  TVM_FFI_DECLARE_OBJECT_INFO("testing.Counted", CountedObj, NodeObj);
};
struct DerivedObj : CountedObj {
  Optional<ObjectRef> next;
  static void Fields(auto&& def) { def("next", &DerivedObj::next, Default(nullptr)); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("testing.Derived", DerivedObj, CountedObj);
};
TVM_REGISTER() {
  RegisterBase<CountedObj>("A base class that C++ code can make.");
  RegisterNode<DerivedObj>("A link of a chain.");
}

TEST(Node, BaseClassesAreDestroyed) {
  ObjectRef node(NewObject<CountedObj>());
  EXPECT_EQ(CountedObj::alive, 1);
  node = ObjectRef();
  EXPECT_EQ(CountedObj::alive, 0);
}
TEST(Node, LongChainsAreDestroyed) {
  ObjectRef chain(NewObject<CountedObj>());
  for (int i = 0; i < 100'000; ++i) {
    auto link = NewObject<DerivedObj>();
    link->next = chain;
    chain = ObjectRef(link);
  }
  EXPECT_EQ(CountedObj::alive, 100'001);
  ObjectRef copy = CopyNode(chain.get());
  EXPECT_EQ(CountedObj::alive, 100'002);
  chain = copy = ObjectRef();
  EXPECT_EQ(CountedObj::alive, 0);
}
TEST(Node, MemoryGoesFromThreadToThread) {
  auto links = [] {
    std::vector<ObjectRef> made;
    for (int i = 0; i < 3000; ++i) made.emplace_back(NewObject<DerivedObj>());
    return made;
  };
  std::vector<ObjectRef> here, there;
  for (int round = 0; round < 3; ++round) {
    std::thread([&] { there = links(), here.clear(); }).join();
    EXPECT_EQ(CountedObj::alive, 3000);
    here = links();
    // No block serves two nodes.
    std::set<const Object*> distinct;
    for (const auto* list : {&here, &there}) {
      for (const ObjectRef& link : *list) distinct.insert(link.get());
    }
    EXPECT_EQ(distinct.size(), 6000);
    there.clear();
  }
  here.clear();
  EXPECT_EQ(CountedObj::alive, 0);
}

}  // namespace
}  // namespace tvm
