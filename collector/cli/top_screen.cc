#include "collector/cli/top_screen.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "collector/cli/command.h"
#include "collector/file/printable.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/report/human_units.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/stacks/stack_groups.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kEveryNs = 1'000'000'000, kMs = 1'000'000;
constexpr size_t kWide = 120, kNarrow = 80, kWideSpark = 60, kNarrowSpark = 12, kTinySpark = 4;
constexpr char kEscape = '\x1b', kDelete = '\x7f';

constexpr std::string_view kKeys =
    "q quit  s sort  r ranks  jk scroll  l lines  t stacks  be window  d dump  ? help";
constexpr std::string_view kFewKeys = "q quit  ? all keys";
constexpr std::string_view kHelp =
    "steps     the last 60, 12 on a narrow screen; a block of half the height is a usual step\n"
    "busy      any device worked\n"
    "waits     collectives while nothing else ran; without a GPU, the time in gloo's collectives\n"
    "data      waiting for the data loader\n"
    "memory    the process's, in RAM; gpu memory: of the fullest of its devices\n"
    "cost      of our hooks on the program's threads\n"
    "does      why the rank is late, what it waits in, or its main thread's line\n\n"
    "s   sorts by the next of: the worst first, rank, step time, memory\n"
    "r   shows these ranks alone: 0,2-5, then Enter; nothing: all\n"
    "j k scroll, as the arrows do\n"
    "l   turns lines of the program off and on\n"
    "t   shows all stacks of the first rank on the screen\n"
    "b e begins a window of 10 s on all ranks, and ends it\n"
    "d   saves what --keep has of all ranks, as ranktap dump\n"
    "q   quits\n\n"
    "Any key goes back.";

std::string CutToHeight(const std::string& text, size_t rows) {
  size_t end = 0;
  for (size_t row = 0; row < rows && end != text.npos; ++row) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

std::string StacksOf(const TopRow& row) {
  RankStacks one;
  if (row.process.has_rank()) one.rank = row.process.rank();
  one.stacks = ReadProcessStacks(static_cast<pid_t>(row.process.pid()));
  return FormatStacks({one}) + "\nAny key goes back.";
}

// The keys' state, between two drawings.
class Keys {
 public:
  explicit Keys(TopWatch* watch) : watch_(watch) {}

  // False: it is to end.
  bool Take(char key, const std::vector<TopRow>& rows) {
    if (!page_.empty()) {
      page_.clear();
      return true;
    }
    if (typed_) return Type(key);
    said_.clear();
    switch (key) {
      case 'q':
        return false;
      case 's': {
        constexpr const char* kOrders[] = {"the worst first", "by rank", "by step time",
                                           "by memory"};
        order = static_cast<TopOrder>((static_cast<int>(order) + 1) % 4);
        said_ = fmt::format("sorted: {}", kOrders[static_cast<int>(order)]);
        return true;
      }
      case 'r':
        typed_ = "";
        return true;
      case 'j':
        first_ += first_ + 1 < rows.size() ? 1 : 0;
        return true;
      case 'k':
        first_ -= first_ > 0 ? 1 : 0;
        return true;
      case 'l':
        with_lines = !with_lines;
        return true;
      case 't':
        if (first_ < rows.size()) page_ = StacksOf(rows[first_]);
        return true;
      case 'b':
        said_ = watch_->Order(v1::ControlRequest::VERB_START);
        return true;
      case 'e':
        said_ = watch_->Order(v1::ControlRequest::VERB_STOP);
        return true;
      case 'd':
        if (!dump_.valid()) dump_ = watch_->Dump();
        return true;
      case '?':
        page_ = kHelp;
        return true;
      default:
        return true;
    }
  }
  std::string Said() {
    if (typed_)
      return fmt::format("ranks: {}_   (0,2-5; Enter shows them, Escape goes back)", *typed_);
    if (dump_.valid()) {
      if (dump_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return "saving ...";
      said_ = Printable(dump_.get());
    }
    return said_;
  }
  const std::string& page() const { return page_; }
  size_t first() const { return first_; }

  TopOrder order = TopOrder::kWorst;
  bool with_lines = true;

 private:
  bool Type(char key) {
    if (key == kEscape) {
      typed_.reset();
    } else if (key == '\n' || key == '\r') {
      const auto wanted = typed_->empty() ? std::optional(NumberSet()) : ParseNumberSet(*typed_);
      said_ = wanted ? "" : fmt::format("'{}' is not like 0,2-5", *typed_);
      if (wanted) watch_->ShowRanks(*wanted);
      first_ = 0;
      typed_.reset();
    } else if (key == kDelete || key == '\b') {
      if (!typed_->empty()) typed_->pop_back();
    } else if ((key >= '0' && key <= '9') || key == ',' || key == '-') {
      *typed_ += key;
    }
    return true;
  }

  TopWatch* watch_;
  size_t first_ = 0;
  std::string said_, page_;
  std::optional<std::string> typed_;  // ranks, as far as they are written
  std::future<std::string> dump_;
};

}  // namespace

bool SpeaksUtf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || value[0] == '\0') continue;
    const std::string_view text = value;
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

