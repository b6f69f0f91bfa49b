#include "collector/trace/nvtx_payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace ranktap::collector {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kFixedArray = 1 << 4, kZeroTerminated = 2 << 4, kPointer = 2;
constexpr uint64_t kChar = 1, kInt32 = 15, kUint8 = 12, kUint64 = 18, kDouble = 20, kAddress = 23;

std::string TextOf(const PayloadField& field) {
  std::string text = field.name + "=";
  if (const auto* value = std::get_if<uint64_t>(&field.value)) return text + std::to_string(*value);
  if (const auto* value = std::get_if<int64_t>(&field.value)) return text + std::to_string(*value);
  if (const auto* value = std::get_if<double>(&field.value)) return text + std::to_string(*value);
  return text + std::get<std::string>(field.value);
}

class NvtxPayloadTest : public ::testing::Test {
 protected:
  v1::PayloadEntry& AddEntry(v1::PayloadSchema* schema, const std::string& name, uint64_t type,
                             uint64_t flags = 0, uint64_t detail = 0) {
    v1::PayloadEntry& entry = *schema->add_entries();
    entry.set_name(name);
    entry.set_type(type);
    entry.set_flags(flags);
    entry.set_array_or_union_detail(detail);
    return entry;
  }
  void Register() {
    const std::string bytes = definitions_.SerializeAsString();
    ASSERT_TRUE(dictionary_.Add(std::as_bytes(std::span(bytes))));
  }
  std::vector<std::string> Decode(uint64_t schema, const std::string& bytes) {
    std::vector<PayloadField> fields;
    DecodeBySchema(dictionary_, 0, schema, std::as_bytes(std::span(bytes)), &fields);
    std::vector<std::string> texts;
    for (const PayloadField& field : fields) texts.push_back(TextOf(field));
    return texts;
  }
  template <typename Struct>
  static std::string BytesOf(const Struct& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }

  v1::Dictionary definitions_;
  Dictionary dictionary_;
};

TEST_F(NvtxPayloadTest, FieldsLieAtTheirNaturalAlignment) {
  struct {
    uint8_t flag = 200;
    int32_t delta = -5;
    uint64_t bytes = 1ull << 40;
    double loss = 0.5;
  } payload;
  v1::PayloadSchema* const schema = definitions_.add_schemas();
  schema->set_schema_id(16777221);
  AddEntry(schema, "flag", kUint8);
  AddEntry(schema, "delta", kInt32);
  AddEntry(schema, "bytes", kUint64);
  AddEntry(schema, "loss", kDouble);
  Register();
  EXPECT_THAT(Decode(16777221, BytesOf(payload)),
              ElementsAre("flag=200", "delta=-5", "bytes=1099511627776", "loss=0.500000"));
}

TEST_F(NvtxPayloadTest, GivenOffsetsCount) {
  v1::PayloadSchema* const schema = definitions_.add_schemas();
  schema->set_schema_id(1 << 24);
  AddEntry(schema, "a", kUint8);
  AddEntry(schema, "b", kUint8).set_offset(7);
  Register();
  EXPECT_THAT(Decode(1 << 24, std::string("\1\0\0\0\0\0\0\2", 8)), ElementsAre("a=1", "b=2"));
}

TEST_F(NvtxPayloadTest, ArraysAndTexts) {
  v1::PayloadSchema* const schema = definitions_.add_schemas();
  schema->set_schema_id(1 << 24);
  AddEntry(schema, "name", kChar, kFixedArray, 8);
  AddEntry(schema, "dims", kInt32, kFixedArray, 3);
  AddEntry(schema, "text", kChar, kZeroTerminated);
  Register();
  const int32_t dims[3] = {2, -3, 4};
  const std::string bytes = std::string("conv\0\0\0\0", 8) + BytesOf(dims) + std::string("hi\0", 3);
  EXPECT_THAT(Decode(1 << 24, bytes), ElementsAre("name=conv", "dims=[2, -3, 4]", "text=hi"));
}

