// One ELF file's names and lines, by elfutils. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/trace/symbol_table.h"

namespace ranktap::collector {

class ObjectFile {
 public:
  // nullptr: not there, or no ELF file. Debug information in a file of its own is found by the
  // usual ways (.gnu_debuglink, /usr/lib/debug/.build-id) and in `debug_directories`.
  static std::unique_ptr<ObjectFile> Open(const std::string& path,
                                          const std::vector<std::string>& debug_directories);
  ~ObjectFile();
  ObjectFile(const ObjectFile&) = delete;
  ObjectFile& operator=(const ObjectFile&) = delete;

  // The functions at this address of the file; empty: no symbol covers it.
  std::vector<SourceFrame> At(uint64_t file_address) const;

 private:
  struct Session;  // libdwfl's
  explicit ObjectFile(std::unique_ptr<Session> session);

  std::unique_ptr<Session> session_;
};

// Bytes of NT_GNU_BUILD_ID; empty: no such file, or it has none.
std::string BuildIdOf(const std::string& path);

}  // namespace ranktap::collector
