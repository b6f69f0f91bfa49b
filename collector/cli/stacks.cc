// `ranktap stacks`: where every rank's threads are now.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <thread>

#include "collector/cli/command.h"
#include "collector/cli/control.h"
#include "collector/report/run_filter.h"
#include "collector/report/text/table_text.h"
#include "collector/stacks/proc_files.h"
#include "collector/stacks/process_stacks.h"
#include "collector/stacks/stack_groups.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

std::optional<uint32_t> NumberIn(const std::string& text) {
  uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

// The process itself and all below it that run Python: a launcher's are its ranks.
std::vector<RankStacks> ProcessesBelow(pid_t process) {
  std::vector<RankStacks> found;
  std::vector<pid_t> candidates = DescendantsOf(process);
  candidates.insert(candidates.begin(), process);
  for (const pid_t candidate : candidates) {
    if (!HasPython(candidate)) continue;
    RankStacks one;
    one.rank = NumberIn(VariableOf(candidate, "RANK"));
    one.stacks.process = candidate;
    found.push_back(std::move(one));
  }
  if (found.empty()) found.push_back({.rank = std::nullopt, .stacks = {.process = process}});
  return found;
}

std::vector<RankStacks> ProcessesOf(const std::vector<CollectorAnswer>& answers) {
  std::vector<RankStacks> found;
  for (const CollectorAnswer& answer : answers) {
    for (const v1::ProcessStatus& process : answer.reply.processes()) {
      if (process.state() == v1::ProcessStatus::STATE_ENDING) continue;
      RankStacks one;
      if (process.has_rank()) one.rank = process.rank();
      one.stacks.process = static_cast<pid_t>(process.pid());
      found.push_back(std::move(one));
    }
  }
  return found;
}

// Four at once: a process takes a few milliseconds, most of them in /proc.
void ReadAll(std::vector<RankStacks>* processes, bool with_native) {
  constexpr size_t kReaders = 4;
  std::atomic<size_t> next = 0;
  std::vector<std::thread> readers;
  for (size_t i = 0; i < std::min(kReaders, processes->size()); ++i) {
    readers.emplace_back([processes, with_native, &next] {
      for (size_t at; (at = next.fetch_add(1)) < processes->size();) {
        RankStacks& one = (*processes)[at];
        one.stacks = ReadProcessStacks(one.stacks.process, with_native);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
}

std::string JoinFrames(const ThreadStack& stack) {
  std::string text;
  for (const StackFrame& frame : stack.frames) {
    text += fmt::format("{}{}({}): {}", text.empty() ? "" : ";", frame.file, frame.line,
                        frame.function);
  }
  return text;
}

std::string JoinNative(const ThreadStack& stack) {
  std::string text;
  for (const NativeFrame& frame : stack.native) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ";", frame.module, frame.function);
  }
  if (stack.native_cut) text += ";...";
  return text;
}

Table Tabulate(const std::vector<RankStacks>& processes) {
  Table table{.name = "stacks",
              .title = "Python stacks of live processes",
              .columns = {{"rank", Unit::kCount},
                          {"pid", Unit::kText},
                          {"thread", Unit::kText},
                          {"name", Unit::kText},
                          {"does", Unit::kText},
                          {"cuda_call", Unit::kText},
                          {"cuda_call_ns", Unit::kNs},
                          {"holds_gil", Unit::kText},
                          {"truncated", Unit::kText},
                          {"stack", Unit::kText},
                          {"native", Unit::kText}}};
  for (const RankStacks& process : processes) {
    const Cell rank = process.rank ? Cell(int64_t{*process.rank}) : Cell();
    for (const ThreadStack& stack : process.stacks.threads) {
      table.rows.push_back(
          {rank, std::to_string(process.stacks.process),
           stack.thread == 0 ? Cell() : Cell(std::to_string(stack.thread)), stack.name, stack.does,
           stack.cuda_call.empty() ? Cell() : Cell(stack.cuda_call),
           stack.cuda_call_ns ? Cell(*stack.cuda_call_ns) : Cell(), stack.holds_gil ? "yes" : "no",
           stack.truncated ? "yes" : "no", JoinFrames(stack), JoinNative(stack)});
    }
    if (!process.stacks.problem.empty()) {
      table.notes.push_back(
          fmt::format("process {}: {}", process.stacks.process, process.stacks.problem));
    }
  }
  return table;
}

void Print(const std::vector<RankStacks>& processes, Format format) {
  const std::string text = format == Format::kJson  ? FormatJson(Tabulate(processes), 0)
                           : format == Format::kCsv ? FormatCsv(Tabulate(processes), 0)
                                                    : FormatStacks(processes);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

int StacksCommand(const std::vector<std::string>& arguments) {
  ControlTarget target;
  std::string ranks, format_name = "text";
  bool with_native = false;
  Arguments app(
      "Prints the Python stack of every thread of a job now, equal stacks of ranks together.\n"
      "Reads them from outside: no process is stopped, and a stuck one is read as well.",
      "ranktap stacks");
  app.Add("TARGET", &target.job,
          "a process and all below it, by number; or a job as its launcher calls it, or a run's "
          "directory or its name");
  app.Add("--socket", &target.socket,
          "the collector's socket; without it ranktap looks for those of this user");
  app.Add("--ranks", &ranks, "only these ranks: 0,2-5");
  app.AddFlag(
      "--native", &with_native,
      "and where blocked threads stand in C; of all threads, and of programs without Python");
  app.Add("--format", &format_name, "text, json or csv").ShowsDefault();
  if (const auto status = app.Parse(arguments)) return *status;
  const auto format = FormatNamed(format_name);
  if (!format || *format == Format::kHtml) {
    return Complained(fmt::format("no format '{}'; it is text, json or csv", format_name),
                      kWrongUsage);
  }
  const auto wanted = ranks.empty() ? std::optional(NumberSet()) : ParseNumberSet(ranks);
  if (!wanted) {
    return Complained(fmt::format("--ranks '{}' is not like 0,2-5", ranks), kWrongUsage);
  }
  const auto process = NumberIn(target.job);
  std::vector<RankStacks> processes;
  if (process && *process > 0) {
    processes = ProcessesBelow(static_cast<pid_t>(*process));
  } else {
    const std::vector<CollectorAnswer> answers = FindTarget(target);
    if (answers.empty()) return kFailure;
    processes = ProcessesOf(answers);
  }
  if (!ranks.empty()) {
    std::erase_if(processes, [&wanted](const RankStacks& one) {
      return !one.rank || !wanted->contains(*one.rank);
    });
  }
  if (processes.empty()) return Complained("no such process is connected now", kFailure);
  std::ranges::stable_sort(processes, {}, [](const RankStacks& one) {
    return std::pair(!one.rank, one.rank.value_or(0));
  });
  ReadAll(&processes, with_native);
  Print(processes, *format);
  const bool any = std::ranges::any_of(
      processes, [](const RankStacks& one) { return one.stacks.problem.empty(); });
  return any ? kSuccess : kFailure;
}

}  // namespace ranktap::collector
