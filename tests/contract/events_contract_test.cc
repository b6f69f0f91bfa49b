// The agent's bytes, read by the classes that protoc generates from the schema.
#include <gtest/gtest.h>

#include "proto/columns.h"
#include "proto/encode.h"
#include "proto/encode_entry.h"
#include "ranktap/v1/dictionary.pb.h"
#include "ranktap/v1/events.pb.h"
#include "ranktap/v1/hello.pb.h"
#include "tests/contract/schema.h"

namespace ranktap::proto {
namespace {

class IdentityIds {
 public:
  uint32_t IdOf(EntryKind, ArenaRef ref) { return ref; }
  uint32_t IdOfText(std::span<const std::byte>) { return 1; }
};

std::string EncodeKernels(const std::vector<KernelEvent>& kernels) {
  EventEncoder encoder;
  for (const auto& kernel : kernels) EXPECT_TRUE(encoder.Add(&kernel.header, sizeof(kernel)));
  std::string bytes;
  IdentityIds ids;
  encoder.Encode(ids, bytes);
  return bytes;
}

TEST(EventsContractTest, GeneratedClassesReadTheColumnsByName) {
  KernelEvent first{};
  first.header = {.kind = 1, .bytes = sizeof(first), .text_bytes = 0, .payload_bytes = 0};
  first.start_ns = 1000;
  first.end_ns = 1500;
  first.correlation = 7;
  first.stream = 13;
  first.name = 3;
  first.shape = 4;
  KernelEvent second = first;
  second.start_ns = 900;
  second.end_ns = 2000;
  second.correlation = 9;
  second.device = 2;

  v1::Events events;
  ASSERT_TRUE(events.ParseFromString(EncodeKernels({first, second})));

  const v1::Kernels& kernels = events.kernels();
  ASSERT_EQ(kernels.count(), 2u);
  ASSERT_EQ(kernels.start_ns_size(), 2);
  EXPECT_EQ(kernels.start_ns(0), 1000);
  EXPECT_EQ(kernels.start_ns(1), -100) << "a difference";
  EXPECT_EQ(kernels.duration_ns(0), 500u);
  EXPECT_EQ(kernels.duration_ns(1), 1100u);
  EXPECT_EQ(kernels.correlation(1), 2);
  ASSERT_EQ(kernels.stream_size(), 1) << "one element for a constant column";
  EXPECT_EQ(kernels.stream(0), 13u);
  ASSERT_EQ(kernels.device_size(), 2);
  EXPECT_EQ(kernels.device(1), 2u);
  EXPECT_EQ(kernels.graph_size(), 0) << "nothing for a column of zeros";
}

// Reads what protoc makes of the .proto file itself, so that a column added on one side only is
// found.
TEST(EventsContractTest, TheSchemaAndTheColumnTableAgree) {
  using google::protobuf::FieldDescriptor;
  const auto* events = FindInSchema("Events");
  ASSERT_NE(events, nullptr);
  EXPECT_EQ(events->field_count(), kMaxEventKind);

  ForEachEvent([&]<typename Event>() {
    const auto* section = events->FindFieldByNumber(static_cast<int>(Event::kKind));
    ASSERT_NE(section, nullptr) << "kind " << static_cast<int>(Event::kKind);
    const auto* message = section->message_type();
    int columns = 0;
    ForEachColumn<Event>([&]<typename Column>() {
      ++columns;
      const auto* field = message->FindFieldByNumber(Column::kField);
      ASSERT_NE(field, nullptr) << message->name() << " " << Column::kField;
      const bool zigzag =
          Column::kEncoding == Encoding::kDelta || Column::kEncoding == Encoding::kSigned;
      EXPECT_EQ(field->type(), zigzag ? FieldDescriptor::TYPE_SINT64 : FieldDescriptor::TYPE_UINT64)
          << field->full_name();
      EXPECT_TRUE(field->is_packed()) << field->full_name();
    });
    const int payload_fields = message->FindFieldByNumber(kPayloadField) != nullptr ? 2 : 0;
    EXPECT_EQ(message->field_count(), 1 + columns + payload_fields) << message->name();
  });
}

TEST(EventsContractTest, EveryArenaEntryKindHasItsPlaceInTheDictionary) {
  std::string bytes;
  {
    protozero::pbf_writer dictionary(bytes);
    const auto text = std::as_bytes(std::span("gemm", 4));
    EXPECT_TRUE(EncodeEntry(EntryKind::kString, 5, text, dictionary));
    EXPECT_TRUE(EncodeEntry(EntryKind::kNvtxDomain, 6, text, dictionary));
    const LaunchShape shape{.grid = {1, 2, 3},
                            .block = {32, 4, 1},
                            .cluster = {2, 1, 1},
                            .registers_per_thread = 64,
                            .static_shared_bytes = 128,
                            .dynamic_shared_bytes = 256,
                            .local_bytes_per_thread = 8,
                            .shared_executed_bytes = 1024,
                            .max_active_clusters = 3,
                            .priority = -5};
    EXPECT_TRUE(
        EncodeEntry(EntryKind::kLaunchShape, 7, std::as_bytes(std::span(&shape, 1)), dictionary));
    struct {
      ApiFunctionEntry entry{ApiDomain::kRuntime, 211};
      char name[16] = "cudaLaunchKerne";
    } api;
    EXPECT_TRUE(EncodeEntry(EntryKind::kApiFunction, 8,
                            std::as_bytes(std::span(&api, 1)).first(8 + 15), dictionary));
    EXPECT_FALSE(EncodeEntry(EntryKind::kLaunchShape, 9, text, dictionary)) << "too short";
  }
  v1::Dictionary dictionary;
  ASSERT_TRUE(dictionary.ParseFromString(bytes));
  EXPECT_EQ(dictionary.strings(0).text(), "gemm");
  EXPECT_EQ(dictionary.nvtx_domains(0).id(), 6u);
  ASSERT_EQ(dictionary.shapes_size(), 1);
  EXPECT_EQ(dictionary.shapes(0).grid(2), 3u);
  EXPECT_EQ(dictionary.shapes(0).cluster(0), 2u);
  EXPECT_EQ(dictionary.shapes(0).priority(), -5);
  EXPECT_EQ(dictionary.api_functions(0).name(), "cudaLaunchKerne");
  EXPECT_EQ(dictionary.api_functions(0).cbid(), 211u);
}

// A path or an argument in Latin-1 must not cost a rank its trace.
TEST(EventsContractTest, TextInAnyEncodingIsRead) {
  v1::Hello hello;
  hello.mutable_process()->set_executable("/home/andr\xe9/train");
  hello.mutable_process()->add_command_line("\xff");
  hello.add_notes("\xc3");
  v1::Hello read;
  ASSERT_TRUE(read.ParseFromString(hello.SerializeAsString()));
  EXPECT_EQ(read.process().executable(), "/home/andr\xe9/train");
}

}  // namespace
}  // namespace ranktap::proto
