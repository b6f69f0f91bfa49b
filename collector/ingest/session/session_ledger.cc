#include "collector/ingest/session/session_ledger.h"

#include "collector/file/trace_state.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// Two readings closer than this tell the ratio of two clocks badly.
constexpr uint64_t kMeaningfulSpanNs = 10'000'000;

template <typename Message>
bool Parse(const proto::FrameView& frame, Message* message) {
  return message->ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()));
}

}  // namespace

SessionLedger::SessionLedger(const v1::Hello& hello) : hello_(hello) {
  v1::HelloSettings settings;
  if (!settings.ParseFromString(hello.SerializeAsString())) return;
  schedule_ = settings.schedule();
  socket_ = settings.socket();
}

void SessionLedger::Note(const proto::FrameView& frame, size_t bytes, uint64_t now_ns) {
  bytes_ += bytes;
  switch (frame.header.type) {
    case proto::FrameType::kEvents:
      events_ += frame.header.events;
      if (const uint64_t lost = proto::Total(frame.header.lost); lost > 0) {
        lost_[frame.header.writer] = lost;
      }
      return;
    case proto::FrameType::kAmend: {
      v1::Hello amendment;
      if (Parse(frame, &amendment)) TraceState::Amend(amendment, &hello_);
      return;
    }
    case proto::FrameType::kCost:
      return NoteCost(frame, now_ns);
    case proto::FrameType::kClock:
      return NoteClock(frame);
    default:
      return;
  }
}

void SessionLedger::NoteCost(const proto::FrameView& frame, uint64_t now_ns) {
  v1::Cost cost;
  if (!Parse(frame, &cost)) return;
  cost_ = cost;
  if (rate_since_ns_ != 0 && now_ns > rate_since_ns_) {
    events_per_second_ =
        static_cast<uint64_t>(static_cast<double>(events_ - rate_events_) * kSecond /
                              static_cast<double>(now_ns - rate_since_ns_));
  }
  rate_since_ns_ = now_ns;
  rate_events_ = events_;
}

void SessionLedger::NoteClock(const proto::FrameView& frame) {
  v1::ClockReadings readings;
  if (!Parse(frame, &readings) || readings.readings_size() == 0) return;
  if (first_clock_.monotonic_raw_ns() == 0) first_clock_ = readings.readings(0);
  last_clock_ = readings.readings(readings.readings_size() - 1);
}

double SessionLedger::NsPerTick() const {
  if (hello_.host_clock().kind() != v1::HostClock::KIND_TSC) return 1;
  const uint64_t ns = last_clock_.monotonic_raw_ns() - first_clock_.monotonic_raw_ns();
  const uint64_t ticks = last_clock_.tsc() - first_clock_.tsc();
  // A process may say anything about its clocks.
  if (last_clock_.monotonic_raw_ns() <= first_clock_.monotonic_raw_ns()) return 0;
  if (last_clock_.tsc() <= first_clock_.tsc() || ns < kMeaningfulSpanNs) return 0;
  return static_cast<double>(ns) / static_cast<double>(ticks);
}

void SessionLedger::NoteDevices(const v1::DeviceSamples& samples) {
  double fullest = -1;
  for (const v1::DeviceSample& sample : samples.samples()) {
    if (sample.memory_total() == 0) continue;
    const double share =
        static_cast<double>(sample.memory_used()) / static_cast<double>(sample.memory_total());
    if (share <= fullest) continue;
    fullest = share;
    device_memory_used_ = sample.memory_used();
    device_memory_total_ = sample.memory_total();
  }
}

void SessionLedger::Describe(v1::ProcessStatus* status) const {
  status->set_job(hello_.rank().job());
  if (hello_.rank().has_rank()) status->set_rank(hello_.rank().rank());
  status->set_host(hello_.process().host());
  status->set_level(hello_.level());
  status->set_events(events_);
  status->set_events_per_second(events_per_second_);
  status->set_bytes(bytes_);
  uint64_t lost = 0;
  for (const auto& [writer, count] : lost_) lost += count;
  status->set_lost(lost);
  *status->mutable_cost() = cost_;
  const double callback_ns = static_cast<double>(cost_.callback_ticks()) * NsPerTick();
  status->set_callback_ns(callback_ns < 9e18 ? static_cast<uint64_t>(callback_ns) : 0);
  for (const std::string& note : hello_.notes()) status->add_notes(note);
  status->set_schedule(schedule_);
  status->set_device_memory_used(device_memory_used_);
  status->set_device_memory_total(device_memory_total_);
}

}  // namespace ranktap::collector
