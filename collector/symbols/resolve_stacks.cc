#include "collector/symbols/resolve_stacks.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "collector/symbols/object_file.h"
#include "collector/trace/work_progress.h"

namespace ranktap::collector {
namespace {

namespace fs = std::filesystem;

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

std::string FileName(const std::string& path) { return fs::path(path).filename().string(); }

// The places of modules' files: by build id, whichever trace asks.
class ModuleFiles {
 public:
  explicit ModuleFiles(const std::vector<std::string>& directories) : directories_(directories) {}

  // nullptr, with `*problem` set, when the module's file is nowhere.
  const ObjectFile* Find(const v1::Module& module, std::string* problem) {
    const auto [at, is_new] = opened_.try_emplace({module.path(), module.build_id()});
    Known& known = at->second;
    if (is_new) known = Open(module);
    *problem = known.problem;
    return known.file.get();
  }

 private:
  struct Known {
    std::unique_ptr<ObjectFile> file;
    std::string problem;
  };

  Known Open(const v1::Module& module) {
    Known known;
    const std::string path = Locate(module, &known.problem);
    if (path.empty()) return known;
    known.file = ObjectFile::Open(path, directories_);
    if (!known.file) known.problem = fmt::format("{}: not readable as an ELF file", path);
    return known;
  }

  std::string Locate(const v1::Module& module, std::string* problem) {
    const std::string id = Hex(module.build_id());
    for (const std::string& directory : directories_) {
      if (id.size() < 4) break;
      const std::string stem = directory + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2);
      for (const std::string& path : {stem, stem + ".debug"}) {
        if (fs::exists(path)) return path;
      }
    }
    if (Matches(module.path(), module)) return module.path();
    for (const std::string& path : NamedInDirectories(FileName(module.path()))) {
      if (Matches(path, module)) return path;
    }
    std::error_code error;
    *problem =
        fmt::format("{}{}{}; name its folder with --symbols", module.path(),
                    fs::exists(module.path(), error) ? ": is another build than the one that ran"
                                                     : ": is not on this machine",
                    id.empty() ? "" : fmt::format(" (build id {})", id));
    return {};
  }

  static bool Matches(const std::string& path, const v1::Module& module) {
    std::error_code error;
    if (path.empty() || !fs::is_regular_file(path, error)) return false;
    // Without a build id the path is all there is.
    return module.build_id().empty() || BuildIdOf(path) == module.build_id();
  }

  const std::vector<std::string>& NamedInDirectories(const std::string& name) {
    if (!listed_) {
      listed_ = true;
      for (const std::string& directory : directories_) List(directory);
    }
    return by_name_[name];
  }

  void List(const std::string& directory) {
    std::error_code error;
    fs::recursive_directory_iterator at(directory, fs::directory_options::skip_permission_denied,
                                        error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      std::error_code ignored;
      if (!at->is_regular_file(ignored)) continue;
      const std::string name = at->path().filename().string();
      by_name_[name].push_back(at->path().string());
      if (name.ends_with(".debug")) {
        by_name_[name.substr(0, name.size() - 6)].push_back(at->path().string());
      }
    }
  }

  const std::vector<std::string>& directories_;
  std::map<std::pair<std::string, std::string>, Known> opened_;
  bool listed_ = false;
  std::map<std::string, std::vector<std::string>> by_name_;
};

ResolvedAddress Resolve(uint64_t address, const Trace& trace, ModuleFiles* files,
                        std::set<std::string>* problems) {
  ResolvedAddress resolved;
  // A return address: the call is the instruction before, maybe the last of its function.
  const v1::Module* const module = trace.dictionary.ModuleAt(address - 1);
  char text[32];
  if (module == nullptr) {
    std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
    resolved.frames.push_back({.function = text});
    return resolved;
  }
  resolved.module = FileName(module->path());
  const uint64_t file_address = address - 1 - module->bias();
  std::string problem;
  if (const ObjectFile* const file = files->Find(*module, &problem)) {
    resolved.frames = file->At(file_address);
  }
  if (!problem.empty()) problems->insert(problem);
  if (resolved.frames.empty()) {
    std::snprintf(text, sizeof(text), "+0x%llx", static_cast<unsigned long long>(file_address) + 1);
    resolved.frames.push_back({.function = text});
  }
  return resolved;
}

}  // namespace

void ResolveStacks(const std::vector<std::string>& directories, Run* run) {
  ModuleFiles files(directories);
  uint64_t stacks = 0;
  for (const Trace& trace : run->traces) stacks += trace.dictionary.stacks();
  Progress().Begin("naming functions", stacks);
  for (Trace& trace : run->traces) {
    std::set<std::string> problems;
    for (uint32_t id = 1; id < trace.dictionary.stacks(); ++id, ++Progress().done) {
      for (const uint64_t address : trace.dictionary.Stack(id).frames) {
        if (trace.symbols.Find(address) != nullptr) continue;
        trace.symbols.Add(address, Resolve(address, trace, &files, &problems));
      }
    }
    trace.symbols.problems().assign(problems.begin(), problems.end());
  }
}

}  // namespace ranktap::collector
