// A text as gzip.
#pragma once

#include <zlib.h>

#include <string>

#include "tests/fuzz/edits.h"

namespace ranktap::fuzz {

inline std::string Compressed(const std::string& text) {
  std::string packed(compressBound(text.size()) + 32, '\0');
  z_stream stream{};
  Require(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  Require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace ranktap::fuzz
