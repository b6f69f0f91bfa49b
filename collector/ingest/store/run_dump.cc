#include "collector/ingest/store/run_dump.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "collector/file/run_directory.h"
#include "collector/file/trace_join.h"

namespace ranktap::collector {
namespace {

std::string DirectoryName(uint64_t realtime_ns) {
  const auto seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm local{};
  ::localtime_r(&seconds, &local);
  char name[32];
  return {name, std::strftime(name, sizeof(name), "dump-%Y%m%d-%H%M%S", &local)};
}

// What went wrong; empty: all is there.
std::string WriteTraces(RunDump* dump, RunDirectory* into, v1::Dump* told) {
  if (dump->owner != ::geteuid()) {
    if (const auto failure = into->GiveTo(dump->owner)) return failure->message;
  }
  for (auto& [session, process] : dump->processes) {
    const TraceName name{.rank = process.info.rank, .pid = process.info.pid};
    Result<RunDirectory::Part> part = into->CreatePart(name);
    if (!part) return part.message();
    const Result<uint64_t> bytes = JoinTraces(dump->directory.get(), dump->owner, dump->path,
                                              process.files, std::move(part->file));
    if (!bytes) return bytes.message();
    const Result<std::string> file = into->Publish(*part, name);
    if (!file) return file.message();
    process.info.file = *file;
    process.info.bytes = *bytes;
    dump->info.traces.push_back(process.info);
    told->set_bytes(told->bytes() + *bytes);
  }
  told->set_traces(static_cast<uint32_t>(dump->processes.size()));
  const std::optional<Failure> failure = into->WriteInfo(dump->info);
  return failure ? failure->message : "";
}

}  // namespace

v1::Dump WriteDump(RunDump dump) {
  v1::Dump told;
  told.set_run(dump.path);
  told.set_begin_realtime_ns(dump.begin_realtime_ns);
  told.set_end_realtime_ns(dump.end_realtime_ns);
  if (dump.processes.empty()) {
    told.set_problem("no rank has recorded anything in that time");
    return told;
  }
  const std::string name = DirectoryName(dump.end_realtime_ns);
  Result<RunDirectory> into =
      RunDirectory::CreateIn(dump.directory.get(), dump.path, name + std::string(kHalfDump));
  if (!into) {
    told.set_problem(into.message());
    return told;
  }
  std::string problem = WriteTraces(&dump, &*into, &told);
  if (problem.empty()) {
    if (const auto failure = into->Rename(dump.directory.get(), name)) problem = failure->message;
  }
  told.set_path(into->path());
  if (problem.empty()) return told;
  told.set_problem(problem);
  for (const std::string& name : into->Names()) into->Remove(name);
  const std::string directory = std::filesystem::path(into->path()).filename();
  (void)::unlinkat(dump.directory.get(), directory.c_str(), AT_REMOVEDIR);
  return told;
}

}  // namespace ranktap::collector
