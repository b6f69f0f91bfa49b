#include "collector/trace/load/block_pipeline.h"

#include <algorithm>

#include "collector/trace/at_once.h"

namespace ranktap::collector {

std::span<const Block> BlocksAfter(const Block& last, std::span<const Block> blocks) {
  const auto first = std::ranges::lower_bound(blocks, last.end(), {}, &Block::offset);
  uint64_t sequence = last.header.sequence;
  return {first, std::find_if(first, blocks.end(), [&sequence](const Block& block) {
            return block.header.sequence != ++sequence;
          })};
}

bool BlockPipeline::Run() {
  ForEachOnIdle(kThreads, [this](size_t) {
    try {
      Work();
    } catch (...) {  // for want of memory: nobody is to wait for this thread
      const std::lock_guard lock(mutex_);
      has_failed_ = true;
      changed_.notify_all();
      throw;
    }
  });
  return !has_failed_;
}

void BlockPipeline::Work() {
  std::unique_lock lock(mutex_);
  ++threads_;
  const auto take = [&](Taker* taker) {
    taker->is_busy = true;
    lock.unlock();
    const bool ok = taker->take(&ahead_[taker->next % kAhead]);
    lock.lock();
    taker->is_busy = false;
    ok ? void(++taker->next) : void(has_failed_ = true);
  };
  while (!has_failed_ && device_.next < end_) {
    // Reading comes first, so that neither taker waits for it.
    if (next_read_ < end_ && next_read_ < device_.next + MostAhead()) {
      const size_t block = next_read_++;
      BlockAhead& ahead = ahead_[block % kAhead];
      ahead.is_read = false;
      lock.unlock();
      const bool ok = Read(blocks_[block], &ahead);
      lock.lock();
      ahead.is_read = ok;
      if (!ok) end_ = std::min(end_, block);
    } else if (CanTake(host_, std::min(next_read_, end_))) {
      take(&host_);
    } else if (CanTake(device_, host_.next)) {
      take(&device_);
    } else {
      changed_.wait(lock);
      continue;
    }
    changed_.notify_all();
  }
}

bool BlockPipeline::CanTake(const Taker& taker, size_t end) const {
  return !taker.is_busy && taker.next < end && ahead_[taker.next % kAhead].is_read;
}

bool BlockPipeline::Read(const Block& listed, BlockAhead* ahead) const {
  if (!ahead->reader) {
    Result<TraceReader> reader = TraceReader::Open(path_);
    if (!reader) return false;
    ahead->reader.emplace(std::move(*reader));
  }
  ahead->reader->Seek(listed.offset, listed.header.sequence);
  return ahead->reader->NextWhole(&ahead->block) &&
         ahead->block.header.header_crc == listed.header.header_crc;
}

}  // namespace ranktap::collector
