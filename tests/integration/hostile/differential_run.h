// Runs a program bare and under `ranktap run`, and says what differs: exit status, signal, stdout,
// stderr, and time beyond a bound.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ranktap::hostile_test {

using Command = std::vector<std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

// What somebody sees of a program.
struct Seen {
  int status = 0;     // as a shell has it: 128 + N for a signal
  bool ended = true;  // false: it had to be killed at the deadline, with all its children
  double seconds = 0;
  std::string output, errors;
};

// Ends with the program, or `deadline_s` later. Its children are in a session of their own.
Seen Watch(const Command& command, const Variables& variables, double deadline_s);

enum class LoadedBy { kPreload, kVariables };

struct Traced {
  Seen seen;
  std::string problems;  // of `ranktap verify`, a line each
  size_t traces = 0;
  size_t ranges = 0;
  std::vector<std::string> gaps;  // reasons, in words
  std::vector<std::string> notes;
};

// A level and a way of loading.
struct Corner {
  std::string level;
  LoadedBy loaded_by;

  std::string Name() const;
};

// The two corners of the matrix that differ most; with RANKTAP_HOSTILE_ALL=1 all of them.
std::vector<Corner> Corners();

Traced Trace(const Command& command, const std::string& level, LoadedBy loaded_by,
             double deadline_s, const Variables& variables = {});

// What `ranktap verify` says of the run, a line each.
std::string ProblemsOf(const std::string& path);

// A line for each difference; empty: none. `slack_s`: how much longer it may take.
std::string Differences(const Seen& bare, const Seen& traced, double slack_s);

}  // namespace ranktap::hostile_test
