// The reader of Flight Recorder dumps, pickles and JSON: small files, edited.
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

std::string FlightCall(int64_t number, bool is_p2p, const char* name, const char* state) {
  const std::string frame =
      Dict({{"filename", Text("t.py")}, {"line", Int(31)}, {"name", Text("step")}});
  return Dict({{"process_group", List({Text("0"), Text("default_pg")})},
               {"profiling_name", Text(name)},
               {"collective_seq_id", Int(number)},
               {"p2p_seq_id", Int(number)},
               {"is_p2p", is_p2p ? "\x88" : "\x89"},
               {"input_sizes", List({List({Int(4), Int(8)})})},
               {"output_sizes", List({List({Int(4), Int(8)})})},
               {"input_dtypes", List({Text("Float")})},
               {"output_dtypes", List({Text("Float")})},
               {"time_created_ns", Int(1'795'667'796'602'648'329)},
               {"state", Text(state)},
               {"retired", "\x89"},
               {"frames", List({frame})}});
}

std::string FlightDump() {
  const std::string group =
      Dict({{"name", Text("0")}, {"desc", Text("default_pg")}, {"ranks", Text("[0, 1, 2]")}});
  return collector::pickled::File(
      Dict({{"version", Text("2.10")},
            {"pg_config", Dict({{"0", group}})},
            {"entries", List({FlightCall(1, false, "nccl:all_reduce", "completed"),
                              FlightCall(2, true, "nccl:send 0->1", "scheduled"),
                              FlightCall(2, false, "nccl:coalesced", "started"),
                              FlightCall(3, false, "nccl:broadcast", "scheduled")})}}));
}

constexpr std::string_view kFlightJson =
    R"({"version":"2.10","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"}},)"
    R"("pg_status":{"0":{"last_enqueued_collective":3}},"entries":[{"process_group":["0",)"
    R"("default_pg"],"profiling_name":"gloo:all_reduce","collective_seq_id":3,"p2p_seq_id":0,)"
    R"("is_p2p":false,"input_sizes":[[4,8]],"output_sizes":[[4,8]],"input_dtypes":["Float"],)"
    R"("output_dtypes":["Float"],"time_created_ns":1795667796602648329,"state":"scheduled",)"
    R"("retired":false}]})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  static const std::string dump = FlightDump();
  fuzz::Input input(data, size);
  const std::string text = fuzz::TakeRecorded(&input, dump, kFlightJson).text;
  (void)collector::LooksLikeFlightRecorder(text);
  (void)collector::ImportFlightRecorder(file.Write(text)).ok();
  return 0;
}
