// SPDX-License-Identifier: Apache-2.0
// Files that hold files: static libraries and tar.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tvm {

using Paths = std::vector<std::filesystem::path>;

/// A static library in the common (System V) form, with the index of symbols that linkers ask for.
/// The same objects give the same bytes.
void WriteStaticLibrary(const Paths& objects, const std::filesystem::path& output);
/// Extracts the objects of a static library; ValueError for a damaged one.
Paths ExtractStaticLibrary(const std::filesystem::path& library,
                           const std::filesystem::path& folder);
/// The files at the root of a tar archive, without times and owners.
void WriteTar(const Paths& files, const std::filesystem::path& output);

std::string ReadFile(const std::filesystem::path& path);
/// OSError when it cannot be written.
void WriteFile(const std::filesystem::path& path, std::string_view bytes);

}  // namespace tvm
