#include "collector/cli/control.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "collector/cli/command.h"
#include "collector/file/run_info.h"
#include "collector/ingest/control/control_client.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/report/human_units.h"
#include "collector/report/text/table_text.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(20);
// From the instant on: a process that has not confirmed by then is reported.
constexpr uint64_t kPatienceNs = 5'000'000'000;

// A run may be named by any path that leads to it.
std::string Canonical(const std::string& job) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(job, error);
  return error || !std::filesystem::is_directory(path, error) ? job : path.string();
}

std::string ClockTime(uint64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm local{};
  ::localtime_r(&seconds, &local);
  char text[32], whole[48];
  std::strftime(text, sizeof(text), "%H:%M:%S", &local);
  std::snprintf(whole, sizeof(whole), "%s.%03u", text,
                static_cast<unsigned>(realtime_ns % 1'000'000'000 / 1'000'000));
  return whole;
}

std::vector<std::string> SocketsOf(const ControlTarget& target) {
  return target.socket.empty() ? CandidateSockets() : std::vector{target.socket};
}

struct Confirmations {
  std::vector<std::string> confirmed, ended, silent;
};

// One look: who of those that were told is at the level by now.
Confirmations Look(const v1::ControlReply& order, const v1::ControlReply& now) {
  std::map<uint64_t, const v1::ProcessStatus*> alive;
  for (const v1::ProcessStatus& process : now.processes()) {
    if (process.state() != v1::ProcessStatus::STATE_ENDING) alive[process.session()] = &process;
  }
  const bool is_over = order.until_realtime_ns() != 0 && RealtimeNs() >= order.until_realtime_ns();
  Confirmations found;
  for (const v1::ProcessStatus& told : order.processes()) {
    if (told.state() != v1::ProcessStatus::STATE_CONNECTED) continue;
    const auto process = alive.find(told.session());
    std::string name = ProcessNameOf(told);
    if (process == alive.end()) {
      found.ended.push_back(std::move(name));
    } else if (is_over || process->second->level() == order.level() ||
               process->second->window() > order.window()) {
      found.confirmed.push_back(std::move(name));
    } else {
      found.silent.push_back(std::move(name));
    }
  }
  return found;
}

Confirmations AwaitConfirmations(const CollectorAnswer& order, const std::string& job) {
  v1::ControlRequest question;
  question.set_verb(v1::ControlRequest::VERB_STATUS);
  question.set_job(job);
  Confirmations found = Look(order.reply, order.reply);
  while (RealtimeNs() < order.reply.at_realtime_ns() + kPatienceNs) {
    const Result<v1::ControlReply> now = AskCollector(order.socket, question);
    // The collector went with its last process.
    found = Look(order.reply, now ? *now : v1::ControlReply());
    const bool early = RealtimeNs() < order.reply.at_realtime_ns();
    if (!now || (found.silent.empty() && !early)) break;
    std::this_thread::sleep_for(kAskEvery);
  }
  return found;
}

std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

std::string Describe(const v1::ControlReply& order, const Confirmations& found, bool waited) {
  const bool is_start = order.level() != v1::LEVEL_DORMANT;
  std::string text = fmt::format("window {}: ", order.window());
  text += is_start ? std::string(NameOf(order.level())) : std::string("off");
  const size_t count =
      waited ? found.confirmed.size() : static_cast<size_t>(order.processes_size());
  text += fmt::format(" on {} process{} from {}", count, count == 1 ? "" : "es",
                      ClockTime(order.at_realtime_ns()));
  if (order.until_realtime_ns() != 0) {
    text += fmt::format(" for {}", FormatNs(static_cast<int64_t>(order.until_realtime_ns() -
                                                                 order.at_realtime_ns())));
  }
  if (count == 0 && is_start) text += "; processes that come join it";
  return text;
}

// Steps of a window before the first that this schedule records, by the rule that the agent follows
// (schedule.py). 0: it records the first, or the text is not a schedule and the agent has said so.
uint64_t StepsWithoutOperators(std::string_view schedule) {
  std::map<std::string_view, uint64_t> values;
  while (!schedule.empty()) {
    const std::string_view part = schedule.substr(0, schedule.find(','));
    schedule.remove_prefix(std::min(part.size() + 1, schedule.size()));
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view number = part.substr(std::min(equals + 1, part.size()));
    uint64_t value = 0;
    const char* const end = number.data() + number.size();
    const auto [rest, error] = std::from_chars(number.data(), end, value);
    if (part.empty()) continue;
    if (error != std::errc() || rest != end || value > 1'000'000'000'000) return 0;
    values[part.substr(0, equals)] = value;
  }
  const auto value_of = [&](std::string_view dashed, std::string_view underscored) {
    const auto found = values.find(values.contains(dashed) ? dashed : underscored);
    return found == values.end() ? 0 : found->second;
  };
  const bool waits = value_of("skip-first-wait", "skip_first_wait") == 0;
  return value_of("skip-first", "skip_first") + values["warmup"] + (waits ? values["wait"] : 0);
}

// Said where the window that begins now may record no operators because the user named other steps.
std::set<std::string> MissingOperators(const v1::ControlReply& order) {
  std::set<std::string> said;
  for (const v1::ProcessStatus& process : order.processes()) {
    // In a process at level full the schedule began earlier.
    if (process.schedule().empty() || process.level() == v1::LEVEL_FULL) continue;
    if (order.level() < v1::LEVEL_FULL) {
      said.insert(fmt::format("run --schedule {} names steps, but level {} records no operators",
                              process.schedule(), NameOf(order.level())));
    } else if (const uint64_t steps = StepsWithoutOperators(process.schedule()); steps > 0) {
      said.insert(fmt::format(
          "run --schedule {} records no operators in the window's first {}; a window that ends "
          "before then has none",
          process.schedule(), steps == 1 ? "step" : fmt::format("{} steps", steps)));
    }
  }
  return said;
}

}  // namespace

void AddTargetOptions(Arguments* app, ControlTarget* target) {
  app->Add(
      "job", &target->job,
      "a job as its launcher calls it, or a run's directory or its name; the begin of a name that "
      "no other has will do");
  app->Add("--socket", &target->socket,
           "the collector's socket; without it ranktap looks for those of this user");
}

std::string JobNameOf(const v1::ProcessStatus& process) {
  const std::string& run = process.run();
  return process.job().empty() ? run.substr(run.rfind('/') + 1) : process.job();
}

std::string ProcessNameOf(const v1::ProcessStatus& process) {
  return process.has_rank() ? fmt::format("rank {}", process.rank())
                            : fmt::format("pid {}", process.pid());
}

std::string FullJobName(const ControlTarget& target) {
  std::string name = Canonical(target.job);
  if (target.job.empty() || name != target.job) return name;
  v1::ControlRequest everything;
  everything.set_verb(v1::ControlRequest::VERB_STATUS);
  std::set<std::string> begun;
  for (const std::string& socket : SocketsOf(target)) {
    const Result<v1::ControlReply> reply = AskCollector(socket, everything);
    if (!reply) continue;
    for (const v1::ProcessStatus& process : reply->processes()) {
      const std::string& run = process.run();
      for (const std::string& known : {process.job(), run.substr(run.rfind('/') + 1)}) {
        if (known == name) return name;
        if (known.starts_with(name)) begun.insert(JobNameOf(process));
      }
    }
  }
  return begun.size() == 1 ? *begun.begin() : name;
}

std::vector<CollectorAnswer> FindTarget(const ControlTarget& target) {
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_STATUS);
  request.set_job(FullJobName(target));
  const std::vector<std::string> sockets = SocketsOf(target);
  std::vector<CollectorAnswer> found;
  std::vector<std::string> problems;
  for (const std::string& socket : sockets) {
    Result<v1::ControlReply> reply = AskCollector(socket, request);
    if (!reply) {
      if (!target.socket.empty()) {
        problems = {reply.message() + "; without --socket ranktap looks for those of yours"};
      }
    } else if (!reply->problem().empty()) {
      problems.push_back(fmt::format("{}: {}", socket, reply->problem()));
    } else {
      found.push_back({socket, std::move(*reply)});
    }
  }
  if (found.empty()) {
    for (const std::string& problem : problems) Complain(problem);
    if (!problems.empty()) return found;
    Complain(
        "no collector of yours runs here; `ranktap run -- COMMAND` starts one for a command, "
        "`ranktap collect` one that stays");
  }
  return found;
}

