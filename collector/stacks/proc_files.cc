#include "collector/stacks/proc_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {
namespace {

// Of "PID (NAME) STATE PARENT ...": what follows the name, which may hold anything.
std::string_view AfterName(std::string_view stat) {
  const size_t end = stat.rfind(')');
  return end == stat.npos || end + 2 > stat.size() ? std::string_view() : stat.substr(end + 2);
}

}  // namespace

std::optional<std::string> ReadProcFile(const std::string& path) {
  constexpr size_t kMostBytes = 16 << 20;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.valid()) return std::nullopt;
  std::string text;
  char buffer[16 << 10];
  while (text.size() < kMostBytes) {
    const ssize_t bytes = ::read(file.get(), buffer, sizeof(buffer));
    if (bytes < 0) return std::nullopt;
    if (bytes == 0) break;
    text.append(buffer, static_cast<size_t>(bytes));
  }
  return text;
}

std::string ReadProcLink(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

std::vector<pid_t> NumbersIn(const std::string& directory) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t number = 0;
    const auto [rest, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failed == std::errc() && rest == name.data() + name.size()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<pid_t> ThreadsOf(pid_t process) {
  return NumbersIn(fmt::format("/proc/{}/task", process));
}

std::vector<pid_t> DescendantsOf(pid_t process) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : NumbersIn("/proc")) {
    const std::string stat = ReadProcFile(fmt::format("/proc/{}/stat", pid)).value_or("");
    const std::string_view rest = AfterName(stat);
    pid_t parent = 0;
    if (rest.size() > 2) (void)std::from_chars(rest.data() + 2, rest.data() + rest.size(), parent);
    children.emplace(parent, pid);
  }
  std::vector<pid_t> found;
  std::set<pid_t> seen{process};
  const auto add_children_of = [&](pid_t parent) {
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      if (seen.insert(child->second).second) found.push_back(child->second);
    }
  };
  add_children_of(process);
  for (size_t i = 0; i < found.size(); ++i) add_children_of(found[i]);
  return found;
}

std::string VariableOf(pid_t process, std::string_view name) {
  const std::string text = ReadProcFile(fmt::format("/proc/{}/environ", process)).value_or("");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return std::string(entry.substr(name.size() + 1));
    }
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
  }
  return "";
}

std::vector<MappedFile> MappedFilesOf(pid_t process) {
  const std::string maps = ReadProcFile(fmt::format("/proc/{}/maps", process)).value_or("");
  std::vector<MappedFile> files;
  std::set<std::string> seen;
  std::string_view rest = maps;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t path = line.find('/');
    // "BEGIN-END rw-p OFFSET ..."
    const size_t offset = line.find(' ', line.find(' ') + 1);
    if (path == line.npos || offset == line.npos ||
        !line.substr(offset).starts_with(" 00000000 ")) {
      continue;
    }
    MappedFile file{.path = std::string(line.substr(path))};
    (void)std::from_chars(line.data(), line.data() + line.size(), file.base, 16);
    if (seen.insert(file.path).second) files.push_back(std::move(file));
  }
  return files;
}

std::optional<ThreadCondition> ConditionOf(pid_t process, pid_t thread) {
  const std::string folder = fmt::format("/proc/{}/task/{}/", process, thread);
  const auto stat = ReadProcFile(folder + "stat");
  if (!stat) return std::nullopt;
  ThreadCondition condition;
  const size_t begin = stat->find('('), end = stat->rfind(')');
  if (begin != stat->npos && end != stat->npos && end > begin) {
    condition.name = stat->substr(begin + 1, end - begin - 1);
  }
  const std::string_view rest = AfterName(*stat);
  if (!rest.empty()) condition.state = rest[0];
  condition.system_call = ReadProcFile(folder + "syscall").value_or("");
  while (!condition.system_call.empty() && condition.system_call.back() == '\n') {
    condition.system_call.pop_back();
  }
  return condition;
}

}  // namespace ranktap::collector
