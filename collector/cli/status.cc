// `ranktap status`: what is being traced now.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "collector/cli/command.h"
#include "collector/cli/control.h"
#include "collector/file/run_info.h"
#include "collector/report/human_units.h"
#include "collector/report/text/table_text.h"
#include "collector/report/text/terminal.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

std::string NameOf(v1::ProcessStatus::State state) {
  switch (state) {
    case v1::ProcessStatus::STATE_CONNECTED:
      return "connected";
    case v1::ProcessStatus::STATE_AWAY:
      return "away";
    case v1::ProcessStatus::STATE_ENDING:
      return "ending";
    default:
      return "unknown";
  }
}

int64_t Signed(uint64_t value) { return static_cast<int64_t>(value); }

std::vector<Cell> RowOf(const std::string& socket, const v1::ProcessStatus& process) {
  const v1::Cost& cost = process.cost();
  Cell share;
  if (cost.watched_ns() > 0) {
    share =
        100.0 * static_cast<double>(process.callback_ns()) / static_cast<double>(cost.watched_ns());
  }
  return {JobNameOf(process),
          process.has_rank() ? Cell(int64_t{process.rank()}) : Cell(),
          std::to_string(process.pid()),
          NameOf(process.state()),
          std::string(collector::NameOf(process.level())),
          process.window() == 0 ? Cell() : Cell(Signed(process.window())),
          Signed(process.events()),
          Signed(process.events_per_second()),
          Signed(process.bytes()),
          Signed(process.lost()),
          share,
          Signed(cost.drain_cpu_ns() + cost.sender_cpu_ns()),
          int64_t{cost.steps_down()},
          process.host(),
          process.run(),
          socket};
}

void AddNotes(const v1::ProcessStatus& process, Table* table) {
  for (const std::string& note : process.notes()) {
    const std::string text = fmt::format("{}: {}", ProcessNameOf(process), note);
    if (std::find(table->notes.begin(), table->notes.end(), text) == table->notes.end()) {
      table->notes.push_back(text);
    }
  }
}

// What --keep holds of each job, a line each.
void AddKept(const v1::ControlReply& reply, Table* table) {
  struct Kept {
    uint64_t ns = 0, bytes = 0;
  };
  std::map<std::string, Kept> jobs;
  for (const v1::ProcessStatus& process : reply.processes()) {
    if (!process.has_kept_ns()) continue;
    Kept& kept = jobs[JobNameOf(process)];
    kept.ns = std::max(kept.ns, process.kept_ns());
    kept.bytes += process.kept_bytes();
  }
  for (const auto& [job, kept] : jobs) {
    table->notes.push_back(fmt::format("{}: --keep holds the last {}, {}; ranktap dump saves it",
                                       job, FormatNs(Signed(kept.ns)), FormatBytes(kept.bytes)));
  }
}

std::string SentenceOf(const v1::RunCleaning& cleaning) {
  std::string said = "runs are removed";
  if (cleaning.keep_ns() > 0) {
    const double hours = static_cast<double>(cleaning.keep_ns()) / 3.6e12;
    said += hours < 48 ? fmt::format(" {:.3g} h after they ended", hours)
                       : fmt::format(" {:.4g} days after they ended", hours / 24);
  }
  if (cleaning.max_bytes() > 0) {
    said +=
        fmt::format("{}the oldest first while all take more than {}",
                    cleaning.keep_ns() > 0 ? ", and " : ", ", FormatBytes(cleaning.max_bytes()));
  }
  if (cleaning.bytes_kept() == 0 && cleaning.runs_removed() == 0) return said;
  return fmt::format("{}; {} ({}) so far, and {} are kept", said,
                     Counted(cleaning.runs_removed(), "run"), FormatBytes(cleaning.bytes_removed()),
                     FormatBytes(cleaning.bytes_kept()));
}

Table Tabulate(std::vector<CollectorAnswer> answers) {
  Table table{.name = "status",
              .title = "Processes that are connected now",
              .columns = {{"job", Unit::kText},
                          {"rank", Unit::kCount},
                          {"pid", Unit::kText},
                          {"state", Unit::kText},
                          {"level", Unit::kText},
                          {"window", Unit::kCount, Shown::kDetail},
                          {"events", Unit::kCount},
                          {"events_per_second", Unit::kCount, Shown::kDetail},
                          {"bytes", Unit::kBytes},
                          {"lost", Unit::kCount},
                          {"callbacks_percent", Unit::kPercent},
                          {"own_cpu_ns", Unit::kNs, Shown::kDetail},
                          {"steps_down", Unit::kCount, Shown::kDetail},
                          {"host", Unit::kText, Shown::kDetail},
                          {"run", Unit::kText, Shown::kDetail},
                          {"socket", Unit::kText, Shown::kDetail}}};
  for (CollectorAnswer& answer : answers) {
    auto& processes = *answer.reply.mutable_processes();
    std::sort(processes.begin(), processes.end(), [](const auto& a, const auto& b) {
      const auto key = [](const v1::ProcessStatus& process) {
        return std::tuple(JobNameOf(process), !process.has_rank(), process.rank(), process.pid());
      };
      return key(a) < key(b);
    });
    for (const v1::ProcessStatus& process : processes) {
      table.rows.push_back(RowOf(answer.socket, process));
      AddNotes(process, &table);
    }
    AddKept(answer.reply, &table);
    for (const std::string& wait : answer.reply.waits()) table.notes.push_back(wait);
    for (const v1::Refusal& refusal : answer.reply.refused()) {
      table.notes.push_back(fmt::format("turned away: {}, {} times", refusal.reason(),
                                        FormatCount(Signed(refusal.count()))));
    }
    if (answer.reply.processes_left_out() > 0) {
      table.notes.push_back(fmt::format("{} more processes are not shown",
                                        FormatCount(Signed(answer.reply.processes_left_out()))));
    }
    const std::string who =
        fmt::format("collector {}, pid {}, at {}", answer.reply.collector_version(),
                    answer.reply.collector_pid(), answer.socket);
    table.notes.push_back(processes.empty() ? fmt::format("{}: no process is connected", who)
                                            : who);
    if (answer.reply.has_cleaning()) table.notes.push_back(SentenceOf(answer.reply.cleaning()));
  }
  return table;
}

}  // namespace

int StatusCommand(const std::vector<std::string>& arguments) {
  ControlTarget target;
  std::string format_name = "text";
  Arguments app(
      "Prints the processes that are connected to this user's collectors, and their cost.",
      "ranktap status");
  AddTargetOptions(&app, &target);
  app.Add("--format", &format_name, "text, json or csv").ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  const auto format = FormatNamed(format_name);
  if (!format || *format == Format::kHtml) {
    Complain(fmt::format("no format '{}'; it is text, json or csv", format_name));
    return kWrongUsage;
  }
  std::vector<CollectorAnswer> found = FindTarget(target);
  if (found.empty()) return kFailure;
  const Table table = Tabulate(std::move(found));
  const std::string text = *format == Format::kJson ? FormatJson(table, 0)
                           : *format == Format::kCsv
                               ? FormatCsv(table, 0)
                               : FormatText(table, OutputWidth(STDOUT_FILENO), 0);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return kSuccess;
}

}  // namespace ranktap::collector
