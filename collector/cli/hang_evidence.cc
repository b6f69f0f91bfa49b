#include "collector/cli/hang_evidence.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collector/facts/hang/find_hang.h"
#include "collector/file/printable.h"
#include "collector/hang/ras_client.h"
#include "collector/import/open_run.h"
#include "collector/ingest/device_sampler.h"
#include "collector/report/device/throttling.h"
#include "collector/report/hang/hang_words.h"
#include "collector/report/human_units.h"
#include "collector/stacks/proc_files.h"

namespace ranktap::collector {
namespace {

using Clock = std::chrono::steady_clock;
using Flights = std::vector<FlightRecord>;

constexpr auto kPatience = std::chrono::milliseconds(5000);
// The server has that for the ranks.
constexpr auto kServerPatience = kPatience + std::chrono::milliseconds(500);
// An agent's word becomes part of a file's name.
constexpr std::array kBackends = {"nccl", "gloo"};

std::optional<HangCalls> CallsIn(const std::vector<std::string>& files) {
  if (files.empty()) return std::nullopt;
  const Result<Run> run = OpenRun(files);
  if (!run) return std::nullopt;
  const JobCalls& job = CallsOfJob(*run);
  const std::vector<HangFinding> findings = FindHang(job);
  if (findings.empty()) return std::nullopt;
  const HangFinding& first = findings.front();
  return HangCalls{.cause = std::string(NameOf(first.cause)),
                   .ranks = RankNames(first.ranks),
                   .finding = DescribeHang(job, first),
                   .advice = HangAdvice(first),
                   .is_guilty = first.is_guilty,
                   .waiting = static_cast<uint32_t>(first.waiting.size())};
}

std::string DeviceText(const DeviceReading& reading) {
  std::string text = "GPU-";
  for (size_t i = 0; i < reading.uuid.size(); ++i) {
    text += fmt::format("{}{:02x}", i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", reading.uuid[i]);
  }
  const auto add = [&text](const auto& value, auto format) {
    if (value) text += ", " + format(*value);
  };
  constexpr double kMilliwatts = 1000;
  add(reading.utilisation_percent, [](uint32_t now) { return fmt::format("{} % utilised", now); });
  add(reading.memory_used, [&](uint64_t used) {
    return fmt::format("{} of {} in use", FormatBytes(used),
                       FormatBytes(reading.memory_total.value_or(0)));
  });
  add(reading.power_mw, [](uint32_t now) { return fmt::format("{:.0f} W", now / kMilliwatts); });
  add(reading.sm_clock_mhz, [](uint32_t now) { return fmt::format("{} MHz", now); });
  add(reading.temperature_c, [](uint32_t now) { return fmt::format("{} degrees C", now); });
  const std::string slow = NamesOfThrottling(reading.throttle_reasons.value_or(0));
  return text + (slow.empty() ? "\n" : ", slowed down: " + slow + "\n");
}

// As AskRas wants it. nullopt: the job has switched RAS off.
std::optional<std::string> RasAddressOf(const std::vector<const RankLook*>& looks) {
  for (const RankLook* const look : looks) {
    if (VariableOf(look->pid, "NCCL_RAS_ENABLE") == "0") return std::nullopt;
    std::string address = VariableOf(look->pid, "NCCL_RAS_ADDR");
    if (!address.empty()) return address;
  }
  return "";
}

struct Gathered {
  std::future<Flights> flights;
  std::future<std::string> ras;
  std::future<std::vector<DeviceReading>> devices;
};

}  // namespace

// A process has a recorder for each backend. Most jobs use one; of two, NCCL's keeps the plain
// name.
void AddFlights(const std::vector<FlightRecord>& flights, const std::map<pid_t, uint32_t>& ranks,
                HangDirectory* directory) {
  std::string problems;
  std::optional<HangCalls> calls;
  bool is_named = false;
  for (const char* const backend : kBackends) {
    std::vector<std::string> files;
    for (const FlightRecord& record : flights) {
      const auto rank = ranks.find(record.pid);
      const auto dump = record.dumps.find(backend);
      if (rank == ranks.end() || dump == record.dumps.end()) continue;
      const std::string name = fmt::format(
          "flight-{}rank-{:05}.json", is_named ? fmt::format("{}-", backend) : "", rank->second);
      directory->Write(name, dump->second);
      files.push_back(fmt::format("{}/{}", directory->path(), name));
    }
    is_named = is_named || !files.empty();
    if (!calls) calls = CallsIn(files);
  }
  for (const FlightRecord& record : flights) {
    const auto rank = ranks.find(record.pid);
    if (record.problem.empty() || rank == ranks.end()) continue;
    problems += fmt::format("rank {}: {}\n", rank->second, Printable(record.problem));
  }
  if (!problems.empty()) directory->Write("flight-problems.txt", problems);
  if (calls) directory->AddCalls(*calls);
}

HangWatchOptions::AddRest GatherEvidence(const std::vector<const RankLook*>& looks,
                                         Collector* collector) {
  std::map<pid_t, uint32_t> ranks;
  std::vector<pid_t> asked;
  for (const RankLook* const look : looks) {
    ranks.emplace(look->pid, look->rank);
    // One that is stopped answers nothing, and would when it goes on.
    if (look->state != 'T' && look->state != 't') asked.push_back(look->pid);
  }
  auto gathered = std::make_shared<Gathered>();
  auto promised = std::make_shared<std::promise<Flights>>();
  gathered->flights = promised->get_future();
  collector->AskFlight(asked, [promised](Flights told) { promised->set_value(std::move(told)); });
  if (const auto address = RasAddressOf(looks)) {
    gathered->ras = std::async(std::launch::async, AskRas, *address, kPatience);
  }
  gathered->devices = std::async(std::launch::async, [] { return ReadDevices(kPatience); });
  return [ranks, gathered, deadline = Clock::now() + kServerPatience](HangDirectory* directory) {
    if (gathered->flights.wait_until(deadline) == std::future_status::ready) {
      AddFlights(gathered->flights.get(), ranks, directory);
    }
    const std::string ras = gathered->ras.valid() ? gathered->ras.get() : "";
    if (!ras.empty()) directory->Write("ras.txt", ras);
    std::string devices;
    for (const DeviceReading& reading : gathered->devices.get()) devices += DeviceText(reading);
    if (!devices.empty()) directory->Write("nvml.txt", devices);
  };
}

}  // namespace ranktap::collector
