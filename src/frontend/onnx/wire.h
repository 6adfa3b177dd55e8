// SPDX-License-Identifier: Apache-2.0
// The wire format of protocol buffers: the fields of a message one after the other, every length
// and type checked.
//
//   for (Wire w(bytes, "NodeProto"); w.Next();) {
//     switch (w.field()) {
//       case 1: node.inputs.push_back(w.Text()); break;
//       default: w.Skip();
//     }
//   }
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tvm/runtime/def.h"

namespace tvm::frontend::onnx {

class Wire {
 public:
  Wire(std::string_view bytes, const char* message)
      : at_(bytes.data()), end_(at_ + bytes.size()), message_(message) {}
  /// Goes to the next field; false at the end of the message.
  bool Next() {
    if (at_ == end_) return false;
    uint64_t tag = ReadVarint();
    field_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<int>(tag & 7);
    if (!field_ || tag >> 32) Fail("a field number from 1 to 2^29 - 1", std::to_string(tag >> 3));
    return true;
  }
  uint32_t field() const { return field_; }

  // ---- the value of the field, each once after Next() ------------------------------------------
  int64_t Int() {
    Expect(kVarint);
    return static_cast<int64_t>(ReadVarint());
  }
  float Float() {
    Expect(kFixed32);
    return Fixed<float>();
  }
  std::string_view Text() {
    Expect(kBytes);
    uint64_t size = ReadVarint();
    return Take(size);
  }
  /// Appends a repeated number, packed or not.
  void Ints(std::vector<int64_t>* to) {
    if (type_ == kVarint) return to->push_back(Int());
    for (Wire inner(Text(), message_); inner.at_ != inner.end_;)
      to->push_back(static_cast<int64_t>(inner.ReadVarint()));
  }
  /// Appends repeated numbers of a fixed width as bytes, packed or not.
  template <class T>
  void FixedBytes(std::string* to) {
    if (type_ == (sizeof(T) == 4 ? kFixed32 : kFixed64)) {
      to->append(Take(sizeof(T)));
      return;
    }
    std::string_view packed = Text();
    if (packed.size() % sizeof(T))
      Fail("whole numbers of " + std::to_string(sizeof(T)) + " bytes",
           std::to_string(packed.size()) + " bytes");
    to->append(packed);
  }
  void Skip() {
    switch (type_) {
      case kVarint:
        ReadVarint();
        break;
      case kFixed64:
        Take(8);
        break;
      case kBytes:
        Take(ReadVarint());
        break;
      case kFixed32:
        Take(4);
        break;
      default:
        Fail("wire type 0, 1, 2 or 5", std::to_string(type_));
    }
  }
  [[noreturn]] void Fail(const std::string& expected, const std::string& got) const {
    TVM_FFI_THROW(ValueError) << "onnx: " << message_ << ", field " << field_ << ": expected "
                              << expected << ", got " << got;
    TVM_FFI_UNREACHABLE();
  }

 private:
  enum : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  void Expect(int type) const {
    if (type_ != type)
      Fail("wire type " + std::to_string(type), "wire type " + std::to_string(type_));
  }
  std::string_view Take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_))
      Fail(std::to_string(size) + " more bytes", std::to_string(end_ - at_));
    const char* begin = at_;
    at_ += size;
    return {begin, static_cast<size_t>(size)};
  }
  template <class T>
  T Fixed() {
    T value;
    std::memcpy(&value, Take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  uint64_t ReadVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      auto byte = static_cast<uint8_t>(Take(1)[0]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail("a number of at most 10 bytes", "a longer one");
  }
  const char *at_, *end_;
  const char* message_;
  uint32_t field_ = 0;
  int type_ = 0;
};

}  // namespace tvm::frontend::onnx
