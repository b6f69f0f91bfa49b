// Text that grows at its end and is rarely read: compressed in pieces. A trace's names are three to
// ten times their size otherwise, for as long as its process lives. Thread-compatible.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

class PackedText {
 public:
  void Append(std::string_view text);
  size_t size() const { return size_; }  // of the text
  bool empty() const { return size_ == 0; }
  // About what it takes of memory.
  size_t bytes() const;
  std::string Whole() const;

 private:
  struct Piece {
    std::string bytes;  // as long as the text: not compressed
    size_t size;
  };
  void Pack();

  std::vector<Piece> pieces_;
  std::string tail_;  // not compressed yet
  size_t size_ = 0;
};

}  // namespace ranktap::collector
