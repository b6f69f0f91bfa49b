// `ranktap top`: what every rank does now.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>

#include "collector/cli/command.h"
#include "collector/cli/control.h"
#include "collector/cli/top_rows.h"
#include "collector/ingest/control/control_client.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/report/human_units.h"
#include "collector/report/run_filter.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/stacks/process_stacks.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/live_screen.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

constexpr int kEveryMs = 1000;
constexpr size_t kLooks = 10;      // rates are over so many seconds
constexpr size_t kMostLines = 64;  // processes whose stacks are read, 1 to 5 ms each
constexpr size_t kWide = 120, kWideSpark = 60, kNarrowSpark = 12;
constexpr uint64_t kWindowNs = 10'000'000'000;

constexpr std::string_view kKeys =
    "q quit   s sort   j k scroll   l lines on and off   b begin a window of 10 s   e end it   "
    "? help";
constexpr std::string_view kHelp =
    "steps     the last 60, 12 on a narrow screen; a block of half the height is a usual step\n"
    "busy      any device worked\n"
    "waits     collectives while nothing else ran; without a GPU, the time in gloo's collectives\n"
    "data      waiting for the data loader\n"
    "memory    the process's, in RAM\n"
    "cost      of our hooks on the program's threads\n"
    "does      why the rank is late, what it waits in, or its main thread's line\n\n"
    "Any key goes back.";

bool IsUtf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || value[0] == '\0') continue;
    const std::string_view text = value;
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

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

class Watch {
 public:
  Watch(std::vector<CollectorAnswer> found, std::string job, NumberSet ranks)
      : found_(std::move(found)), job_(std::move(job)), ranks_(std::move(ranks)) {}

