#include "proto/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "proto/decode.h"
#include "proto/encode.h"

namespace ranktap::proto {
namespace {

using ::testing::ElementsAre;

// Ids are the refs themselves; inline texts count up from 1000.
class IdentityIds {
 public:
  uint32_t IdOf(EntryKind, ArenaRef ref) { return ref; }
  uint32_t IdOfText(std::span<const std::byte> text) {
    const std::string key(reinterpret_cast<const char*>(text.data()), text.size());
    return texts_.try_emplace(key, 1000 + static_cast<uint32_t>(texts_.size())).first->second;
  }

 private:
  std::map<std::string, uint32_t> texts_;
};

template <typename Event>
Event MakeEvent() {
  Event event{};
  event.header.kind = static_cast<uint16_t>(Event::kKind);
  event.header.bytes = sizeof(Event);
  return event;
}

template <typename Event>
std::string EncodeAll(const std::vector<Event>& events) {
  EventEncoder encoder;
  for (const Event& event : events) {
    EXPECT_TRUE(encoder.Add(&event.header, sizeof(Event)));
  }
  std::string out;
  IdentityIds ids;
  encoder.Encode(ids, out);
  return out;
}

template <typename Event>
std::vector<Event> DecodeAll(const std::string& payload, uint32_t events) {
  std::vector<Event> rows;
  EXPECT_TRUE(DecodeEvents(std::as_bytes(std::span(payload)), events,
                           [&]<typename Found>(const Section<Found>& section) {
                             if constexpr (std::is_same_v<Found, Event>) {
                               return DecodeRows(section, &rows);
                             }
                             return true;
                           }));
  return rows;
}

// Sets every column of the event to a random value that its member can hold.
template <typename Event>
Event RandomEvent(std::mt19937_64& random, int regime) {
  Event event = MakeEvent<Event>();
  ForEachColumn<Event>([&]<typename Column>() {
    uint64_t value = 0;
    if (regime == 1) value = 42;
    if (regime == 2) value = random() % 3;
    if (regime == 3) value = random() >> (random() % 64);
    Column::Set(event, value);
  });
  return event;
}

template <typename Event>
void ExpectSameColumns(const Event& a, const Event& b) {
  ForEachColumn<Event>(
      [&]<typename Column>() { EXPECT_EQ(Column::Get(a), Column::Get(b)) << Column::kField; });
}

TEST(ColumnsTest, EveryKindSurvivesEncodingWhateverItsValues) {
  std::mt19937_64 random(20260101);
  ForEachEvent([&]<typename Event>() {
    for (int regime = 0; regime <= 3; ++regime) {
      for (const size_t count : {1, 2, 3, 300}) {
        std::vector<Event> events;
        for (size_t i = 0; i < count; ++i) events.push_back(RandomEvent<Event>(random, regime));

        const auto rows = DecodeAll<Event>(EncodeAll(events), static_cast<uint32_t>(count));

        ASSERT_EQ(rows.size(), count);
        for (size_t i = 0; i < count; ++i) ExpectSameColumns(rows[i], events[i]);
      }
    }
  });
}

TEST(ColumnsTest, ColumnNumbersAreUniqueWithinAKind) {
  ForEachEvent([]<typename Event>() {
    std::map<uint32_t, int> uses;
    ForEachColumn<Event>([&]<typename Column>() { ++uses[Column::kField]; });
    for (const auto& [field, count] : uses) {
      EXPECT_EQ(count, 1) << "kind " << static_cast<int>(Event::kKind) << " field " << field;
      EXPECT_GT(field, kCountField);
      EXPECT_LT(field, kPayloadSizesField);
    }
  });
}

TEST(ColumnsTest, EvenlySpacedCorrelationsTakeTwoElements) {
  std::vector<ApiCallEvent> events;
  for (uint32_t i = 0; i < 1000; ++i) {
    auto event = MakeEvent<ApiCallEvent>();
    event.correlation = 500 + 3 * i;
    events.push_back(event);
  }
  const std::string payload = EncodeAll(events);
  EXPECT_LT(payload.size(), 32u);
  const auto rows = DecodeAll<ApiCallEvent>(payload, 1000);
  ASSERT_EQ(rows.size(), 1000u);
  EXPECT_EQ(rows.back().correlation, 500u + 3 * 999);
}

TEST(ColumnsTest, AnInlineTextBecomesTheNamesId) {
  alignas(8) std::array<std::byte, sizeof(RangePushEvent) + 16> bytes{};
  auto event = MakeEvent<RangePushEvent>();
  event.header.text_bytes = 9;
  event.header.bytes = sizeof(event) + 16;
  std::memcpy(bytes.data(), &event, sizeof(event));
  std::memcpy(bytes.data() + sizeof(event), "forward/1", 9);

  EventEncoder encoder;
  ASSERT_TRUE(encoder.Add(reinterpret_cast<const EventHeader*>(bytes.data()), bytes.size()));
  std::string out;
  IdentityIds ids;
  encoder.Encode(ids, out);

  const auto rows = DecodeAll<RangePushEvent>(out, 1);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].nvtx.name, 1000u);
}

