// The entries of the next index block (v1.Index), serialised as the blocks come: about 30 bytes
// each, so that what a writer holds of them is bounded by kBlocksOfAnIndex.
#pragma once

#include <cstdint>
#include <string>

#include "collector/file/trace_format.h"

namespace ranktap::collector {

class BlockIndex {
 public:
  // The block whose header lies at `offset`.
  void Add(uint64_t offset, const BlockHeader& header);
  void Clear();

  // A serialised v1.Index.
  const std::string& bytes() const { return bytes_; }
  uint64_t blocks() const { return blocks_; }
  // The memory that it takes.
  uint64_t MemoryBytes() const { return bytes_.capacity(); }

 private:
  std::string bytes_;
  uint64_t blocks_ = 0;
};

}  // namespace ranktap::collector
