#include "collector/stacks/cuda_calls.h"

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "collector/stacks/proc_files.h"
#include "proto/process_memory.h"
#include "proto/ring.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ranktap::collector {
namespace {

using proto::SegmentHeader;
using proto::WriterSlot;

struct Clocks {
  uint64_t tsc = 0, raw_ns = 0;
};

Clocks ClocksNow() {
  timespec now;
  (void)::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  Clocks clocks{.raw_ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
                          static_cast<uint64_t>(now.tv_nsec)};
#if defined(__x86_64__)
  clocks.tsc = __rdtsc();
#endif
  return clocks;
}

// The header and slots of one process, as plain bytes: they may change while they are read.
class SharedRings {
 public:
  SharedRings(pid_t process, uint64_t base) : memory_(process), base_(base) {}

  // nullopt: no rings are there, or those of another version.
  std::optional<CudaState> Read() {
    if (!ReadClock()) return std::nullopt;
    CudaState state;
    // So many writers there have been: further slots are holes, which a read would fill.
    const size_t count =
        std::min(Field<uint32_t>(header_, offsetof(SegmentHeader, next_writer)), MostSlots());
    std::vector<std::byte> slots(count * sizeof(WriterSlot));
    const auto offset = Field<uint64_t>(header_, offsetof(SegmentHeader, slots_offset));
    if (count == 0 || !memory_.Read(base_ + offset, slots.data(), slots.size())) return state;
    for (size_t i = 0; i < count; ++i) {
      const std::byte* const slot = slots.data() + i * sizeof(WriterSlot);
      AddCall(slot, &state.calls);
      state.work_ended += Field<uint64_t>(slot, offsetof(WriterSlot, work_ended));
    }
    return state;
  }

 private:
  template <typename T>
  static T Field(const std::byte* from, size_t offset) {
    T value;
    std::memcpy(&value, from + offset, sizeof(value));
    return value;
  }

  uint32_t MostSlots() const {
    return std::min(Field<uint32_t>(header_, offsetof(SegmentHeader, writer_slots)),
                    proto::kMaxWriterSlots);
  }

  bool ReadClock() {
    if (!memory_.Read(base_, header_, sizeof(header_))) return false;
    if (Field<uint64_t>(header_, offsetof(SegmentHeader, magic)) != proto::kSegmentMagic ||
        Field<uint32_t>(header_, offsetof(SegmentHeader, version)) != proto::kSegmentVersion) {
      return false;
    }
    constexpr size_t kWords = offsetof(SegmentHeader, last_words);
    told_ = {
        .tsc = Field<uint64_t>(header_, kWords + offsetof(proto::LastWords, tsc)),
        .raw_ns = Field<uint64_t>(header_, kWords + offsetof(proto::LastWords, monotonic_raw_ns))};
    now_ = ClocksNow();
    return true;
  }

  // None: the agent's last reading of its clocks is too fresh to tell how long a tick is.
  std::optional<int64_t> Since(uint64_t ticks) const {
    if (told_.tsc == 0) {
      return ticks <= now_.raw_ns ? std::optional(static_cast<int64_t>(now_.raw_ns - ticks))
                                  : std::nullopt;
    }
    constexpr uint64_t kMeaningfulSpanNs = 1'000'000;
    if (now_.raw_ns < told_.raw_ns + kMeaningfulSpanNs || now_.tsc <= told_.tsc ||
        ticks > now_.tsc) {
      return std::nullopt;
    }
    const double ns_per_tick =
        static_cast<double>(now_.raw_ns - told_.raw_ns) / static_cast<double>(now_.tsc - told_.tsc);
    return static_cast<int64_t>(static_cast<double>(now_.tsc - ticks) * ns_per_tick);
  }

  void AddCall(const std::byte* slot, std::map<pid_t, CudaCall>* to) {
    const auto api = Field<uint32_t>(slot, offsetof(WriterSlot, open_api));
    const auto state = Field<uint32_t>(slot, offsetof(WriterSlot, state));
    if (api == 0 || state != static_cast<uint32_t>(proto::WriterState::kLive)) return;
    std::string name = NameOf(api);
    if (name.empty()) return;
    (*to)[Field<int32_t>(slot, offsetof(WriterSlot, thread))] = {
        .name = std::move(name),
        .since_ns = Since(Field<uint64_t>(slot, offsetof(WriterSlot, open_since_ticks)))};
  }

  std::string NameOf(uint32_t ref) {
    const uint64_t offset = uint64_t{ref} * proto::kArenaAlign;
    const auto arena = Field<uint64_t>(header_, offsetof(SegmentHeader, arena_offset));
    const auto bytes = Field<uint64_t>(header_, offsetof(SegmentHeader, arena_bytes));
    proto::ArenaEntry entry;
    if (offset >= bytes || !memory_.Read(base_ + arena + offset, &entry)) return {};
    constexpr uint32_t kMostBytes = 256;
    constexpr uint32_t kHead = sizeof(proto::ApiFunctionEntry);
    if (entry.magic != proto::kArenaMagic || entry.bytes <= kHead || entry.bytes > kMostBytes ||
        entry.kind != static_cast<uint16_t>(proto::EntryKind::kApiFunction)) {
      return {};
    }
    std::string name(entry.bytes - kHead, '\0');
    const uint64_t text = base_ + arena + offset + sizeof(entry) + kHead;
    return memory_.Read(text, name.data(), name.size()) ? name : std::string();
  }

  proto::ProcessMemory memory_;
  const uint64_t base_;
  std::byte header_[sizeof(SegmentHeader)];
  Clocks told_, now_;
};

}  // namespace

CudaState CudaStateReader::Read() {
  constexpr int kReadsBetweenSearches = 10;  // a search reads the whole map of the process
  if (base_ != 0) {
    if (auto state = SharedRings(process_, base_).Read()) return *std::move(state);
    base_ = 0;  // another program runs in it by now
  }
  if (reads_until_search_-- > 0) return {};
  reads_until_search_ = kReadsBetweenSearches;
  for (const MappedFile& file : MappedFilesOf(process_)) {
    if (!file.path.starts_with("/memfd:ranktap")) continue;
    auto state = SharedRings(process_, file.base).Read();
    if (!state) continue;
    base_ = file.base;
    return *std::move(state);
  }
  return {};
}

}  // namespace ranktap::collector
