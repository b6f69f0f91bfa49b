#include "collector/doctor/host_view.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ranktap::collector {

HostView::HostView(std::string root, const std::vector<std::string_view>& environment)
    : root_(std::move(root)), user_(::geteuid()) {
  for (const std::string_view entry : environment) {
    const size_t equals = entry.find('=');
    if (equals != std::string_view::npos) {
      environment_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }
}

std::optional<std::string> HostView::Read(const std::string& path) const {
  std::ifstream file(Path(path), std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  char buffer[4096];
  // Files of /proc have no size.
  while (text.size() < kMostBytes && (file.read(buffer, sizeof(buffer)) || file.gcount() > 0)) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) return std::nullopt;
  return text;
}

std::vector<std::string> HostView::List(const std::string& directory) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(Path(directory), error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool HostView::Exists(const std::string& path) const { return Access(path, F_OK) == 0; }

int HostView::Access(const std::string& path, int mode) const {
  return ::eaccess(Path(path).c_str(), mode) == 0 ? 0 : errno;
}

std::optional<std::string> HostView::Field(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const size_t value = line.find_first_not_of(" \t", name.size() + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return std::nullopt;
}

std::optional<std::string> HostView::Variable(const std::string& name) const {
  const auto found = environment_.find(name);
  if (found == environment_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

int HostView::Probe(const std::string& name, const std::function<int()>& call) const {
  if (is_this_machine()) return call();
  const std::string text = Read("/probe/" + name).value_or("0");
  int value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace ranktap::collector
