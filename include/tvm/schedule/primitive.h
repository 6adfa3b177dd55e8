// SPDX-License-Identifier: Apache-2.0
// Primitives are functions on a State, registered once:
//
//   std::vector<LoopId> Split(State& self, LoopId loop, std::vector<std::optional<PrimExpr>>
//   factors,
//                             bool preserve_unit_iters);
//   TVM_REGISTER() {
//     DefPrimitive("Split", "split", &Split, &Schedule::Split, "doc", Example{...}, Arg("loop"),
//                  Arg("factors"), Arg("preserve_unit_iters", true));
//   }
//
// From the types follow the instruction's inputs, attributes, decision and outputs, hence
// recording, replay, JSON, Python text and the method of tvm.tir.Schedule. A primitive that throws
// has done nothing: the schedule goes back to the State it had.
//
// The first parameter says what a primitive may do: `const State&` asks, `State&` changes the
// program, `Sampler&` draws random numbers, `const ScheduleObj&` asks what is not in the program.
//
//   parameter                       Python                             in the trace
//   BlockId, LoopId, NodeId-like    BlockRV (or a name), LoopRV        input
//   PrimExpr                        int, ExprRV                        input, resolved to its value
//   std::optional, std::vector of these                                input; the last one is flat
//   Annotation                      str, number, ExprRV, list, dict    input
//   Decision<T>&                    a value or None                    the decision
//   anything else                   what tvm-ffi converts              attribute
//
// An attribute taken by reference is recorded as the primitive leaves it.
#pragma once
#include <tuple>
#include <variant>

#include "tvm/schedule/schedule.h"

namespace tvm::tir {

/// A block or a loop.
struct BlockOrLoopId {
  NodeId id = kNoNode;
  operator NodeId() const { return id; }
};
/// Where compute_at may put a block: a loop, kInlineMark or kRootMark.
struct ComputeLocation {
  NodeId id = kNoNode;
  operator NodeId() const { return id; }
};
/// A value of an annotation, without random variables.
struct Annotation {
  Any value;
};
/// An integer that becomes an ExprRV.
struct IntValue {
  int64_t value;
  bool is_open =
      false;  // nobody knows it: None for the caller, who may leave a factor open with it
};
/// What a sampling primitive is told to decide, or decides.
template <class T>
struct Decision {
  std::optional<T> value;
};
/// For sampling: the program to look at, and random numbers.
class Sampler {
 public:
  Sampler(const State& state, uint64_t* random) : state(state), random_(random) {}
  const State& state;
  uint64_t Next();
  /// Evenly from [0, n).
  int64_t Below(int64_t n);
  /// Evenly from [0, 1).
  double Unit();

 private:
  uint64_t* random_;
};

/// One application: arguments in, trace out.
struct PrimitiveCall {
  ScheduleObj* self;
  const Primitive* primitive;
  const AnyView* args;
  Array<Any> inputs, attrs, outputs;
  Any decision = nullptr;
};

enum class ArgRole : uint8_t { kInput, kFlatInput, kAttr, kDecision };
struct Primitive : FnInfo {  // name: "tir.Schedule.<Python name>"; args: self, then the others
  InstructionKind kind;
  Any (*run)(PrimitiveCall*) = nullptr;
  std::vector<ArgRole> roles;
  bool returns_list = false;
  const char *example_before = nullptr, *example_call = nullptr;