TEST_F(NvtxPayloadTest, EnumsHaveNamesAndNestedSchemasPrefixes) {
  v1::PayloadEnum* const op = definitions_.add_enums();
  op->set_enum_id(500'000'000);
  op->set_size(4);
  for (const auto& [name, value] : {std::pair("Sum", 0), std::pair("Max", 2)}) {
    op->add_values()->set_name(name);
    op->mutable_values(op->values_size() - 1)->set_value(static_cast<uint64_t>(value));
  }
  v1::PayloadSchema* const inner = definitions_.add_schemas();
  inner->set_schema_id(600'000'000);
  inner->set_payload_static_size(8);
  AddEntry(inner, "op", 500'000'000);
  AddEntry(inner, "root", kInt32);
  v1::PayloadSchema* const outer = definitions_.add_schemas();
  outer->set_schema_id(700'000'000);
  AddEntry(outer, "comm", kUint64);
  AddEntry(outer, "args", 600'000'000);
  Register();
  struct {
    uint64_t comm = 77;
    uint32_t op = 2;
    int32_t root = -1;
  } payload;
  EXPECT_THAT(Decode(700'000'000, BytesOf(payload)),
              ElementsAre("comm=77", "args.op=Max", "args.root=-1"));
}

TEST_F(NvtxPayloadTest, PointersOfAnotherProcessAreLeftOut) {
  v1::PayloadSchema* const schema = definitions_.add_schemas();
  schema->set_schema_id(1 << 24);
  AddEntry(schema, "data", kUint8, kPointer);
  AddEntry(schema, "where", kAddress);
  AddEntry(schema, "size", kUint64);
  Register();
  const uint64_t payload[3] = {0x7f00, 0x7f01, 9};
  EXPECT_THAT(Decode(1 << 24, BytesOf(payload)), ElementsAre("size=9"));
}

TEST_F(NvtxPayloadTest, APayloadOfTheModelIsFoundByItsRow) {
  v1::PayloadSchema* const schema = definitions_.add_schemas();
  schema->set_schema_id(1 << 24);
  schema->set_domain(3);
  AddEntry(schema, "bytes", kUint64);
  const std::string definitions = definitions_.SerializeAsString();
  Trace trace;
  ASSERT_TRUE(trace.dictionary.Add(std::as_bytes(std::span(definitions))));
  const uint64_t blob[3] = {1 << 24, 8, 4096};
  trace.payloads.push_back(BytesOf(blob));
  trace.ranges.start.push_back(0);
  trace.ranges.domain.push_back(3);
  trace.ranges.inline_payload.push_back(1);
  trace.ranges.payload_type.push_back(5);
  trace.ranges.payload.push_back(0xfffffffeu);
  std::vector<std::string> texts;
  for (const auto& field : DecodePayload(trace, trace.ranges, 0)) texts.push_back(TextOf(field));
  EXPECT_THAT(texts, ElementsAre("payload=-2", "bytes=4096"));
}

TEST_F(NvtxPayloadTest, NoSchemaAndNoBytesMakeItReadElsewhere) {
  std::mt19937_64 random(20260102);
  for (int round = 0; round < 2000; ++round) {
    v1::Dictionary definitions;
    for (int s = 0; s < 3; ++s) {
      v1::PayloadSchema* const schema = definitions.add_schemas();
      schema->set_schema_id(1000 + s);
      schema->set_payload_static_size(random() % 64);
      for (int e = 0; e < 6; ++e) {
        v1::PayloadEntry& entry =
            AddEntry(schema, "f", random() % 3 == 0 ? 1000 + random() % 3 : random() % 80,
                     random() % 512, random() >> (random() % 64));
        if (random() % 4 == 0) entry.set_offset(random() >> (random() % 64));
      }
    }
    Dictionary dictionary;
    const std::string bytes = definitions.SerializeAsString();
    ASSERT_TRUE(dictionary.Add(std::as_bytes(std::span(bytes))));
    std::vector<std::byte> payload(random() % 100, std::byte{0x41});
    std::vector<PayloadField> fields;
    DecodeBySchema(dictionary, 0, 1000, payload, &fields);
    EXPECT_LE(fields.size(), 256u);
  }
}

}  // namespace
}  // namespace ranktap::collector
