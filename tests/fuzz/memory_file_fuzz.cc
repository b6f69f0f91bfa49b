// The readers of torch's memory snapshots (pickle) and of memory timelines (JSON): small files,
// edited.
#include "collector/import/importers.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/pickle_words.h"
#include "tests/unit/collector/import/memory/pickle_text.h"

using namespace ranktap;
using collector::pickled::Dict;
using collector::pickled::Int;
using collector::pickled::List;
using collector::pickled::Text;

namespace {

std::string Entry(const char* action, int64_t address, int64_t bytes, int64_t time_us) {
  const std::string frame =
      Dict({{"filename", Text("m.py")}, {"line", Int(12)}, {"name", Text("forward")}});
  return Dict({{"action", Text(action)},
               {"addr", Int(address)},
               {"size", Int(bytes)},
               {"stream", Int(0)},
               {"time_us", Int(time_us)},
               {"frames", List({frame})}});
}

std::string Snapshot() {
  const std::string block = Dict({{"address", Int(4096)},
                                  {"size", Int(1000)},
                                  {"state", Text("active_allocated")},
                                  {"frames", List({})}});
  const std::string segment = Dict({{"device", Int(1)},
                                    {"address", Int(4096)},
                                    {"total_size", Int(4096)},
                                    {"blocks", List({block})}});
  const std::string history =
      List({Entry("segment_alloc", 4096, 2048, 1'000'000), Entry("alloc", 7000, 300, 1'000'001),
            Entry("free_completed", 9000, 50, 1'000'002), Entry("alloc", 6000, 200, 1'000'003),
            Entry("free_requested", 7000, 300, 1'000'004),
            Entry("free_completed", 7000, 300, 1'000'005), Entry("oom", 0, 1 << 30, 1'000'006)});
  return collector::pickled::File(
      Dict({{"segments", List({segment})}, {"device_traces", List({List({}), history})}}));
}

constexpr std::string_view kTimeline =
    "[[-1, 0, 4096, 0], [-1, 0, 128, 7], [1727390616000000000, 1, 512, 4], [1727390616000000500, "
    "2, 512, 5],"
    " [1727390616000001000, 3, 512, 5], [1727390616000002000, 1, 1024, 1], [1727390616000003000, "
    "3, 128, 7]]";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  static const std::string snapshot = Snapshot();
  fuzz::Input input(data, size);
  const auto [is_pickle, text] = fuzz::TakeRecorded(&input, snapshot, kTimeline);
  const std::string& path = file.Write(text);
  is_pickle ? (void)collector::ImportMemorySnapshot(path).ok()
            : (void)collector::ImportMemoryTimeline(path).ok();
  return 0;
}
