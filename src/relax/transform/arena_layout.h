// SPDX-License-Identifier: Apache-2.0
// Places in one piece of memory for things that are needed for some time each.
#pragma once
#include <cstdint>
#include <vector>

namespace tvm::relax {

/// Needed from one position to another, both included.
struct ArenaRequest {
  int begin, end;
  int64_t bytes;
};
struct ArenaLayout {
  std::vector<int64_t> offsets;  // of the requests
  int64_t size = 0;
};
/// Requests, in the order of their begins, that are needed at the same time do not overlap; offsets
/// are sums of the requests' bytes. The smaller of two layouts: in the order of begins, and the
/// largest first.
ArenaLayout LayOutArena(const std::vector<ArenaRequest>& requests);

}  // namespace tvm::relax
