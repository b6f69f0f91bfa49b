#include "collector/import/kineto/kineto_names.h"

#include <map>
#include <utility>
#include <vector>

namespace ranktap::collector {
namespace {

void ParseTriple(std::string_view text, uint32_t (&triple)[3]) {
  size_t i = 0;
  bool in_number = false;
  for (const char byte : text) {
    if (byte >= '0' && byte <= '9') {
      triple[i] = triple[i] * 10 + static_cast<uint32_t>(byte - '0');
      in_number = true;
    } else if (in_number && ++i == 3) {
      return;
    } else {
      in_number = false;
    }
  }
}

}  // namespace

uint32_t KinetoNames::LaneOf(const KinetoEvent& event) {
  const auto number = [&](Arg arg, std::string_view otherwise) {
    uint64_t value = 0;
    int64_t negative = 0;
    if (event.has(arg) && ParseInteger(event.text(arg), &negative) && negative < 0) return kNone;
    if (!event.has(arg) || !ParseUnsigned(event.text(arg), &value))
      ParseUnsigned(otherwise, &value);
    return Narrow(value);
  };
  const Lane lane{number(Arg::kDevice, event.pid), Narrow(event.number(Arg::kContext)),
                  number(Arg::kStream, event.tid)};
  if (!trace_->lanes.empty() && trace_->lanes.back() == lane) {
    return static_cast<uint32_t>(trace_->lanes.size() - 1);
  }
  const uint64_t key = uint64_t{lane.device} << 48 ^ uint64_t { lane.context } << 32 ^ lane.stream;
  const auto [at, is_new] = lanes_.try_emplace(key, static_cast<uint32_t>(trace_->lanes.size()));
  if (is_new) trace_->lanes.push_back(lane);
  return at->second;
}

uint32_t KinetoNames::ApiOf(const KinetoEvent& event, proto::ApiDomain domain) {
  const uint64_t key = uint64_t{names_.Intern(event.name)} << 8 | static_cast<uint8_t>(domain);
  const auto [at, is_new] = apis_.try_emplace(key, 0);
  if (is_new) {
    at->second = trace_->dictionary.AppendApi(
        {domain, Narrow(event.number(Arg::kCbid)), Unescaped(event.name)});
  }
  return at->second;
}

uint32_t KinetoNames::ShapeOf(const KinetoEvent& event) {
  if (!event.has(Arg::kGrid) && !event.has(Arg::kBlock)) return 0;
  key_.clear();
  for (const Arg arg :
       {Arg::kGrid, Arg::kBlock, Arg::kRegisters, Arg::kSharedMemory, Arg::kPriority}) {
    key_.append(event.text(arg)).append("|");
  }
  const auto [at, is_new] = shapes_.try_emplace(key_, 0);
  if (is_new) {
    proto::LaunchShape shape{};
    ParseTriple(event.text(Arg::kGrid), shape.grid);
    ParseTriple(event.text(Arg::kBlock), shape.block);
    shape.registers_per_thread = Narrow(event.number(Arg::kRegisters));
    // Kineto adds the static and the dynamic part up.
    shape.static_shared_bytes = Narrow(event.number(Arg::kSharedMemory));
    int64_t priority = 0;
    ParseInteger(event.text(Arg::kPriority), &priority);
    shape.priority = static_cast<int32_t>(priority);
    at->second = trace_->dictionary.AppendShape(shape);
  }
  return at->second;
}

uint32_t KinetoNames::CollectiveOf(const KinetoEvent& event) {
  key_.clear();
  for (auto arg = static_cast<uint8_t>(Arg::kCollective);
       arg <= static_cast<uint8_t>(Arg::kDestinationRank); ++arg) {
    key_.append(event.text(static_cast<Arg>(arg))).append("|");
  }
  const auto [at, is_new] = collectives_.try_emplace(key_, 0);
  if (!is_new) return at->second;
  const auto rank = [&](Arg arg) {
    int64_t value = -1;
    ParseInteger(event.text(arg), &value);
    return static_cast<int32_t>(value);
  };
  trace_->collectives.push_back({
      .name = Unescaped(event.text(Arg::kCollective)),
      .dtype = Unescaped(event.text(Arg::kDtype)),
      .group = Unescaped(event.text(Arg::kGroupName)),
      .group_description = Unescaped(event.text(Arg::kGroupDescription)),
      .group_ranks = SpacedAsTorch(Unescaped(event.text(Arg::kGroupRanks))),
      .in_split = SpacedAsTorch(Unescaped(event.text(Arg::kInSplit))),
      .out_split = SpacedAsTorch(Unescaped(event.text(Arg::kOutSplit))),
      .in_elements = event.number(Arg::kInElements),
      .out_elements = event.number(Arg::kOutElements),
      .group_size = Narrow(event.number(Arg::kGroupSize)),
      .source_rank = rank(Arg::kSourceRank),
      .destination_rank = rank(Arg::kDestinationRank),
      .sequence = event.number(Arg::kCollectiveSequence, ~uint64_t{0}) + 1,
      .communicator = Unescaped(event.text(Arg::kCommunicator)),
  });
  return at->second = static_cast<uint32_t>(trace_->collectives.size());
}

void NameModules(Trace* trace) {
  constexpr std::string_view kModule = "nn.Module: ";
  struct Open {
    int64_t end;
    uint32_t path;
  };
  PythonCalls& calls = trace->python_calls;
  std::unordered_map<uint16_t, std::vector<Open>> open;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> paths;  // by path around and name
  for (size_t row = 0; row < calls.size(); ++row) {
    const std::string_view name = trace->dictionary.String(calls.name[row]);
    if (!name.starts_with(kModule)) continue;
    std::vector<Open>& around = open[calls.writer[row]];
    while (!around.empty() && around.back().end <= calls.start[row]) around.pop_back();
    const uint32_t parent = around.empty() ? 0 : around.back().path;
    uint32_t& path = paths[{parent, calls.name[row]}];
    if (path == 0) {
      std::string text(parent == 0 ? std::string_view() : trace->dictionary.String(parent));
      if (parent != 0) text += '.';
      path = trace->dictionary.AppendString(text.append(name.substr(kModule.size())));
    }
    SetOptional(&calls.module_path, row, path);
    around.push_back({calls.end[row], path});
  }
}

}  // namespace ranktap::collector
