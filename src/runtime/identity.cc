// SPDX-License-Identifier: Apache-2.0
// Build ids, as linkers write them.
#include "runtime/identity.h"

#include <string_view>
#ifdef __linux__
#include <elf.h>
#include <link.h>
#endif

#include "runtime/own_libraries.h"

namespace tvm::runtime {
#ifdef __linux__
namespace {
/// The id in a segment of notes: each is a header, a name and a content, the last two padded.
std::string_view BuildIdIn(std::string_view notes) {
  auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    auto* note = reinterpret_cast<const ElfW(Nhdr)*>(notes.data());
    size_t name = sizeof(*note), content = name + padded(note->n_namesz);
    size_t end = content + padded(note->n_descsz);
    if (end > notes.size()) break;
    if (note->n_type == NT_GNU_BUILD_ID && notes.substr(name, 4) == std::string_view("GNU", 4))
      return notes.substr(content, note->n_descsz);
    notes.remove_prefix(end);
  }
  return "";
}
struct Ids {
  std::string text;
  bool all = true;
};
int AddId(dl_phdr_info* info, size_t, void* data) {
  auto* ids = static_cast<Ids*>(data);
  if (!IsOwnLibrary(info->dlpi_name)) return 0;
  std::string_view id;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || !id.empty()) continue;
    id = BuildIdIn({reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr),
                    static_cast<size_t>(segment.p_memsz)});
  }
  ids->all = ids->all && !id.empty();
  ids->text += id;
  return 0;
}
}  // namespace

std::string BuildIds() {
  Ids ids;
  dl_iterate_phdr(&AddId, &ids);
  return ids.all ? ids.text : "";
}
#else
std::string BuildIds() { return ""; }
#endif
}  // namespace tvm::runtime