size_t TopSpark(size_t columns) {
  return columns < kNarrow ? kTinySpark : columns < kWide ? kNarrowSpark : kWideSpark;
}

std::string TopScreen(const Table& whole, LiveScreen::Size size, const TopView& view) {
  Table table = whole;
  std::vector<std::string> notes;
  std::swap(notes, table.notes);
  const size_t most_notes = std::clamp<size_t>(size.rows / 6, 1, 4);
  if (notes.size() > most_notes) {
    const size_t left = notes.size() - most_notes + 1;
    notes.resize(most_notes - 1);
    notes.push_back(fmt::format("and {} more such sentences", left));
  }
  const size_t taken = notes.size() + 2;  // what is below, the keys
  const size_t room = size.rows > taken + 1 ? size.rows - taken : 1;
  const size_t first = std::min(view.first, table.rows.empty() ? 0 : table.rows.size() - 1);
  table.rows.erase(table.rows.begin(), table.rows.begin() + static_cast<ptrdiff_t>(first));
  size_t below = 0;
  std::string text;
  // Headings take one line or several: what is too much is known once they are there.
  for (size_t shown = room; shown > 0;) {
    below += table.rows.size() - std::min(table.rows.size(), shown);
    table.rows.resize(std::min(table.rows.size(), shown));
    text = FormatText(table, size.columns, 0);
    const auto lines = static_cast<size_t>(std::ranges::count(text, '\n'));
    if (lines <= room) break;
    shown = table.rows.size() - std::min(table.rows.size(), lines - room);
  }
  if (view.is_colored) text = ColoredTable(text, !table.rows.empty());
  if (below > 0) text += fmt::format("{} more below\n", Counted(below, "rank"));
  for (const std::string& note : notes) text += Printable(note) + "\n";
  const std::string_view keys = size.columns < kNarrow ? kFewKeys : kKeys;
  text += view.said.empty() ? std::string(keys) : view.said;
  return CutToHeight(text, size.rows);
}

int ShowTop(TopWatch* watch) {
  Keys keys(watch);
  bool is_over = false;
  {
    LiveScreen screen;
    const bool is_utf8 = SpeaksUtf8(), is_colored = IsColored(STDOUT_FILENO);
    uint64_t next_look = 0;
    std::vector<TopRow> rows;
    for (bool goes_on = true; goes_on;) {
      const uint64_t now = MonotonicRawNs();
      if (now >= next_look) {
        is_over = !watch->Look();
        next_look = now + kEveryNs;
      }
      if (is_over) break;
      rows = watch->Rows(keys.order, keys.with_lines);
      if (keys.page().empty()) {
        const LiveScreen::Size size = LiveScreen::size();
        Table table = TopTable(rows, TopSpark(size.columns), is_utf8);
        watch->AddWaits(rows, &table);
        const std::string said = keys.Said();
        screen.Draw(TopScreen(table, size, {keys.first(), is_utf8, is_colored, said}));
      } else {
        screen.Draw(keys.page());
      }
      const uint64_t drawn = MonotonicRawNs();
      const char key =
          screen.NextKey(drawn >= next_look ? 0 : static_cast<int>((next_look - drawn) / kMs) + 1);
      if (key != 0) goes_on = keys.Take(key, rows);
    }
  }
  if (is_over) std::printf("the job has ended\n");
  return kSuccess;
}

}  // namespace ranktap::collector
