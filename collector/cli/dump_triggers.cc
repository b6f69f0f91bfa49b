#include "collector/cli/dump_triggers.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "collector/cli/control.h"
#include "collector/file/printable.h"
#include "collector/ingest/control/control_client.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/net/peer.h"
#include "collector/report/human_units.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/output_style.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kCooldownNs = 600'000'000'000;
constexpr int kMostOfARun = 10;
constexpr size_t kMostRuns = 4096;

}  // namespace

std::string DumpLimits::Take(const std::string& run, uint64_t now_ns) {
  Done& done = done_[run];
  if (done.count >= kMostOfARun) return "dumps of --on, held back after the tenth of a run";
  if (done.count > 0 && now_ns - done.last_ns < kCooldownNs) {
    return "dumps of --on, held back in the ten minutes after another of the run";
  }
  ++done.count;
  done.last_ns = now_ns;
  if (done_.size() > kMostRuns) {
    done_.erase(std::ranges::min_element(done_, {},
                                         [](const auto& entry) { return entry.second.last_ns; }));
  }
  return {};
}

std::string SentenceOfDump(const v1::Dump& dump) {
  if (!dump.problem().empty()) {
    return Printable(dump.path().empty()
                         ? dump.problem()
                         : fmt::format("no dump of {}: {}", dump.run(), dump.problem()));
  }
  return Printable(fmt::format(
      "{}: {} of {} {}, {}", dump.path(),
      FormatNs(static_cast<int64_t>(dump.end_realtime_ns() - dump.begin_realtime_ns())),
      dump.traces(), dump.traces() == 1 ? "process" : "processes", FormatBytes(dump.bytes())));
}

DumpTriggers::DumpTriggers(const KeepOptions& options, const std::string& socket,
                           Collector* collector)
    : options_(options), socket_(socket), collector_(collector), slow_steps_(options.slow_step) {
  if (!options_.saves()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { Watch(stop); });
}

void DumpTriggers::Finish() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void DumpTriggers::OnHang(const std::string& sentence, const std::string& run) {
  if (options_.on_hang) Ask(run, "hang: " + sentence);
}

void DumpTriggers::LookForEnds() {
  for (auto at = watched_.begin(); at != watched_.end();) {
    const Watched& process = at->second;
    if (!HasEnded(process.handle.get())) {
      ++at;
      continue;
    }
    const std::string end = DescribeEnd(process.handle.get(), at->first);
    const bool is_signal = end.starts_with("killed");
    const bool is_bad = !end.empty() && end != DescribeWaitStatus(0);
    if (is_bad && (is_signal ? options_.on_signal : options_.on_exit)) {
      Ask(process.run, process.name + " " + end);
    }
    at = watched_.erase(at);
  }
}

void DumpTriggers::Ask(const std::string& run, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    const uint64_t now = MonotonicRawNs();
    const std::string why_not = limits_.Take(run, now);
    if (!why_not.empty()) return collector_->CountRefusal(why_not, run + ": " + reason);
    orders_.push_back({run, reason, now + kOnItsWayNs});
  }
  wake_.notify_one();
}

void DumpTriggers::Watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    lock.unlock();
    Look();
    lock.lock();
    // Nothing tells it to end earlier than a stop: an order has its instant.
    (void)wake_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
    while (!orders_.empty() && orders_.front().at_ns <= MonotonicRawNs()) {
      const Order order = orders_.front();
      orders_.pop_front();
      lock.unlock();
      Save(order);
      lock.lock();
    }
  }
}

void DumpTriggers::Look() {
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_STATUS);
  request.set_live(options_.slow_step != 0 || options_.on_out_of_memory);
  const Result<v1::ControlReply> reply = AskCollector(socket_, request);
  if (!reply) return;
  LookForEnds();
  for (const v1::ProcessStatus& process : reply->processes()) {
    const auto pid = static_cast<pid_t>(process.pid());
    const bool is_new = pid > 0 && watched_.size() < kMostRuns && !watched_.contains(pid);
    if (is_new && process.state() != v1::ProcessStatus::STATE_ENDING) {
      watched_[pid] = {FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
                       process.run(), ProcessNameOf(process)};
      if (!watched_[pid].handle.valid()) watched_.erase(pid);
    }
    if (options_.slow_step != 0) {
      const std::string sentence = slow_steps_.Look(process);
      if (!sentence.empty()) Ask(process.run(), sentence);
    }
    uint64_t& known = out_of_memory_[process.session()];
    if (options_.on_out_of_memory && process.live().out_of_memory() > known) {
      Ask(process.run(), fmt::format("{} ran out of memory", ProcessNameOf(process)));
    }
    known = process.live().out_of_memory();
  }
}

void DumpTriggers::Save(const Order& order) {
  v1::ControlRequest request;
  request.set_verb(v1::ControlRequest::VERB_DUMP);
  request.set_job(order.run);
  request.set_reason(order.reason);
  collector_->Dump(request, [reason = order.reason](const v1::ControlReply& reply) {
    if (Style().quiet) return;
    for (const v1::Dump& dump : reply.dumps()) {
      Complain(fmt::format("{} ({})", SentenceOfDump(dump), Printable(reason)));
    }
  });
}

}  // namespace ranktap::collector
