#include "collector/cli/top_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/cli/dump_triggers.h"
#include "collector/ingest/control/control_client.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/report/human_units.h"
#include "collector/report/text/table_text.h"
#include "collector/stacks/process_stacks.h"

namespace ranktap::collector {
namespace {

constexpr size_t kLooks = 10;      // rates are over so many seconds
constexpr size_t kMostLines = 64;  // processes whose stacks are read, 1 to 5 ms each
constexpr uint64_t kWindowNs = 10'000'000'000;
constexpr unsigned kDumpSeconds = 300;

// The program's own innermost line: what a library does for it is seldom the question.
std::string LineOf(pid_t process) {
  const ProcessStacks stacks = ReadProcessStacks(process);
  for (const ThreadStack& thread : stacks.threads) {
    if (thread.thread != process || thread.frames.empty()) continue;
    const auto is_programs = [](const StackFrame& frame) {
      return frame.file.find("-packages/") == frame.file.npos &&
             frame.file.find("/lib/python") == frame.file.npos && !frame.file.starts_with("<");
    };
    const auto own = std::ranges::find_if(thread.frames, is_programs);
    const StackFrame& frame = own == thread.frames.end() ? thread.frames.front() : *own;
    return fmt::format("{}:{} {}", frame.file.substr(frame.file.rfind('/') + 1), frame.line,
                       frame.function);
  }
  return "";
}

}  // namespace

bool TopWatch::Look() {
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_STATUS);
  request.set_live(true);
  TopLook look{.at_ns = MonotonicRawNs(), .answers = Ask(request)};
  if (look.answers.empty()) return false;
  looks_.push_back(std::move(look));
  if (looks_.size() > kLooks) looks_.pop_front();
  return true;
}

std::string TopWatch::Order(v1::ControlRequest::Verb verb) const {
  v1::ControlRequest request;
  request.set_verb(verb);
  if (verb == v1::ControlRequest::VERB_START) request.set_duration_ns(kWindowNs);
  const std::vector<CollectorAnswer> answers = Ask(request);
  if (answers.empty()) return "the collector refused";
  const v1::ControlReply& reply = answers.front().reply;
  return verb == v1::ControlRequest::VERB_STOP
             ? "the window ends"
             : fmt::format("window {} of {}", reply.window(),
                           Counted(static_cast<size_t>(reply.processes_size()), "rank"));
}

std::future<std::string> TopWatch::Dump() const {
  const std::vector<CollectorAnswer> found =
      ThoseThatKeep(looks_.empty() ? found_ : looks_.back().answers);
  return std::async(std::launch::async, [found, job = job_] {
    v1::ControlRequest request;
    request.set_verb(v1::ControlRequest::VERB_DUMP);
    request.set_job(job);
    std::string said;
    for (const CollectorAnswer& one : found) {
      const Result<v1::ControlReply> reply = AskCollector(one.socket, request, kDumpSeconds);
      if (!reply || !reply->problem().empty()) {
        return reply ? reply->problem() : reply.message();
      }
      for (const v1::Dump& dump : reply->dumps()) {
        said += (said.empty() ? "" : "; ") + SentenceOfDump(dump);
      }
    }
    return said;
  });
}

std::vector<TopRow> TopWatch::Rows(TopOrder order, bool with_lines) const {
  std::vector<TopRow> rows = RowsOf(looks_.front(), looks_.back());
  std::erase_if(rows, [this](const TopRow& row) {
    return !ranks_.ranges.empty() &&
           !(row.process.has_rank() && ranks_.contains(row.process.rank()));
  });
  SortRows(order, &rows);
  for (size_t i = 0; with_lines && i < std::min(rows.size(), kMostLines); ++i) {
    rows[i].line = LineOf(static_cast<pid_t>(rows[i].process.pid()));
  }
  return rows;
}

void TopWatch::AddWaits(const std::vector<TopRow>& rows, Table* table) const {
  std::vector<std::string> waits;
  for (const CollectorAnswer& answer : looks_.back().answers) {
    waits.insert(waits.end(), answer.reply.waits().begin(), answer.reply.waits().end());
  }
  if (waits.empty()) return;
  const std::vector<std::string> told = WaitSentences(rows);
  std::erase_if(table->notes, [&told](const std::string& note) {
    return std::ranges::find(told, note) != told.end();
  });
  table->notes.insert(table->notes.begin(), waits.begin(), waits.end());
}

std::vector<CollectorAnswer> TopWatch::Ask(v1::ControlRequest request) const {
  request.set_job(job_);
  std::vector<CollectorAnswer> answers;
  for (const CollectorAnswer& one : found_) {
    Result<v1::ControlReply> reply = AskCollector(one.socket, request);
    if (reply && reply->problem().empty()) answers.push_back({one.socket, std::move(*reply)});
  }
  return answers;
}

}  // namespace ranktap::collector