  // False: no collector answers any more.
  bool Look() {
    v1::ControlRequest request;
    request.set_verb(v1::ControlRequest::VERB_STATUS);
    request.set_live(true);
    TopLook look{.at_ns = MonotonicRawNs(), .answers = Ask(request)};
    if (look.answers.empty()) return false;
    looks_.push_back(std::move(look));
    if (looks_.size() > kLooks) looks_.pop_front();
    return true;
  }
  // What START or STOP came to, in a sentence.
  std::string Order(v1::ControlRequest::Verb verb) const {
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

  std::vector<TopRow> Rows(TopOrder order, bool with_lines) const {
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
  // The watch's sentences go before those that events tell, which say the same with less.
  void AddWaits(const std::vector<TopRow>& rows, Table* table) const {
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

 private:
  std::vector<CollectorAnswer> Ask(v1::ControlRequest request) const {
    request.set_job(job_);
    std::vector<CollectorAnswer> answers;
    for (const CollectorAnswer& one : found_) {
      Result<v1::ControlReply> reply = AskCollector(one.socket, request);
      if (reply && reply->problem().empty()) answers.push_back({one.socket, std::move(*reply)});
    }
    return answers;
  }

  std::vector<CollectorAnswer> found_;
  std::string job_;
  NumberSet ranks_;
  std::deque<TopLook> looks_;
};

int ShowOnce(Watch* watch, double seconds, Format format) {
  if (!watch->Look()) return Complained("the collector has ended", kFailure);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  if (!watch->Look()) return Complained("the job has ended", kFailure);
  const std::vector<TopRow> rows = watch->Rows(TopOrder::kWorst, true);
  Table table = TopTable(rows, kWideSpark, IsUtf8());
  watch->AddWaits(rows, &table);
  const std::string text = format == Format::kJson ? FormatJson(table, 0)
                           : format == Format::kCsv
                               ? FormatCsv(table, 0)
                               : FormatText(table, OutputWidth(STDOUT_FILENO), 0);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return rows.empty() ? kFailure : kSuccess;
}

std::string Screen(const Watch& watch, const std::vector<TopRow>& rows, size_t first,
                   const std::string& said) {
  const auto [height, width] = LiveScreen::size();
  constexpr size_t kAround = 6;  // title, headings, notes, keys
  const size_t room = height > kAround + 1 ? height - kAround : 1;
  Table table = TopTable(rows, width < kWide ? kNarrowSpark : kWideSpark, IsUtf8());
  watch.AddWaits(rows, &table);
  first = std::min(first, rows.empty() ? 0 : rows.size() - 1);
  table.rows.erase(table.rows.begin(), table.rows.begin() + static_cast<ptrdiff_t>(first));
  const size_t below = table.rows.size() - std::min(table.rows.size(), room);
  table.rows.resize(table.rows.size() - below);
  std::vector<std::string> notes;
  std::swap(notes, table.notes);
  std::string text = FormatText(table, width, 0);
  if (IsColored(STDOUT_FILENO)) text = ColoredTable(text, !table.rows.empty());
  if (below > 0) text += fmt::format("{} more below\n", Counted(below, "rank"));
  for (const std::string& note : notes) text += note + "\n";
  text += (said.empty() ? std::string(kKeys) : said) + "\n";
  return text;
}

int ShowAlways(Watch* watch) {
  TopOrder order = TopOrder::kWorst;
  size_t first = 0;
  bool with_lines = true, with_help = false;
  std::string said;
  bool is_over = false;
  {
    LiveScreen screen;
    uint64_t next_look = 0;
    for (char key = 0; key != 'q' && !is_over;) {
      constexpr uint64_t kMs = 1'000'000;
      const uint64_t now = MonotonicRawNs();
      if (now >= next_look) {
        is_over = !watch->Look();
        next_look = now + kEveryMs * kMs;
      }
      if (is_over) break;
      screen.Draw(with_help ? std::string(kHelp)
                            : Screen(*watch, watch->Rows(order, with_lines), first, said));
      const uint64_t drawn = MonotonicRawNs();
      key =
          screen.NextKey(drawn >= next_look ? 0 : static_cast<int>((next_look - drawn) / kMs) + 1);
      if (key == 0) continue;
      said.clear();
      with_help = !with_help && key == '?';
      if (key == 's') order = static_cast<TopOrder>((static_cast<int>(order) + 1) % 4);
      if (key == 's') {
        constexpr const char* kOrders[] = {"the worst first", "by rank", "by step time",
                                           "by memory"};
        said = fmt::format("sorted: {}", kOrders[static_cast<int>(order)]);
      }
      if (key == 'j') ++first;
      if (key == 'k' && first > 0) --first;
      if (key == 'l') with_lines = !with_lines;
      if (key == 'b') said = watch->Order(v1::ControlRequest::VERB_START);
      if (key == 'e') said = watch->Order(v1::ControlRequest::VERB_STOP);
    }
  }
  if (is_over) std::printf("the job has ended\n");
  return kSuccess;
}

}  // namespace

int TopCommand(const std::vector<std::string>& arguments) {
  ControlTarget target;
  std::string ranks, format_name = "text";
  bool once = false;
  double seconds = 3;
  Arguments app(
      "Shows what every rank does now: its step, how long the last ones took, what its devices and "
      "its host\nwere busy with, and the line that it is on. The worst rank comes first. In a pipe "
      "it "
      "prints one look.",
      "ranktap top");
  AddTargetOptions(&app, &target);
  app.Add("--ranks", &ranks, "only these ranks: 0,2-5");
  app.AddFlag("--once", &once, "print one look as text and end");
  app.Add("--over", &seconds, "with --once: seconds that the shares are of").ShowsDefault();
  app.Add("--format", &format_name, "of one look: text, json or csv").ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  const auto format = FormatNamed(format_name);
  if (!format || *format == Format::kHtml) {
    return Complained(fmt::format("no format '{}'; it is text, json or csv", format_name),
                      kWrongUsage);
  }
  if (!(seconds > 0 && seconds <= 3600)) {
    return Complained("--over is seconds, more than 0 and at most 3600", kWrongUsage);
  }
  const auto wanted = ranks.empty() ? std::optional(NumberSet()) : ParseNumberSet(ranks);
  if (!wanted) {
    return Complained(fmt::format("--ranks '{}' is not like 0,2-5", ranks), kWrongUsage);
  }
  std::vector<CollectorAnswer> found = FindTarget(target);
  if (found.empty()) return kFailure;
  Watch watch(std::move(found), FullJobName(target), *wanted);
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  return once || *format != Format::kText || !on_terminal ? ShowOnce(&watch, seconds, *format)
                                                          : ShowAlways(&watch);
}

}  // namespace ranktap::collector
