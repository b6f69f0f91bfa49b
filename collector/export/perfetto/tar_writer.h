// A tar archive (POSIX ustar) whose members' sizes are known only when they are written: their
// headers are filled in at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/export/output_file.h"
#include "collector/file/result.h"

namespace ranktap::collector {

class TarWriter {
 public:
  // Members go through `file`, uncompressed; nothing else is written to it.
  explicit TarWriter(OutputFile* file) : file_(file) {}

  // The caller writes the member's bytes to the file between the two. Names have 99 bytes at most.
  void Begin(const std::string& name);
  void End();
  bool has(const std::string& name) const;
  void Finish();
  // After the file was closed. Fails where a member is larger than a tar's 8 GiB.
  std::optional<Failure> WriteHeaders(const std::string& path) const;

 private:
  struct Member {
    std::string name;
    uint64_t header = 0, bytes = 0;  // the header's place in the file
  };
  void Pad(uint64_t bytes);

  OutputFile* file_;
  std::vector<Member> members_;
};

}  // namespace ranktap::collector
