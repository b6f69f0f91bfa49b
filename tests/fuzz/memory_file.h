// A file that an importer opens by its path, made anew for each input.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "tests/fuzz/edits.h"

namespace ranktap::fuzz {

class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("input", MFD_CLOEXEC)) { Require(file_ >= 0); }
  const std::string& Write(std::string_view bytes) {
    (void)!::ftruncate(file_, 0);
    Require(::pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return path_;
  }

  const std::string& path() const { return path_; }

 private:
  int file_;
  std::string path_ = "/proc/self/fd/" + std::to_string(file_);
};

}  // namespace ranktap::fuzz
