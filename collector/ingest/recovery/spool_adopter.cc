#include "collector/ingest/recovery/spool_adopter.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "collector/file/owned_file.h"
#include "proto/spool.h"
#include "ranktap/v1/control.pb.h"

namespace ranktap::collector {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(5);
constexpr size_t kMostSpools = 1u << 16;  // of one user, that one look takes
constexpr uint64_t kMostComplaints = 20;  // of one user's spools, a line each
constexpr size_t kReadBytes = 2 * (sizeof(proto::FrameHeader) + proto::kMaxPayloadBytes);

// The directory, opened, if it is its owner's alone. A stranger may have made the path first.
FileDescriptor OpenOwned(const SpoolDirectory& directory) {
  FileDescriptor fd(
      ::open(directory.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return {};
  if (status.st_uid != directory.owner || (status.st_mode & 077) != 0) return {};
  return fd;
}

std::vector<std::string> SpoolsIn(int directory) {
  std::vector<std::string> names = NamesIn(directory, kMostSpools);
  std::erase_if(names, [](const std::string& name) {
    return !std::string_view(name).ends_with(proto::kSpoolSuffix);
  });
  // A process's spools in their order: session, then number.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), std::string_view(a)) < std::pair(b.size(), std::string_view(b));
  });
  return names;
}

// The file, locked, if its process has ended.
FileDescriptor OpenOrphan(int directory, const std::string& name, uid_t owner) {
  Result<FileDescriptor> file = OpenOwnedFile(directory, name, owner, name);
  if (!file || ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) return {};
  return std::move(*file);
}

}  // namespace

SpoolAdopter::SpoolAdopter(FindDirectories find, Connect connect, Complain complain)
    : find_(std::move(find)),
      connect_(std::move(connect)),
      complain_(std::move(complain)),
      thread_([this] { Run(); }) {
  (void)::pthread_setname_np(thread_.native_handle(), "ranktap-spools");
}

SpoolAdopter::~SpoolAdopter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (socket_ >= 0) (void)::shutdown(socket_, SHUT_RDWR);
  }
  wake_.notify_all();
  thread_.join();
}

std::vector<SpoolDirectory> SpoolAdopter::DirectoriesOf(uid_t user) {
  return {{proto::SpoolDirectoryOf(user), user}};
}

