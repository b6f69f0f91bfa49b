// The reader of torch.profiler's JSON on texts that a grammar writes, as edits of a sample seldom
// do: values nested up to a million deep, long lists and strings, numbers at the ends of their
// types, members given twice, events of every category with any field; cut off, and compressed.
#include <iterator>
#include <string>
#include <string_view>

#include "collector/export/chrome/kineto_copy.h"
#include "collector/import/importers.h"
#include "tests/fuzz/compressed.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/memory_file.h"

using namespace ranktap;

namespace {

constexpr std::string_view kCategories[] = {"cpu_op",
                                            "user_annotation",
                                            "python_function",
                                            "cuda_runtime",
                                            "cuda_driver",
                                            "kernel",
                                            "gpu_memcpy",
                                            "gpu_memset",
                                            "cuda_sync",
                                            "gpu_user_annotation",
                                            "overhead",
                                            "mtia_ccp_events",
                                            "hip_runtime",
                                            "Trace",
                                            "ac2g",
                                            "fwdbwd",
                                            "cuda_profiler_range",
                                            ""};
constexpr std::string_view kNames[] = {"aten::mm",
                                       "cudaLaunchKernel",
                                       "hipGraphLaunch",
                                       "cudaMemcpyAsync",
                                       "nn.Module: Net_0",
                                       "ProfilerStep#1",
                                       "[memory]",
                                       "Memcpy HtoD (Pageable -> Device)",
                                       "Memcpy (",
                                       "Memset )(",
                                       "CopyHostToDevice",
                                       "Stream Wait Event",
                                       "ncclDevKernel_AllReduce",
                                       "gloo:all_reduce",
                                       "thread_name",
                                       "process_name",
                                       "process_labels",
                                       "\\ud800",
                                       "\\u0000"};
constexpr std::string_view kArgs[] = {"External id",
                                      "correlation",
                                      "stream",
                                      "device",
                                      "context",
                                      "bytes",
                                      "memory bandwidth (GB/s)",
                                      "grid",
                                      "block",
                                      "registers per thread",
                                      "shared memory",
                                      "priority",
                                      "cbid",
                                      "graph id",
                                      "graph node id",
                                      "channel",
                                      "Record function id",
                                      "Sequence number",
                                      "Fwd thread id",
                                      "Input Dims",
                                      "Input Strides",
                                      "Input type",
                                      "Concrete Inputs",
                                      "Call stack",
                                      "Module Hierarchy",
                                      "Python id",
                                      "Python parent id",
                                      "Python module id",
                                      "Addr",
                                      "Bytes",
                                      "Device Type",
                                      "Device Id",
                                      "Total Allocated",
                                      "Total Reserved",
                                      "Collective name",
                                      "In msg nelems",
                                      "Out msg nelems",
                                      "Group size",
                                      "dtype",
                                      "In split size",
                                      "Process Group Name",
                                      "Process Group Ranks",
                                      "Seq",
                                      "Src Rank",
                                      "cuda_sync_kind",
                                      "wait_on_stream",
                                      "wait_on_cuda_event_record_corr_id",
                                      "wait_on_cuda_event_id",
                                      "fromDevice",
                                      "toDevice",
                                      "name",
                                      "labels",
                                      "value",
                                      ""};
constexpr std::string_view kTop[] = {"schemaVersion",       "deviceProperties", "distributedInfo",
                                     "baseTimeNanoseconds", "traceName",        "displayTimeUnit",
                                     "host_name",           "mergedRanks",      "with_stack"};
constexpr std::string_view kNumbers[] = {"0",
                                         "-0",
                                         "1",
                                         "-1",
                                         "7",
                                         "100.5",
                                         "0.0009",
                                         "255",
                                         "256",
                                         "65535",
                                         "65536",
                                         "2147483647",
                                         "-2147483648",
                                         "4294967295",
                                         "4294967296",
                                         "9007199254740993",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "9223372036854775808",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "1e308",
                                         "-1e308",
                                         "1e309",
                                         "1e-320",
                                         "9223372036854775.807",
                                         "9223372036854775.808",
                                         "604800000000",
                                         "4611686018427387.9",
                                         "NaN",
                                         "-Infinity",
                                         "1e",
                                         "--1",
                                         "0x7",
                                         "1_000"};
constexpr size_t kRepeats[] = {1, 2, 3, 17, 300, 5000, 70'000, 1'000'000};
constexpr size_t kLargestText = 4 << 20;

class Grammar {
 public:
  explicit Grammar(fuzz::Input* input) : input_(*input) {}

  std::string Trace() {
    const bool bare = Choice(16) == 0;
    if (!bare) {
      Put("{");
      Members(Choice(6), [this] { TopMember(); });
      if (text_.back() != '{') Put(",");
      Put("\"traceEvents\":");
    }
    Put("[");
    for (size_t i = 0; i < 24 && !input_.empty(); ++i) {
      if (i > 0) Put(Choice(32) == 0 ? " " : ",");
      if (Choice(32) == 0) {
        Value(0);
      } else {
        Event();
      }
    }
    Put("]");
    if (!bare) Put(Choice(8) == 0 ? ",\"traceEvents\":[]}" : "}");
    return std::move(text_);
  }

 private:
  size_t Choice(size_t of) { return input_.Take<uint8_t>() % of; }
  template <size_t N>
  std::string_view Pick(const std::string_view (&from)[N]) {
    return from[Choice(N)];
  }
  // The large ones seldom: a text of a million brackets takes as long as a thousand others.
  size_t Repeats() { return kRepeats[Choice(16) == 0 ? Choice(std::size(kRepeats)) : Choice(4)]; }

  void Put(std::string_view text) {
    if (text_.size() < kLargestText) text_.append(text);
  }
  void Put(std::string_view text, size_t times) {
    for (size_t i = 0; i < times; ++i) Put(text);
  }
  void Quoted(std::string_view text) {
    Put("\"");
    Put(text);
    Put("\"");
  }

  template <typename Member>
  void Members(size_t count, Member member) {
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) Put(Choice(24) == 0 ? "\n,\t" : ",");
      member();
    }
  }

