// A moving window over a text of any length: what is being looked at always lies in one piece.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "collector/import/byte_source.h"
#include "collector/import/json_scan.h"

namespace ranktap::collector {

class TextWindow {
 public:
  // `largest`: how long one thing may be; a longer one is cut there, so that a damaged file cannot
  // take all memory.
  explicit TextWindow(ByteSource* source, size_t chunk = 4 << 20, size_t largest = 256 << 20)
      : source_(source),
        chunk_(std::min(kFirstChunk, chunk)),
        last_chunk_(chunk),
        largest_(largest) {
    Fill();
  }

  const char* begin() const { return text_.data() + at_; }
  const char* end() const { return text_.data() + size_; }
  // Position of `p` in the uncompressed text.
  uint64_t OffsetOf(const char* p) const {
    return before_ + static_cast<uint64_t>(p - text_.data());
  }
  void MoveTo(const char* p) { at_ = static_cast<size_t>(p - text_.data()); }
  // Gets more text behind end(); begin() may move in memory. False: there is no more.
  bool Extend() { return size_ - at_ < largest_ && Fill(); }

  // Moves to the next byte that is not space; 0 there: the end.
  char Peek() {
    while (true) {
      MoveTo(std::min(SkipSpace(begin()), end()));
      if (begin() != end()) return *begin();
      if (!Extend()) return 0;
    }
  }
  // Takes the JSON value that begins at begin(), valid until the next Extend; empty: there is none.
  std::string_view TakeValue() {
    while (true) {
      const char* const start = begin();
      const char* const after = SkipValue(start, end());
      if (after != nullptr) {
        MoveTo(after);
        return {start, static_cast<size_t>(after - start)};
      }
      if (!Extend()) return {};
    }
  }

 private:
  bool Fill() {
    const size_t kept = size_ - at_;
    if (text_.size() < kept + chunk_ + kJsonPadding) {
      std::vector<char> larger(kept * 2 + chunk_ + kJsonPadding);
      if (kept > 0) std::memcpy(larger.data(), text_.data() + at_, kept);
      text_.swap(larger);
    } else if (kept > 0) {
      std::memmove(text_.data(), text_.data() + at_, kept);
    }
    before_ += at_;
    at_ = 0;
    chunk_ = std::min(chunk_ * 4, last_chunk_);
    const size_t got = source_->Read(text_.data() + kept, text_.size() - kJsonPadding - kept);
    size_ = kept + got;
    std::memset(text_.data() + size_, 0, kJsonPadding);
    return got > 0;
  }

  static constexpr size_t kFirstChunk = 64 << 10;  // small files are many

  ByteSource* source_;
  size_t chunk_, last_chunk_, largest_;
  std::vector<char> text_;
  size_t at_ = 0, size_ = 0;
  uint64_t before_ = 0;  // bytes of the text that are no longer here
};

}  // namespace ranktap::collector
