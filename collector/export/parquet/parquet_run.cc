// The parts of a run as Parquet tables: steps, collectives, ranks.
#include <algorithm>
#include <numeric>

#include "collector/export/parquet/parquet_tables.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

ParquetTable StepTable(const Trace& trace, const ParquetTarget& to) {
  const StepList& steps = DetectSteps(trace);
  const DeviceSteps& on_device = StepsOnDevice(trace);
  ParquetTable table{.name = "steps", .rows = {}};
  for (uint32_t i = 0; i < steps.list.size(); ++i) {
    if (to.options.Keeps(steps.list[i].start, steps.list[i].end)) table.rows.push_back(i);
  }
  table.Integer("start_ns",
                [&steps, shift = to.shift_ns](uint32_t i) { return steps.list[i].start + shift; });
  table.Integer("duration_ns", [&steps](uint32_t i) { return steps.list[i].length(); });
  table.Integer("step", [&steps](uint32_t i) { return steps.list[i].number; });
  table.Integer("device_start_ns", [&on_device, shift = to.shift_ns](uint32_t i) {
    return on_device.list[i].start + shift;
  });
  table.Integer("device_duration_ns",
                [&on_device](uint32_t i) { return on_device.list[i].length(); });
  table.Bool("warm_up", [&steps](uint32_t i) { return steps.list[i].warm_up; });
  table.Text("source", [&steps](uint32_t) -> std::string_view { return steps.source; });
  return table;
}

// One rank's part in one collective.
struct Part {
  const CollectiveRun* call;
  const CollectiveMember* member;
  uint32_t number;  // of the call, the same on all ranks
  bool is_last;
};

std::vector<Part> PartsOf(const ParquetTarget& to) {
  std::vector<Part> parts;
  uint32_t number = 0;
  for (const auto* const calls : {&MatchCollectives(*to.run), &MatchHostCollectives(*to.run)}) {
    for (const CollectiveRun& call : *calls) {
      for (const CollectiveMember& member : call.members) {
        if (member.trace != to.index || !to.options.Keeps(member.start, member.end)) continue;
        const bool is_last = &member == &call.members[call.last_arriver()];
        parts.push_back({&call, &member, number, is_last});
      }
      ++number;
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.member->start < b.member->start; });
  return parts;
}

ParquetTable CollectiveTable(const std::vector<Part>& parts, const Trace& trace,
                             const ParquetTarget& to) {
  ParquetTable table{.name = "collectives", .rows = std::vector<uint32_t>(parts.size())};
  std::iota(table.rows.begin(), table.rows.end(), 0u);
  table.Integer("start_ns", [&parts, shift = to.shift_ns](uint32_t i) {
    return parts[i].member->start + shift;
  });
  table.Integer("duration_ns", [&parts](uint32_t i) { return parts[i].member->length(); });
  table.Text("type", [&parts](uint32_t i) -> std::string_view { return parts[i].call->type(); });
  table.Text("group", [&parts](uint32_t i) -> std::string_view { return parts[i].call->group(); });
  table.Optional(
      "group_size",
      [&parts](uint32_t i) {
        const uint32_t size = parts[i].call->group_size;
        return size == 0 ? std::nullopt : std::optional(size);
      },
      kInt32);
  table.Optional("bytes", [&parts](uint32_t i) {
    const int64_t bytes = parts[i].call->bytes;
    return bytes == 0 ? std::nullopt : std::optional(bytes);
  });
  table.Integer("call", [&parts](uint32_t i) { return parts[i].number; });
  table.Integer(
      "members", [&parts](uint32_t i) { return parts[i].call->members.size(); }, kInt32);
  const auto of_several = [&](std::string_view column, auto value) {
    table.Optional(column, [&parts, value](uint32_t i) -> std::optional<int64_t> {
      if (parts[i].call->members.size() < 2) return std::nullopt;
      return value(parts[i]);
    });
  };
  of_several("transfer_ns", [](const Part& part) { return part.call->shortest(); });
  of_several("wait_ns",
             [](const Part& part) { return part.member->length() - part.call->shortest(); });
  table.Bool("arrived_last", [&parts](uint32_t i) {
    return parts[i].is_last && parts[i].call->members.size() > 1;
  });
  table.Bool("on_host", [&parts](uint32_t i) { return parts[i].member->work == kNone; });
  table.Optional(
      "step", [&parts, &trace](uint32_t i) { return StepNumberAt(trace, parts[i].member->start); });
  return table;
}

std::string CommandOf(const RunInfo& info) {
  std::string command;
  for (const std::string& word : info.command) command += (command.empty() ? "" : " ") + word;
  return command;
}

ParquetTable RankTable(const Trace& trace, const ParquetTarget& to) {
  const TraceInfo& info = trace.info;
  const RunInfo& run = to.run->info;
  ParquetTable table{.name = "ranks", .rows = {0}};
  const int64_t first_ns = trace.first_ns + to.shift_ns, last_ns = trace.last_ns + to.shift_ns;
  table.Integer(
      "started", [first_ns](uint32_t) { return first_ns / 1000; }, ParquetType::kTimestamp);
  table.Integer("first_ns", [first_ns](uint32_t) { return first_ns; });
  table.Integer("last_ns", [last_ns](uint32_t) { return last_ns; });
  table.Text("host", [&info](uint32_t) -> std::string_view { return info.host; });
  table.Integer("pid", [&info](uint32_t) { return info.pid; });
  table.Text("executable", [&info](uint32_t) -> std::string_view { return info.executable; });
  table.Text("command", [&run](uint32_t) { return CommandOf(run); });
  table.Optional(
      "local_rank", [&info](uint32_t) { return info.local_rank; }, kInt32);
  table.Optional(
      "world_size", [&info](uint32_t) { return info.world_size; }, kInt32);
  table.Optional(
      "exit_status", [&run](uint32_t) { return run.exit_status; }, kInt32);
  table.Text("status", [&info](uint32_t) { return NameOf(info.status); });
  table.Text("level", [&info](uint32_t) -> std::string_view { return info.level; });
  table.Bool("simulated", [&info](uint32_t) { return info.simulated; });
  table.Bool("damaged", [&trace](uint32_t) { return !trace.damage.empty(); });
  table.Integer("events", [&info](uint32_t) { return info.events; });
  table.Text("trace", [&info](uint32_t) -> std::string_view { return info.file; });
  table.Text("run_id", [&run](uint32_t) -> std::string_view { return run.run; });
  return table;
}

}  // namespace

void AddRunTables(const Trace& trace, const ParquetTarget& target, const AddParquetTable& add) {
  add(StepTable(trace, target));
  const std::vector<Part> parts = PartsOf(target);
  add(CollectiveTable(parts, trace, target));
  // The last to be published: a run that is listed is there as a whole.
  add(RankTable(trace, target));
}

}  // namespace ranktap::collector
