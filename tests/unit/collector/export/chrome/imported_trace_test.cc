// What torch.profiler wrote comes out of an export as it went in: events, fields, arrows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "collector/export/exporter.h"
#include "collector/export/exporters.h"
#include "collector/import/byte_source.h"
#include "tests/sanitized.h"
#include "tests/unit/collector/import/kineto/kineto_text.h"

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

std::string TextOf(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  EXPECT_TRUE(source) << source.message();
  std::string text;
  std::vector<char> buffer(1 << 20);
  while (source) {
    const size_t got = source->Read(buffer.data(), buffer.size());
    if (got == 0) break;
    text.append(buffer.data(), got);
  }
  return text;
}

Json ReadBack(const std::string& path) { return Json::parse(TextOf(path), nullptr, false); }

std::vector<const Trace*> FirstOf(const Run& run) { return {&run.traces.at(0)}; }

class Imported {
 public:
  explicit Imported(const std::string& text) : text_(text) {
    Write(path(), text);
    Result<collector::Run> run = OpenRun({path()});
    EXPECT_TRUE(run) << run.message();
    if (run) run_ = std::move(*run);
  }
  std::string path() const { return directory_ / "x.json"; }
  Json Original() const { return Json::parse(text_); }
  Json Exported(const ExportOptions& options = {}) const {
    const auto failure =
        FindExporter("chrome")->write(run_, FirstOf(run_), options, directory_ / "out.json");
    EXPECT_FALSE(failure) << failure->message;
    return ReadBack(directory_ / "out.json");
  }
  collector::Run ReopenedFrom(const std::string& format) const {
    const std::string out = directory_ / ("out." + format);
    EXPECT_FALSE(FindExporter(format)->write(run_, FirstOf(run_), {}, out));
    Result<collector::Run> again = OpenRun({out});
    EXPECT_TRUE(again) << again.message();
    return again ? std::move(*again) : collector::Run{};
  }
  const collector::Run& run() const { return run_; }

 private:
  TemporaryDirectory directory_;
  std::string text_;
  collector::Run run_;
};

// Of everything that an export once lost or made up: HIP's kinds and launches with their grid,
// fields nobody here knows, no arrows, a copy without bytes, work on no stream, groups, names.
const std::string kVaried =
    R"({"schemaVersion":1,"hip_runtime_version":70051831,"distributedInfo":{"backend":"nccl",)"
    R"("rank":3,"world_size":8,"pg_count":1,"pg_config":[{"pg_name":"0","pg_size":8,"ranks":[0,3]}]},)"
    R"("traceEvents":[)"
    R"({"ph":"M","name":"process_name","pid":10,"tid":0,"ts":0,"args":{"name":"train_gpt"}},)" +
    Span("hip_runtime", "hipLaunchKernel", 100, 5,
         R"("correlation":1,"kernel":"k<3>","grid":[3,1,1],"block":[64,1,1],"cid":7)") +
    "," +
    Span("kernel", "k<3>", 120, 30,
         R"("device":0,"stream":-1,"correlation":1,"kind":"Dispatch Kernel","Ev Idx":9)", 0, 7) +
    "," +
    Span("gpu_memcpy", "CopyHostToDevice", 160, 4,
         R"("device":0,"stream":2,"correlation":2,"kind":"CopyHostToDevice")", 0, 2) +
    "," +
    Span("cuda_sync", "Stream Wait Event", 170, 4,
         R"("stream":7,"correlation":4,"device":0,"context":1,"wait_on_stream":20,)"
         R"("wait_on_cuda_event_record_corr_id":3,"wait_on_cuda_event_id":5)",
         0, 7) +
    "," + Span("cuda_profiler_range", "r", 120, 30, R"("smsp__inst.sum":1.5)") +
    R"(,{"ph":"i","s":"t","name":"Record Window End","pid":"","tid":"","ts":300}],)"
    R"("traceName":"x.json","with_stack":1})";

