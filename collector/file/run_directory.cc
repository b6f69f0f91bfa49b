#include "collector/file/run_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "collector/file/owned_file.h"

namespace ranktap::collector {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
// Far beyond any restart count; ends a search in a directory that refuses for another reason.
constexpr uint32_t kMaxIncarnations = 100'000;

constexpr int kAttempts = 1000;  // for a free name

FileDescriptor OpenDirectory(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool IsEmpty(const std::string& path) {
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) return false;
  int entries = 0;
  while (::readdir(directory) != nullptr) ++entries;
  ::closedir(directory);
  return entries <= 2;  // . and ..
}

// Creates the last component 0700 (its parents as mkdir -p would) and opens it. `created` tells
// whether it was there before.
Result<FileDescriptor> MakeDirectory(const std::string& path, bool* created) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // mkdir below says what is wrong
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
  *created = ::mkdir(path.c_str(), kDirectoryMode) == 0;
  if (!*created && errno != EEXIST) {
    return SystemFailure(fmt::format("{}: could not create", path), errno);
  }
  FileDescriptor directory = OpenDirectory(path);
  if (!directory.valid()) {
    return SystemFailure(fmt::format("{}: could not open as a directory", path), errno);
  }
  if (*created && ::fchmod(directory.get(), kDirectoryMode) != 0) {
    return SystemFailure(fmt::format("{}: could not set its mode", path), errno);
  }
  return directory;
}

// Renames within `directory` unless `to` is there: 0 or errno.
int RenameNew(int directory, const std::string& from, const std::string& to) {
  if (::syscall(SYS_renameat2, directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE) ==
      0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Some network file systems know no flags.
  if (::linkat(directory, from.c_str(), directory, to.c_str(), 0) != 0) return errno;
  (void)::unlinkat(directory, from.c_str(), 0);
  return 0;
}

}  // namespace

std::string TraceName::FileName(uint32_t incarnation) const {
  char text[64];
  if (rank) {
    std::snprintf(text, sizeof(text), "rank-%05u", *rank);
  } else {
    std::snprintf(text, sizeof(text), "process-%u", pid);
  }
  std::string name = text;
  if (incarnation > 0) name += fmt::format(".{}", incarnation);
  return name + ".trace";
}

Result<RunDirectory> RunDirectory::Create(const std::string& path, const std::string& fallback) {
  bool created = false;
  Result<FileDescriptor> directory = MakeDirectory(path, &created);
  if (!directory) return Failure{directory.message()};
  if (!created && !IsEmpty(path)) return CreateNew(path + "/", fallback);
  return Checked(path, std::move(*directory));
}

Result<RunDirectory> RunDirectory::CreateNew(const std::string& parent, const std::string& name) {
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    const std::string path = parent + name + (attempt == 1 ? "" : fmt::format("-{}", attempt));
    bool created = false;
    Result<FileDescriptor> directory = MakeDirectory(path, &created);
    if (!directory) return Failure{directory.message()};
    if (created) return Checked(path, std::move(*directory));
  }
  return Failure{fmt::format("{}{}: no free name; name another directory with -o", parent, name)};
}

Result<RunDirectory> RunDirectory::Checked(std::string path, FileDescriptor directory) {
  if (::faccessat(directory.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return SystemFailure(fmt::format("{}: could not write there", path), errno);
  }
  return RunDirectory(std::move(path), std::move(directory));
}

Result<RunDirectory> RunDirectory::CreateIn(int parent, const std::string& path,
                                            const std::string& name) {
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    const std::string tried = name + (attempt == 1 ? "" : fmt::format("-{}", attempt));
    const std::string full = path + "/" + tried;
    if (::mkdirat(parent, tried.c_str(), kDirectoryMode) != 0) {
      if (errno == EEXIST) continue;
      return SystemFailure(fmt::format("{}: could not create", full), errno);
    }
    Result<FileDescriptor> directory = OpenOwnedDirectory(parent, tried, ::geteuid(), full);
    if (!directory) return Failure{directory.message()};
    if (::fchmod(directory->get(), kDirectoryMode) != 0) {
      return SystemFailure(fmt::format("{}: could not set its mode", full), errno);
    }
    return Checked(full, std::move(*directory));
  }
  return Failure{fmt::format("{}/{}: no free name; name another directory with -o", path, name)};
}

