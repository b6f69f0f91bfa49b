#include "collector/cli/hang_notes_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/file/hang_notes.h"
#include "collector/hang/call_place.h"
#include "collector/report/hang/hang_summary.h"
#include "collector/trace/run.h"

namespace ranktap::collector {
namespace {

Cell CellOf(const HangCalls& calls, const std::string& column) {
  if (column == "cause") return calls.cause;
  if (column == "ranks") return calls.ranks;
  if (column == "guilty") return std::string(calls.is_guilty ? "yes" : "undecided");
  if (column == "waiting") return static_cast<int64_t>(calls.waiting);
  if (column == "finding") return calls.finding;
  if (column == "advice") return calls.advice;
  return {};
}

Cell CellOf(const HangNote& note, const std::string& column) {
  if (column == "cause") return note.cause;
  if (column == "ranks") return note.awaited.empty() ? Cell() : Cell(RankText(note.awaited));
  if (column == "guilty") return std::string(note.is_guilty() ? "yes" : "undecided");
  if (column == "waiting") return static_cast<int64_t>(note.waiting.size());
  if (column == "finding") return note.sentence;
  if (column == "advice") return note.advice;
  return {};
}

void AddRows(const std::vector<HangNote>& notes, Table* table) {
  std::vector<std::vector<Cell>> rows;
  const auto add = [&](const auto& told) {
    std::vector<Cell>& row = rows.emplace_back();
    for (const TableColumn& column : table->columns) row.push_back(CellOf(told, column.name));
  };
  for (const HangNote& note : notes) {
    add(note);
    if (note.calls) add(*note.calls);
    table->notes.push_back(
        fmt::format("stacks of all ranks, and what /proc said: {}", note.directory));
  }
  table->rows.insert(table->rows.begin(), rows.begin(), rows.end());
  table->title = notes.front().sentence;
}

}  // namespace

void AddHangNotes(const std::string& run, Table* table) {
  const std::vector<HangNote> notes = ReadHangNotes(run);
  if (!notes.empty()) AddRows(notes, table);
}

std::optional<Table> OfHangNotes(const std::string& run) {
  const std::vector<HangNote> notes = ReadHangNotes(run);
  if (notes.empty()) return std::nullopt;
  Table table = TabulateHang(Run{.path = run});
  table.notes.clear();
  AddRows(notes, &table);
  return table;
}

}  // namespace ranktap::collector
