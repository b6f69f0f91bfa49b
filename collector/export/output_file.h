// The file an exporter writes: buffered, its first error remembered until Close.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/trace/file_descriptor.h"
#include "collector/trace/result.h"

namespace ranktap::collector {

class OutputFile {
 public:
  // Replaces what is there.
  static Result<OutputFile> Create(const std::string& path);

  void Write(std::string_view text);
  // Writes what is buffered; nothing when all went well.
  std::optional<Failure> Close();

 private:
  void Flush();

  std::string path_;
  FileDescriptor file_;
  std::string buffer_;
  int error_ = 0;
};

}  // namespace ranktap::collector