std::optional<Failure> RunDirectory::GiveTo(uid_t owner) {
  owner_ = owner;
  if (::fchown(directory_.get(), owner, static_cast<gid_t>(-1)) == 0) return std::nullopt;
  return SystemFailure(fmt::format("{}: could not give it to user {}", path_, owner), errno);
}

// The umask may have taken bits away.
bool RunDirectory::SetAttributes(int file) const {
  return ::fchmod(file, kFileMode) == 0 &&
         (!owner_ || ::fchown(file, *owner_, static_cast<gid_t>(-1)) == 0);
}

bool RunDirectory::Exists(const std::string& name) const {
  return ::faccessat(directory_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<RunDirectory::Part> RunDirectory::CreatePart(const TraceName& name) {
  Part part;
  part.name = name;
  for (; part.incarnation < kMaxIncarnations; ++part.incarnation) {
    if (Exists(name.FileName(part.incarnation))) continue;
    const std::string file_name = part.file_name();
    part.file.Reset(::openat(directory_.get(), file_name.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (part.file.valid()) {
      if (SetAttributes(part.file.get())) return part;
      return SystemFailure(fmt::format("{}/{}: could not set its mode", path_, file_name), errno);
    }
    if (errno != EEXIST)
      return SystemFailure(fmt::format("{}/{}: could not create", path_, file_name), errno);
  }
  return Failure{fmt::format("{}: too many traces of {}", path_, name.FileName(0))};
}

Result<std::string> RunDirectory::Publish(const Part& part, const TraceName& name, bool as_first) {
  const std::string from = part.file_name();
  uint32_t incarnation = name == part.name && !as_first ? part.incarnation : 0;
  for (; incarnation < kMaxIncarnations; ++incarnation) {
    const std::string to = name.FileName(incarnation);
    const bool reserved_by_other = to + ".part" != from && Exists(to + ".part");
    if (reserved_by_other) continue;
    const int error = RenameNew(directory_.get(), from, to);
    if (error == 0) return to;
    if (error != EEXIST) {
      return SystemFailure(fmt::format("{}/{}: could not rename", path_, from), error);
    }
  }
  return Failure{fmt::format("{}: too many traces of {}", path_, name.FileName(0))};
}

void RunDirectory::Remove(const std::string& file) const {
  (void)::unlinkat(directory_.get(), file.c_str(), 0);
}

std::vector<std::string> RunDirectory::Names() const {
  constexpr size_t kMost = 1u << 16;
  return NamesIn(directory_.get(), kMost);
}

std::optional<Failure> RunDirectory::Rename(int parent, const std::string& name) {
  const std::filesystem::path from(path_);
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    const std::string to = name + (attempt == 1 ? "" : fmt::format("-{}", attempt));
    if (::renameat(parent, from.filename().c_str(), parent, to.c_str()) == 0) {
      path_ = from.parent_path() / to;
      return std::nullopt;
    }
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) break;
  }
  return SystemFailure(fmt::format("{}: could not rename", path_), errno);
}

std::optional<Failure> RunDirectory::WriteInfo(const RunInfo& info) {
  constexpr const char* kName = "run.json";
  constexpr const char* kTemporary = "run.json.new";
  const std::string text = ToJson(info);
  (void)::unlinkat(directory_.get(), kTemporary, 0);
  FileDescriptor file(::openat(directory_.get(), kTemporary,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.valid()) {
    return SystemFailure(fmt::format("{}/run.json: could not create", path_), errno);
  }
  (void)SetAttributes(file.get());
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      (void)::unlinkat(directory_.get(), kTemporary, 0);
      return SystemFailure(fmt::format("{}/run.json: could not write", path_), error);
    }
    done += static_cast<size_t>(written);
  }
  if (::renameat(directory_.get(), kTemporary, directory_.get(), kName) != 0) {
    return SystemFailure(fmt::format("{}/run.json: could not rename", path_), errno);
  }
  return std::nullopt;
}

}  // namespace ranktap::collector