std::vector<CollectorAnswer> ThoseThatKeep(std::vector<CollectorAnswer> found) {
  const auto keeps = [](const CollectorAnswer& answer) {
    return std::ranges::any_of(answer.reply.processes(),
                               [](const auto& process) { return process.has_kept_ns(); });
  };
  if (!std::ranges::any_of(found, keeps)) return found;
  std::erase_if(found, [&](const CollectorAnswer& answer) { return !keeps(answer); });
  return found;
}

bool IsAmbiguous(const ControlTarget& target, const std::vector<CollectorAnswer>& found,
                 const char* or_else) {
  if (target.all || !target.job.empty()) return false;
  std::set<std::string> jobs;
  for (const CollectorAnswer& answer : found) {
    for (const v1::ProcessStatus& process : answer.reply.processes()) {
      jobs.insert(JobNameOf(process));
    }
  }
  if (jobs.size() < 2 && (found.size() < 2 || !target.socket.empty())) return false;
  std::string names;
  for (const std::string& job : jobs) names += (names.empty() ? "" : ", ") + job;
  Complain(fmt::format("several collectors or jobs are here ({}); name a job{}",
                       names.empty() ? "no process is connected" : names, or_else));
  return true;
}

int OrderLevels(const ControlTarget& target, v1::ControlRequest request, bool wait) {
  const std::vector<CollectorAnswer> found = FindTarget(target);
  if (found.empty()) return kFailure;
  if (IsAmbiguous(target, found, ", or use --all")) return kWrongUsage;
  request.set_job(FullJobName(target));
  int status = kSuccess;
  for (const CollectorAnswer& collector : found) {
    const Result<v1::ControlReply> reply = AskCollector(collector.socket, request);
    if (!reply || !reply->problem().empty()) {
      Complain(!reply ? reply.message()
                      : fmt::format("{}: {}", collector.socket, reply->problem()));
      status = kFailure;
      continue;
    }
    const Confirmations confirmations =
        wait ? AwaitConfirmations({collector.socket, *reply}, request.job()) : Confirmations{};
    std::printf("%s\n", Printable(Describe(*reply, confirmations, wait)).c_str());
    if (reply->level() != v1::LEVEL_DORMANT) {
      for (const std::string& sentence : MissingOperators(*reply)) {
        std::printf("%s\n", Printable(sentence).c_str());
      }
    }
    if (!confirmations.ended.empty()) {
      Complain(
          fmt::format("{} ended before the window was confirmed", Listed(confirmations.ended)));
    }
    if (!confirmations.silent.empty()) {
      Complain(fmt::format("{} did not confirm within 5 s; see ranktap status",
                           Listed(confirmations.silent)));
      status = kFailure;
    }
  }
  return status;
}

}  // namespace ranktap::collector
