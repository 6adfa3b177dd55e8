// SPDX-License-Identifier: Apache-2.0
// Allocation, views and copies of tensors.
#include "tvm/runtime/tensor.h"

#include <cstring>

#include "tvm/runtime/data_type.h"

namespace tvm::runtime {
namespace {
constexpr DLDevice kCpu{kDLCPU, 0};

int BitsOf(DLDataType t) { return t.bits * t.lanes; }
std::string Str(ShapeView shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}
/// Also of what is no type: nothing may be thrown while an error is written.
std::string Str(DLDataType t) {
  try {
    return ffi::DLDataTypeToString(t);
  } catch (const ffi::Error&) {
    return "the unknown code " + std::to_string(t.code) + " with " + std::to_string(t.bits) +
           " bits";
  }
}
char* Data(const Tensor& t) {
  const DLTensor* d = t.GetDLTensorPtr();
  return static_cast<char*>(d->data) + d->byte_offset;
}

/// Extents of shape times strides, from the lowest to behind the highest element, in elements.
/// Empty tensors touch nothing.
struct Span {
  int64_t low = 0, high = 0;
};
Span SpanOf(ShapeView shape, ShapeView strides) {
  Span span{0, 1};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {};
    int64_t reach;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? span.low : span.high, reach,
                               reach < 0 ? &span.low : &span.high)) {
      TVM_FFI_THROW(ValueError) << "view: strides " << Str(strides) << " of shape " << Str(shape)
                                << " reach beyond 63 bits";
    }
  }
  return span;
}

struct Allocation {
  std::string scope;
  void AllocData(DLTensor* t, uint64_t nbytes) {
    t->data = GetDeviceAPI(t->device.device_type)->Alloc(t->device, nbytes, kAllocAlignment, scope);
  }
  void FreeData(DLTensor* t) { FindDeviceAPI(t->device.device_type)->Free(t->device, t->data); }
};

/// Of views: the address goes into `data`, not into `byte_offset`, which several consumers of
/// DLPack forget to add.
struct Sharing {
  ObjectRef owner;
  void AllocData(DLTensor* t, char* address) { t->data = address; }
  void FreeData(DLTensor*) {}
};

/// Copies `ndim` dimensions of strided elements on the CPU; the innermost run is one memcpy where
/// both sides are dense there.
void CopyStrided(int ndim, const int64_t* shape, char* to, const int64_t* to_strides,
                 const char* from, const int64_t* from_strides, int64_t item) {
  if (ndim == 0) {
    std::memcpy(to, from, item);
    return;
  }
  if (ndim == 1 && to_strides[0] == 1 && from_strides[0] == 1) {
    std::memmove(to, from, shape[0] * item);
    return;
  }
  for (int64_t i = 0; i < shape[0]; ++i) {
    CopyStrided(ndim - 1, shape + 1, to + i * to_strides[0] * item, to_strides + 1,
                from + i * from_strides[0] * item, from_strides + 1, item);
  }
}
/// Whether the elements of two CPU tensors of one dtype may share bytes.
bool MayOverlap(const Tensor& a, const Tensor& b, int64_t item) {
  auto range = [&](const Tensor& t) {
    Span span = SpanOf(t.shape(), t.strides());
    return std::pair(Data(t) + span.low * item, Data(t) + span.high * item);
  };
  auto [a_begin, a_end] = range(a);
  auto [b_begin, b_end] = range(b);
  return a_begin < b_end && b_begin < a_end;
}
Tensor ToContiguous(const Tensor& t) {
  if (t.is_contiguous()) return t;
  if (t.device().device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << "copy: expected a contiguous tensor on "
                              << DeviceName(t.device().device_type);
  }
  Tensor dense = Empty(t.shape(), t.dtype(), kCpu);
  CopyTensor(t, dense);
  return dense;
}
/// A tensor over what a kernel lends to a function it calls; good until that call returns.
Tensor Borrow(const DLTensor* view) {
  ShapeView shape(view->shape, view->ndim);
  char* data = static_cast<char*>(view->data) + view->byte_offset;
  if (!view->strides) return Tensor::FromNDAlloc(Sharing{}, shape, view->dtype, view->device, data);
  return Tensor::FromNDAllocStrided(Sharing{}, shape, ShapeView(view->strides, view->ndim),
                                    view->dtype, view->device, data);
}
}  // namespace

uint64_t DataSize(ShapeView shape, DLDataType dtype) {
  int64_t bits = BitsOf(dtype);
  bool overflow = false, empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) {
      TVM_FFI_THROW(ValueError) << "tensor: expected extents of at least 0, got shape "
                                << Str(shape);
    }
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(bits, extent, &bits);
  }
  if (empty) return 0;
  if (overflow || bits > INT64_MAX - 7) {
    TVM_FFI_THROW(MemoryError) << "tensor: shape " << Str(shape) << " of " << Str(dtype)
                               << " is larger than the address space";
  }
  return static_cast<uint64_t>(bits + 7) / 8;
}

