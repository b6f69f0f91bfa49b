// Copies that were asked for asynchronously but go through pageable memory: the driver stages them,
// and the host waits (nsys: cuda_memcpy_async).
#include <fmt/core.h>

#include <array>
#include <string_view>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/host_waits.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr uint8_t kPageable = 1, kPinned = 2;  // CUpti_ActivityMemoryKind
constexpr size_t kDirections = 3;              // CUpti_ActivityMemcpyKind: 1 to the device, 2 back
constexpr std::array<std::string_view, kDirections> kDirectionNames = {"", "to the device",
                                                                       "to the host"};
// Scalars that the program reads are another rule's: pinned memory would not speed them up.
constexpr uint64_t kScalarBytes = 4096;
// Below both a copy costs less than its launch.
constexpr int64_t kLeastBytesPerStep = 1 << 20;
constexpr double kLeastShareOfPageableCopies = 0.01;  // of the step

struct OneWay {
  int64_t count = 0, bytes = 0, ns = 0;     // pageable, of counted steps
  int64_t pinned_bytes = 0, pinned_ns = 0;  // of the whole trace
  std::vector<bool> is_pageable;            // by row of copies
  std::vector<Interval> moments;            // exposed, and idle after
  std::map<std::string, int64_t> by_place;  // bytes
  int64_t lost() const { return Length(Merged(moments)); }
};

using Ways = std::array<OneWay, kDirections>;

void AddCopies(const RankFacts& rank, Ways* ways) {
  const Trace& trace = rank.trace();
  const Copies& copies = trace.copies;
  for (OneWay& way : *ways) way.is_pageable.resize(copies.size());
  for (uint32_t i = 0; i < copies.size(); ++i) {
    const uint8_t kind = copies.copy_kind[i];
    if (kind == 0 || kind >= kDirections || copies.start[i] == kUntimed) continue;
    OneWay& way = (*ways)[kind];
    const uint8_t host = kind == 1 ? copies.src_kind[i] : copies.dst_kind[i];
    const auto bytes = static_cast<int64_t>(copies.bytes[i]);
    if (host == kPinned && copies.bytes[i] >= kLeastBytesPerStep) {
      way.pinned_bytes += bytes;
      way.pinned_ns += copies.end[i] - copies.start[i];
    }
    const uint32_t launch = copies.launch[i];
    if (host != kPageable || copies.bytes[i] <= kScalarBytes || launch == kNone) continue;
    const std::string_view api = trace.dictionary.Api(trace.api_calls.api[launch]).name;
    if (api.find("Async") == api.npos || !rank.IsCounted(copies.start[i])) continue;
    way.is_pageable[i] = true;
    ++way.count;
    way.bytes += bytes;
    way.ns += copies.end[i] - copies.start[i];
    way.by_place[rank.PlaceAt(trace.api_calls.writer[launch], trace.api_calls.start[launch])] +=
        bytes;
  }
}

void AddMoments(const RankFacts& rank, const std::vector<WaitReason>& reasons, OneWay* way) {
  const DeviceSpans& spans = rank.spans();
  for (const LostPiece& piece : rank.lost(Cause::kMemory)) {
    if (piece.span == kNone) continue;
    const DeviceSpan& span = spans[piece.span];
    if (span.table == DeviceSpan::Table::kCopy && way->is_pageable[span.row]) {
      way->moments.emplace_back(piece.start, piece.end);
    }
  }
  std::vector<bool> picks(reasons.size());
  for (size_t i = 0; i < reasons.size(); ++i) {
    picks[i] = reasons[i].copy != kNone && way->is_pageable[reasons[i].copy];
  }
  const std::vector<Interval> idle = IdleAfterWaits(rank, picks);
  way->moments.insert(way->moments.end(), idle.begin(), idle.end());
}

// "5.1 GB/s"
std::string Speed(int64_t bytes, int64_t ns) {
  return fmt::format("{:.1f} GB/s",
                     ns == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(ns));
}

Insight About(const RankFacts& rank, std::string_view direction, OneWay way) {
  const int64_t lost = rank.PerStep(way.lost());
  std::string where = std::ranges::max_element(way.by_place, {}, [](const auto& entry) {
                        return entry.second;
                      })->first;
  return {.finding = fmt::format(
              "Pageable memory is copied {} asynchronously {}, {} in all{}, at {}{}: the device "
              "computes nothing meanwhile or is idle after it for {} {}.",
              direction, rank.TimesAStep(way.count),
              FormatBytes(static_cast<uint64_t>(rank.PerStep(way.bytes))),
              rank.has_steps() ? fmt::format(" a {}", rank.waterfall().steps.noun()) : "",
              Speed(way.bytes, way.ns),
              way.pinned_ns == 0 ? ""
                                 : fmt::format(" (pinned memory of the same run: {})",
                                               Speed(way.pinned_bytes, way.pinned_ns)),
              FormatNs(lost), rank.OfStep()),
          .where = std::move(where),
          .count = way.count,
          .lost_ns = lost,
          .saving = Saving{.moments = std::move(way.moments),
                           .causes = BitOf(Cause::kMemory) | BitOf(Cause::kSync)}};
}

}  // namespace

Answer FindPageableCopies(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  Ways ways;
  AddCopies(rank, &ways);
  const std::vector<WaitReason> reasons = ReasonsOfWaits(rank);
  Answer answer;
  for (size_t kind = 1; kind < kDirections; ++kind) {
    OneWay& way = ways[kind];
    if (way.count == 0) continue;
    AddMoments(rank, reasons, &way);
    const bool is_worth = rank.PerStep(way.bytes) >= kLeastBytesPerStep ||
                          rank.IsWorth(rank.PerStep(way.lost()), kLeastShareOfPageableCopies);
    if (is_worth) answer.insights.push_back(About(rank, kDirectionNames[kind], std::move(way)));
  }
  return answer;
}

}  // namespace ranktap::collector
