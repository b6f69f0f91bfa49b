#include "collector/cli/top_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

// A rank that waits this much less than the median of its job is late.
constexpr double kLate = 0.10, kTold = 0.03;
// Kernels come in bursts: what is younger than this may still be on its way.
constexpr double kBurstNs = 2.5e9;
// The cause where no phase tells it.
constexpr const char* kNoPhase = "its host or device works longer";

uint64_t MedianOf(std::vector<uint64_t> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

double MedianShare(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::vector<uint64_t> StepsOf(const v1::ProcessStatus& process) {
  return {process.live().step_ns().begin(), process.live().step_ns().end()};
}

uint64_t LastStep(const v1::ProcessStatus& process) {
  const int count = process.live().step_ns_size();
  return count == 0 ? 0 : process.live().step_ns(count - 1);
}

std::optional<double> Share(uint64_t now, uint64_t before, double whole_ns) {
  if (whole_ns <= 0 || now < before) return std::nullopt;
  return std::min(static_cast<double>(now - before) / whole_ns, 1.0);
}

void Rate(const v1::ProcessStatus& before, uint64_t between_ns, TopRow* row) {
  const v1::LiveStatus &now = row->process.live(), &then = before.live();
  const auto whole = static_cast<double>(between_ns);
  row->data = Share(now.data_ns(), then.data_ns(), whole);
  row->checkpoint = Share(now.checkpoint_ns(), then.checkpoint_ns(), whole);
  row->compilation = Share(now.compilation_ns(), then.compilation_ns(), whole);
  row->collection = Share(now.collection_ns(), then.collection_ns(), whole);
  row->backward = Share(now.backward_ns(), then.backward_ns(), whole);
  row->optimizer = Share(now.optimizer_ns(), then.optimizer_ns(), whole);
  if (!now.has_device_age_ns()) {
    row->waits = Share(now.collective_ns(), then.collective_ns(), whole);
    return;
  }
  // What the records that have come cover: from the last of then to the last of now.
  const double known = whole - static_cast<double>(now.device_age_ns()) +
                       static_cast<double>(then.has_device_age_ns() ? then.device_age_ns() : 0);
  const double device_whole = std::max(known, whole - kBurstNs);
  row->busy = Share(now.busy_ns(), then.busy_ns(), device_whole);
  row->waits = Share(now.exposed_ns(), then.exposed_ns(), device_whole);
}

struct Part {
  const char* name;
  std::optional<double> TopRow::*share;
};
constexpr Part kParts[] = {
    {"data loading", &TopRow::data},       {"a checkpoint", &TopRow::checkpoint},
    {"compilation", &TopRow::compilation}, {"garbage collection", &TopRow::collection},
    {"the optimizer", &TopRow::optimizer}, {"the backward pass", &TopRow::backward}};

std::string CauseOf(const TopRow& late, std::span<const TopRow> job) {
  std::string cause;
  double most = kTold;
  for (const Part& part : kParts) {
    std::vector<double> others;
    for (const TopRow& row : job) {
      if (&row != &late) others.push_back((row.*part.share).value_or(0));
    }
    const double own = (late.*part.share).value_or(0), usual = MedianShare(others);
    if (own - usual <= most) continue;
    most = own - usual;
    cause = fmt::format("{} {:.0f} %, others {:.0f} %", part.name, 100 * own, 100 * usual);
  }
  return cause.empty() ? kNoPhase : cause;
}

// Rows of one job.
void MarkLate(std::span<TopRow> job) {
  std::vector<double> waits;
  for (const TopRow& row : job) {
    if (row.waits) waits.push_back(*row.waits);
  }
  if (waits.size() < 2) return;
  TopRow* least = nullptr;
  for (TopRow& row : job) {
    if (row.waits && (least == nullptr || *row.waits < *least->waits)) least = &row;
  }
  // Without it, so that of two ranks the other one tells what is usual.
  waits.erase(std::ranges::find(waits, *least->waits));
  if (MedianShare(waits) - *least->waits >= kLate) least->cause = CauseOf(*least, job);
}

auto KeyOf(const v1::ProcessStatus& process) {
  return std::tuple(!process.has_rank(), process.rank(), process.pid());
}

// Calls visit(rows) for each job's.
template <typename Rows, typename Visit>
void ForEachJob(Rows& rows, Visit&& visit) {
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    while (end < rows.size() && rows[end].job == rows[begin].job) ++end;
    visit(std::span(rows).subspan(begin, end - begin));
    begin = end;
  }
}

Cell Percent(const std::optional<double>& share) { return share ? Cell(100 * *share) : Cell(); }

std::string DoesNow(const TopRow& row) {
  const v1::LiveStatus& live = row.process.live();
  if (row.cause == kNoPhase && !row.line.empty()) return "late, at " + row.line;
  if (!row.cause.empty()) return "late: " + row.cause;
  constexpr uint64_t kLongNs = 2'000'000'000;
  if (live.collective_ns_open() < kLongNs) return row.line;
  return fmt::format("in {} for {}", live.collective().empty() ? "a collective" : live.collective(),
                     FormatNs(static_cast<int64_t>(live.collective_ns_open())));
}

}  // namespace

