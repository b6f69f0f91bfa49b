#include "collector/cli/commits.h"

#include <algorithm>
#include <sstream>

#include "collector/launch/run_and_wait.h"

namespace ranktap::collector {
namespace {

constexpr int kMostGitMs = 600'000;  // the checkout of a large repository
constexpr size_t kMostGitBytes = size_t{64} << 20;

// What git prints, without the last line's end; fails with what it complains of.
Result<std::string> Git(const std::vector<std::string>& words) {
  std::vector<std::string> command = {"/usr/bin/env", "git"};
  command.insert(command.end(), words.begin(), words.end());
  Result<ProgramOutput> done = RunAndRead(command, kMostGitMs, kMostGitBytes);
  if (!done) return Failure{"git: " + done.message()};
  for (std::string* const text : {&done->output, &done->complaints}) {
    while (text->ends_with('\n')) text->pop_back();
  }
  if (done->status != 0) return Failure{done->complaints};
  return done->output;
}

Result<std::string> HashOf(const std::string& name) {
  Result<std::string> hash =
      Git({"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"});
  if (!hash) return Failure{fmt::format("{}: this repository has no such commit", name)};
  return hash;
}

}  // namespace

Result<std::vector<Commit>> CommitsBetween(const std::string& good, const std::string& bad) {
  if (const Result<std::string> top = Git({"rev-parse", "--show-toplevel"}); !top) {
    return Failure{fmt::format("bisect wants to be in a git repository's checkout: {}",
                               top.message().empty() ? "there is no git" : top.message())};
  }
  const Result<std::string> first = HashOf(good);
  if (!first) return Failure{first.message()};
  const Result<std::string> last = HashOf(bad);
  if (!last) return Failure{last.message()};
  if (*first == *last) return Failure{fmt::format("{} and {} are one commit", good, bad)};
  if (!Git({"merge-base", "--is-ancestor", *first, *last})) {
    return Failure{
        fmt::format("{} is no ancestor of {}: GOOD comes first, and BAD has it in its "
                    "history",
                    good, bad)};
  }
  const Result<std::string> log =
      Git({"log", "--first-parent", "--reverse", "--format=%H %s", *first + ".." + *last});
  if (!log) return Failure{log.message()};
  const Result<std::string> subject = Git({"log", "-1", "--format=%s", *first});
  std::vector<Commit> commits = {{*first, subject ? *subject : ""}};
  std::istringstream lines(*log);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = std::min(line.find(' '), line.size());
    commits.push_back({line.substr(0, space), line.substr(std::min(space + 1, line.size()))});
  }
  return commits;
}

bool HasUncommittedChanges() {
  const Result<std::string> changes = Git({"status", "--porcelain", "--untracked-files=no"});
  return changes && !changes->empty();
}

// NOLINTNEXTLINE(bugprone-exception-escape): without memory for two words the program ends anyway
Worktree::~Worktree() {
  if (place_.empty()) return;
  // By force: what the commands left there goes, too.
  (void)Git({"worktree", "remove", "--force", tree()});
}

std::string Worktree::CheckOut(const std::string& hash) {
  if (scratch_.failure()) return scratch_.failure()->message;
  if (!place_.empty()) {
    const Result<std::string> done =
        Git({"-C", tree(), "checkout", "--quiet", "--force", "--detach", hash});
    return done ? "" : done.message();
  }
  const Result<std::string> prefix = Git({"rev-parse", "--show-prefix"});
  const Result<std::string> done = Git({"worktree", "add", "--quiet", "--detach", tree(), hash});
  if (!done) return done.message();
  place_ = fmt::format("{}/{}", tree(), prefix ? *prefix : "");
  return "";
}

}  // namespace ranktap::collector
