#include "collector/cli/metrics.h"

#include <fmt/core.h>

#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "collector/cli/control.h"
#include "collector/file/printable.h"
#include "collector/file/run_info.h"
#include "collector/ingest/control/control_client.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

using Process = v1::ProcessStatus;
using Value = std::function<std::optional<double>(const Process&)>;

struct Family {
  const char* name;  // without _total
  const char* type;
  const char* unit;  // the name's last word; empty: none
  const char* help;
  Value value;
};

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::optional<double> OfLive(const Process& process, double value) {
  return process.has_live() && process.live().ByteSizeLong() > 0 ? std::optional(value)
                                                                 : std::nullopt;
}

std::optional<double> OfDevices(const Process& process, uint64_t bytes) {
  return process.device_memory_total() == 0 ? std::nullopt
                                            : std::optional(static_cast<double>(bytes));
}

const Family kFamilies[] = {
    {"ranktap_step", "gauge", "", "Number of the last step that ended.",
     [](const Process& p) {
       return p.live().has_step_number() ? std::optional<double>(p.live().step_number())
                                         : std::nullopt;
     }},
    {"ranktap_steps", "counter", "", "Steps that ended since somebody asked.",
     [](const Process& p) { return OfLive(p, static_cast<double>(p.live().steps())); }},
    {"ranktap_step_duration_seconds", "gauge", "seconds", "Length of the last step.",
     [](const Process& p) {
       const int steps = p.live().step_ns_size();
       return steps == 0 ? std::nullopt : std::optional(Seconds(p.live().step_ns(steps - 1)));
     }},
    {"ranktap_since_step_seconds", "gauge", "seconds", "Time since the last step ended.",
     [](const Process& p) {
       return p.live().steps() == 0 ? std::nullopt
                                    : std::optional(Seconds(p.live().since_step_ns()));
     }},
    {"ranktap_kernels", "counter", "", "Kernels whose records came.",
     [](const Process& p) { return OfLive(p, static_cast<double>(p.live().kernels())); }},
    {"ranktap_busy_seconds", "counter", "seconds", "Time in which any device worked.",
     [](const Process& p) { return OfLive(p, Seconds(p.live().busy_ns())); }},
    {"ranktap_exposed_communication_seconds", "counter", "seconds",
     "Time of a device's collectives while nothing else ran.",
     [](const Process& p) { return OfLive(p, Seconds(p.live().exposed_ns())); }},
    {"ranktap_collective_seconds", "counter", "seconds", "Time in collectives of gloo.",
     [](const Process& p) { return OfLive(p, Seconds(p.live().collective_ns())); }},
    {"ranktap_collective_open_seconds", "gauge", "seconds",
     "Age of the oldest collective of gloo that has not ended.",
     [](const Process& p) { return OfLive(p, Seconds(p.live().collective_ns_open())); }},
    {"ranktap_memory_bytes", "gauge", "bytes", "What the process has in RAM.",
     [](const Process& p) {
       const uint64_t bytes = p.cost().resident_bytes();
       return bytes == 0 ? std::nullopt : std::optional(static_cast<double>(bytes));
     }},
    {"ranktap_device_memory_bytes", "gauge", "bytes",
     "Used on the fullest of its devices, by whoever uses it.",
     [](const Process& p) { return OfDevices(p, p.device_memory_used()); }},
    {"ranktap_device_memory_limit_bytes", "gauge", "bytes", "All there is on that device.",
     [](const Process& p) { return OfDevices(p, p.device_memory_total()); }},
    {"ranktap_events", "counter", "", "Events that came.",
     [](const Process& p) { return std::optional(static_cast<double>(p.events())); }},
    {"ranktap_lost_events", "counter", "", "Events that never came, by the agent's own word.",
     [](const Process& p) { return std::optional(static_cast<double>(p.lost())); }},
    {"ranktap_hook_seconds", "counter", "seconds", "Time of the program's threads in our hooks.",
     [](const Process& p) { return std::optional(Seconds(p.callback_ns())); }},
};

