#include "collector/import/execution/link_traces.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "collector/import/open_run.h"
#include "collector/import/optional_values.h"

namespace ranktap::collector {
namespace {

using Rows = std::unordered_map<uint64_t, uint32_t>;  // by rf_id

Rows RowsOf(const Trace& trace) {
  Rows rows;
  for (uint32_t row = 0; row < trace.operators.size(); ++row) {
    const uint64_t id = trace.operators.record_function.At(row);
    if (id != 0) rows.emplace(id, row);
  }
  return rows;
}

// Rows of `from` by those of `to`.
std::map<uint32_t, uint32_t> Matches(const Trace& from, const Rows& from_rows, const Trace& to,
                                     const Rows& to_rows) {
  std::map<uint32_t, uint32_t> rows;
  for (const auto& [id, row] : from_rows) {
    const auto other = to_rows.find(id);
    if (other == to_rows.end()) continue;
    if (from.dictionary.String(from.operators.name[row]) ==
        to.dictionary.String(to.operators.name[other->second])) {
      rows.emplace(row, other->second);
    }
  }
  return rows;
}

class Linker {
 public:
  Linker(const Trace& from, Trace* to, const std::map<uint32_t, uint32_t>& rows)
      : from_(from), to_(to), rows_(rows) {}

  void Link() {
    const Operators& from = from_.operators;
    Operators& to = to_->operators;
    Texts(from.shapes, &to.shapes);
    Texts(from.strides, &to.strides);
    Texts(from.types, &to.types);
    Texts(from.values, &to.values);
    Texts(from.output_shapes, &to.output_shapes);
    Texts(from.output_types, &to.output_types);
    Numbers(from.sequence, &to.sequence);
    Numbers(from.forward_thread, &to.forward_thread);
    Numbers(from.scope, &to.scope);
    Collectives();
    Tensors();
    for (const ProcessGroup& group : from_.process_groups) {
      const bool known = std::ranges::any_of(
          to_->process_groups, [&group](const auto& other) { return other.name == group.name; });
      if (!known) to_->process_groups.push_back(group);
    }
    to_->info.notes.push_back(fmt::format(
        "{} of the {} operators of the execution trace {} are in it, by rf_id", rows_.size(),
        from.size(), std::filesystem::path(from_.path).filename().string()));
  }

 private:
  // Columns are as long as their last value: read beyond the end as none.
  template <typename T, typename Convert>
  void Fill(const OptionalColumn<T>& from, OptionalColumn<T>* to, Convert&& convert) {
    for (const auto& [row, other] : rows_) {
      const T value = from.At(row);
      if (value == T{} || to->At(other) != T{}) continue;
      to->PadTo(other + 1);
      (*to)[other] = convert(value);
    }
  }
  void Texts(const OptionalColumn<uint32_t>& from, OptionalColumn<uint32_t>* to) {
    Fill(from, to, [this](uint32_t id) {
      const auto [at, is_new] = texts_.try_emplace(id, 0);
      if (is_new) at->second = to_->dictionary.AppendString(from_.dictionary.String(id));
      return at->second;
    });
  }
  template <typename T>
  void Numbers(const OptionalColumn<T>& from, OptionalColumn<T>* to) {
    Fill(from, to, [](T value) { return value; });
  }
  void Collectives() {
    std::unordered_map<uint32_t, uint32_t> ids;
    Fill(from_.operators.collective, &to_->operators.collective, [&](uint32_t id) {
      const auto [at, is_new] = ids.try_emplace(id, 0);
      if (is_new) {
        to_->collectives.push_back(from_.collectives[id - 1]);
        at->second = static_cast<uint32_t>(to_->collectives.size());
      }
      return at->second;
    });
  }
  void Tensors() {
    if (!to_->tensor_uses.empty()) return;
    for (const TensorUse& use : from_.tensor_uses) {
      const auto row = rows_.find(use.op);
      if (row == rows_.end()) continue;
      TensorUse linked = use;
      linked.op = row->second;
      linked.time =
          use.is_output ? to_->operators.end[row->second] : to_->operators.start[row->second];
      to_->tensor_uses.push_back(linked);
    }
    std::ranges::stable_sort(to_->tensor_uses, {}, &TensorUse::time);
  }