std::vector<TopRow> RowsOf(const TopLook& before, const TopLook& now) {
  std::map<std::pair<std::string, uint64_t>, const v1::ProcessStatus*> known;
  for (const CollectorAnswer& answer : before.answers) {
    for (const v1::ProcessStatus& process : answer.reply.processes()) {
      known[{answer.socket, process.session()}] = &process;
    }
  }
  std::vector<TopRow> rows;
  for (const CollectorAnswer& answer : now.answers) {
    for (const v1::ProcessStatus& process : answer.reply.processes()) {
      if (process.state() == v1::ProcessStatus::STATE_ENDING) continue;
      TopRow row{.job = JobNameOf(process), .process = process};
      const auto then = known.find({answer.socket, process.session()});
      if (then != known.end() && process.has_live() && then->second->has_live()) {
        Rate(*then->second, now.at_ns - before.at_ns, &row);
      }
      rows.push_back(std::move(row));
    }
  }
  SortRows(TopOrder::kRank, &rows);
  ForEachJob(rows, [](std::span<TopRow> job) { MarkLate(job); });
  SortRows(TopOrder::kWorst, &rows);
  return rows;
}

std::vector<std::string> WaitSentences(const std::vector<TopRow>& rows) {
  std::vector<std::string> sentences;
  ForEachJob(rows, [&](std::span<const TopRow> job) {
    constexpr uint64_t kSecond = 1'000'000'000;
    uint64_t longest_step = 0, longest_wait = 0;
    size_t waiting = 0;
    const TopRow* first = nullptr;
    std::vector<const TopRow*> others;
    for (const TopRow& row : job) {
      for (const uint64_t step : StepsOf(row.process)) longest_step = std::max(longest_step, step);
    }
    const uint64_t patience =
        longest_step == 0 ? 120 * kSecond : std::max(20 * kSecond, 5 * longest_step);
    for (const TopRow& row : job) {
      const uint64_t open = row.process.live().collective_ns_open();
      if (open < patience) {
        others.push_back(&row);
        continue;
      }
      ++waiting;
      if (open > longest_wait) first = &row;
      longest_wait = std::max(longest_wait, open);
    }
    if (first == nullptr || job.size() < 2) return;
    const std::string& what = first->process.live().collective();
    std::string text =
        fmt::format("{} of {} ranks of {} wait in {}, for {}", waiting, job.size(), first->job,
                    what.empty() ? "a collective" : what,
                    FormatNs(static_cast<int64_t>(longest_wait / kSecond * kSecond)));
    if (others.size() == 1) {
      text += fmt::format("; {} is not in it", ProcessNameOf(others[0]->process));
      if (!others[0]->line.empty()) text += ": it is at " + others[0]->line;
    } else {
      text += fmt::format("; {} outside of it",
                          others.empty() ? "none" : Counted(others.size(), "rank"));
    }
    sentences.push_back(text);
  });
  return sentences;
}

