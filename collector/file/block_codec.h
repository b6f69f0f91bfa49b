// Compression of blocks. One object per thread: it owns contexts that are reused, about 1.3 MiB for
// compressing at level 1 and 0.2 MiB for decompressing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collector/file/trace_format.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace ranktap::collector {

class BlockCompressor {
 public:
  BlockCompressor();
  ~BlockCompressor();
  // The bytes to store for `raw`: zstd level 1, or themselves where that is not shorter. Points
  // into this object, or to `raw`; valid until the next call.
  struct Stored {
    Codec codec;
    std::span<const std::byte> bytes;
  };
  Stored Compress(std::span<const std::byte> raw);
  // Room for the caller to lay a block's frames side by side before it compresses them.
  std::vector<std::byte>& frames() { return frames_; }

 private:
  ZSTD_CCtx_s* context_;
  std::vector<std::byte> buffer_, frames_;
};

class BlockDecompressor {
 public:
  BlockDecompressor();
  ~BlockDecompressor();
  // Fills `raw` exactly. False for an unknown codec or bytes that are not what they claim.
  [[nodiscard]] bool Decompress(Codec codec, std::span<const std::byte> stored,
                                std::span<std::byte> raw);

 private:
  ZSTD_DCtx_s* context_;
};

}  // namespace ranktap::collector