struct Phase {
  const char* name;
  uint64_t (v1::LiveStatus::*ns)() const;
};
constexpr Phase kPhases[] = {{"data", &v1::LiveStatus::data_ns},
                             {"checkpoint", &v1::LiveStatus::checkpoint_ns},
                             {"compilation", &v1::LiveStatus::compilation_ns},
                             {"collection", &v1::LiveStatus::collection_ns},
                             {"backward", &v1::LiveStatus::backward_ns},
                             {"optimizer", &v1::LiveStatus::optimizer_ns}};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string LabelsOf(const Process& process) {
  return fmt::format("job=\"{}\",rank=\"{}\",pid=\"{}\"", Escaped(JobNameOf(process)),
                     process.has_rank() ? std::to_string(process.rank()) : "", process.pid());
}

// The collector answers one at a time; who scrapes more often than once a second gets the same.
class Cache {
 public:
  explicit Cache(std::string socket) : socket_(std::move(socket)) {}

  Result<std::string> Text(MetricsFormat format) {
    const std::lock_guard lock(mutex_);
    constexpr uint64_t kFreshNs = 1'000'000'000;
    const uint64_t now = MonotonicRawNs();
    if (asked_ns_ == 0 || now - asked_ns_ >= kFreshNs) {
      v1::ControlRequest request;
      request.set_verb(v1::ControlRequest::VERB_STATUS);
      request.set_live(true);
      Result<v1::ControlReply> reply = AskCollector(socket_, request);
      if (!reply) return Failure{reply.message()};
      asked_ns_ = now;
      reply_ = std::move(*reply);
    }
    return MetricsText(reply_, format);
  }

 private:
  std::string socket_;
  std::mutex mutex_;
  v1::ControlReply reply_;
  uint64_t asked_ns_ = 0;
};

HttpResponse AnswerScrape(Cache* cache, const HttpRequest& request) {
  if (request.path != "/metrics") {
    return {.status = 404, .type = "text/plain", .body = "the page is /metrics\n"};
  }
  // Prometheus asks for it by name; what asks for nothing, or for anything, gets the older one.
  const auto accepted = request.headers.find("accept");
  const bool is_open = accepted != request.headers.end() &&
                       accepted->second.find("application/openmetrics-text") != std::string::npos;
  const MetricsFormat format = is_open ? MetricsFormat::kOpenMetrics : MetricsFormat::kText;
  Result<std::string> text = cache->Text(format);
  if (!text) return {.status = 500, .type = "text/plain", .body = text.message() + "\n"};
  return {.type = is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8",
          .body = std::move(*text)};
}

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

// Replaced in one step: a reader sees all of one moment.
bool ReplaceFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  {
    std::ofstream file(fresh, std::ios::trunc);
    file << text;
    if (!file.flush()) return false;
  }
  return std::rename(fresh.c_str(), path.c_str()) == 0;
}

void WriteAgainAndAgain(const std::stop_token& stop, Cache* cache, const std::string& path) {
  constexpr auto kBetween = std::chrono::seconds(5);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  bool has_complained = false;
  do {
    const Result<std::string> text = cache->Text(MetricsFormat::kText);
    if (text && !ReplaceFile(path, *text) && !std::exchange(has_complained, true)) {
      Complain(fmt::format("--metrics-file {}: could not be written", path));
    }
  } while (!stopped.wait_for(lock, stop, kBetween, [&] { return stop.stop_requested(); }));
}

}  // namespace

void AddMetricsOptions(Arguments* app, MetricsOptions* options) {
  app->Add("--metrics", &options->address,
           "serve what ranks do now to Prometheus: 127.0.0.1:9400, or another address of this "
           "machine, as 0.0.0.0:9400, which every machine that reaches it can read");
  app->Add("--metrics-file", &options->file,
           "write the same into this file every 5 s, as node_exporter's textfile collector reads "
           "it; the file goes at the end");
}

Result<MetricsPlace> MetricsPlaceOf(const std::string& text) {
  const size_t colon = text.rfind(':');
  MetricsPlace place{.address = colon == text.npos ? "" : text.substr(0, colon)};
  const std::string_view port = std::string_view(text).substr(colon == text.npos ? 0 : colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), place.port);
  const bool is_bracketed = place.address.starts_with("[") && place.address.ends_with("]");
  if (is_bracketed) place.address = place.address.substr(1, place.address.size() - 2);
  if (place.address.empty() || place.address == "localhost") place.address = "127.0.0.1";
  const bool is_bare_v6 = !is_bracketed && place.address.find(':') != std::string::npos;
  if (error == std::errc() && end == port.data() + port.size() && place.port != 0 && !is_bare_v6) {
    return place;
  }
  return Failure{
      fmt::format("--metrics '{}' is not an address and a port; write 127.0.0.1:9400, "
                  "0.0.0.0:9400 or [::]:9400",
                  text)};
}