  const Trace& from_;
  Trace* to_;
  const std::map<uint32_t, uint32_t>& rows_;
  std::unordered_map<uint32_t, uint32_t> texts_;
};

std::optional<uint32_t> RankOf(const Trace& trace) {
  return trace.info.rank ? trace.info.rank : RankInName(trace.path);
}

// A trace with times of the rank, or process, that an execution trace is of; nullptr: none is
// there.
const Trace* ProfiledBeside(const Trace& execution, const std::vector<Trace>& traces) {
  const std::optional<uint32_t> rank = RankOf(execution);
  for (const Trace& trace : traces) {
    if (trace.origin == TraceOrigin::kExecution || trace.origin == TraceOrigin::kMemory) continue;
    const std::optional<uint32_t> other = RankOf(trace);
    if (rank && other ? *rank == *other
                      : execution.info.pid != 0 && execution.info.pid == trace.info.pid) {
      return &trace;
    }
  }
  return nullptr;
}

std::string WhyNotLinked(const Trace& execution, const Trace& beside) {
  const auto name = [](const Trace& trace) {
    return std::filesystem::path(trace.path).filename().string();
  };
  std::string_view why = "most of its operators have ids (rf_id) that the other file does not have";
  if (RowsOf(execution).empty()) why = "its operators have no ids (rf_id)";
  if (beside.operators.record_function.empty()) {
    why = "the other file's operators have no ids (\"Record function id\")";
  }
  return fmt::format("{}: an execution trace, not joined with {} of the same rank and left out: {}",
                     name(execution), name(beside), why);
}

// True: it is in another now.
bool LinkOne(const Trace& from, std::vector<Trace>* traces) {
  const Rows from_rows = RowsOf(from);
  Trace* best = nullptr;
  std::map<uint32_t, uint32_t> most;
  size_t smaller = 0;
  for (Trace& to : *traces) {
    if (to.origin == TraceOrigin::kExecution || to.operators.record_function.empty()) continue;
    // The same rf_ids are in every rank of a job: the process tells.
    if (from.info.pid != 0 && to.info.pid != 0 && from.info.pid != to.info.pid) continue;
    // In containers all processes may have one id.
    const std::optional<uint32_t> from_rank = RankOf(from), to_rank = RankOf(to);
    if (from_rank && to_rank && *from_rank != *to_rank) continue;
    const Rows to_rows = RowsOf(to);
    std::map<uint32_t, uint32_t> rows = Matches(from, from_rows, to, to_rows);
    if (rows.size() <= most.size()) continue;
    most = std::move(rows);
    smaller = std::min(from_rows.size(), to_rows.size());
    best = &to;
  }
  if (best == nullptr || most.size() * 2 < smaller) return false;
  Linker(from, best, most).Link();
  if (!best->info.rank && from.info.rank) {
    best->info.rank = from.info.rank;
    best->info.rank_origin = from.info.rank_origin;
  }
  return true;
}

}  // namespace

void LinkExecutionTraces(std::vector<Trace>* traces, std::vector<std::string>* problems) {
  std::vector<bool> linked(traces->size(), false);
  for (size_t i = 0; i < traces->size(); ++i) {
    const Trace& trace = (*traces)[i];
    if (trace.origin != TraceOrigin::kExecution) continue;
    linked[i] = LinkOne(trace, traces);
    if (linked[i]) continue;
    // A rank is one trace, also where its two files do not fit.
    const Trace* const beside = ProfiledBeside(trace, *traces);
    if (beside == nullptr) continue;
    problems->push_back(WhyNotLinked(trace, *beside));
    linked[i] = true;
  }
  size_t i = 0;
  std::erase_if(*traces, [&](const Trace&) { return static_cast<bool>(linked[i++]); });
}

}  // namespace ranktap::collector
