#include "collector/cli/ncu_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "collector/facts/roofline/join_readings.h"
#include "collector/facts/roofline/measured_work.h"
#include "collector/file/owned_file.h"
#include "collector/file/printable.h"
#include "collector/import/ncu/ncu_csv.h"
#include "collector/report/cells.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

// A row of --set full is some 60 KB.
constexpr size_t kMostNcuBytes = 512u << 20;
constexpr size_t kMissingNamed = 3;

// Of "ncu-rank3.csv", as export --format ncu calls it.
std::optional<int64_t> RankOfName(std::string_view path) {
  constexpr std::string_view kBefore = "rank";
  const size_t dot = path.ends_with(".csv") ? path.size() - 4 : path.size();
  size_t digits = dot;
  while (digits > 0 && path[digits - 1] >= '0' && path[digits - 1] <= '9') --digits;
  if (digits == dot || !path.substr(0, digits).ends_with(kBefore)) return std::nullopt;
  int64_t rank = 0;
  const auto [end, error] = std::from_chars(path.data() + digits, path.data() + dot, rank);
  return error == std::errc() ? std::optional(rank) : std::nullopt;
}

// nullptr, after a complaint: the run has no such rank.
const Trace* TraceFor(const std::string& file, const Run& run) {
  const std::optional<int64_t> rank = RankOfName(file);
  for (const Trace& trace : run.traces) {
    const bool is_only = run.traces.size() == 1 && !trace.info.rank;
    if (!rank || trace.info.rank == rank || is_only) return &trace;
  }
  Complain(fmt::format("--ncu {}: {}", Printable(file),
                       rank ? fmt::format("it is of rank {}, which is not in the run", *rank)
                            : std::string("the run has no rank")));
  return nullptr;
}

void NoteJoined(const std::string& file, const NcuFile& read, const JoinedReadings& joined,
                const Trace& trace, std::vector<std::string>* notes) {
  std::string note = fmt::format(
      "{}: counters of {} of {} kernels joined to {} by name{}, {}", Printable(file), joined.joined,
      joined.kernels.size(), RankName(trace), joined.by_shape ? ", grid and block" : "",
      joined.in_order ? "and all in their order"
                      : "each name's in its order from the first step after the warm-up");
  if (!joined.by_shape) note += "; the file says no grids";
  size_t named = 0;
  for (const auto& [kernel, count] : joined.missing) {
    if (named++ == kMissingNamed) break;
    note += fmt::format("; {} of {} have no such launch in this run", count, Printable(kernel));
  }
  if (joined.missing.size() > kMissingNamed) {
    note += fmt::format("; nor have those of {} more names", joined.missing.size() - kMissingNamed);
  }
  notes->push_back(std::move(note));
  if (read.left_out > 0) {
    notes->push_back(
        fmt::format("{}: {} processes were measured; {} kernels of the others are "
                    "left out",
                    Printable(file), read.processes, read.left_out));
  }
  if (read.absent > 0) {
    notes->push_back(
        fmt::format("{}: ncu could not take {} readings", Printable(file), read.absent));
  }
  if (read.is_ambiguous) {
    notes->push_back(
        fmt::format("{}: numbers such as 98.304 have a fraction of three digits; if these are "
                    "thousands, run ncu with LC_ALL=C",
                    Printable(file)));
  }
}

}  // namespace

void AddNcuOption(Arguments* app, std::vector<std::string>* files) {
  app->Add("--ncu", files,
           "a file of ncu --csv with counters of the same program; that of one rank ends in "
           "rankN.csv; may be repeated")
      .Repeatable();
}

bool TakeNcu(const std::vector<std::string>& files, const Run& run,
             std::vector<std::string>* notes) {
  std::set<const Trace*> told;
  for (const std::string& file : files) {
    const Result<std::string> text = ReadRegularFile(file, kMostNcuBytes);
    if (!text) {
      Complain("--ncu " + Printable(text.message()));
      return false;
    }
    Result<NcuFile> read = ParseNcu(*text, &TellsOfWork);
    if (!read) {
      const std::string wrong = Printable(read.message());  // "12: ...", or of the whole file
      Complain(fmt::format("--ncu {}:{}{}", Printable(file),
                           wrong[0] >= '0' && wrong[0] <= '9' ? "" : " ", wrong));
      return false;
    }
    if (read->kernels.empty()) {
      Complain(fmt::format("--ncu {}: it has no kernel", Printable(file)));
      return false;
    }
    const Trace* const trace = TraceFor(file, run);
    if (trace == nullptr) return false;
    if (!told.insert(trace).second) {
      Complain(fmt::format("--ncu {}: {} has counters of another file", Printable(file),
                           RankName(*trace)));
      return false;
    }
    NoteJoined(file, *read, KnowReadings(std::move(read->kernels), *trace), *trace, notes);
  }
  return true;
}

}  // namespace ranktap::collector
