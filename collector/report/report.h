// The reports: pure functions from a run to a table. They neither print nor open files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The question that a report belongs to, for help and pages.
enum class ReportGroup : uint8_t { kTime, kRanks, kHost, kFramework, kMemory, kCapture };

struct Report {
  ReportGroup group;
  std::string_view name;      // as in `ranktap report RUN NAME`
  std::string_view question;  // one line for --help
  Table (*run)(const Run& run, const ReportOptions& options) = nullptr;
  uint32_t heeds = kNothing;   // which of the options (options.h)
  bool needs_symbols = false;  // reads Trace::symbols
  // For a report about two runs; set instead of `run`.
  Table (*compare)(const Run& before, const Run& after) = nullptr;

  // The table of one run, with the report's name on it and its columns' former names.
  Table operator()(const Run& of, const ReportOptions& options = {}) const;
  Table operator()(const Run& before, const Run& after) const {
    return Named(compare(before, after));
  }

 private:
  Table Named(Table table) const;
};

// In the order in which `ranktap report` lists them (registry.cc).
std::span<const Report> AllReports();
// By its own name, or by nsys' for it with its arguments ("cuda_gpu_kern_sum:base"), which are set
// in `options`. nullptr: there is none.
const Report* FindReport(std::string_view name, ReportOptions* options = nullptr);
// What --by may be for a report: "kernel", ...; empty: it has no --by.
std::vector<std::string_view> WaysOf(const Report& report);
// The report that --by makes of one; nullptr: the report itself heeds it, or there is no such way.
const Report* ReportBy(const Report& report, std::string_view by);
// "temporal, idle, kernels": the reports that heed an option of options.h.
std::string NamesThatHeed(uint32_t option);

}  // namespace ranktap::collector
