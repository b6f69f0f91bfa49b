// The file an exporter writes: buffered, its first error remembered until Close.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"

namespace ranktap::collector {

class OutputFile {
 public:
  // Replaces what is there. A path that ends with ".gz" is compressed.
  static Result<OutputFile> Create(const std::string& path);

  void Write(std::string_view text);
  uint64_t written() const { return written_; }  // bytes, before they were compressed
  // Writes what is buffered; nothing when all went well.
  std::optional<Failure> Close();

 private:
  struct Deflater;
  struct DeleteDeflater {
    void operator()(Deflater* deflater) const;
  };

  void Flush();
  void WriteOut(std::string_view bytes);
  void Compress(std::string_view bytes, bool last);

  std::string path_;
  FileDescriptor file_;
  std::string buffer_;
  uint64_t written_ = 0;
  int error_ = 0;
  std::unique_ptr<Deflater, DeleteDeflater> deflater_;  // nullptr: not compressed
};

}  // namespace ranktap::collector
