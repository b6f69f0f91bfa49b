#include "collector/import/nsys/nsys_process.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "collector/import/finish_trace.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostDomains = 0xffff;

}  // namespace

std::string_view WithoutVersion(std::string_view name) {
  const size_t at = name.rfind("_v");
  if (at == name.npos || name.size() - at < 6) return name;
  const bool digits = std::all_of(name.begin() + static_cast<ptrdiff_t>(at) + 2, name.end(),
                                  [](char byte) { return byte >= '0' && byte <= '9'; });
  return digits ? name.substr(0, at) : name;
}

NsysProcess::NsysProcess(int64_t global_pid, const NsysStrings* strings) : strings_(strings) {
  trace_.origin = TraceOrigin::kNsys;
  trace_.info.pid = static_cast<uint32_t>(global_pid >> 24 & 0xffffff);
  trace_.info.executable = "nsys";
}

uint32_t NsysProcess::NameOf(int64_t string_id) {
  const auto [at, is_new] = names_.try_emplace(string_id, 0);
  if (is_new) at->second = NameOf(strings_->Text(string_id));
  return at->second;
}

uint32_t NsysProcess::NameOf(std::string_view text) {
  if (text.empty()) return 0;
  const auto [at, is_new] = texts_.try_emplace(std::string(text), 0);
  if (is_new) at->second = trace_.dictionary.AppendString(text);
  return at->second;
}

uint32_t NsysProcess::ApiOf(int64_t string_id, proto::ApiDomain domain) {
  const auto [at, is_new] = apis_.try_emplace({string_id, domain}, 0);
  if (is_new) {
    at->second = trace_.dictionary.AppendApi(
        {domain, 0, std::string(WithoutVersion(strings_->Text(string_id)))});
  }
  return at->second;
}

uint32_t NsysProcess::LaneOf(const Lane& lane) {
  const auto [at, is_new] = lanes_.try_emplace({lane.device, lane.context, lane.stream},
                                               static_cast<uint32_t>(trace_.lanes.size()));
  if (is_new) trace_.lanes.push_back(lane);
  return at->second;
}

uint32_t NsysProcess::ShapeOf(const proto::LaunchShape& shape) {
  std::string key(sizeof(shape), '\0');
  std::memcpy(key.data(), &shape, sizeof(shape));
  const auto [at, is_new] = shapes_.try_emplace(std::move(key), 0);
  if (is_new) at->second = trace_.dictionary.AppendShape(shape);
  return at->second;
}

uint16_t NsysProcess::WriterOf(int64_t global_tid) {
  const auto known = writers_.find(global_tid);
  if (known != writers_.end()) return known->second;
  if (trace_.writers.size() >= kMostWriters) return kMostWriters;  // a hostile file
  const auto index = static_cast<uint16_t>(trace_.writers.size());
  writers_.emplace(global_tid, index);
  Writer& writer = trace_.writers.emplace_back();
  writer.id = index;
  writer.thread = static_cast<int32_t>(global_tid & 0xffffff);
  return index;
}

uint16_t NsysProcess::DomainOf(int64_t domain_id) {
  if (domain_id == 0) return 0;
  if (domains_.size() + 1 >= kMostDomains) return 0;
  return domains_.try_emplace(domain_id, static_cast<uint16_t>(domains_.size() + 1)).first->second;
}

void NsysProcess::NameThread(int64_t global_tid, std::string_view name) {
  const uint16_t index = WriterOf(global_tid);
  if (index < trace_.writers.size()) trace_.writers[index].name = name;
}

void NsysProcess::NameDomain(int64_t domain_id, std::string_view name) {
  if (const uint16_t domain = DomainOf(domain_id); domain != 0) domain_names_[domain] = name;
}

// For push/pop ranges: how many of the thread and domain are open when each begins.
void NsysProcess::FindDepths() {
  Ranges& ranges = trace_.ranges;
  std::map<std::pair<uint16_t, uint16_t>, std::vector<int64_t>> open;  // ends, the innermost last
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.kind[i] != static_cast<uint8_t>(RangeKind::kPushPop)) continue;
    std::vector<int64_t>& ends = open[{ranges.writer[i], ranges.domain[i]}];
    while (!ends.empty() && ends.back() <= ranges.start[i]) ends.pop_back();
    ranges.depth[i] = static_cast<uint16_t>(std::min<size_t>(ends.size(), UINT16_MAX));
    ends.push_back(ranges.end[i]);
  }
}

void NsysProcess::Finish() {
  v1::Dictionary names;
  for (const auto& [id, name] : domain_names_) {
    v1::Text& text = *names.add_nvtx_domains();
    text.set_id(id);
    text.set_text(name);
  }
  const std::string bytes = names.SerializeAsString();
  trace_.dictionary.Add(std::as_bytes(std::span(bytes)));
  FinishTrace(&trace_);
  // Ranges that nsys saw no end of.
  Ranges& ranges = trace_.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.unfinished.At(i) != 0) ranges.end.Set(i, std::max(ranges.start[i], trace_.last_ns));
  }
  FindDepths();
}

}  // namespace ranktap::collector
