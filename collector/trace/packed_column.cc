#include "collector/trace/packed_column.h"

#include <algorithm>
#include <limits>

namespace ranktap::collector {
namespace {

constexpr uint64_t kMostLater = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kMostNarrow = std::numeric_limits<uint16_t>::max();

// False: one is too far from `base`.
bool PackFrom(uint64_t base, std::span<const int64_t> times, uint32_t* later) {
  uint64_t all = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const uint64_t distance = static_cast<uint64_t>(times[i]) - base;
    later[i] = static_cast<uint32_t>(distance);
    all |= distance;
  }
  return all <= kMostLater;
}

uint32_t BitsOf(std::span<const uint32_t> ids) {
  uint32_t bits = 0;
  for (const uint32_t id : ids) bits |= id;
  return bits;
}

template <typename T>
void PermuteValues(T* values, std::span<const uint32_t> order, void* room) {
  T* const sorted = static_cast<T*>(room);
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = values[order[i]];
  std::copy_n(sorted, order.size(), values);
}

}  // namespace

void TimeColumn::Append(std::span<const int64_t> times) {
  while (!times.empty()) {
    const size_t before = size() % kBlock;
    const size_t count = std::min(times.size(), kBlock - before);
    if (before == 0) blocks_.push_back({.base = BaseFor(times[0])});
    Block& block = blocks_.back();
    uint32_t* const later = later_.Grow(count);
    const bool fits = PackFrom(block.base, times.first(count), later);
    if (!fits && block.whole == 0) KeepWhole(&block, {later - before, before});
    if (block.whole != 0) std::copy_n(times.data(), count, WholeOf(block) + before);
    times = times.subspan(count);
  }
}

void TimeColumn::Set(size_t i, int64_t time) {
  Block& block = blocks_[i / kBlock];
  const uint64_t distance = static_cast<uint64_t>(time) - block.base;
  if (distance > kMostLater && block.whole == 0) {
    const size_t first = i / kBlock * kBlock;
    KeepWhole(&block, {later_.data() + first, std::min(kBlock, size() - first)});
  }
  if (block.whole != 0) {
    WholeOf(block)[i % kBlock] = time;
  } else {
    later_[i] = static_cast<uint32_t>(distance);
  }
}

void TimeColumn::Read(size_t first, std::span<int64_t> times) const {
  while (!times.empty()) {
    const size_t count = std::min(times.size(), kBlock - first % kBlock);
    const Block& block = blocks_[first / kBlock];
    if (block.whole != 0) {
      std::copy_n(whole_.data() + (block.whole - 1) * kBlock + first % kBlock, count, times.data());
    } else {
      const uint64_t base = block.base;
      const uint32_t* const later = later_.data() + first;
      for (size_t i = 0; i < count; ++i) times[i] = static_cast<int64_t>(base + later[i]);
    }
    first += count;
    times = times.subspan(count);
  }
}

void TimeColumn::Write(size_t first, std::span<const int64_t> times) {
  while (!times.empty()) {
    const size_t count = std::min(times.size(), kBlock - first % kBlock);
    if (first % kBlock == 0 && (count == kBlock || first + count == size())) {
      Pack(first, times.first(count));
    } else {
      const size_t begin = first / kBlock * kBlock;
      Block& block = blocks_[first / kBlock];
      const bool fits = PackFrom(block.base, times.first(count), later_.data() + first);
      if (!fits && block.whole == 0) {
        KeepWhole(&block, {later_.data() + begin, std::min(kBlock, size() - begin)});
      }
      if (block.whole != 0) std::copy_n(times.data(), count, WholeOf(block) + first % kBlock);
    }
    first += count;
    times = times.subspan(count);
  }
}

void TimeColumn::Permute(size_t first, std::span<const uint32_t> order, void* room) {
  if (order.empty()) return;
  const bool is_in_one = first / kBlock == (first + order.size() - 1) / kBlock;
  if (is_in_one && blocks_[first / kBlock].whole == 0) {
    return PermuteValues(later_.data() + first, order, room);
  }
  int64_t* const sorted = static_cast<int64_t*>(room);
  const View view = this->view();
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = view[first + order[i]];
  Write(first, {sorted, order.size()});
}

TimeColumn::Later TimeColumn::LaterFrom(size_t first) {
  Block& block = blocks_[first / kBlock];
  if (block.whole != 0) return {};
  return {&block.base, {later_.data() + first, std::min(kBlock, size() - first)}};
}