Tensor Empty(ShapeView shape, DLDataType dtype, DLDevice device, std::string_view scope) {
  bool odd_float =
      dtype.code == kDLFloat && dtype.bits != 16 && dtype.bits != 32 && dtype.bits != 64;
  if (dtype.code == kDLOpaqueHandle || BitsOf(dtype) == 0 || odd_float) {
    TVM_FFI_THROW(TypeError) << "tensor: expected a dtype with values, got " << Str(dtype);
  }
  uint64_t nbytes = DataSize(shape, dtype);
  return Tensor::FromNDAlloc(Allocation{std::string(scope)}, shape, dtype, device, nbytes);
}

void CopyTensor(const Tensor& from, const Tensor& to) {
  ShapeView a = from.shape(), b = to.shape();
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    TVM_FFI_THROW(ValueError) << "copy: expected shape " << Str(b) << ", got " << Str(a);
  }
  DLDataType t = from.dtype(), u = to.dtype();
  if (t.code != u.code || t.bits != u.bits || t.lanes != u.lanes) {
    TVM_FFI_THROW(TypeError) << "copy: expected dtype " << Str(u) << ", got " << Str(t);
  }
  uint64_t nbytes = DataSize(a, t);
  if (nbytes == 0) return;
  DLDeviceType kind = to.device().device_type;
  if (from.is_contiguous() && to.is_contiguous()) {
    DLDeviceType other = from.device().device_type;
    if (!IsHostMemory(kind) && !IsHostMemory(other) && kind != other) {
      TVM_FFI_THROW(ValueError) << "copy: expected devices of one kind or the CPU, got "
                                << DeviceName(other) << " and " << DeviceName(kind);
    }
    DLDevice device = IsHostMemory(kind) ? from.device() : to.device();
    DeviceAPI* api = GetDeviceAPI(device.device_type);
    Stream stream = CurrentStream(device);
    api->Copy(from.device(), Data(from), to.device(), Data(to), nbytes, stream);
    // The host may look at it, or change it, as soon as this returns.
    if (IsHostMemory(kind) || IsHostMemory(other)) api->Sync(device, stream);
  } else if (kind == kDLCPU && from.device().device_type == kDLCPU) {
    if (BitsOf(t) % 8 != 0) {
      TVM_FFI_THROW(ValueError) << "copy: expected contiguous tensors of " << Str(t)
                                << ", whose elements share bytes";
    }
    int64_t item = BitsOf(t) / 8;
    Tensor source = from;
    if (MayOverlap(from, to, item)) {  // as if all were read before anything is written
      source = Empty(a, t, kCpu);
      CopyTensor(from, source);
    }
    CopyStrided(to.ndim(), to.shape().data(), Data(to), to.strides().data(), Data(source),
                source.strides().data(), item);
  } else {
    Tensor dense = ToContiguous(from);
    if (!to.is_contiguous() && kind != kDLCPU) ToContiguous(to);  // raises
    Tensor landing = to.is_contiguous() ? to : Empty(b, u, kCpu);
    CopyTensor(dense, landing);
    if (!landing.same_as(to)) CopyTensor(landing, to);
  }
}

Tensor StridedView(const Tensor& data, ShapeView shape, ShapeView strides, int64_t byte_offset) {
  DLDataType dtype = data.dtype();
  if (shape.size() != strides.size()) {
    TVM_FFI_THROW(ValueError) << "view: expected as many strides as extents, got " << Str(strides)
                              << " for shape " << Str(shape);
  }
  DataSize(shape, dtype);
  if (BitsOf(dtype) % 8 != 0) {
    TVM_FFI_THROW(ValueError) << "view: elements of " << Str(dtype) << " share bytes and cannot be "
                              << "strided; copy to NumPy first";
  }
  int64_t item = BitsOf(dtype) / 8;
  Span old = SpanOf(data.shape(), data.strides()), now = SpanOf(shape, strides);
  __int128 low = __int128{now.low} * item + byte_offset,
           high = __int128{now.high} * item + byte_offset;
  if (low < __int128{old.low} * item || high > __int128{old.high} * item) {
    TVM_FFI_THROW(ValueError) << "view: shape " << Str(shape) << ", strides " << Str(strides)
                              << " and byte offset " << byte_offset << " reach outside the tensor";
  }
  return Tensor::FromNDAllocStrided(Sharing{data}, shape, strides, dtype, data.device(),
                                    Data(data) + byte_offset);
}

