// The bytes of a file, uncompressed on the way when it is gzip (whatever its name says).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"

namespace ranktap::collector {

// One thread.
class ByteSource {
 public:
  static Result<ByteSource> Open(const std::string& path);
  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Reads up to `size` bytes; 0: the end, or the place where the file could not be read on.
  size_t Read(char* into, size_t size);
  // The reason why reading stopped; empty: it did not.
  const std::string& damage() const { return damage_; }
  uint64_t file_bytes() const { return file_bytes_; }  // read so far, as they lie on the disk

 private:
  struct Inflater;
  ByteSource(FileDescriptor file, bool compressed);
  size_t ReadFile(char* into, size_t size);
  size_t Inflate(char* into, size_t size);

  FileDescriptor file_;
  std::unique_ptr<Inflater> inflater_;  // nullptr: not compressed
  std::string damage_;
  uint64_t file_bytes_ = 0;
};

}  // namespace ranktap::collector