TEST(ImportedTrace, WhatAProgramSaidOfItselfGoesOnWithoutCredentials) {
  const std::string text =
      R"({"schemaVersion":1,"team":"vision","API_TOKEN":"s3cr3tvalue",)"
      R"("sweep":{"lr":0.1,"token":512,"password":null,"env":{"HF_TOKEN":"hf_\"s3cr3tvalue"}},)"
      R"("traceEvents":[)" +
      Span("cpu_op", "aten::mm", 1, 5) + "]}";
  const Imported imported(text);
  std::set<std::string> handed_on;
  const Json exported = imported.Exported({.handed_on = &handed_on});
  EXPECT_THAT(handed_on, ElementsAre("API_TOKEN", "sweep", "team"));
  EXPECT_EQ(exported["team"], "vision");
  EXPECT_EQ(exported["sweep"], Json::parse(R"({"lr":0.1,"token":512,"password":null,)"
                                           R"("env":{"HF_TOKEN":"***"}})"));
  EXPECT_EQ(exported.dump().find("s3cr3tvalue"), std::string::npos);
  std::set<std::string> none;
  const Json bare =
      Imported(File("", Span("cpu_op", "aten::mm", 1, 5))).Exported({.handed_on = &none});
  EXPECT_TRUE(none.empty());
}

TEST(ImportedTrace, ComesBackFieldByField) {
  const Imported imported(kVaried);
  EXPECT_EQ(imported.Exported(), imported.Original());
}

TEST(ImportedTrace, RealFilesComeBackFieldByField) {
  const std::filesystem::path data = RANKTAP_SHARED_DATA "/kineto";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not there";
  TemporaryDirectory directory;
  size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    // The two largest take a sanitizer's build minutes, most of them in the JSON library.
    if (kSanitized && entry.file_size() > 500'000) continue;
    Result<collector::Run> run = OpenRun({entry.path().string()});
    if (!run || run->traces.at(0).origin != TraceOrigin::kKineto) continue;
    ASSERT_FALSE(FindExporter("chrome")->write(*run, FirstOf(*run), {}, directory / "out.json"));
    Json expected = ReadBack(entry.path().string());
    const Json::json_pointer token("/metadata/system/env/HF_TOKEN");
    if (expected.contains(token)) expected[token] = "***";
    EXPECT_TRUE(ReadBack(directory / "out.json") == expected) << entry.path();
    ++compared;
  }
  EXPECT_GE(compared, kSanitized ? 11u : 13u);
}

// Launches at 10, 20, ..., each with a kernel 5 us later and an arrow between their starts.
std::string WithArrows() {
  std::string events;
  for (int i = 1; i <= 5; ++i) {
    const auto arrow = [i](const std::string& phase, int pid, int tid, int ts) {
      return R"({"ph":")" + phase + R"(","id":)" + std::to_string(i) +
             R"(,"cat":"ac2g","name":"ac2g","pid":)" + std::to_string(pid) + R"(,"tid":)" +
             std::to_string(tid) + R"(,"ts":)" + std::to_string(ts) + "}";
    };
    events += (i > 1 ? "," : "") + Call("cudaLaunchKernel", 10 * i, 2, i) + "," +
              Work("kernel", "k", 10 * i + 5, 3, i) + "," + arrow("s", kPid, 11, 10 * i) + "," +
              arrow("f", 0, 7, 10 * i + 5);
  }
  return File("", events);
}

TEST(ImportedTrace, AWindowKeepsWholeEventsAndArrowsWithBothEnds) {
  const Imported imported(WithArrows());
  std::multiset<std::string> kept;
  // The launch at 20 ends before it, its kernel at 25 does not; the launch at 40 is the last.
  const Json exported = imported.Exported({.from = 25'000, .to = 45'000});
  for (const Json& event : exported["traceEvents"]) {
    kept.insert(event["ph"].get<std::string>() + event["ts"].dump());
  }
  EXPECT_THAT(kept, ElementsAre("X25", "X30", "X35", "X40", "f35", "s30"));
}

TEST(ImportedTrace, OntoItsOwnFileIsNoDamage) {
  const Imported imported(WithArrows());
  ASSERT_FALSE(
      FindExporter("chrome")->write(imported.run(), FirstOf(imported.run()), {}, imported.path()));
  const Result<collector::Run> again = OpenRun({imported.path()});
  ASSERT_TRUE(again) << again.message();
  EXPECT_EQ(again->traces.at(0).kernels.size(), 5u);
}

