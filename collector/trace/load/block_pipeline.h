// Blocks of a trace file on several processors: some are read ahead, and two takers go through them
// in the order of the file. The host's is first at each block, and the device's comes behind it,
// which may be on another thread and at another block.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collector/file/trace_reader.h"
#include "collector/trace/load/event_tables.h"

namespace ranktap::collector {

struct BlockAhead {
  Block block;
  std::vector<EventFrame> frames;     // of the block: the host's taker leaves them to the device's
  std::optional<TraceReader> reader;  // owns what `block` and `frames` point to
  bool is_read = false;
};

// Of the blocks of a file, those that follow `last` without one missing between.
std::span<const Block> BlocksAfter(const Block& last, std::span<const Block> blocks);

class BlockPipeline {
 public:
  // False: no block is to be taken any more.
  using Take = std::function<bool(BlockAhead*)>;
  // `blocks` follow each other in the file at `path`.
  BlockPipeline(std::string path, std::span<const Block> blocks, Take host, Take device)
      : path_(std::move(path)),
        blocks_(blocks),
        end_(blocks.size()),
        host_{.take = std::move(host)},
        device_{.take = std::move(device)} {}

  // False: a taker said so. Else it ends with the last block, or before one that cannot be read.
  [[nodiscard]] bool Run();
  // Blocks that both took.
  size_t taken() const { return device_.next; }

 private:
  struct Taker {
    Take take;
    size_t next = 0;  // block
    bool is_busy = false;
  };
  void Work();
  bool Read(const Block& listed, BlockAhead* ahead) const;
  bool CanTake(const Taker& taker, size_t end) const;
  // Blocks that are read and not taken by both. One thread alone reads none ahead: each stays in
  // its cache.
  size_t MostAhead() const { return threads_ == 1 ? 1 : kAhead; }

  static constexpr size_t kThreads = 3, kAhead = 6;
  const std::string path_;
  const std::span<const Block> blocks_;
  std::array<BlockAhead, kAhead> ahead_;
  std::mutex mutex_;  // of all below; not held while a block is read or taken
  std::condition_variable changed_;
  size_t threads_ = 0, next_read_ = 0, end_;
  bool has_failed_ = false;
  Taker host_, device_;
};

}  // namespace ranktap::collector