std::vector<SpoolDirectory> SpoolAdopter::DirectoriesOfAll() {
  std::vector<SpoolDirectory> found;
  std::error_code error;
  const std::filesystem::path pattern = proto::SpoolDirectoryOf(0);
  for (const auto& entry : std::filesystem::directory_iterator(pattern.parent_path(), error)) {
    struct stat status;
    if (::lstat(entry.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (entry.path() == proto::SpoolDirectoryOf(status.st_uid)) {
      found.push_back({entry.path(), status.st_uid});
    }
  }
  return found;
}

bool SpoolAdopter::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void SpoolAdopter::Run() {
  while (!stopping()) {
    for (const SpoolDirectory& directory : find_()) Look(directory);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kLookEvery, [this] { return stopping_; });
  }
}

void SpoolAdopter::Look(const SpoolDirectory& directory) {
  const FileDescriptor folder = OpenOwned(directory);
  if (!folder.valid()) return;
  const std::vector<std::string> names = SpoolsIn(folder.get());
  std::set<std::string>& refused = refused_[directory.path];
  // Those that are gone are forgotten: a user can make and remove any number.
  std::erase_if(refused, [present = std::set(names.begin(), names.end())](const std::string& name) {
    return !present.contains(name);
  });
  for (const std::string& name : names) {
    const std::string path = directory.path + "/" + name;
    if (stopping()) return;
    if (refused.contains(name)) continue;
    const FileDescriptor file = OpenOrphan(folder.get(), name, directory.owner);
    if (!file.valid()) continue;
    if (Take(file.get(), path, directory.owner)) {
      (void)::unlinkat(folder.get(), name.c_str(), 0);
    } else if (!stopping()) {
      refused.insert(name);
    }
  }
}

void SpoolAdopter::ComplainOf(uid_t owner, const std::string& what) {
  const uint64_t count = ++complaints_[owner];
  if (count <= kMostComplaints) return complain_(what);
  for (uint64_t said = kMostComplaints; said < count; said *= 10) {
    if (count == said + 1) {
      complain_(fmt::format(
          "more than {} spools of user {} could not be taken whole, and are not named any more",
          said, owner));
    }
  }
}

bool SpoolAdopter::Take(int file, const std::string& path, uid_t owner) {
  const FileDescriptor socket = connect_(owner);
  if (!socket.valid()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    socket_ = socket.get();
  }
  heard_.clear();
  refusal_.clear();
  welcomed_ = false;
  acked_ = 0;
  std::vector<std::byte> buffer(kReadBytes);
  uint64_t offset = 0, frames = 0;
  size_t left = 0;  // bytes there that are not a whole frame
  bool open = true;
  while (open) {
    const ssize_t more = ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (more < 0 && errno == EINTR) continue;
    const auto read = std::span(buffer).first(more < 0 ? 0 : static_cast<size_t>(more));
    size_t whole = 0;
    for (;;) {
      const proto::FrameView frame = proto::DecodeFrame(read.subspan(whole));
      if (frame.status != proto::FrameStatus::kComplete) break;
      whole += frame.consumed;
      // After the hello the server looks up what is stored; only then can it tell what comes twice.
      if (++frames == 1) break;
    }
    left = read.size() - whole;
    if (whole == 0) break;
    open = Send(read.first(whole)) && Hear([&] { return welcomed_; });
    offset += whole;
  }
  const bool stored = open && frames > 0 && Hear([&] { return acked_ >= frames; });
  {
    const std::lock_guard lock(mutex_);
    socket_ = -1;
    if (stopping_) return stored;
  }
  if (!stored) {
    const std::string turned_down =
        fmt::format("the collector turned down a frame before offset {}", offset);
    ComplainOf(owner, fmt::format("{}: not taken, and left there: {}", path,
                                  frames == 0        ? "no frame at offset 0"
                                  : refusal_.empty() ? turned_down
                                                     : refusal_));
  } else if (left > 0) {
    ComplainOf(
        owner,
        fmt::format(
            "{}: cut off at offset {}, as by a kill; {} bytes after it are not a whole frame", path,
            offset, left));
  }
  return stored;
}

bool SpoolAdopter::Send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return Hear([] { return true; });
}

bool SpoolAdopter::Hear(const std::function<bool()>& enough) {
  for (;;) {
    std::array<std::byte, 4096> buffer;
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), enough() ? MSG_DONTWAIT : 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (size <= 0) return false;
    heard_.insert(heard_.end(), buffer.begin(), buffer.begin() + size);
    size_t used = 0;
    for (;;) {
      const proto::FrameView frame = proto::DecodeFrame(std::span(heard_).subspan(used));
      if (frame.status != proto::FrameStatus::kComplete) break;
      used += frame.consumed;
      if (!HearFrame(frame)) return false;
    }
    heard_.erase(heard_.begin(), heard_.begin() + static_cast<ptrdiff_t>(used));
  }
}

bool SpoolAdopter::HearFrame(const proto::FrameView& frame) {
  const auto size = static_cast<int>(frame.payload.size());
  if (frame.header.type == proto::FrameType::kAck) {
    v1::Ack ack;
    if (ack.ParseFromArray(frame.payload.data(), size)) acked_ = ack.frames();
  } else if (frame.header.type == proto::FrameType::kWelcome) {
    v1::Welcome welcome;
    if (!welcome.ParseFromArray(frame.payload.data(), size)) return false;
    refusal_ = welcome.refused();
    welcomed_ = true;
  }
  return refusal_.empty();
}

}  // namespace ranktap::collector
