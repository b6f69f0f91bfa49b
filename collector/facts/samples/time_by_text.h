// Time by a text, to name the one that has more than half of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace ranktap::collector {

class TimeByText {
 public:
  void Add(const std::string& text, int64_t ns) {
    total_ns_ += ns;
    if (!text.empty()) by_text_[text] += ns;
  }
  int64_t total_ns() const { return total_ns_; }
  // With its time; empty: none has more than half.
  std::pair<std::string, int64_t> MostWithTime() const {
    for (const auto& [text, ns] : by_text_) {
      if (2 * ns > total_ns_) return {text, ns};
    }
    return {};
  }
  std::string Most() const { return MostWithTime().first; }

 private:
  std::map<std::string, int64_t> by_text_;
  int64_t total_ns_ = 0;
};

// The same of files: where none has more than half, the folder that does.
class TimeByFile {
 public:
  void Add(const std::string& path, int64_t ns) {
    files_.Add(path, ns);
    folders_.Add(path.substr(0, std::max<size_t>(path.rfind('/'), 1)), ns);
  }
  // "/data/part-3.tar", "files in /data"
  std::pair<std::string, int64_t> MostWithTime() const {
    if (auto file = files_.MostWithTime(); !file.first.empty()) return file;
    auto folder = folders_.MostWithTime();
    if (!folder.first.empty()) folder.first.insert(0, "files in ");
    return folder;
  }

 private:
  TimeByText files_, folders_;
};

}  // namespace ranktap::collector