uint64_t TimeColumn::Sum() const {
  uint64_t sum = 0;
  for (size_t first = 0; first < size(); first += kBlock) {
    const Block& block = blocks_[first / kBlock];
    const size_t count = std::min(kBlock, size() - first);
    if (block.whole != 0) {
      const int64_t* const whole = whole_.data() + (block.whole - 1) * kBlock;
      for (size_t i = 0; i < count; ++i) sum += static_cast<uint64_t>(whole[i]);
    } else {
      const uint32_t* const later = later_.data() + first;
      sum += block.base * count;
      for (size_t i = 0; i < count; ++i) sum += later[i];
    }
  }
  return sum;
}

bool TimeColumn::RunCountsUp(size_t first) const {
  static_assert(kBlock % kRun == 0);
  if (first % kRun != 0 || first + kRun > size() || blocks_[first / kBlock].whole != 0)
    return false;
  const uint32_t* const later = later_.data() + first;
  uint32_t goes_back = 0;
  for (size_t i = 1; i < kRun; ++i) goes_back |= static_cast<uint32_t>(later[i] < later[i - 1]);
  return goes_back == 0;
}

void TimeColumn::PadTo(size_t size) {
  while (this->size() < size) push_back(0);
}

void TimeColumn::Truncate(size_t size) {
  later_.Truncate(size);
  for (const size_t blocks = (size + kBlock - 1) / kBlock; blocks_.size() > blocks;) {
    const uint32_t whole = blocks_.back().whole;
    // Or a file of frames that are taken back could have any number of copies.
    if (whole != 0 && whole * kBlock == whole_.size()) whole_.Truncate((whole - 1) * kBlock);
    blocks_.Truncate(blocks_.size() - 1);
  }
}

void TimeColumn::ShrinkToFit() {
  const Column<int64_t> before = std::move(whole_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const uint32_t whole = std::exchange(blocks_[i].whole, 0);
    if (whole == 0) continue;
    const size_t first = i * kBlock;
    Pack(first, {before.data() + (whole - 1) * kBlock, std::min(kBlock, size() - first)});
  }
  blocks_.ShrinkToFit(), later_.ShrinkToFit(), whole_.ShrinkToFit();
}

void TimeColumn::KeepWhole(Block* block, std::span<const uint32_t> later) {
  int64_t* const whole = whole_.Grow(kBlock);
  block->whole = static_cast<uint32_t>(whole_.size() / kBlock);
  for (size_t i = 0; i < later.size(); ++i) {
    whole[i] = static_cast<int64_t>(block->base + later[i]);
  }
}

void TimeColumn::Pack(size_t first, std::span<const int64_t> times) {
  Block& block = blocks_[first / kBlock];
  uint32_t* const later = later_.data() + first;
  const uint64_t near = BaseFor(times[0]);
  const auto least = [times] {
    return static_cast<uint64_t>(*std::min_element(times.begin(), times.end()));
  };
  for (const bool is_far : {false, true}) {
    const uint64_t base = is_far ? least() : near;
    if (!PackFrom(base, times, later)) continue;
    block = {.base = base};
    return;
  }
  if (block.whole == 0) KeepWhole(&block, {});
  std::copy(times.begin(), times.end(), WholeOf(block));
}

void IdColumn::Append(std::span<const uint32_t> ids) {
  const uint32_t bits = BitsOf(ids);
  if (bits > kMostNarrow) Widen();
  if (wide_.empty() && bits <= kMostNarrow) {
    std::copy(ids.begin(), ids.end(), narrow_.Grow(ids.size()));
  } else {
    std::copy(ids.begin(), ids.end(), wide_.Grow(ids.size()));
  }
}

void IdColumn::Set(size_t i, uint32_t id) {
  if (id > kMostNarrow) Widen();
  if (wide_.empty()) {
    narrow_[i] = static_cast<uint16_t>(id);
  } else {
    wide_[i] = id;
  }
}

void IdColumn::Write(size_t first, std::span<const uint32_t> ids) {
  if (BitsOf(ids) > kMostNarrow) Widen();
  if (wide_.empty()) {
    std::copy(ids.begin(), ids.end(), narrow_.begin() + first);
  } else {
    std::copy(ids.begin(), ids.end(), wide_.begin() + first);
  }
}

void IdColumn::Permute(size_t first, std::span<const uint32_t> order, void* room) {
  if (wide_.empty()) {
    PermuteValues(narrow_.data() + first, order, room);
  } else {
    PermuteValues(wide_.data() + first, order, room);
  }
}

void IdColumn::PadTo(size_t size) {
  while (this->size() < size) push_back(0);
}

void IdColumn::Widen() {
  if (narrow_.empty()) return;
  std::copy(narrow_.begin(), narrow_.end(), wide_.Grow(narrow_.size()));
  narrow_ = Column<uint16_t>();
}

}  // namespace ranktap::collector
