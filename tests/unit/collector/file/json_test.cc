// What the value does is what nlohmann's does, which reads and writes beside it here.
#include "collector/file/json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

namespace ranktap::collector {
namespace {

using testing::ElementsAre;

// A value of every kind, of names and texts that need escapes and that are no UTF-8.
nlohmann::ordered_json Random(std::mt19937_64* random, int depth) {
  const std::vector<std::string> texts = {
      "", "plain", "a \"quote\"\\\n\x01", "\x7f µs ☃", "broken \xc3(\xff", "b", "a"};
  const std::vector<double> reals = {
      0.0,     -0.0,          1.0,    0.1,     1e300,
      -2.5e-9, 123456789.125, 5e-324, 1.0 / 3, std::numeric_limits<double>::infinity()};
  const auto below = [random](size_t count) { return (*random)() % count; };
  switch (below(depth == 0 ? 6 : 8)) {
    case 0:
      return nullptr;
    case 1:
      return below(2) == 0;
    case 2:
      return static_cast<int64_t>((*random)());
    case 3:
      return (*random)() >> below(64);
    case 4:
      return reals[below(reals.size())];
    case 5:
      return texts[below(texts.size())];
    case 6: {
      auto list = nlohmann::ordered_json::array();
      for (size_t i = below(4); i > 0; --i) list.push_back(Random(random, depth - 1));
      return list;
    }
    default: {
      auto object = nlohmann::ordered_json::object();
      for (size_t i = below(5); i > 0; --i)
        object[texts[below(texts.size())]] = Random(random, depth - 1);
      return object;
    }
  }
}

template <typename T>
std::string Dump(const T& value, int indent) {
  return value.dump(indent, ' ', false, T::error_handler_t::replace);
}

TEST(Json, IsReadAndWrittenAsNlohmannDoesIt) {
  std::mt19937_64 random(40);  // the seed
  for (int i = 0; i < 2'000; ++i) {
    const std::string text = Dump(Random(&random, 5), -1);
    const auto ordered = nlohmann::ordered_json::parse(text);
    const auto sorted = nlohmann::json::parse(text);
    const Json as_added = ParseJson(text, JsonOrder::kAsAdded), by_name = ParseJson(text);
    for (const int indent : {-1, 0, 2}) {
      ASSERT_EQ(WriteJson(as_added, indent), Dump(ordered, indent));
      ASSERT_EQ(WriteJson(as_added, indent, JsonOrder::kByName), Dump(sorted, indent));
      ASSERT_EQ(WriteJson(by_name, indent), Dump(sorted, indent));
    }
    ASSERT_EQ(as_added, by_name) << text;
    ASSERT_EQ(as_added.size(), ordered.size());
  }
}

TEST(Json, BytesThatAreNoUtf8AreReplacedAsNlohmannDoesIt) {
  const std::string broken = "broken \xc3(\xff";
  EXPECT_EQ(WriteJson(Json{{broken, broken}}), Dump(nlohmann::json{{broken, broken}}, -1));
}

TEST(Json, ATextThatIsNoneOrNestsTooDeepIsDiscarded) {
  for (const std::string text : {"", "{", "[1,]", "{\"a\":1}}", "nul", "\"\xff\"", "1e999"}) {
    EXPECT_TRUE(ParseJson(text).is_discarded()) << text;
    EXPECT_FALSE(IsJson(text) && text != "1e999") << text;
  }
  EXPECT_TRUE(
      ParseJson(std::string(kDeepestJson, '[') + std::string(kDeepestJson, ']')).is_array());
  const size_t deeper = kDeepestJson + 1;
  EXPECT_TRUE(ParseJson(std::string(deeper, '[') + std::string(deeper, ']')).is_discarded());
}

TEST(Json, TheLastOfTwoMembersOfOneNameCounts) {
  for (const JsonOrder order : {JsonOrder::kByName, JsonOrder::kAsAdded}) {
    const Json object = ParseJson(R"({"b":1,"a":2,"b":{"c":3}})", order);
    EXPECT_EQ(object.size(), 2u);
    EXPECT_EQ(object["b"]["c"], 3);
    EXPECT_EQ(object["a"], 2);
  }
}

TEST(Json, AListOfNamesAndValuesIsAnObjectAndAnyOtherAnArray) {
  const Json page = {{"text", "x"},
                     {"list", {1, "two"}},
                     {"none", std::optional<int>()},
                     {"inner", {{"real", 0.5}}}};
  EXPECT_EQ(WriteJson(page), R"({"text":"x","list":[1,"two"],"none":null,"inner":{"real":0.5}})");
  EXPECT_EQ(WriteJson(Json::array({"text", "x"})), R"(["text","x"])");
  EXPECT_EQ(WriteJson(Json(std::vector<std::string>{"a", "b"})), R"(["a","b"])");
  EXPECT_EQ(WriteJson(Json(std::map<std::string, uint64_t>{{"a", 1}})), R"({"a":1})");
}

TEST(Json, WhatIsNotThereIsNullAndAnotherKindIsAnError) {
  const Json row = ParseJson(R"({"text":"x","number":-3,"list":[1.5,true]})");
  EXPECT_TRUE(row["nothing"]["below"][3].is_null());
  EXPECT_TRUE(row["list"][2].is_null());
  EXPECT_EQ(row.TextOf("number"), "");
  EXPECT_EQ(row.value("nothing", 7), 7);
  EXPECT_EQ(row["number"].get<int>(), -3);
  EXPECT_EQ(row["list"][0].get<int>(), 1);
  EXPECT_FALSE(row["list"][1] == 1);
  EXPECT_TRUE(row["list"][1] == true);
  EXPECT_THROW((void)row["text"].get<int>(), std::domain_error);
  EXPECT_THROW((void)row["number"].get<bool>(), std::domain_error);
  EXPECT_THROW((void)row["list"].get<std::vector<std::string>>(), std::domain_error);
  EXPECT_THROW((void)row.value("text", 1), std::domain_error);
  EXPECT_THROW((void)row["number"].value("text", 1), std::domain_error);
  Json text = "x";
  EXPECT_THROW(text.push_back(1), std::domain_error);
  EXPECT_THROW(text["name"] = 1, std::domain_error);
}

TEST(Json, ACopyIsDeepAndAMovedValueIsNull) {
  Json first = {{"list", Json::array({1, 2})}};
  const Json copy = first;
  first["list"].push_back(3);
  first["list"][0] = "one";
  EXPECT_EQ(WriteJson(copy), R"({"list":[1,2]})");
  first["list"].resize(1);
  const Json moved = std::move(first);
  EXPECT_TRUE(first.is_null());
  EXPECT_EQ(WriteJson(moved), R"({"list":["one"]})");
  std::vector<std::string> names;
  for (const auto& [name, value] : moved.items()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("list"));
}

}  // namespace
}  // namespace ranktap::collector
