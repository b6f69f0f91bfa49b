#include "collector/file/block_codec.h"

#include <zstd.h>

#include <cstring>
#include <new>

namespace ranktap::collector {
namespace {

// Columns are small already; a higher level would cost the node's CPU more than it saves in disk.
constexpr int kBlockLevel = 1;

}  // namespace

BlockCompressor::BlockCompressor() : context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

BlockCompressor::~BlockCompressor() { ZSTD_freeCCtx(context_); }

BlockCompressor::Stored BlockCompressor::Compress(std::span<const std::byte> raw) {
  buffer_.resize(ZSTD_compressBound(raw.size()));
  const size_t size = ZSTD_compressCCtx(context_, buffer_.data(), buffer_.size(), raw.data(),
                                        raw.size(), kBlockLevel);
  if (ZSTD_isError(size) != 0 || size >= raw.size()) return {Codec::kNone, raw};
  return {Codec::kZstd, std::span(buffer_).first(size)};
}

BlockDecompressor::BlockDecompressor() : context_(ZSTD_createDCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

BlockDecompressor::~BlockDecompressor() { ZSTD_freeDCtx(context_); }

bool BlockDecompressor::Decompress(Codec codec, std::span<const std::byte> stored,
                                   std::span<std::byte> raw) {
  switch (codec) {
    case Codec::kNone:
      if (stored.size() != raw.size()) return false;
      if (!raw.empty()) std::memcpy(raw.data(), stored.data(), raw.size());
      return true;
    case Codec::kZstd:
      return ZSTD_decompressDCtx(context_, raw.data(), raw.size(), stored.data(), stored.size()) ==
             raw.size();
  }
  return false;
}

}  // namespace ranktap::collector
