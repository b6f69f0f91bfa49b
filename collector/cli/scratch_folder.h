// A fresh folder below TMPDIR that a verb works in; it and all in it go with the object.
#pragma once

#include <fmt/core.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "collector/file/result.h"

namespace ranktap::collector {

class ScratchFolder {
 public:
  // `verb` is a part of its name.
  explicit ScratchFolder(std::string_view verb) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    path_ = fmt::format("{}/ranktap-{}-XXXXXX",
                        (error ? fs::path("/tmp") : fs::canonical(parent)).string(), verb);
    if (::mkdtemp(path_.data()) == nullptr) {
      failure_ = SystemFailure(
          fmt::format("{}: could not create; TMPDIR names another place", path_), errno);
      path_.clear();
    }
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  std::string path_;
  std::optional<Failure> failure_;
};

}  // namespace ranktap::collector