void SortRows(TopOrder order, std::vector<TopRow>* rows) {
  const auto rank = [](const TopRow& row) { return KeyOf(row.process); };
  std::ranges::stable_sort(*rows, [&](const TopRow& a, const TopRow& b) {
    if (a.job != b.job) return a.job < b.job;
    switch (order) {
      case TopOrder::kWorst: {
        const auto key = [](const TopRow& row) {
          const bool waits = row.process.live().collective_ns_open() >= 2'000'000'000;
          return std::tuple(row.cause.empty(), waits, row.waits.value_or(1));
        };
        if (key(a) != key(b)) return key(a) < key(b);
        break;
      }
      case TopOrder::kStep:
        if (LastStep(a.process) != LastStep(b.process)) {
          return LastStep(a.process) > LastStep(b.process);
        }
        break;
      case TopOrder::kMemory: {
        const auto memory = [](const TopRow& row) { return row.process.cost().resident_bytes(); };
        if (memory(a) != memory(b)) return memory(a) > memory(b);
        break;
      }
      case TopOrder::kRank:
        break;
    }
    return rank(a) < rank(b);
  });
}

std::string Sparkline(const std::vector<uint64_t>& steps, size_t most, uint64_t usual,
                      bool is_utf8) {
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr const char* kDigits[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
  std::string text;
  for (size_t i = steps.size() - std::min(steps.size(), most); i < steps.size(); ++i) {
    const double height =
        usual == 0 ? 1 : static_cast<double>(steps[i]) / static_cast<double>(usual);
    const auto level = static_cast<size_t>(std::clamp(std::lround(4 * height), 1L, 8L)) - 1;
    text += is_utf8 ? kBlocks[level] : kDigits[level];
  }
  return text;
}

Table TopTable(const std::vector<TopRow>& rows, size_t spark, bool is_utf8) {
  const bool has_jobs = !rows.empty() && rows.front().job != rows.back().job;
  Table table{.name = "top",
              .title = "",
              .columns = {{"job", Unit::kText, has_jobs ? Shown::kAlways : Shown::kDetail},
                          {"rank", Unit::kCount},
                          {"pid", Unit::kText, Shown::kDetail},
                          {"step", Unit::kCount},
                          {"step_time_ns", Unit::kNs},
                          {"steps", Unit::kText},
                          {"busy_percent", Unit::kPercent},
                          {"waits_percent", Unit::kPercent},
                          {"data_percent", Unit::kPercent},
                          {"memory_bytes", Unit::kBytes, Shown::kDetail},
                          {"gpu_memory_bytes", Unit::kBytes, Shown::kDetail},
                          {"lost", Unit::kCount, Shown::kDetail},
                          {"cost_percent", Unit::kPercent, Shown::kDetail},
                          {"does", Unit::kText}}};
  std::vector<uint64_t> all;
  for (const TopRow& row : rows) {
    for (const uint64_t step : StepsOf(row.process)) all.push_back(step);
  }
  const uint64_t usual = MedianOf(all);
  table.title =
      rows.empty()
          ? "No process is connected"
          : fmt::format("{}: {}, {}", has_jobs ? "Several jobs" : rows.front().job,
                        Counted(rows.size(), "rank"),
                        usual == 0 ? "no step has ended since top began"
                                   : "a step takes " + FormatNs(static_cast<int64_t>(usual)));
  for (const TopRow& row : rows) {
    const v1::ProcessStatus& process = row.process;
    const v1::LiveStatus& live = process.live();
    const std::vector<uint64_t> steps = StepsOf(process);
    const auto count = [](uint64_t value) { return static_cast<int64_t>(value); };
    const uint64_t memory = process.cost().resident_bytes();
    Cell cost;
    if (process.cost().watched_ns() > 0) {
      cost = 100.0 * static_cast<double>(process.callback_ns()) /
             static_cast<double>(process.cost().watched_ns());
    }
    table.rows.push_back(
        {row.job, process.has_rank() ? Cell(int64_t{process.rank()}) : Cell(),
         std::to_string(process.pid()),
         live.has_step_number() ? Cell(count(live.step_number())) : Cell(),
         steps.empty() ? Cell() : Cell(count(steps.back())),
         Sparkline(steps, spark, usual, is_utf8), Percent(row.busy), Percent(row.waits),
         Percent(row.data), memory == 0 ? Cell() : Cell(count(memory)),
         process.device_memory_total() == 0 ? Cell() : Cell(count(process.device_memory_used())),
         count(process.lost()), cost, DoesNow(row)});
  }
  table.notes = WaitSentences(rows);
  for (const TopRow& row : rows) {
    if (row.process.lost() == 0) continue;
    table.notes.push_back(fmt::format("{} lost {} events", ProcessNameOf(row.process),
                                      FormatCount(static_cast<int64_t>(row.process.lost()))));
  }
  return table;
}

}  // namespace ranktap::collector
