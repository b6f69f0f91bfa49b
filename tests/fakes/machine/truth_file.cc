#include "tests/fakes/machine/truth_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ranktap::standin {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

}  // namespace

TruthFile::TruthFile(const std::string& directory) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string path = directory + "/truth." + std::to_string(getpid()) +
                       (attempt == 0 ? "" : "." + std::to_string(attempt)) + ".jsonl";
    int file = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) {
      close(file);
      path_ = path;
      return;
    }
    if (errno != EEXIST) break;
  }
  fprintf(stderr, "stand-in GPU: %s: no truth log: %s\n", directory.c_str(), strerror(errno));
}

bool TruthFile::MapChunkAt(size_t offset) {
  int file = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  // Reserved on disk first: a full disk must not become a SIGBUS in the program.
  bool reserved = posix_fallocate(file, static_cast<off_t>(offset), kChunkBytes) == 0;
  void* mapped = reserved ? mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                                 static_cast<off_t>(offset))
                          : MAP_FAILED;
  close(file);
  if (mapped == MAP_FAILED) return false;
  chunk_ = static_cast<char*>(mapped);
  chunk_offset_ = offset;
  return true;
}

bool TruthFile::MakeRoom() {
  if (chunk_ != nullptr && used_ < kChunkBytes) return true;
  if (chunk_ != nullptr) {
    munmap(chunk_, kChunkBytes);
    chunk_ = nullptr;
    end_ = chunk_offset_ + kChunkBytes;
  }
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  used_ = end_ % page;
  return MapChunkAt(end_ - used_);
}

void TruthFile::Append(std::string_view line) {
  // open() is a cancellation point: a thread cancelled here would lose its line.
  struct Uncancelled {
    int before;
    Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); }
    ~Uncancelled() { pthread_setcancelstate(before, nullptr); }
  } uncancelled;
  std::lock_guard lock(mutex_);
  if (path_.empty()) return;
  size_t left = line.size() + 1;
  const char* from = line.data();
  while (left > 0) {
    if (!MakeRoom()) {
      fprintf(stderr, "stand-in GPU: %s: truth log ends here: %s\n", path_.c_str(),
              strerror(errno));
      path_.clear();
      return;
    }
    size_t part = left < kChunkBytes - used_ ? left : kChunkBytes - used_;
    size_t text = part == left ? part - 1 : part;
    memcpy(chunk_ + used_, from, text);
    if (part == left) chunk_[used_ + text] = '\n';
    from += text;
    used_ += part;
    left -= part;
  }
}

void TruthFile::Trim() {
  std::lock_guard lock(mutex_);
  if (path_.empty() || chunk_ == nullptr) return;
  end_ = chunk_offset_ + used_;
  munmap(chunk_, kChunkBytes);
  chunk_ = nullptr;
  if (truncate(path_.c_str(), static_cast<off_t>(end_)) != 0) {
    fprintf(stderr, "stand-in GPU: %s: not trimmed: %s\n", path_.c_str(), strerror(errno));
  }
}

}  // namespace ranktap::standin
