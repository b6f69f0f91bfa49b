#include "collector/report/jobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collector/report/cells.h"
#include "collector/report/human_units.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// Tells a process from all others of a run: its host, its boot and its number there.
using ProcessKey = std::tuple<std::string, std::string, uint32_t>;

ProcessKey KeyOf(const v1::Process& process, uint32_t pid) {
  return {process.host(), process.boot_id(), pid};
}

uint64_t StartOf(const Trace& trace) { return trace.hello.process().start_realtime_ns(); }

uint64_t EndOf(const Trace& trace) {
  return static_cast<uint64_t>(std::max<int64_t>(trace.last_ns + trace.realtime_offset_ns, 0));
}

// torchrun's, where nobody gave one: every job has it.
std::string LaunchersJob(const Trace& trace) {
  const std::string& job = trace.hello.rank().job();
  return job == "none" || job == "static" ? std::string() : job;
}

bool Worked(const Trace& trace) {
  return trace.kernels.size() > 0 || !RangesIn(trace, kStepDomain).empty();
}

class JobFinder {
 public:
  explicit JobFinder(const Run& run) : run_(run), job_(run.traces.size(), kNone) {
    for (uint32_t t = 0; t < run.traces.size(); ++t) {
      const v1::Process& process = run.traces[t].hello.process();
      if (run.traces[t].is_ours()) by_process_.emplace(KeyOf(process, process.pid()), t);
    }
  }

  std::vector<Job> Find() {
    std::vector<uint32_t> by_start(run_.traces.size());
    for (uint32_t t = 0; t < by_start.size(); ++t) by_start[t] = t;
    std::stable_sort(by_start.begin(), by_start.end(), [this](uint32_t a, uint32_t b) {
      return StartOf(run_.traces[a]) < StartOf(run_.traces[b]);
    });
    for (const uint32_t t : by_start) {
      const Trace& trace = run_.traces[t];
      if (!trace.is_ours() || !trace.hello.has_process() || ParentOf(t) != kNone) continue;
      if (trace.info.rank || Worked(trace)) job_[t] = JobOf(t);
    }
    for (uint32_t t = 0; t < job_.size(); ++t) {
      uint32_t parent = t;
      for (size_t steps = 0; steps < job_.size() && ParentOf(parent) != kNone; ++steps) {
        parent = ParentOf(parent);
      }
      if (job_[parent] != kNone) jobs_[job_[parent]].traces.push_back(t);
    }
    return std::move(jobs_);
  }

 private:
  // The traced process that started this one.
  uint32_t ParentOf(uint32_t t) const {
    const v1::Process& process = run_.traces[t].hello.process();
    const auto found = by_process_.find(KeyOf(process, process.parent_pid()));
    return found == by_process_.end() || found->second == t ||
                   StartOf(run_.traces[found->second]) > StartOf(run_.traces[t])
               ? kNone
               : found->second;
  }

  uint32_t JobOf(uint32_t t) {
    const Trace& trace = run_.traces[t];
    const std::string id = LaunchersJob(trace);
    const std::string script = ScriptOf(trace.hello.process());
    const std::tuple key(id, trace.info.rank ? int64_t{trace.info.world_size.value_or(0)} : -1,
                         id.empty() ? script : std::string());
    std::vector<uint32_t>& alike = by_key_[key];
    for (const uint32_t job : alike) {
      if (!id.empty() || IsOf(job, t)) {
        members_[job].push_back(t);
        return job;
      }
    }
    jobs_.push_back({.name = id.empty() ? script : "job " + id, .traces = {}});
    members_.push_back({t});
    alike.push_back(static_cast<uint32_t>(jobs_.size() - 1));
    return alike.back();
  }

  // Not: its rank was there already, and is over. An elastic job that restarts says so.
  bool IsOf(uint32_t job, uint32_t t) const {
    const Trace& trace = run_.traces[t];
    if (trace.hello.rank().restart() > 0) return true;
    return std::none_of(members_[job].begin(), members_[job].end(), [&](uint32_t other) {
      const Trace& before = run_.traces[other];
      const v1::Process& process = before.hello.process();
      const bool same = process.pid() == trace.hello.process().pid() &&
                        process.start_ticks() == trace.hello.process().start_ticks() &&
                        process.host() == trace.hello.process().host();
      return !same && before.info.rank == trace.info.rank && EndOf(before) <= StartOf(trace);
    });
  }

  const Run& run_;
  std::vector<uint32_t> job_;  // by trace
  std::vector<Job> jobs_;
  std::vector<std::vector<uint32_t>> members_;  // by job, without those they started
  std::map<std::tuple<std::string, int64_t, std::string>, std::vector<uint32_t>> by_key_;
  std::map<ProcessKey, uint32_t> by_process_;
};

std::string SizeOf(const Run& run, const Job& job) {
  std::set<uint32_t> ranks;
  for (const uint32_t t : job.traces) {
    if (run.traces[t].info.rank) ranks.insert(*run.traces[t].info.rank);
  }
  return ranks.empty() ? Counted(job.traces.size(), "process") : Counted(ranks.size(), "rank");
}

}  // namespace

std::vector<Job> FindJobs(const Run& run) { return JobFinder(run).Find(); }

std::string DescribeJobs(const Run& run) {
  const std::vector<Job> jobs = FindJobs(run);
  if (jobs.size() < 2) return "";
  std::string text = fmt::format("{} jobs are in this run", jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    text +=
        fmt::format("{} {}: {}, {}", i == 0 ? ":" : ";", i + 1, jobs[i].name, SizeOf(run, jobs[i]));
  }
  return text + "; --job 1 asks about one of them";
}

bool KeepJob(int64_t number, Run* run) {
  const std::vector<Job> jobs = FindJobs(*run);
  if (number < 1 || number > static_cast<int64_t>(jobs.size())) return false;
  const std::vector<uint32_t>& kept = jobs[static_cast<size_t>(number - 1)].traces;
  run->memo.Reset();
  std::vector<Trace> traces;
  for (const uint32_t t : kept) traces.push_back(std::move(run->traces[t]));
  run->traces = std::move(traces);
  return true;
}

}  // namespace ranktap::collector
