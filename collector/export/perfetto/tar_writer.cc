#include "collector/export/perfetto/tar_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ranktap::collector {
namespace {

constexpr uint64_t kBlock = 512, kLargest = uint64_t{1} << 33;

// Offsets of POSIX.1-1988's ustar header.
std::array<char, kBlock> Header(const std::string& name, uint64_t bytes) {
  std::array<char, kBlock> header{};
  const auto put = [&header](size_t at, const char* text) {
    std::memcpy(header.data() + at, text, std::strlen(text));
  };
  const auto octal = [&put](size_t at, int digits, uint64_t value) {
    char text[32];
    std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
    put(at, text);
  };
  put(0, name.substr(0, 99).c_str());
  octal(100, 7, 0644), octal(108, 7, 0), octal(116, 7, 0);
  octal(124, 11, bytes), octal(136, 11, 0);
  put(156, "0"), put(257, "ustar"), put(263, "00");
  std::fill_n(header.data() + 148, 8, ' ');  // the sum counts itself as spaces
  uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  octal(148, 6, sum);
  header[154] = 0;
  return header;
}

}  // namespace

void TarWriter::Begin(const std::string& name) {
  members_.push_back({name, file_->written(), 0});
  Pad(kBlock);
}

void TarWriter::End() {
  Member& member = members_.back();
  member.bytes = file_->written() - member.header - kBlock;
  Pad((kBlock - member.bytes % kBlock) % kBlock);
}

bool TarWriter::has(const std::string& name) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&name](const Member& member) { return member.name == name; });
}

void TarWriter::Finish() { Pad(2 * kBlock); }

void TarWriter::Pad(uint64_t bytes) { file_->Write(std::string(bytes, '\0')); }

std::optional<Failure> TarWriter::WriteHeaders(const std::string& path) const {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return SystemFailure(fmt::format("{}: could not open again", path), errno);
  for (const Member& member : members_) {
    if (member.bytes >= kLargest) {
      return Failure{fmt::format(
          "{}: {} is larger than 8 GiB, which a tar cannot hold; export a --window of it", path,
          member.name)};
    }
    const auto header = Header(member.name, member.bytes);
    if (::pwrite(file.get(), header.data(), header.size(), static_cast<off_t>(member.header)) !=
        static_cast<ssize_t>(header.size())) {
      return SystemFailure(fmt::format("{}: could not write", path), errno);
    }
  }
  return std::nullopt;
}

}  // namespace ranktap::collector
