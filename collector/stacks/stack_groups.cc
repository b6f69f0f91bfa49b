#include "collector/stacks/stack_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace ranktap::collector {
namespace {

bool IsMain(const RankStacks& process, const ThreadStack& stack) {
  return stack.thread == process.stacks.process;
}

std::string NameThread(const RankStacks& process, const ThreadStack& stack) {
  if (IsMain(process, stack)) return "main thread";
  return stack.name.empty() ? "thread" : "thread " + stack.name;
}

// What a thread does, without what differs between processes: "reads socket:[4711] (descriptor 5)".
std::string KindOf(const std::string& does) {
  return does.substr(0, std::min(does.find(" (descriptor"), does.find(":[")));
}

bool IsSame(const ThreadStack& a, const ThreadStack& b) {
  return a.frames == b.frames && a.native == b.native && a.holds_gil == b.holds_gil &&
         KindOf(a.does) == KindOf(b.does) && a.cuda_call == b.cuda_call;
}

// "0-12, 14"
std::string ListNumbers(std::vector<uint32_t> numbers) {
  std::ranges::sort(numbers);
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (end - i > 1) text += fmt::format("{}{}", end - i > 2 ? "-" : ", ", numbers[end - 1]);
    i = end;
  }
  return text;
}

std::string FormatFrame(const StackFrame& frame, size_t times) {
  std::string text = frame.line == 0
                         ? fmt::format("    {} {}", frame.file, frame.function)
                         : fmt::format("    {}:{} {}", frame.file, frame.line, frame.function);
  if (times > 1) text += fmt::format(" ({} times)", times);
  return text + "\n";
}

std::string FormatFrames(const ThreadStack& stack) {
  std::string text;
  for (const NativeFrame& frame : stack.native) {
    text += fmt::format("    {} {}\n", frame.module.empty() ? "?" : frame.module,
                        frame.function.empty() ? "?" : frame.function);
  }
  if (stack.native_cut) text += "    ... and callers in C that cannot be told\n";
  for (size_t i = 0; i < stack.frames.size();) {
    size_t end = i + 1;
    while (end < stack.frames.size() && stack.frames[end] == stack.frames[i]) ++end;
    text += FormatFrame(stack.frames[i], end - i);
    i = end;
  }
  if (stack.truncated) text += "    ... and frames further out, which are left out\n";
  return text;
}

// ", in cudaStreamSynchronize for 3.2 s"
std::string DescribeCudaCall(const StackGroup& group) {
  if (group.stack->cuda_call.empty()) return "";
  std::string text = ", in " + group.stack->cuda_call;
  if (!group.cuda_call_ns) return text;
  return text + fmt::format(" for {}{:.1f} s", group.threads.size() > 1 ? "up to " : "",
                            static_cast<double>(*group.cuda_call_ns) / 1e9);
}

}  // namespace

std::vector<StackGroup> GroupStacks(const std::vector<RankStacks>& processes) {
  std::vector<StackGroup> groups;
  for (size_t i = 0; i < processes.size(); ++i) {
    for (const ThreadStack& stack : processes[i].stacks.threads) {
      const std::string thread = NameThread(processes[i], stack);
      auto group = std::ranges::find_if(groups, [&](const StackGroup& known) {
        return known.thread == thread && IsSame(*known.stack, stack);
      });
      if (group == groups.end()) {
        group = groups.insert(groups.end(),
                              {.ranks = {}, .thread = thread, .stack = &stack, .threads = {}});
      }
      if (group->ranks.empty() || group->ranks.back() != i) group->ranks.push_back(i);
      group->threads.push_back(stack.thread);
      if (stack.cuda_call_ns) {
        group->cuda_call_ns = std::max(group->cuda_call_ns.value_or(0), *stack.cuda_call_ns);
      }
    }
  }
  std::ranges::stable_sort(groups, [](const StackGroup& a, const StackGroup& b) {
    const bool a_main = a.thread == "main thread", b_main = b.thread == "main thread";
    return a_main != b_main ? a_main : a.ranks.size() > b.ranks.size();
  });
  return groups;
}

std::string NameGroup(const std::vector<RankStacks>& processes,
                      const std::vector<size_t>& members) {
  std::vector<uint32_t> ranks, others;
  for (const size_t member : members) {
    const RankStacks& process = processes[member];
    (process.rank ? ranks : others)
        .push_back(process.rank ? *process.rank : static_cast<uint32_t>(process.stacks.process));
  }
  const auto name = [](const std::vector<uint32_t>& numbers, std::string_view one,
                       std::string_view many) {
    if (numbers.empty()) return std::string();
    if (numbers.size() == 1) return fmt::format("{} {}", one, numbers[0]);
    return fmt::format("{} {} ({})", numbers.size(), many, ListNumbers(numbers));
  };
  const std::string of_ranks = name(ranks, "rank", "ranks");
  const std::string of_others = name(others, "process", "processes");
  return of_ranks + (of_ranks.empty() || of_others.empty() ? "" : " and ") + of_others;
}

std::string FormatStacks(const std::vector<RankStacks>& processes) {
  std::string text;
  for (const StackGroup& group : GroupStacks(processes)) {
    const ThreadStack& stack = *group.stack;
    const size_t threads = group.threads.size();
    text += fmt::format("{}, {}", NameGroup(processes, group.ranks), group.thread);
    if (threads > group.ranks.size()) text += fmt::format(" ({} threads)", threads);
    if (!stack.does.empty()) text += fmt::format(": {}", stack.does);
    text += DescribeCudaCall(group);
    if (stack.holds_gil) text += ", with the GIL";
    text += "\n" + FormatFrames(stack) + "\n";
  }
  // Whose stacks are not there, by reason.
  std::map<std::string, std::vector<size_t>> problems;
  for (size_t i = 0; i < processes.size(); ++i) {
    const ProcessStacks& stacks = processes[i].stacks;
    if (!stacks.problem.empty()) problems[stacks.problem].push_back(i);
    if (stacks.torn > 0) problems["some stacks changed each time they were read"].push_back(i);
    if (stacks.problem.empty() && stacks.torn == 0 && stacks.threads.empty()) {
      problems["no thread is in Python code"].push_back(i);
    }
  }
  for (const auto& [problem, members] : problems) {
    text += fmt::format("{}: {}\n", NameGroup(processes, members), problem);
  }
  return text;
}

}  // namespace ranktap::collector