Metrics::Metrics(const MetricsOptions& options, const std::string& socket) : file_(options.file) {
  const auto cache = std::make_shared<Cache>(socket);
  if (!file_.empty()) {
    writer_ = std::jthread([cache, path = file_](const std::stop_token& stop) {
      WriteAgainAndAgain(stop, cache.get(), path);
    });
  }
  if (options.address.empty()) return;
  const Result<MetricsPlace> place = MetricsPlaceOf(options.address);
  Result<std::unique_ptr<HttpServer>> server =
      place ? HttpServer::ListenAt(
                  place->address, place->port,
                  [cache](const HttpRequest& asked) { return AnswerScrape(cache.get(), asked); })
            : Failure{place.message()};
  if (!server) {
    Complain(fmt::format("no metrics: {}", server.message()));
    return;
  }
  server_ = std::move(*server);
  if (!IsLoopback(place->address)) {
    Complain(
        fmt::format("metrics at {}: every machine that reaches it can read them, without a "
                    "password",
                    options.address));
  }
}

Metrics::~Metrics() {
  if (!writer_.joinable()) return;
  writer_.request_stop();
  writer_.join();
  (void)std::remove(file_.c_str());
}

std::string MetricsText(const v1::ControlReply& reply, MetricsFormat format) {
  const bool is_open = format == MetricsFormat::kOpenMetrics;
  std::string text;
  std::vector<std::pair<const Process*, std::string>> processes;
  for (const Process& process : reply.processes()) {
    if (process.state() == Process::STATE_ENDING) continue;
    processes.emplace_back(&process, LabelsOf(process));
  }
  // The older format knows a family by its samples' whole name, and neither units nor infos.
  const auto begin = [&](std::string_view name, std::string_view type, std::string_view unit,
                         const char* help) {
    const bool is_info = type == "info";
    const std::string full = fmt::format("{}{}", name,
                                         is_open             ? ""
                                         : type == "counter" ? "_total"
                                         : is_info           ? "_info"
                                                             : "");
    text += fmt::format("# TYPE {} {}\n", full, is_info && !is_open ? "gauge" : type);
    if (!unit.empty() && is_open) text += fmt::format("# UNIT {} {}\n", full, unit);
    text += fmt::format("# HELP {} {}\n", full, help);
  };
  begin("ranktap_process", "info", "", "A process that is connected.");
  for (const auto& [process, labels] : processes) {
    text += fmt::format("ranktap_process_info{{{},host=\"{}\",level=\"{}\"}} 1\n", labels,
                        Escaped(process->host()), NameOf(process->level()));
  }
  for (const Family& family : kFamilies) {
    begin(family.name, family.type, family.unit, family.help);
    const char* const suffix = std::string_view(family.type) == "counter" ? "_total" : "";
    for (const auto& [process, labels] : processes) {
      if (const auto value = family.value(*process)) {
        text += fmt::format("{}{}{{{}}} {}\n", family.name, suffix, labels, *value);
      }
    }
  }
  begin("ranktap_waiting_jobs", "gauge", "", "Jobs whose ranks wait for one of them.");
  text += fmt::format("ranktap_waiting_jobs {}\n", reply.waits_size());
  begin("ranktap_phase_seconds", "counter", "seconds", "Time of the host in a phase.");
  for (const auto& [process, labels] : processes) {
    for (const Phase& phase : kPhases) {
      if (const auto value = OfLive(*process, Seconds((process->live().*phase.ns)()))) {
        text += fmt::format("ranktap_phase_seconds_total{{{},phase=\"{}\"}} {}\n", labels,
                            phase.name, *value);
      }
    }
  }
  return is_open ? text + "# EOF\n" : text;
}

}  // namespace ranktap::collector
