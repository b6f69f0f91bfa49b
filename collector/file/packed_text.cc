#include "collector/file/packed_text.h"

#include <zstd.h>

#include <new>

namespace ranktap::collector {
namespace {

constexpr size_t kPieceBytes = 64u << 10;
constexpr int kTextLevel = 1;

}  // namespace

void PackedText::Append(std::string_view text) {
  tail_.append(text);
  size_ += text.size();
  if (tail_.size() >= kPieceBytes) Pack();
}

void PackedText::Pack() {
  std::string packed(ZSTD_compressBound(tail_.size()), '\0');
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), tail_.data(), tail_.size(), kTextLevel);
  const bool shorter = ZSTD_isError(size) == 0 && size < tail_.size();
  // Copied, so that it takes no more than it needs.
  const std::string_view kept = shorter ? std::string_view(packed.data(), size) : tail_;
  pieces_.push_back({std::string(kept), tail_.size()});
  std::string().swap(tail_);
}

size_t PackedText::bytes() const {
  size_t bytes = tail_.capacity() + pieces_.capacity() * sizeof(Piece);
  for (const Piece& piece : pieces_) bytes += piece.bytes.capacity();
  return bytes;
}

std::string PackedText::Whole() const {
  std::string text;
  text.reserve(size_);
  for (const Piece& piece : pieces_) {
    if (piece.bytes.size() == piece.size) {
      text += piece.bytes;
      continue;
    }
    const size_t at = text.size();
    text.resize(at + piece.size);
    const size_t size =
        ZSTD_decompress(text.data() + at, piece.size, piece.bytes.data(), piece.bytes.size());
    if (size != piece.size) throw std::bad_alloc();  // of our own making, so nothing else is wrong
  }
  return text + tail_;
}

}  // namespace ranktap::collector