Tensor CreateView(const Tensor& data, ShapeView shape, DLDataType dtype, int64_t byte_offset) {
  if (!data.is_contiguous()) {
    TVM_FFI_THROW(ValueError) << "view: expected a contiguous tensor, got strides "
                              << Str(data.strides());
  }
  uint64_t have = DataSize(data.shape(), data.dtype()), need = DataSize(shape, dtype);
  if (byte_offset < 0 || static_cast<uint64_t>(byte_offset) > have || need > have - byte_offset) {
    TVM_FFI_THROW(ValueError) << "view: shape " << Str(shape) << " of " << Str(dtype)
                              << " would occupy bytes " << byte_offset << " <= i_byte < "
                              << static_cast<int64_t>(byte_offset + need)
                              << ", the tensor only contains " << have << " bytes";
  }
  return Tensor::FromNDAlloc(Sharing{data}, shape, dtype, data.device(), Data(data) + byte_offset);
}

namespace {
/// One value per byte, in its lowest bits as ml_dtypes keeps it, <-> packed values.
void CheckPacked(const char* what, const Tensor& bytes, const Tensor& packed) {
  int bits = BitsOf(packed.dtype());
  if (bits >= 8 || bytes.dtype().bits != 8 || !bytes.is_contiguous() || !packed.is_contiguous() ||
      bytes.numel() != packed.numel() || bytes.device().device_type != kDLCPU ||
      packed.device().device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << what
                              << ": expected as many bytes as elements of less than a byte, "
                              << "contiguous on the CPU, got " << Str(bytes.shape()) << " and "
                              << Str(packed.shape()) << " of " << Str(packed.dtype());
  }
}
void Unpack(Tensor packed, Tensor bytes) {
  CheckPacked("unpack", bytes, packed);
  auto* in = reinterpret_cast<const uint8_t*>(Data(packed));
  auto* out = reinterpret_cast<uint8_t*>(Data(bytes));
  unsigned bits = BitsOf(packed.dtype()), mask = (1u << bits) - 1;
  int64_t last = static_cast<int64_t>(DataSize(packed.shape(), packed.dtype())) - 1;
  for (int64_t i = 0, n = packed.numel(); i < n; ++i) {
    int64_t bit = i * bits, byte = bit / 8;
    unsigned word = in[byte] | (byte < last ? in[byte + 1] << 8 : 0);
    out[i] = static_cast<uint8_t>((word >> (bit % 8)) & mask);
  }
}
void Pack(Tensor bytes, Tensor packed) {
  CheckPacked("pack", bytes, packed);
  auto* in = reinterpret_cast<const uint8_t*>(Data(bytes));
  auto* out = reinterpret_cast<uint8_t*>(Data(packed));
  unsigned bits = BitsOf(packed.dtype()), mask = (1u << bits) - 1;
  std::memset(out, 0, DataSize(packed.shape(), packed.dtype()));
  for (int64_t i = 0, n = packed.numel(); i < n; ++i) {
    int64_t bit = i * bits, byte = bit / 8;
    unsigned word = (in[i] & mask) << (bit % 8);
    out[byte] |= static_cast<uint8_t>(word);
    if (word > 0xff) out[byte + 1] |= static_cast<uint8_t>(word >> 8);
  }
}

TVM_REGISTER() {
  Def(
      "runtime.TensorEmpty",
      [](Shape shape, DataType dtype, DLDevice device, Optional<String> scope) {
        return Empty(shape, dtype, device, scope ? View(*scope) : "");
      },
      "An uninitialised tensor.", Arg("shape"), Arg("dtype"), Arg("device"),
      Arg("mem_scope", nullptr));
  Def(
      "runtime.TensorBorrow", [](DLTensor* view) { return Borrow(view); },
      "A tensor over what a kernel lends to a function it calls.", Arg("view"));
  Def("runtime.TensorCopy", &CopyTensor, "Copies a tensor into another one.", Arg("source"),
      Arg("to"));
  Def(
      "runtime.TensorStridedView",
      [](Tensor t, Shape shape, Shape strides, int64_t byte_offset) {
        return StridedView(t, shape, strides, byte_offset);
      },
      "A strided view.", Arg("tensor"), Arg("shape"), Arg("strides"), Arg("byte_offset"));
  Def(
      "runtime.TensorCreateView",
      [](Tensor t, Shape shape, DataType dtype, int64_t byte_offset) {
        return CreateView(t, shape, dtype, byte_offset);
      },
      "The same bytes with another shape and dtype.", Arg("tensor"), Arg("shape"), Arg("dtype"),
      Arg("relative_byte_offset", 0));
  Def("runtime.TensorUnpack", &Unpack, "Packed values to one per byte.", Arg("packed"),
      Arg("bytes"));
  Def("runtime.TensorPack", &Pack, "One value per byte to packed values.", Arg("bytes"),
      Arg("packed"));
}
}  // namespace
}  // namespace tvm::runtime
