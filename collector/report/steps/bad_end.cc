#include "collector/report/steps/bad_end.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "collector/facts/framework/program_lines.h"
#include "collector/facts/hang/find_hang.h"
#include "collector/facts/shared_clock.h"
#include "collector/file/hang_notes.h"
#include "collector/file/json.h"
#include "collector/report/cells.h"
#include "collector/report/hang/hang_words.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"

namespace ranktap::collector {
namespace {

constexpr proto::RowFields kEnding = proto::kEndingRow;
constexpr std::string_view kOutOfMemory = "out of memory";

// "train.py(31): main" of "/home/me/train.py(31): main".
std::string WithoutFolder(std::string_view frame) {
  const size_t file = frame.find('(');
  const size_t slash = frame.substr(0, file).rfind('/');
  return std::string(slash == frame.npos ? frame : frame.substr(slash + 1));
}

// ", at train.py(31): main": the innermost frame that is the program's own.
std::string Where(const Json& row) {
  const Json& frames = row[kEnding.Key("frames")];
  if (!frames.is_array()) return "";
  for (const Json& frame : frames) {
    if (!frame.is_string()) continue;
    const std::string text = frame.get<std::string>();
    if (IsFrameOfTheProgram(text)) return fmt::format(", at {}", WithoutFolder(text));
  }
  return "";
}

std::string OutOfMemoryNote(const Trace& trace) {
  for (const std::string& note : trace.info.notes) {
    if (note.starts_with(kOutOfMemory)) return note;
  }
  return "";
}

// One line; the rest of a long message stands in the traceback.
std::string FirstLine(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.pop_back();
  return line;
}

// A rank that a signal ends did its last thing some time before.
enum class EndCause : uint8_t {
  kOwn,
  kAsked,  // by SIGTERM: mostly by the launcher, as another rank has ended
  kPeer,   // it lost the connection to one that has ended
};

struct BadEnd {
  uint32_t trace = 0;
  EndCause cause = EndCause::kOwn;
  int64_t time = 0;   // on the first trace's clock
  std::string words;  // "ended with ValueError: ..."
};

std::string WordsOf(const Trace& trace, const Json& row) {
  const std::string type = row.TextOf(kEnding.Key("type"));
  const std::string message = FirstLine(row.TextOf(kEnding.Key("message")));
  const std::string memory = OutOfMemoryNote(trace);
  const bool is_memory = !memory.empty() && (message.find("memory") != message.npos ||
                                             type.find("Memory") != type.npos);
  if (is_memory) return fmt::format("ran {} ({}){}", memory, type, Where(row));
  return fmt::format("ended with {}{}{}{}", type, message.empty() ? "" : ": ", message, Where(row));
}

EndCause CauseOf(const Json& row) {
  const std::string message = row.TextOf(kEnding.Key("message"));
  const bool lost = message.find("Connection closed by peer") != message.npos ||
                    message.find("Connection reset by peer") != message.npos ||
                    message.find("remote process exited") != message.npos;
  return lost ? EndCause::kPeer : EndCause::kOwn;
}

std::optional<BadEnd> EndOf(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  const SharedClock& clock = SharedClockOf(run);
  for (const MarkedLine& line : MarkedLinesWithRows(trace, kStepDomain, proto::kEndingMark)) {
    const Json row = ParseJson(line.text);
    if (!row.is_object()) continue;
    return BadEnd{t, CauseOf(row), clock.At(t, trace.marks.start[line.row]), WordsOf(trace, row)};
  }
  const std::string& detail = trace.info.detail;
  const int64_t last = clock.At(t, trace.last_ns);
  const EndCause cause = detail.ends_with("(SIGTERM)") ? EndCause::kAsked : EndCause::kOwn;
  if (detail.starts_with("killed by")) return BadEnd{t, cause, last, "was " + detail};
  if (detail.starts_with("exited with status") && !detail.ends_with(" 0")) {
    return BadEnd{t, EndCause::kOwn, last, detail};
  }
  return std::nullopt;
}

// A snapshot of memory is taken where an allocation failed.
std::string OfSnapshot(const Run& run) {
  for (const Trace& trace : run.traces) {
    const std::string note = OutOfMemoryNote(trace);
    if (trace.origin == TraceOrigin::kMemory && !note.empty()) {
      return fmt::format("O{}. ", note.substr(1));
    }
  }
  return "";
}

// Calls that do not fit each other end ranks that are innocent of it: gloo aborts the one that gets
// more than it waits for.
std::string OfUnlikeCalls(const Run& run) {
  const JobCalls& job = CallsOfJob(run);
  const std::vector<HangFinding> findings = FindHang(job);
  const bool is_unlike = !findings.empty() && (findings[0].cause == HangCause::kOtherSignature ||
                                               findings[0].cause == HangCause::kOtherCall);
  return is_unlike ? DescribeHang(job, findings[0]) + " " : "";
}

}  // namespace

std::string DescribeEnd(const RunInfo& info) {
  if (info.exit_signal)
    return fmt::format("The command was ended by signal {}. ", *info.exit_signal);
  if (info.exit_status.value_or(0) == 0) return "";
  return fmt::format("The command exited with {}. ", *info.exit_status);
}

std::string DescribeEnd(const Run& run) {
  // What ended it afterwards, a watchdog or a person, did so because it hung.
  if (run.info.exit_status != 0) {
    const std::vector<HangNote> hangs = ReadHangNotes(run.path);
    if (!hangs.empty()) {
      const HangNote& last = hangs.front();
      // Where the watch names nobody, the calls may.
      const bool calls_tell = !last.is_guilty() && last.calls && last.calls->is_guilty;
      return fmt::format("The job hung: {} {}", last.sentence,
                         calls_tell ? last.calls->finding + " " : "");
    }
  }
  std::vector<BadEnd> ends;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    if (std::optional<BadEnd> end = EndOf(run, t)) ends.push_back(std::move(*end));
  }
  if (ends.empty()) {
    const std::string snapshot = OfSnapshot(run);
    return snapshot.empty() ? DescribeEnd(run.info) : snapshot;
  }
  const std::string unlike = OfUnlikeCalls(run);
  const BadEnd& first = *std::ranges::min_element(
      ends, {}, [](const BadEnd& end) { return std::pair(end.cause, end.time); });
  const Trace& trace = run.traces[first.trace];
  std::string who = run.traces.size() == 1 ? "The program" : RankName(trace);
  who[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(who[0])));
  return fmt::format("{}{} {}. ", unlike, who, first.words);
}

}  // namespace ranktap::collector