TEST(ImportedTrace, OfADamagedFileWhatWasReadComesOut) {
  std::string text = WithArrows();
  text.resize(text.rfind("{\"ph\":\"s\""));
  const Imported imported(text);
  size_t kernels = 0;
  const Json exported = imported.Exported();
  for (const Json& event : exported["traceEvents"]) {
    kernels += event.value("cat", "") == "kernel" ? 1 : 0;
  }
  EXPECT_EQ(kernels, 5u);
}

TEST(ImportedTrace, ForHtaItKeepsGroupsNamesAndTheStreamThatIsWaitedFor) {
  const Imported imported(kVaried);
  const Json exported = imported.Exported({.hta_compat = true});
  const Json& groups = exported["distributedInfo"]["pg_config"];
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0]["pg_size"], 8);
  EXPECT_EQ(groups[0]["ranks"], Json({0, 3}));
  bool named = false, waits = false;
  for (const Json& event : exported["traceEvents"]) {
    named |= event["name"] == "process_name" && event["args"]["name"] == "train_gpt";
    waits |= event["name"] == "Stream Wait Event" && event["args"]["wait_on_stream"] == 20;
  }
  EXPECT_TRUE(named);
  EXPECT_TRUE(waits);
}

TEST(ImportedTrace, AStreamThatIsNoneIsNoneInSqliteAndPerfettoToo) {
  const Imported imported(kVaried);
  const collector::Run again = imported.ReopenedFrom("sqlite");
  const Trace& trace = again.traces.at(0);
  ASSERT_EQ(trace.kernels.size(), 1u);
  EXPECT_EQ(trace.lanes[trace.kernels.lane[0]].stream, kNone);
  EXPECT_EQ(trace.info.executable, "train_gpt");
  TemporaryDirectory directory;
  const std::string path = directory / "out.pftrace";
  ASSERT_FALSE(FindExporter("perfetto")->write(imported.run(), FirstOf(imported.run()), {}, path));
  const std::string text = TextOf(path);
  EXPECT_THAT(text, HasSubstr("no stream"));
  EXPECT_THAT(text, testing::Not(HasSubstr("4294967295")));
}

// The agent's tables of texts are for the reader of its trace; what the program marked is shown.
TEST(OwnTrace, TheAgentsBookkeepingIsNotOnTheTimeline) {
  collector::Run run;
  Trace& trace = run.traces.emplace_back();
  v1::Dictionary names;
  uint32_t id = 0;
  for (const char* const text : {"signatures", "out of memory", "users own"}) {
    auto* const entry = names.add_strings();
    entry->set_id(++id);
    entry->set_text(text);
  }
  id = 0;
  for (const char* const text : {"ranktap.op", "ranktap.memory", "lib"}) {
    auto* const entry = names.add_nvtx_domains();
    entry->set_id(++id);
    entry->set_text(text);
  }
  const std::string bytes = names.SerializeAsString();
  ASSERT_TRUE(trace.dictionary.Add(std::as_bytes(std::span(bytes))));
  for (uint32_t i = 1; i <= 3; ++i) {
    trace.marks.start.push_back(i);
    trace.marks.end.push_back(i);
    trace.marks.name.push_back(i);
    trace.marks.domain.push_back(static_cast<uint16_t>(i));
    trace.marks.writer.push_back(0);
    trace.marks.depth.push_back(0);
    trace.marks.kind.push_back(static_cast<uint8_t>(RangeKind::kMark));
  }
  trace.writers.emplace_back().thread = 1;
  for (const char* const format : {"chrome", "csv", "perfetto", "sqlite"}) {
    TemporaryDirectory directory;
    ASSERT_FALSE(FindExporter(format)->write(run, FirstOf(run), {}, directory / "out"));
    const std::string text = TextOf(directory / "out");
    EXPECT_THAT(text, testing::Not(HasSubstr("signatures"))) << format;
    EXPECT_THAT(text, HasSubstr("out of memory")) << format;
    EXPECT_THAT(text, HasSubstr("users own")) << format;
  }
}

}  // namespace
}  // namespace ranktap::collector
