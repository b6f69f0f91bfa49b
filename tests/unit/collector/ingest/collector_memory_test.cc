// What a client can make a collector's process take of memory.
#include <gmock/gmock.h>
#include <malloc.h>
#include <sys/resource.h>

#include <protozero/pbf_writer.hpp>
#include <random>

#include "collector/file/trace_state.h"
#include "tests/fakes/fake_agent/fake_agent.h"
#include "tests/unit/collector/collector_process.h"
#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

using fakes::FakeAgent;

std::string Entry(uint32_t field, uint64_t id, const std::string& text = {}) {
  std::string bytes;
  protozero::pbf_writer dictionary(bytes);
  protozero::pbf_writer entry(dictionary, field);
  entry.add_uint64(1, id);
  if (!text.empty()) entry.add_bytes(2, text);
  return bytes;
}

// A rank with one event, welcomed and acked: the collector works.
void ExpectHonestRankIsServed(const std::string& socket) {
  FakeAgent honest({.rank = 0});
  ASSERT_TRUE(honest.Join(socket).refused().empty());
  honest.Emit(honest.AddWriter(), proto::KernelEvent{});
  honest.Flush();
  honest.AwaitAcks();
}

class CollectorMemoryTest : public ::testing::Test {
 protected:
  TemporaryDirectory directory_;
};

TEST_F(CollectorMemoryTest, AFrameOfUnknownEntriesWithLargeIdsCostsItsBytesAlone) {
  CollectorProcess collector(directory_.path(), {});
  std::string dictionary;
  for (uint32_t field = 10; field < 1000; ++field) dictionary += Entry(field, kMaxEntryId - 1);
  FakeAgent client({.rank = 1});
  (void)client.Join(collector.socket());
  const uint64_t before = collector.Memory("VmRSS");
  client.Send({.type = proto::FrameType::kDictionary}, dictionary);
  client.AwaitAcks();
  EXPECT_LT(collector.Memory("VmHWM"), before + (8u << 20));
  ExpectHonestRankIsServed(collector.socket());
}

// 64 MiB of address space, and a client that brings 46 MB of names.
TEST_F(CollectorMemoryTest, WantOfMemoryEndsTheSessionThatCausesItAndNoOther) {
  CollectorProcess::Setup setup;
  setup.first = [] {
    (void)::mallopt(M_ARENA_MAX, 1);
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    const rlimit limit{pages * 4096 + (64u << 20), RLIM_INFINITY};
    (void)::setrlimit(RLIMIT_AS, &limit);
  };
  CollectorProcess collector(directory_.path(), setup);
  {
    FakeAgent glutton({.rank = 1});
    (void)glutton.Join(collector.socket());
    uint32_t id = 0;
    std::mt19937_64 random(20261122);
    std::string name(1000, 'n');
    try {
      for (int frame = 0; frame < 46; ++frame) {
        std::string names;
        while (names.size() < 1'000'000) {
          for (char& byte : name) byte = static_cast<char>(random());
          names += Entry(1, ++id, name);
        }
        glutton.Send({.type = proto::FrameType::kDictionary}, names);
      }
      glutton.Emit(glutton.AddWriter(), proto::KernelEvent{});
      glutton.Flush();
      glutton.AwaitAcks();
      ADD_FAILURE() << "there was memory enough";
    } catch (const std::exception&) {
      // Refused, or cut off.
    }
  }
  ExpectHonestRankIsServed(collector.socket());
  EXPECT_EQ(collector.Stop(), 0);
}

}  // namespace
}  // namespace ranktap::collector
