#include "collector/file/owned_file.h"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace ranktap::collector {
namespace {

Result<FileDescriptor> Open(int directory, const std::string& name, int flags, mode_t kind,
                            uid_t owner, const std::string& path) {
  constexpr int kAlways = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  if (name.empty() || name.find('/') != std::string::npos || name == "..") {
    return Failure{fmt::format("{}: no name of a file in a directory", path)};
  }
  FileDescriptor file(::openat(directory, name.c_str(), flags | kAlways));
  if (!file.valid() && errno == ELOOP)
    return Failure{fmt::format("{}: a symbolic link; left alone", path)};
  if (!file.valid()) return SystemFailure(fmt::format("{}: could not open", path), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return SystemFailure(fmt::format("{}: could not stat", path), errno);
  if ((status.st_mode & S_IFMT) != kind) {
    return Failure{path + (kind == S_IFDIR ? ": not a directory" : ": not a file")};
  }
  if (status.st_uid != owner) {
    return Failure{fmt::format("{}: belongs to user {}, not to user {}; left alone", path,
                               status.st_uid, owner)};
  }
  return file;
}

Result<std::string> ReadAll(const FileDescriptor& file, const std::string& path,
                            size_t most_bytes) {
  std::string text;
  for (;;) {
    constexpr size_t kStep = 64u << 10;
    const size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t size = ::read(file.get(), text.data() + before, kStep);
    const int error = errno;
    text.resize(before + static_cast<size_t>(size > 0 ? size : 0));
    if (size < 0 && error == EINTR) continue;
    if (size < 0) return SystemFailure(fmt::format("{}: could not read", path), error);
    if (size == 0) return text;
    if (text.size() > most_bytes) {
      return Failure{fmt::format("{}: longer than {} bytes", path, most_bytes)};
    }
  }
}

}  // namespace

Result<FileDescriptor> OpenOwnedDirectory(int parent, const std::string& name, uid_t owner,
                                          const std::string& path) {
  return Open(parent, name, O_RDONLY | O_DIRECTORY, S_IFDIR, owner, path);
}

Result<FileDescriptor> OpenOwnedFile(int directory, const std::string& name, uid_t owner,
                                     const std::string& path, int access) {
  return Open(directory, name, access, S_IFREG, owner, path);
}

Result<std::string> ReadOwnedFile(int directory, const std::string& name, uid_t owner,
                                  const std::string& path, size_t most_bytes) {
  const Result<FileDescriptor> file = OpenOwnedFile(directory, name, owner, path);
  return file ? ReadAll(*file, path, most_bytes) : Result<std::string>(Failure{file.message()});
}

Result<FileDescriptor> OpenRegularFile(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) return SystemFailure(fmt::format("{}: could not open", path), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return SystemFailure(fmt::format("{}: could not stat", path), errno);
  if (!S_ISREG(status.st_mode)) return Failure{fmt::format("{}: not a file", path)};
  return file;
}

Result<std::string> ReadRegularFile(const std::string& path, size_t most_bytes) {
  const Result<FileDescriptor> file = OpenRegularFile(path);
  return file ? ReadAll(*file, path, most_bytes) : Result<std::string>(Failure{file.message()});
}

std::vector<std::string> NamesIn(int directory, size_t most) {
  std::vector<std::string> names;
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(copy < 0 ? nullptr : ::fdopendir(copy),
                                                 &::closedir);
  if (open == nullptr) {
    if (copy >= 0) ::close(copy);
    return names;
  }
  while (const dirent* const entry = ::readdir(open.get())) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    if (names.size() >= most) break;
    names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace ranktap::collector
