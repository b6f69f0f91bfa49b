// The directory of a run, seen from the side that writes it. The only place that creates files:
// their names come from numbers we checked, never from text a client sent. Everything is 0600 in a
// 0700 directory whatever the umask. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"
#include "collector/file/run_info.h"

namespace ranktap::collector {

// The name of a trace file: "rank-00003", or "process-4711" while no rank is known.
struct TraceName {
  std::optional<uint32_t> rank;
  uint32_t pid = 0;

  bool operator==(const TraceName&) const = default;
  // "rank-00003.trace", for a later incarnation of the same rank "rank-00003.1.trace".
  std::string FileName(uint32_t incarnation) const;
};

// A dump has this in its name until all of it is there.
inline constexpr std::string_view kHalfDump = ".part";
inline bool IsHalfDump(std::string_view name) {
  return name.starts_with("dump-") && name.find(kHalfDump) != name.npos;
}

class RunDirectory {
 public:
  // Creates `path` (and its parents). A directory that already holds something is left alone: the
  // run gets a new directory within it, named `fallback`.
  static Result<RunDirectory> Create(const std::string& path, const std::string& fallback);
  // Creates parent + name, with a number behind it where that is taken: two runs that start at once
  // never share a directory.
  static Result<RunDirectory> CreateNew(const std::string& parent, const std::string& name);

  // The same below an open directory, which only we can write; `path` is its path.
  static Result<RunDirectory> CreateIn(int parent, const std::string& path,
                                       const std::string& name);
  // A run that is there already, to go on with it: opened by the caller, who knows whose it is.
  RunDirectory(std::string path, FileDescriptor directory, uid_t owner)
      : path_(std::move(path)), directory_(std::move(directory)), owner_(owner) {}

  // Gives the directory and every file made from now on to this user. For a collector that serves
  // others; nothing when it worked.
  std::optional<Failure> GiveTo(uid_t owner);

  const std::string& path() const { return path_; }
  int descriptor() const { return directory_.get(); }

  // A new file, named "….trace.part" until Publish. Its final name is reserved.
  struct Part {
    FileDescriptor file;
    TraceName name;
    uint32_t incarnation = 0;
    std::string file_name() const { return name.FileName(incarnation) + ".part"; }
  };
  Result<Part> CreatePart(const TraceName& name);
  // Gives a closed file its final name, which is `name`'s where that has changed since. Returns it.
  // `as_first`: the first of the names that is free, also where the part's own is another.
  Result<std::string> Publish(const Part& part, const TraceName& name, bool as_first = false);

  // A file that we made; it may be gone already.
  void Remove(const std::string& file) const;
  std::vector<std::string> Names() const;

  // Gives the directory this name in its parent, with a number behind it where that is taken.
  std::optional<Failure> Rename(int parent, const std::string& name);

  // Replaces run.json in one step. Nothing when it could be written.
  std::optional<Failure> WriteInfo(const RunInfo& info);

 private:
  RunDirectory(std::string path, FileDescriptor directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  static Result<RunDirectory> Checked(std::string path, FileDescriptor directory);
  bool Exists(const std::string& name) const;

  [[nodiscard]] bool SetAttributes(int file) const;

  std::string path_;
  FileDescriptor directory_;
  std::optional<uid_t> owner_;
};

}  // namespace ranktap::collector
