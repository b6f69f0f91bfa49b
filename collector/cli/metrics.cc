#include "collector/cli/metrics.h"

#include <fmt/core.h>

#include <charconv>
#include <functional>
#include <mutex>
#include <optional>

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

  Result<std::string> Text() {
    const std::lock_guard lock(mutex_);
    constexpr uint64_t kFreshNs = 1'000'000'000;
    const uint64_t now = MonotonicRawNs();
    if (!text_.empty() && now - asked_ns_ < kFreshNs) return text_;
    v1::ControlRequest request;
    request.set_verb(v1::ControlRequest::VERB_STATUS);
    request.set_live(true);
    const Result<v1::ControlReply> reply = AskCollector(socket_, request);
    if (!reply) return Failure{reply.message()};
    asked_ns_ = now;
    text_ = MetricsText(*reply);
    return text_;
  }

 private:
  std::string socket_;
  std::mutex mutex_;
  std::string text_;
  uint64_t asked_ns_ = 0;
};

HttpResponse AnswerScrape(Cache* cache, const HttpRequest& request) {
  if (request.path != "/metrics") {
    return {.status = 404, .type = "text/plain", .body = "the page is /metrics\n"};
  }
  Result<std::string> text = cache->Text();
  if (!text) return {.status = 500, .type = "text/plain", .body = text.message() + "\n"};
  return {.type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
          .body = std::move(*text)};
}

}  // namespace

void AddMetricsOption(Arguments* app, std::string* address) {
  app->Add("--metrics", address,
           "serve what ranks do now to Prometheus at this port of the loopback: 127.0.0.1:9400");
}

Result<uint16_t> MetricsPort(const std::string& address) {
  std::string_view text = address;
  for (const std::string_view host : {"127.0.0.1:", "localhost:", ":"}) {
    if (!text.starts_with(host)) continue;
    text.remove_prefix(host.size());
    break;
  }
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port != 0) return port;
  return Failure{
      fmt::format("--metrics '{}' is not a port of this machine's loopback; write 9400 "
                  "or 127.0.0.1:9400",
                  address)};
}

std::unique_ptr<HttpServer> ServeMetrics(const std::string& address, const std::string& socket) {
  if (address.empty()) return nullptr;
  const Result<uint16_t> port = MetricsPort(address);
  Result<std::unique_ptr<HttpServer>> server =
      port ? HttpServer::Listen(
                 *port, [cache = std::make_shared<Cache>(socket)](
                            const HttpRequest& asked) { return AnswerScrape(cache.get(), asked); })
           : Failure{port.message()};
  if (server) return std::move(*server);
  Complain(fmt::format("no metrics: {}", server.message()));
  return nullptr;
}

std::string MetricsText(const v1::ControlReply& reply) {
  std::string text;
  std::vector<std::pair<const Process*, std::string>> processes;
  for (const Process& process : reply.processes()) {
    if (process.state() == Process::STATE_ENDING) continue;
    processes.emplace_back(&process, LabelsOf(process));
  }
  const auto begin = [&](const char* name, const char* type, std::string_view unit,
                         const char* help) {
    text += fmt::format("# TYPE {} {}\n", name, type);
    if (!unit.empty()) text += fmt::format("# UNIT {} {}\n", name, unit);
    text += fmt::format("# HELP {} {}\n", name, help);
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
  begin("ranktap_phase_seconds", "counter", "seconds", "Time of the host in a phase.");
  for (const auto& [process, labels] : processes) {
    for (const Phase& phase : kPhases) {
      if (const auto value = OfLive(*process, Seconds((process->live().*phase.ns)()))) {
        text += fmt::format("ranktap_phase_seconds_total{{{},phase=\"{}\"}} {}\n", labels,
                            phase.name, *value);
      }
    }
  }
  return text + "# EOF\n";
}

}  // namespace ranktap::collector
