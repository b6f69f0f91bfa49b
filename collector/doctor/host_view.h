// The machine as the checks see it: files, environment, a few system calls. With a root other than
// "/" it is a directory that a test has made: files are read below it, and what a system call
// would say stands in ROOT/probe/NAME as an errno (0: it works).
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

class HostView {
 public:
  // `root`: empty for this machine. `environment`: NAME=value each.
  HostView(std::string root, const std::vector<std::string_view>& environment);

  std::string Path(const std::string& path) const { return root_ + path; }
  // nullopt: not there, or not readable. At most `kMostBytes` of it.
  std::optional<std::string> Read(const std::string& path) const;
  // Names in a directory, sorted; empty where there is none.
  std::vector<std::string> List(const std::string& directory) const;
  bool Exists(const std::string& path) const;
  // errno of access(2); 0: granted.
  int Access(const std::string& path, int mode) const;
  // The value of `Name: value` in text made of such lines.
  static std::optional<std::string> Field(const std::string& text, std::string_view name);

  std::optional<std::string> Variable(const std::string& name) const;

  // What `call` returns, 0 or an errno; in a test's root what ROOT/probe/NAME says.
  int Probe(const std::string& name, const std::function<int()>& call) const;

  uid_t user() const { return user_; }
  bool is_this_machine() const { return root_.empty(); }

  std::string agent_library;  // empty: none was found, for this reason:
  std::string agent_problem;
  std::string run;  // directory of the run to look at; empty: the newest that is found

 private:
  static constexpr size_t kMostBytes = 16u << 20;

  std::string root_;
  std::map<std::string, std::string> environment_;
  uid_t user_;
};

}  // namespace ranktap::collector
