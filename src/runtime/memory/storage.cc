// SPDX-License-Identifier: Apache-2.0
// Storages, and tensors inside them.
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/memory.h"

namespace tvm::runtime {
namespace {
/// Of a tensor inside a storage: the address goes into `data`, as for other views.
struct InStorage {
  Storage storage;
  void AllocData(DLTensor* t, int64_t byte_offset) {
    t->data = static_cast<char*>(storage->data) + byte_offset;
  }
  void FreeData(DLTensor*) {}
};
}  // namespace

StorageObj::StorageObj(Allocator* allocator, uint64_t nbytes, std::string_view scope)
    : allocator(allocator), data(allocator->Alloc(&nbytes, scope)), nbytes(nbytes), scope(scope) {}

Storage::Storage(Allocator* allocator, uint64_t nbytes, std::string_view scope)
    : ObjectRef(ffi::make_object<StorageObj>(allocator, nbytes, scope)) {}

Tensor Storage::AllocTensor(int64_t byte_offset, ShapeView shape, DLDataType dtype) const {
  uint64_t need = DataSize(shape, dtype), have = get()->nbytes;
  if (byte_offset < 0 || static_cast<uint64_t>(byte_offset) > have || need > have - byte_offset) {
    TVM_FFI_THROW(ValueError) << "alloc_tensor: " << need << " bytes of "
                              << ffi::DLDataTypeToString(dtype) << " at byte " << byte_offset
                              << " do not fit into a storage of " << have << " bytes";
  }
  return Tensor::FromNDAlloc(InStorage{*this}, shape, dtype, get()->allocator->device(),
                             byte_offset);
}

namespace {
/// storage, byte offset, shape, dtype; a scope behind them is that of the storage.
void AllocTensor(ffi::PackedArgs args, Any* result) {
  if (args.size() != 4 && args.size() != 5) {
    TVM_FFI_THROW(TypeError) << "vm.builtin.alloc_tensor: expected 4 or 5 arguments, got "
                             << args.size();
  }
  *result = args[0].cast<Storage>().AllocTensor(args[1].cast<int64_t>(), args[2].cast<Shape>(),
                                                args[3].cast<DataType>());
}
TVM_REGISTER() {
  StorageObj::RuntimeTypeIndex();
  Function::SetGlobal("vm.builtin.alloc_tensor", Function::FromPacked(&AllocTensor));
  Def(
      "runtime.Storage",
      [](DLDevice device, int64_t nbytes, int kind, String scope) {
        if (nbytes < 0) {
          TVM_FFI_THROW(ValueError) << "Storage: expected at least 0 bytes, got " << nbytes;
        }
        return Storage(Allocator::Get(device, static_cast<AllocatorKind>(kind)),
                       static_cast<uint64_t>(nbytes), View(scope));
      },
      "Memory of an allocator (1: naive, 2: pooled).", Arg("device"), Arg("nbytes"),
      Arg("kind", 2), Arg("scope", ""));
}
}  // namespace
}  // namespace tvm::runtime
