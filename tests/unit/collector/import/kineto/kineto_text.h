// Small files of torch.profiler, written by the test that reads them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "collector/import/open_run.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {

inline constexpr int kPid = 10;

inline std::string Span(const std::string& category, const std::string& name, int64_t ts,
                        int64_t dur, const std::string& args = "", int pid = kPid, int tid = 11) {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" +
         std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"ts":)" +
         std::to_string(ts) + R"(,"dur":)" + std::to_string(dur) + R"(,"args":{)" + args + "}}";
}
inline std::string Call(const std::string& name, int64_t ts, int64_t dur, int correlation,
                        int pid = kPid) {
  return Span("cuda_runtime", name, ts, dur, "\"correlation\":" + std::to_string(correlation), pid);
}
// On device 0, stream 7.
inline std::string Work(const std::string& category, const std::string& name, int64_t ts,
                        int64_t dur, int correlation, const std::string& more = "") {
  return Span(category, name, ts, dur,
              R"("device":0,"stream":7,"correlation":)" + std::to_string(correlation) + more, 0, 7);
}
inline std::string File(const std::string& distributed, const std::string& events) {
  return R"({"distributedInfo":{)" + distributed + R"(},"traceEvents":[)" + events + "]}";
}
inline void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
inline collector::Run OpenText(const std::string& text) {
  TemporaryDirectory directory;
  Write(directory / "x.json", text);
  Result<collector::Run> run = OpenRun({directory / "x.json"});
  EXPECT_TRUE(run) << run.message();
  return run ? std::move(*run) : collector::Run{};
}
inline std::string WhyNotOpened(const std::string& text) {
  TemporaryDirectory directory;
  Write(directory / "x.json", text);
  const Result<collector::Run> run = OpenRun({directory / "x.json"});
  EXPECT_FALSE(run);
  return run ? "" : run.message();
}

}  // namespace ranktap::collector
