// SPDX-License-Identifier: Apache-2.0
// Executables as bytes. All little-endian; nothing is trusted when it is read back.
#include <bit>
#include <cstring>

#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {
namespace {
// "TVMVMEXE", version, functions, constants, offsets, code: each a count, then the elements.
constexpr uint64_t kExecutableMagic = 0x455845'4d564d5654;
constexpr uint64_t kExecutableVersion = 2;
static_assert(std::endian::native == std::endian::little,
              "words are written as they lie in memory");

enum class ConstantTag : uint8_t {
  kNone,
  kTensor,
  kShape,
  kString,
  kInt,
  kFloat,
  kBool,
  kDtype,
  kTuple,
  kApart  // a tensor that lies elsewhere in the library
};

class ByteWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void Put(T value) {
    Raw(&value, sizeof(value));
  }
  void Text(std::string_view text) {
    Put<uint64_t>(text.size());
    Raw(text.data(), text.size());
  }
  void Words(const int64_t* data, size_t n) {
    Put<uint64_t>(n);
    Raw(data, n * sizeof(int64_t));
  }
  void Raw(const void* data, size_t n) { out_.append(static_cast<const char*>(data), n); }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}
  [[noreturn]] static void Fail(const std::string& what) {
    TVM_FFI_THROW(ValueError) << "VM executable: " << what;
    TVM_FFI_UNREACHABLE();
  }
  const char* Raw(uint64_t n) {
    if (n > left_.size()) {
      Fail("expected " + std::to_string(n) + " more bytes, got " + std::to_string(left_.size()) +
           ": the data is truncated or damaged");
    }
    const char* data = left_.data();
    left_.remove_prefix(n);
    return data;
  }
  template <class T>
  T Get() {
    T value;
    std::memcpy(&value, Raw(sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  T Peek() const {
    return ByteReader(left_).Get<T>();
  }
  /// A number of things of at least `least` bytes each.
  uint64_t Count(uint64_t least) {
    auto n = Get<uint64_t>();
    if (n > left_.size() / least) {
      Fail("a count of " + std::to_string(n) + " is more than the data holds");
    }
    return n;
  }
  std::string Text() {
    uint64_t n = Count(1);
    return {Raw(n), n};
  }
  std::vector<int64_t> Words() {
    std::vector<int64_t> words(Count(sizeof(int64_t)));
    const char* data = Raw(words.size() * sizeof(int64_t));
    if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(int64_t));
    return words;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

/// Contiguous, on the CPU.
Tensor OnHost(const Tensor& t) {
  if (t.device().device_type == kDLCPU && t.is_contiguous()) return t;
  Tensor host = Empty(t.shape(), t.dtype(), {kDLCPU, 0});
  CopyTensor(t, host);
  return host;
}
void PutTensor(ByteWriter* out, Tensor t) {
  t = OnHost(t);
  out->Put(t.dtype());
  out->Words(t.shape().data(), t.shape().size());
  out->Raw(static_cast<const char*>(t.data_ptr()) + t.byte_offset(),
           DataSize(t.shape(), t.dtype()));
}
std::vector<int64_t> GetExtents(ByteReader* in) {
  std::vector<int64_t> extents = in->Words();
  if (extents.size() > 64) in->Fail("a tensor has " + std::to_string(extents.size()) + " axes");
  return extents;
}
/// A type that has a name: whoever uses it may write it into an error.
DLDataType GetType(ByteReader* in) {
  auto dtype = in->Get<DLDataType>();
  try {
    ffi::DLDataTypeToString(dtype);
  } catch (const ffi::Error&) {
    in->Fail("there is no type with the code " + std::to_string(dtype.code));
  }
  return dtype;
}
Tensor GetTensor(ByteReader* in) {
  DLDataType dtype = GetType(in);
  std::vector<int64_t> extents = GetExtents(in);
  ShapeView shape(extents.data(), extents.size());
  try {
    uint64_t nbytes = DataSize(shape, dtype);
    const char* data =
        in->Raw(nbytes);  // before allocating: a few bytes must not ask for terabytes
    Tensor tensor = Empty(shape, dtype, {kDLCPU, 0});
    std::memcpy(tensor.data_ptr(), data, nbytes);
    return tensor;
  } catch (const ffi::Error& error) {
    in->Fail("a constant is damaged: " + error.message());
  }
}

void PutConstant(ByteWriter* out, const Any& value) {
  if (value == nullptr) return out->Put(ConstantTag::kNone);
  if (auto tensor = As<Tensor>(value)) {
    out->Put(ConstantTag::kTensor);
    return PutTensor(out, *tensor);
  }
  if (auto shape = value.as<Shape>()) {
    out->Put(ConstantTag::kShape);
    return out->Words(shape->data(), shape->size());
  }
  if (auto text = value.as<String>()) {
    out->Put(ConstantTag::kString);
    return out->Text(View(*text));
  }
  if (auto flag = value.as<bool>()) {
    out->Put(ConstantTag::kBool);
    return out->Put<uint8_t>(*flag);
  }
  if (auto number = value.as<int64_t>()) {
    out->Put(ConstantTag::kInt);
    return out->Put(*number);
  }
  if (auto number = value.as<double>()) {
    out->Put(ConstantTag::kFloat);
    return out->Put(*number);
  }
  if (auto dtype = value.as<DLDataType>()) {
    out->Put(ConstantTag::kDtype);
    return out->Put(*dtype);
  }
  if (auto tuple = value.as<Array<Any>>()) {
    out->Put(ConstantTag::kTuple);
    out->Put<uint64_t>(tuple->size());
    for (const Any& item : *tuple) PutConstant(out, item);
    return;
  }
  TVM_FFI_THROW(TypeError) << "VM executable: a constant of type " << AnyView(value).GetTypeKey()
                           << " cannot be saved";
}
Any GetConstant(ByteReader* in, int depth = 0) {
  switch (in->Get<ConstantTag>()) {
    case ConstantTag::kNone:
      return nullptr;
    case ConstantTag::kTensor:
      return GetTensor(in);
    case ConstantTag::kShape:
      return Shape(in->Words());
    case ConstantTag::kString:
      return String(in->Text());
    case ConstantTag::kInt:
      return in->Get<int64_t>();
    case ConstantTag::kFloat:
      return in->Get<double>();
    case ConstantTag::kBool:
      return in->Get<uint8_t>() != 0;
    case ConstantTag::kDtype:
      return GetType(in);
    case ConstantTag::kTuple: {
      if (depth > 100) in->Fail("constants are nested too deeply");
      Array<Any> items;
      for (uint64_t n = in->Count(1); n > 0; --n) items.push_back(GetConstant(in, depth + 1));
      return items;
    }
    case ConstantTag::kApart:
      break;  // not inside of others
  }
  in->Fail("unknown kind of constant");
}

/// Smaller tensors are not worth a place of their own.
constexpr uint64_t kWorthMapping = 1024;
/// A tensor that another piece of memory holds.
struct InMemory {
  char* data;
  std::shared_ptr<void> owner;
  void AllocData(DLTensor* t) { t->data = data; }
  void FreeData(DLTensor*) {}
};
}  // namespace

void ExecutableObj::Attach(std::string_view data, const std::shared_ptr<void>& owner) {
  for (const Missing& m : missing) {
    ShapeView shape(m.shape.data(), m.shape.size());
    uint64_t size = DataSize(shape, m.dtype);
    char* begin = const_cast<char*>(data.data()) + m.place;
    if (m.place > data.size() || size > data.size() - m.place ||
        reinterpret_cast<uintptr_t>(begin) % kApartAlignment != 0) {
      ByteReader::Fail("a constant lies outside of the library's data: it is damaged");
    }
    constants[m.constant] =
        Tensor::FromNDAlloc(InMemory{begin, owner}, shape, m.dtype, DLDevice{kDLCPU, 0});
  }
  missing.clear();
}

std::string ExecutableObj::Save(ApartTensors* apart) const {
  ByteWriter out;
  out.Put(kExecutableMagic);
  out.Put(kExecutableVersion);
  out.Put<uint64_t>(functions.size());
  for (const FunctionInfo& f : functions) {
    out.Text(f.name);
    out.Put(static_cast<int64_t>(f.kind));
    out.Put(f.begin);
    out.Put(f.end);
    out.Put(f.num_registers);
    out.Put<uint64_t>(f.params.size());
    for (const std::string& name : f.params) out.Text(name);
    out.Text(f.signature);
  }
  out.Put<uint64_t>(constants.size());
  for (const Any& value : constants) {
    auto tensor = As<Tensor>(value);
    if (!apart || !tensor || DataSize(tensor->shape(), tensor->dtype()) < kWorthMapping) {
      PutConstant(&out, value);
      continue;
    }
    out.Put(ConstantTag::kApart);
    out.Put(tensor->dtype());
    out.Words(tensor->shape().data(), tensor->shape().size());
    out.Put(apart->Add(OnHost(*tensor)));
  }
  out.Words(offsets.data(), offsets.size());
  out.Words(code.data(), code.size());
  return out.Take();
}

ObjectPtr<ExecutableObj> ExecutableObj::Load(std::string_view bytes) {
  ByteReader in(bytes);
  if (bytes.size() < 16 || in.Get<uint64_t>() != kExecutableMagic) {
    in.Fail("expected a saved executable, got something else");
  }
  if (auto version = in.Get<uint64_t>(); version != kExecutableVersion) {
    in.Fail("expected format version " + std::to_string(kExecutableVersion) + ", got " +
            std::to_string(version));
  }
  auto exec = ffi::make_object<ExecutableObj>();
  exec->functions.resize(in.Count(7 * sizeof(int64_t)));
  for (FunctionInfo& f : exec->functions) {
    f.name = in.Text();
    auto kind = in.Get<int64_t>();
    if (kind < 0 || kind > 2) in.Fail("unknown kind of function " + std::to_string(kind));
    f.kind = static_cast<FunctionKind>(kind);
    f.begin = in.Get<int64_t>();
    f.end = in.Get<int64_t>();
    f.num_registers = in.Get<int64_t>();
    f.params.resize(in.Count(sizeof(uint64_t)));
    for (std::string& name : f.params) name = in.Text();
    f.signature = in.Text();
  }
  exec->constants.resize(in.Count(1));
  for (size_t i = 0; i < exec->constants.size(); ++i) {
    if (in.Peek<ConstantTag>() != ConstantTag::kApart) {
      exec->constants[i] = GetConstant(&in);
      continue;
    }
    in.Get<ConstantTag>();
    DLDataType dtype = GetType(&in);
    std::vector<int64_t> extents = GetExtents(&in);
    exec->missing.push_back({i, dtype, extents, in.Get<uint64_t>()});
  }
  exec->offsets = in.Words();
  exec->code = in.Words();
  if (!in.empty()) in.Fail("bytes follow the code");
  exec->Verify();
  return exec;
}
}  // namespace tvm::runtime::vm
