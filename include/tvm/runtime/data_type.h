// SPDX-License-Identifier: Apache-2.0
// DataType: a DLDataType with questions and constructors.
#pragma once
#include "tvm/runtime/def.h"

namespace tvm {

/// The type of a scalar or vector. Scalable vectors (vscale x n lanes) store -n as lanes; a handle
/// is an untyped pointer; void has no bits and no lanes.
class DataType {
 public:
  constexpr DataType() : type_{kDLOpaqueHandle, 0, 0} {}
  constexpr DataType(DLDataType type) : type_(type) {}  // NOLINT(*)
  constexpr DataType(int code, int bits, int lanes = 1)
      : type_{static_cast<uint8_t>(code), static_cast<uint8_t>(bits),
              static_cast<uint16_t>(lanes)} {}
  /// "float32x4"; ValueError for what is none, int0 included.
  explicit DataType(const String& text);

  static constexpr DataType Int(int bits, int lanes = 1) { return {kDLInt, bits, lanes}; }
  static constexpr DataType UInt(int bits, int lanes = 1) { return {kDLUInt, bits, lanes}; }
  static constexpr DataType Float(int bits, int lanes = 1) { return {kDLFloat, bits, lanes}; }
  static constexpr DataType BFloat16(int lanes = 1) { return {kDLBfloat, 16, lanes}; }
  static constexpr DataType Bool(int lanes = 1) { return {kDLBool, 8, lanes}; }
  static constexpr DataType Handle() { return {kDLOpaqueHandle, 64, 1}; }
  static constexpr DataType Void() { return {}; }

  constexpr int code() const { return type_.code; }
  constexpr int bits() const { return type_.bits; }
  /// Bytes of one element in memory, rounded up.
  constexpr int bytes() const { return (type_.bits + 7) / 8; }
  /// Lanes of a fixed-length type; the factor before vscale of a scalable one.
  constexpr int lanes() const { return is_scalable() ? -raw_lanes() : raw_lanes(); }
  /// Lanes as stored: negative for scalable vectors.
  constexpr int raw_lanes() const { return static_cast<int16_t>(type_.lanes); }

  constexpr bool is_scalar() const { return raw_lanes() == 1; }
  constexpr bool is_vector() const { return raw_lanes() > 1 || is_scalable(); }
  constexpr bool is_scalable() const { return raw_lanes() < -1; }
  constexpr bool is_int() const { return code() == kDLInt; }
  constexpr bool is_uint() const { return code() == kDLUInt; }
  constexpr bool is_bool() const { return code() == kDLBool; }
  constexpr bool is_handle() const { return code() == kDLOpaqueHandle && bits() != 0; }
  constexpr bool is_void() const { return code() == kDLOpaqueHandle && bits() == 0; }
  constexpr bool is_bfloat16() const { return code() == kDLBfloat && bits() == 16; }
  constexpr bool is_float16() const { return code() == kDLFloat && bits() == 16; }
  constexpr bool is_float8() const {
    return code() >= kDLFloat8_e3m4 && code() <= kDLFloat8_e8m0fnu;
  }
  constexpr bool is_float6() const {
    return code() == kDLFloat6_e2m3fn || code() == kDLFloat6_e3m2fn;
  }
  constexpr bool is_float4() const { return code() == kDLFloat4_e2m1fn; }
  /// IEEE binary16, binary32 or binary64.
  constexpr bool is_ieee_float() const { return code() == kDLFloat; }
  /// Any floating-point type, the small formats included.
  constexpr bool is_float() const {
    return is_ieee_float() || code() == kDLBfloat || is_float8() || is_float6() || is_float4();
  }
  /// Signed or unsigned, not bool.
  constexpr bool is_integer() const { return is_int() || is_uint(); }
  constexpr bool is_numeric() const { return is_integer() || is_float() || is_bool(); }
  /// int32 and int64 scalars: the types of loop variables, shapes and indices, which do not
  /// overflow by contract.
  constexpr bool is_index() const { return is_int() && is_scalar() && bits() >= 32; }

  /// The same element with other (raw) lanes.
  constexpr DataType with_lanes(int lanes) const { return {code(), bits(), lanes}; }
  constexpr DataType with_bits(int bits) const { return {code(), bits, raw_lanes()}; }
  constexpr DataType element() const { return with_lanes(1); }

  constexpr operator DLDataType() const { return type_; }  // NOLINT(*)
  constexpr bool operator==(const DataType& o) const {
    return code() == o.code() && bits() == o.bits() && raw_lanes() == o.raw_lanes();
  }
  std::string str() const { return ffi::DLDataTypeToString(type_); }

 private:
  DLDataType type_;
};

inline std::ostream& operator<<(std::ostream& os, const DataType& t) { return os << t.str(); }

/// The type that a text means, or an object of another library (torch.float32): Python says which.
std::optional<DataType> DataTypeFor(const TVMFFIAny* value);

}  // namespace tvm

namespace tvm::ffi {
template <>
inline constexpr bool use_default_type_traits_v<DataType> = false;
template <>
struct TypeTraits<DataType> : TypeTraits<DLDataType> {
  TVM_FFI_INLINE static void CopyToAnyView(const DataType& src, TVMFFIAny* result) {
    TypeTraits<DLDataType>::CopyToAnyView(src, result);
  }
  TVM_FFI_INLINE static void MoveToAny(DataType src, TVMFFIAny* result) {
    TypeTraits<DLDataType>::MoveToAny(src, result);
  }
  TVM_FFI_INLINE static DataType CopyFromAnyViewAfterCheck(const TVMFFIAny* src) {
    return TypeTraits<DLDataType>::CopyFromAnyViewAfterCheck(src);
  }
  TVM_FFI_INLINE static DataType MoveFromAnyAfterCheck(TVMFFIAny* src) {
    return TypeTraits<DLDataType>::MoveFromAnyAfterCheck(src);
  }
  TVM_FFI_INLINE static std::optional<DataType> TryCastFromAnyView(const TVMFFIAny* src) {
    if (src->type_index == TypeIndex::kTVMFFIDataType) return DataType(src->v_dtype);
    return DataTypeFor(src);
  }
};
}  // namespace tvm::ffi
template <>
struct std::hash<tvm::DataType> {
  size_t operator()(const tvm::DataType& t) const {
    return t.code() << 24 | t.bits() << 16 | (t.raw_lanes() & 0xffff);
  }
};
