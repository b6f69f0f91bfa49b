// The importers: another tool's file -> the model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

struct Importer {
  std::string_view name;     // "torch.profiler"
  std::string_view endings;  // of file names, for searching directories: ".json .json.gz"
  // By the first bytes of the file (kHeadBytes of them at most, uncompressed), never by its name.
  bool (*recognises)(std::string_view head);
  // The traces in the file: one, but for files of several processes.
  Result<std::vector<Trace>> (*load)(const std::string& path);
  TraceOrigin origin;
};

inline constexpr size_t kHeadBytes = 64;

// The first that recognises the file; nullptr: none does, or the file cannot be opened.
const Importer* ImporterOf(const std::string& path);
// What the file is, by its first bytes, and what to do with it, where it is of a kind that people
// mistake for a trace: an archive, UTF-16, a pointer of git LFS, another profiler's. Empty: of no
// such kind.
std::string WhyNoImporterReads(const std::string& path);
// True where a file of this name may be one that an importer reads.
bool HasImportedEnding(std::string_view name);

}  // namespace ranktap::collector