  std::string_view method() const { return std::string_view(name).substr(13); }
};
const Primitive* FindPrimitive(std::string_view kind);
/// All primitives, by the names of their instructions.
std::vector<const Primitive*> ListPrimitives();
void RegisterPrimitive(Primitive* primitive, const char* kind, const char* method, bool is_pure);
/// Applies the primitive to the schedule; records it, or raises ScheduleError and changes nothing.
Any CallPrimitive(ScheduleObj* self, const Primitive& primitive, const AnyView* args);

// ---- conversion of arguments --------------------------------------------------------------------
namespace primitive_detail {

/// What the schedule's random variable stands for; raises for stale and foreign ones.
NodeId DecodeNode(PrimitiveCall*, int i, const AnyView&, const char* expected, Any* recorded);
PrimExpr DecodeExpr(PrimitiveCall*, int i, const AnyView&);
Any DecodeAnnotation(PrimitiveCall*, int i, const Any&);
/// A map, or a function that gives one, with values in the place of random variables.
Variant<IndexMap, Function> WithoutRVs(PrimitiveCall*, Variant<IndexMap, Function> map);
Any NewRV(PrimitiveCall*, NodeId id, bool is_block);
Any NewExprRV(PrimitiveCall*, int64_t value);

template <class T>
struct Codec {  // an attribute
  static constexpr ArgRole kRole = ArgRole::kAttr;
  using Public = T;
  static T Decode(PrimitiveCall* call, int i, const AnyView& view, Any*) {
    auto value = view.template try_cast<T>();
    if (!value.has_value() || IsMissing<T>(*value)) {
      ThrowBadArg(call->primitive, i + 1, view, &ffi::detail::TypeSchema<T>::v);
    }
    if constexpr (std::is_same_v<T, Variant<IndexMap, Function>>) return WithoutRVs(call, *value);
    return *std::move(value);
  }
};
template <class T, class P>
struct NodeCodec {
  static constexpr ArgRole kRole = ArgRole::kInput;
  using Public = P;
};
template <>
struct Codec<BlockId> : NodeCodec<BlockId, Variant<BlockRV, String>> {
  static BlockId Decode(PrimitiveCall* call, int i, const AnyView& view, Any* recorded) {
    return {DecodeNode(call, i, view, "block", recorded)};
  }
};
template <>
struct Codec<LoopId> : NodeCodec<LoopId, LoopRV> {
  static LoopId Decode(PrimitiveCall* call, int i, const AnyView& view, Any* recorded) {
    return {DecodeNode(call, i, view, "loop", recorded)};
  }
};
template <>
struct Codec<BlockOrLoopId> : NodeCodec<BlockOrLoopId, Variant<BlockRV, LoopRV, String>> {
  static BlockOrLoopId Decode(PrimitiveCall* call, int i, const AnyView& view, Any* recorded) {
    return {DecodeNode(call, i, view, "block or loop", recorded)};
  }
};
template <>
struct Codec<ComputeLocation> : NodeCodec<ComputeLocation, LoopRV> {
  static ComputeLocation Decode(PrimitiveCall* call, int i, const AnyView& view, Any* recorded) {
    return {DecodeNode(call, i, view, "location", recorded)};
  }
};
template <>
struct Codec<PrimExpr> : NodeCodec<PrimExpr, PrimExpr> {
  static PrimExpr Decode(PrimitiveCall* call, int i, const AnyView& view, Any*) {
    return DecodeExpr(call, i, view);
  }
};
template <>
struct Codec<Annotation> : NodeCodec<Annotation, Any> {
  static Annotation Decode(PrimitiveCall* call, int i, const AnyView& view, Any*) {
    return {DecodeAnnotation(call, i, Any(view))};
  }
};
template <class T>
struct Codec<std::optional<T>> : NodeCodec<T, Optional<typename Codec<T>::Public>> {
  static std::optional<T> Decode(PrimitiveCall* call, int i, const AnyView& view, Any* recorded) {
    if (view == nullptr) return std::nullopt;
    return Codec<T>::Decode(call, i, view, recorded);
  }
};
template <class T>
struct Codec<std::vector<T>> : NodeCodec<T, Array<typename Codec<T>::Public>> {
  static constexpr ArgRole kRole = ArgRole::kFlatInput;
  static std::vector<T> Decode(PrimitiveCall* call, int i, const AnyView& view, Any* recorded) {
    std::vector<T> values;
    if (view == nullptr) {
      *recorded = Array<Any>();
      return values;
    }
    auto items = view.try_cast<Array<Any>>();
    if (!items) {
      ThrowBadArg(call->primitive, i + 1, view,
                  &ffi::detail::TypeSchema<Array<typename Codec<T>::Public>>::v);
    }
    Array<Any> kept;
    for (const Any& item : *items) {
      Any one = item;
      values.push_back(Codec<T>::Decode(call, i, item, &one));
      kept.push_back(one);
    }
    *recorded = kept;
    return values;
  }
};
/// A loop, or a list of blocks (blockize).
template <class T, class U>
struct Codec<std::variant<T, std::vector<U>>>
    : NodeCodec<T, Variant<typename Codec<T>::Public, Array<typename Codec<U>::Public>>> {
  static std::variant<T, std::vector<U>> Decode(PrimitiveCall* call, int i, const AnyView& view,
                                                Any* recorded) {
    if (view.type_index() == ffi::TypeIndex::kTVMFFIArray) {
      return Codec<std::vector<U>>::Decode(call, i, view, recorded);
    }
    return Codec<T>::Decode(call, i, view, recorded);
  }
};
template <class T>
struct Codec<Decision<T>> {
  static constexpr ArgRole kRole = ArgRole::kDecision;
  using Public = Optional<T>;
  static Decision<T> Decode(PrimitiveCall* call, int i, const AnyView& view, Any*) {
    if (view == nullptr) return {};
    return {Codec<T>::Decode(call, i, view, nullptr)};
  }
};

/// Results become random variables.
inline Any Encode(PrimitiveCall* call, BlockId id) { return NewRV(call, id, true); }
inline Any Encode(PrimitiveCall* call, LoopId id) { return NewRV(call, id, false); }
inline Any Encode(PrimitiveCall* call, ComputeLocation id) { return NewRV(call, id, false); }
inline Any Encode(PrimitiveCall* call, IntValue v) {
  Any rv = NewExprRV(call, v.value);
  return v.is_open ? Any(nullptr) : rv;
}
template <class T>
Any Encode(PrimitiveCall* call, const std::vector<T>& values) {
  Array<Any> all;
  for (const T& value : values) all.push_back(Encode(call, value));
  return all;
}
template <class R>
struct Result {
  using Public = Any;
};
template <>
struct Result<void> {
  using Public = void;
};
template <>
struct Result<BlockId> {
  using Public = BlockRV;
};
template <>
struct Result<LoopId> {
  using Public = LoopRV;
};
template <>
struct Result<ComputeLocation> {
  using Public = LoopRV;
};
template <>
struct Result<IntValue> {
  using Public = PrimExpr;
};
template <class T>
struct Result<std::vector<T>> {
  using Public = Array<typename Result<T>::Public>;
};
template <class R>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

template <class T>
void Record(PrimitiveCall* call, Any given, const T& value) {
  if constexpr (Codec<T>::kRole == ArgRole::kAttr) {
    call->attrs.push_back(Any(value));
  } else if constexpr (Codec<T>::kRole == ArgRole::kDecision) {
    if (value.value) call->decision = Any(*value.value);
  } else {
    call->inputs.push_back(std::move(given));
  }
}
template <class S, class R, class... A>
Any Run(PrimitiveCall* call) {
  State& state = call->self->state->value;
  Any given[sizeof...(A) + 1];
  for (size_t i = 0; i < sizeof...(A); ++i) given[i] = call->args[i];
  return [&]<size_t... I>(std::index_sequence<I...>) -> Any {
    std::tuple<std::remove_cvref_t<A>...> values{
        Codec<std::remove_cvref_t<A>>::Decode(call, I, call->args[I], &given[I])...};
    auto* fn = reinterpret_cast<R (*)(S, A...)>(call->primitive->fn);
    auto invoke = [&]() -> R {
      if constexpr (std::is_same_v<S, Sampler&>) {
        Sampler sampler(state, &call->self->random);
        return fn(sampler, std::get<I>(values)...);
      } else if constexpr (std::is_same_v<S, const ScheduleObj&>) {
        return fn(*call->self, std::get<I>(values)...);
      } else {
        return fn(state, std::get<I>(values)...);
      }
    };
    auto record = [&] { (Record(call, std::move(given[I]), std::get<I>(values)), ...); };
    if constexpr (std::is_void_v<R>) {
      invoke();
      record();
      return nullptr;
    } else {
      R result = invoke();
      record();
      return Encode(call, result);
    }
  }(std::index_sequence_for<A...>{});
}

/// Whether a method of Schedule may pass a W where the primitive takes a P.
template <class W, class P>
inline constexpr bool kFits =
    std::is_same_v<W, P> || std::is_same_v<P, Any> || std::is_base_of_v<P, W>;
template <class W, class... P>
inline constexpr bool kFits<W, Variant<P...>> =
    std::is_same_v<W, ObjectRef> || std::is_same_v<W, Variant<P...>> || (kFits<W, P> || ...);
template <class W, class P>
inline constexpr bool kFits<W, Optional<P>> = kFits<W, P>;
template <class W, class P>
inline constexpr bool kFits<Optional<W>, Optional<P>> = kFits<W, P>;
template <class W, class P>
inline constexpr bool kFits<Array<W>, Array<P>> = kFits<W, P>;
template <class W, class P>
inline constexpr bool kFits<Array<W>, Optional<Array<P>>> = kFits<W, P>;

}  // namespace primitive_detail

/// An example for the documentation: the body of a TVMScript function, and the calls on `sch`.
struct Example {
  const char *program, *calls;
};

template <class S, class R, class... A, class... P>
void DefPrimitive(const char* kind, const char* method, R (*fn)(S, A...), const char* doc,
                  Example example, P... args) {
  using namespace primitive_detail;
  static_assert(sizeof...(A) == sizeof...(P), "one Arg per parameter after the state");
  auto* p = new Primitive;
  p->doc = doc;
  p->fn = reinterpret_cast<void (*)()>(fn);
  p->args = {Arg("self"), std::move(args)...};
  p->schemas = Schemas<Schedule, typename Codec<std::remove_cvref_t<A>>::Public...,
                       typename Result<R>::Public>();
  p->run = &Run<S, R, A...>;
  p->roles = {Codec<std::remove_cvref_t<A>>::kRole...};
  p->returns_list = kIsList<R>;
  p->example_before = example.program;
  p->example_call = example.calls;
  RegisterPrimitive(p, kind, method, !std::is_same_v<S, State&>);
}
/// A primitive with a method in C++, whose types are compared with the primitive's.
template <class S, class R, class... A, class M, class... W, class... P>
void DefPrimitive(const char* kind, const char* method, R (*fn)(S, A...),
                  M (Schedule::*)(W...) const, const char* doc, Example example, P... args) {
  using namespace primitive_detail;
  static_assert(sizeof...(A) == sizeof...(W),
                "the method of Schedule takes what the primitive does");
  static_assert((kFits<W, typename Codec<std::remove_cvref_t<A>>::Public> && ...),
                "a parameter of the method of Schedule has another type than the primitive's");
  static_assert(kFits<M, typename Result<R>::Public>,
                "the method of Schedule returns another type than the primitive");
  DefPrimitive(kind, method, fn, doc, example, std::move(args)...);
}

}  // namespace tvm::tir