  void TopMember() {
    Quoted(Pick(kTop));
    Put(":");
    const size_t kind = Choice(4);
    if (kind == 0) return Put(R"({"rank":1,"pg_config":[{"pg_name":"0","ranks":"[0,1]"}]})");
    if (kind == 1) return Put(R"([{"id":0,"name":"H100","numSms":-1}])");
    Value(0);
  }

  void Event() {
    Put("{");
    static constexpr std::string_view kPhases[] = {"X", "X", "X", "X", "i",
                                                   "M", "s", "f", "C", "b"};
    Quoted("ph");
    Put(":");
    Quoted(Pick(kPhases));
    Put(",\"cat\":");
    Quoted(Pick(kCategories));
    Put(",\"name\":");
    Quoted(Pick(kNames));
    for (const std::string_view key : {"pid", "tid", "ts", "dur", "id"}) {
      const size_t kind = Choice(16);
      if (kind == 0) continue;
      Put(",\"");
      Put(key);
      Put("\":");
      if (kind < 8) {
        Put(std::to_string(Choice(200)));
      } else if (kind < 15) {
        Number();
      } else {
        Value(0);
      }
    }
    Put(",\"args\":{");
    Members(Choice(8), [this] {
      Quoted(Pick(kArgs));
      Put(":");
      Value(0);
    });
    Put("}}");
  }

  void Number() {
    const std::string_view number = Pick(kNumbers);
    if (Choice(4) == 0) {
      Quoted(number);
    } else {
      Put(number);
    }
  }

  void Value(int depth) {
    switch (Choice(depth > 8 ? 4 : 10)) {
      case 0:
        return Put("null");
      case 1:
        return Put(Choice(2) == 0 ? "true" : "\"\"");
      case 2:
      case 3:
        return Number();
      case 4:
        return Text();
      case 5:
      case 6:
        Put("[");
        Members(Choice(5), [this, depth] { Value(depth + 1); });
        return Put("]");
      case 7:
        Put("{");
        Members(Choice(4), [this, depth] {
          Quoted(Pick(kArgs));  // the same may come twice
          Put(":");
          Value(depth + 1);
        });
        return Put("}");
      case 8:
        return Long();
      default:
        return Deep();
    }
  }

  void Text() {
    static constexpr std::string_view kPieces[] = {
        "a", "nn.Module: ", "\\\"", "\\\\", "\\u00e9", "\xff", "; ", "/x.py(3): f", "[1, 2]", "\n"};
    Put("\"");
    Put(Pick(kPieces), Repeats());
    Put("\"");
  }
  void Long() {
    Put("[");
    Put("[4, 8], ", Repeats());
    Put("1]");
  }
  // Closed, half open, or with other brackets.
  void Deep() {
    const size_t depth = Repeats();
    const bool object = Choice(2) == 0;
    Put(object ? "{\"a\":" : "[", depth);
    if (object) Put("1");
    Put(object ? "}" : Choice(8) == 0 ? "}" : "]", Choice(4) == 0 ? depth / 2 : depth);
  }

  fuzz::Input& input_;
  std::string text_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file, copied;
  fuzz::Input input(data, size);
  const auto mode = input.Take<uint8_t>();
  const auto cut = input.Take<uint8_t>();
  std::string text = Grammar(&input).Trace();
  if ((mode & 1) != 0) text.resize(text.size() * cut / 256);
  if ((mode & 2) != 0) text = fuzz::Compressed(text);
  if ((mode & 6) == 6) text.resize(text.size() * cut / 256);  // of the stream
  if ((mode & 8) != 0) text += text;
  const auto traces = collector::ImportKineto(file.Write(text));
  if (!traces.ok() || traces->size() != 1) return 0;
  const collector::Trace* const trace = &traces->front();
  if (!collector::CanCopyKineto(*trace, {}, copied.Write(""))) return 0;
  // A copy of a whole file is the same trace.
  fuzz::Require(!collector::CopyKineto(*trace, {}, copied.path()));
  const auto again = collector::ImportKineto(copied.path());
  fuzz::Require(again.ok() && again->front().damage.empty() &&
                again->front().events == trace->events);
  return 0;
}
