#include "collector/trace/operator_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "collector/trace/operator_schemas.h"
#include "proto/events.h"
#include "proto/framework_marks.h"
#include "proto/operator_values.h"

namespace ranktap::collector {
namespace {

using proto::ValueCode;
using ::testing::ElementsAre;
using ::testing::SizeIs;

template <typename... Values>
std::string Bytes(const Values&... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
  return bytes;
}

class OperatorValuesTest : public ::testing::Test {
 protected:
  OperatorValuesTest() {
    v1::Dictionary words;
    auto& domain = *words.add_nvtx_domains();
    domain.set_id(1);
    domain.set_text(std::string(proto::kOperatorDomain));
    const std::string bytes = words.SerializeAsString();
    EXPECT_TRUE(trace_.dictionary.Add(std::as_bytes(std::span(bytes))));
    name_ = trace_.dictionary.AppendString(proto::kValuesMark);
    trace_.writers.resize(1);
  }

  void Add(proto::ValuesHead head, const std::string& values) {
    head.version = proto::kValuesVersion;
    const std::string data = Bytes(head) + values;
    const uint64_t blob[2] = {proto::kBytesSchema, data.size()};
    trace_.payloads.push_back(Bytes(blob[0], blob[1]) + data);
    trace_.marks.start.push_back(100);
    trace_.marks.end.push_back(100);
    trace_.marks.name.push_back(name_);
    trace_.marks.domain.push_back(1);
    trace_.marks.writer.push_back(0);
    trace_.marks.depth.push_back(0);
    trace_.marks.kind.push_back(0);
    trace_.marks.inline_payload.push_back(static_cast<uint32_t>(trace_.payloads.size()));
  }

  Trace trace_;
  uint32_t name_ = 0;
};

const std::string kTwo =
    Bytes(ValueCode::kList, uint32_t{2}, ValueCode::kInteger, int64_t{-7}, ValueCode::kReal, 0.5);

TEST_F(OperatorValuesTest, WhatIsLongerThanAPartIsOneOperators) {
  const std::string both = "out" + kTwo + Bytes(ValueCode::kText, uint32_t{2}) + "ab";
  for (size_t cut = 0; cut <= both.size(); ++cut) {
    Add({.flags = proto::kValuesGoOn, .overload_bytes = 3, .record = 9, .count = 2},
        both.substr(0, cut));
    Add({.overload_bytes = 3, .record = 9, .count = 2, .part = 1}, both.substr(cut));
  }
  const auto found = ReadOperatorValues(trace_);
  ASSERT_THAT(found, SizeIs(both.size() + 1));
  for (const RecordedValues& values : found) {
    EXPECT_EQ(values.overload, "out");
    EXPECT_EQ(values.record_function, 9);
    ASSERT_THAT(values.values, SizeIs(2));
    ASSERT_THAT(values.values[0].elements, SizeIs(2));
    EXPECT_EQ(values.values[0].elements[0].integer, -7);
    EXPECT_EQ(values.values[0].elements[1].real, 0.5);
    EXPECT_EQ(values.values[1].text, "ab");
  }
}

TEST_F(OperatorValuesTest, AnOperatorThatLacksAPartHasNoValues) {
  Add({.flags = proto::kValuesGoOn, .count = 1}, kTwo.substr(0, 5));
  Add({.count = 1, .part = 2}, kTwo.substr(5));  // the one between was lost
  Add({.count = 1, .part = 1}, kTwo);
  Add({.count = 1}, kTwo);
  EXPECT_THAT(ReadOperatorValues(trace_), SizeIs(1));
}

TEST_F(OperatorValuesTest, BytesThatNoAgentWroteAreLeftOut) {
  std::mt19937 random(20261123);
  for (int i = 0; i < 20'000; ++i) {
    std::string noise(random() % 80, '\0');
    for (char& byte : noise)
      byte = static_cast<char>(random() % 4 == 0 ? "LTSIBDNO"[random() % 8] : random());
    Add({.overload_bytes = static_cast<uint8_t>(random()),
         .count = static_cast<uint32_t>(random())},
        noise);
  }
  EXPECT_THAT(ReadOperatorValues(trace_).size(), ::testing::Le(20'000));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += Bytes(ValueCode::kList, uint32_t{1});
  Add({.record = 77, .count = 1}, deep);
  for (const RecordedValues& values : ReadOperatorValues(trace_)) {
    EXPECT_NE(values.record_function, 77);
  }
}

TEST(ArgumentTypesTest, AreThoseOfASchemaInItsOrder) {
  EXPECT_THAT(ArgumentTypes("aten::f.out(Tensor(a!) self, int[2] s=[1, 1], str m=\"a,)b\", *, "
                            "Generator? g=None, (Tensor, int) t) -> (Tensor, int)"),
              ElementsAre("Tensor(a!)", "int[2]", "str", "Generator?", "(Tensor, int)"));
  EXPECT_THAT(ArgumentTypes("f() -> ()"), ElementsAre());
  EXPECT_THAT(ArgumentTypes("no schema"), ElementsAre());
  EXPECT_THAT(ArgumentTypes("f(Tensor"), ElementsAre());
}

}  // namespace
}  // namespace ranktap::collector