TEST(ColumnsTest, PayloadsComeBackWithTheirEvent) {
  constexpr size_t kPayload = 24;
  struct alignas(8) PushWithPayload {
    RangePushEvent event;
    std::byte payload[kPayload];
  };
  std::vector<PushWithPayload> pushes(3);
  EventEncoder encoder;
  for (size_t i = 0; i < pushes.size(); ++i) {
    pushes[i].event = MakeEvent<RangePushEvent>();
    if (i != 1) {
      pushes[i].event.header.payload_bytes = kPayload;
      pushes[i].event.header.bytes += kPayload;
      std::memset(pushes[i].payload, static_cast<int>('a' + i), kPayload);
    }
    ASSERT_TRUE(encoder.Add(&pushes[i].event.header, sizeof(PushWithPayload)));
  }
  std::string out;
  IdentityIds ids;
  encoder.Encode(ids, out);

  std::map<uint32_t, std::string> payloads;
  ASSERT_TRUE(DecodeEvents(
      std::as_bytes(std::span(out)), 3, [&]<typename Event>(const Section<Event>& section) {
        return DecodePayloads(section, [&](uint32_t i, auto bytes) {
          payloads[i].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        });
      }));
  EXPECT_THAT(payloads, ElementsAre(std::pair(0u, std::string(kPayload, 'a')),
                                    std::pair(2u, std::string(kPayload, 'c'))));
}

TEST(ColumnsTest, AnEventWhoseSizesDoNotAddUpIsRefused) {
  auto event = MakeEvent<KernelEvent>();
  EventEncoder encoder;
  EXPECT_FALSE(encoder.Add(&event.header, sizeof(event) - 8)) << "cut off";
  event.header.payload_bytes = 8;
  EXPECT_FALSE(encoder.Add(&event.header, sizeof(event))) << "payload outside";
  event = MakeEvent<KernelEvent>();
  event.header.kind = 999;
  EXPECT_FALSE(encoder.Add(&event.header, sizeof(event))) << "unknown kind";
  EXPECT_EQ(encoder.count(), 0u);
}

TEST(ColumnsTest, ASectionThatClaimsMoreEventsThanItsFrameIsRefused) {
  const std::string payload = EncodeAll(std::vector<KernelEvent>(4, MakeEvent<KernelEvent>()));
  const auto accept = [](const auto&) { return true; };
  EXPECT_TRUE(DecodeEvents(std::as_bytes(std::span(payload)), 4, accept));
  EXPECT_FALSE(DecodeEvents(std::as_bytes(std::span(payload)), 3, accept));
  EXPECT_FALSE(DecodeEvents(std::as_bytes(std::span(payload)), 5, accept));
}

TEST(ColumnsTest, NoPrefixOfAPayloadIsReadOutOfBounds) {
  std::mt19937_64 random(7);
  std::vector<CopyEvent> events;
  for (int i = 0; i < 120; ++i) events.push_back(RandomEvent<CopyEvent>(random, 3));
  const std::string payload = EncodeAll(events);
  for (size_t size = 0; size < payload.size(); ++size) {
    const std::vector<std::byte> prefix = [&] {
      const auto bytes = std::as_bytes(std::span(payload)).first(size);
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    }();
    std::vector<CopyEvent> rows;
    EXPECT_FALSE(DecodeEvents(prefix, 120, [&]<typename Event>(const Section<Event>& section) {
      if constexpr (std::is_same_v<Event, CopyEvent>) return DecodeRows(section, &rows);
      return true;
    }));
  }
}

TEST(ColumnsTest, ALongColumnGivesTheValuesThatItsVarintsHaveOneByOne) {
  std::mt19937_64 random(11);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::byte> bytes(2000);
    std::byte* end = bytes.data();
    std::vector<uint64_t> values;
    for (int i = 0; i < 200; ++i) {
      values.push_back(random() >> (turn % 2 == 0 ? random() % 64 : 40 + random() % 24));
      end = WriteVarint(end, values.back());
    }
    bytes.resize(static_cast<size_t>(end - bytes.data()));
    std::vector<uint64_t> read;
    EXPECT_TRUE((DecodeColumn<Column<2, Encoding::kValue>>(
        bytes, 200, [&read](uint32_t, uint64_t value) { read.push_back(value); })));
    ASSERT_EQ(read, values);
  }
}

// What one of the two ways reads of these bytes, and how many of them it took; 0: malformed.
std::pair<std::vector<uint64_t>, size_t> ReadAll(const std::vector<std::byte>& bytes,
                                                 decltype(&ReadVarints) read) {
  const std::byte *in = bytes.data(), *const end = in + bytes.size();
  std::vector<uint64_t> all;
  while (in != nullptr && in != end) {
    uint64_t values[kVarintsAtOnce];
    const size_t count = read(&in, end, kVarintsAtOnce, values);
    if (in != nullptr) all.insert(all.end(), values, values + count);
  }
  return {all, in == nullptr ? 0 : static_cast<size_t>(in - bytes.data())};
}

TEST(ColumnsTest, AProcessorThatExtractsBitsReadsWhatOneThatShiftsReads) {
  std::mt19937_64 random(12);
  for (int turn = 0; turn < 500; ++turn) {
    std::vector<std::byte> bytes(1 + random() % 400);
    const unsigned long_ones = random() % 8;  // in 8 bytes
    for (std::byte& byte : bytes) {
      byte = std::byte(random() % 128 | (random() % 8 < long_ones ? 128 : 0));
    }
    bytes.back() &= std::byte{0x7f};
    ASSERT_EQ(ReadAll(bytes, &ReadVarints), ReadAll(bytes, &ReadVarintsByShifts)) << turn;
  }
}

TEST(ColumnsTest, AVarintThatIsTooLongIsRefusedWhereverItLies) {
  for (const size_t length : {10u, 11u, 70u}) {
    for (size_t at = 0; at + length < 200; ++at) {
      std::vector<std::byte> bytes(200, std::byte{1});
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), length - 1, std::byte{0x80});
      const auto count = static_cast<uint32_t>(200 - length + 1);
      const bool ok =
          DecodeColumn<Column<2, Encoding::kValue>>(bytes, count, [](uint32_t, uint64_t) {});
      EXPECT_EQ(ok, length == 10) << length << " bytes at " << at;
    }
  }
}

}  // namespace
}  // namespace ranktap::proto
