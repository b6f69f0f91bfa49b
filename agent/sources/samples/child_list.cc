// Files of /proc, read a buffer at a time.
// Runs on: see child_list.h.  May not: see there.
#include "agent/sources/samples/child_list.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "proto/process_memory.h"

namespace ranktap::agent::samples {
namespace {

// In a fork child it holds the parent's number, elsewhere 0 or the process's own.
constinit std::atomic<int32_t> g_samples_process{0};

size_t ReadSome(int file, char* to, size_t bytes) {
  const ssize_t read_bytes = read(file, to, bytes);
  return read_bytes < 0 ? 0 : static_cast<size_t>(read_bytes);
}

// visit(line) for each line of /proc/PID/maps, until it returns false. False: nobody may read it.
template <typename Visit>
bool ForEachMapping(int32_t process, std::span<char> buffer, Visit&& visit) {
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/maps", process);
  OwnDescriptor file;
  file.Adopt(open(path.data(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return false;
  size_t kept = 0;
  bool goes_on = true;
  while (goes_on) {
    const size_t more = ReadSome(file.get(), buffer.data() + kept, buffer.size() - kept);
    if (more == 0) break;
    std::string_view rest(buffer.data(), kept + more);
    for (size_t end; goes_on && (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      goes_on = visit(rest.substr(0, end));
    }
    kept = rest.size() == buffer.size() ? 0 : rest.size();  // no line is as long as that
    std::memmove(buffer.data(), rest.data(), kept);
  }
  return true;
}

// What a process's main thread has started.
int OpenChildrenOf(int32_t process) {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/children", process, process);
  return open(path.data(), O_RDONLY | O_CLOEXEC);
}

// "4711 4712 "
std::string_view ReadNumbers(const OwnDescriptor& file, std::span<char> to) {
  const ssize_t bytes = file.get() < 0 ? 0 : pread(file.get(), to.data(), to.size(), 0);
  return {to.data(), bytes < 0 ? 0 : static_cast<size_t>(bytes)};
}

struct Mapping {
  uint64_t begin = 0, end = 0;
  bool is_first = false;  // of its file's bytes
  std::string_view path;
};

// "BEGIN-END rw-p OFFSET DEVICE INODE   PATH"
Mapping ParseMapping(std::string_view line) {
  Mapping mapping;
  const char* const end = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), end, mapping.begin, 16);
  if (begin.ptr != end) (void)std::from_chars(begin.ptr + 1, end, mapping.end, 16);
  const size_t path = line.find('/');
  if (path == line.npos) return mapping;
  mapping.path = line.substr(path);
  mapping.is_first = line.find(" 00000000 ") < path;
  return mapping;
}

}  // namespace

void ChildList::TellActive() { g_samples_process.store(getpid()); }

void ChildList::SetUp(const proto::PythonPlace& place) {
  constexpr size_t kTextBytes = 16 << 10;
  text_.resize(kTextBytes);
  own_children_.Adopt(OpenChildrenOf(getpid()));
  const auto flag = reinterpret_cast<uint64_t>(&g_samples_process);
  Mapped last;
  ForEachMapping(getpid(), text_, [&](std::string_view line) {
    const Mapping mapping = ParseMapping(line);
    if (mapping.path.empty() && last.path.empty()) return true;
    // Zeroed parts of a library have no path of their own.
    if (mapping.is_first) last = {std::string(mapping.path), mapping.begin};
    const auto lies_in = [&mapping](uint64_t address) {
      return address >= mapping.begin && address < mapping.end;
    };
    if (lies_in(place.runtime)) python_ = last;
    if (lies_in(flag)) agent_ = last;
    return true;
  });
}

void ChildList::AddListed(std::string_view numbers, int32_t parent, std::span<const Child> before) {
  while (count_ < kMost && !numbers.empty()) {
    Child child{.parent = parent};
    const auto [end, error] =
        std::from_chars(numbers.data(), numbers.data() + numbers.size(), child.process);
    if (error != std::errc()) return;
    numbers.remove_prefix(std::min(numbers.size(), static_cast<size_t>(end - numbers.data()) + 1));
    const auto known = std::ranges::find(before, child.process, &Child::process);
    children_[count_++] = known != before.end() ? *known : child;
  }
}

void ChildList::AddChildrenOf(const Child& child, bool anew, std::span<const Child> before) {
  if (anew) {
    OwnDescriptor file;
    std::array<char, 1024> text;
    file.Adopt(OpenChildrenOf(child.process));
    return AddListed(ReadNumbers(file, text), child.process, before);
  }
  for (const Child& known : before) {
    if (known.parent == child.process && count_ < kMost) children_[count_++] = known;
  }
}

void ChildList::Find(uint64_t now_ns) {
  std::array<char, 1024> text;
  before_ = children_;
  const std::span<const Child> before(before_.data(), count_);
  count_ = 0;
  AddListed(ReadNumbers(own_children_, text), getpid(), before);
  for (size_t i = 0; i < count_; ++i) {
    Child& child = children_[i];
    const bool is_due = child.kind != Child::Kind::kForked && now_ns >= child.asks_again_ns;
    if (is_due) Identify(&child, now_ns);
    if (child.kind == Child::Kind::kStarted) AddChildrenOf(child, is_due, before);
  }
}

// The kernel draws 16 bytes for each program that it starts: a copy of ours has ours.
bool ChildList::IsStillForked(const Child& child) {
  const uint64_t drawn = getauxval(AT_RANDOM);
  std::array<char, 16> there;
  proto::ProcessMemory memory(child.process);
  return drawn != 0 && memory.Read(drawn, there.data(), there.size()) &&
         std::memcmp(reinterpret_cast<const void*>(drawn), there.data(), there.size()) == 0;
}

void ChildList::Identify(Child* child, uint64_t now_ns) {
  // Going through the mappings of a process that has PyTorch takes a millisecond or two.
  constexpr uint64_t kFirstPauseNs = 200'000'000, kLongestPauseNs = 5'000'000'000;
  child->pause_ns = std::clamp(2 * child->pause_ns, kFirstPauseNs, kLongestPauseNs);
  child->asks_again_ns = now_ns + child->pause_ns;
  child->kind = Child::Kind::kUnknown;
  child->shift = 0;
  if (IsStillForked(*child)) {
    child->kind = Child::Kind::kForked;
    return;
  }
  if (!FindShifts(child)) return;
  child->kind = Child::Kind::kStarted;
  if (child->agent_shift == 0) return;
  proto::ProcessMemory memory(child->process);
  int32_t samples = 0;
  const uint64_t flag = reinterpret_cast<uint64_t>(&g_samples_process) + child->agent_shift;
  if (memory.Read(flag, &samples) && samples != 0) child->kind = Child::Kind::kSeesItself;
}

bool ChildList::FindShifts(Child* child) {
  bool found = false;
  child->agent_shift = 0;
  if (python_.path.empty()) return false;
  (void)ForEachMapping(child->process, text_, [&](std::string_view line) {
    const Mapping mapping = ParseMapping(line);
    if (!mapping.is_first) return true;
    if (mapping.path == python_.path && !found) {
      found = true;
      child->shift = mapping.begin - python_.base;
    }
    if (mapping.path == agent_.path) child->agent_shift = mapping.begin - agent_.base;
    return true;
  });
  return found;
}

}  // namespace ranktap::agent::samples
