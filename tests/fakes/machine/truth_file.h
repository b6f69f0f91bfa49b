// An append-only text file that keeps every finished line whatever ends the process, SIGKILL
// included: lines are written into a shared mapping, so they are the kernel's as soon as they are
// stored. No descriptor stays open (hosts close them all). A reader ignores trailing zero bytes.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace ranktap::standin {

class TruthFile {
 public:
  // Creates `directory`/truth.<pid>[.<n>].jsonl. Not usable when that fails; says so on stderr.
  explicit TruthFile(const std::string& directory);
  TruthFile(const TruthFile&) = delete;
  TruthFile& operator=(const TruthFile&) = delete;

  bool usable() const { return !path_.empty(); }
  // `line` has no newline; one is added. Safe from every thread of the process that created it.
  void Append(std::string_view line);
  // Cuts the file to what was written. The file can go on afterwards.
  void Trim();

 private:
  bool MapChunkAt(size_t offset);
  bool MakeRoom();

  std::mutex mutex_;
  std::string path_;
  char* chunk_ = nullptr;
  size_t chunk_offset_ = 0;  // in the file
  size_t used_ = 0;          // in the chunk
  size_t end_ = 0;           // of the file's text, while no chunk is mapped
};

}  // namespace ranktap::standin
