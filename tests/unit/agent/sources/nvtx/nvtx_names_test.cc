#include "agent/sources/nvtx/nvtx_names.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "proto/operator_payload.h"
#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent {
namespace {

class NvtxNamesTest : public Rings {
 protected:
  void SetUp() override { g_agent.names = arena_; }

  static std::string TextOf(proto::ArenaRef ref) {
    const proto::ArenaEntry* const entry = Names().Find(ref);
    if (entry == nullptr) return "(none)";
    const auto content = Arena::ContentOf(*entry);
    return {reinterpret_cast<const char*>(content.data()), content.size()};
  }
};

TEST_F(NvtxNamesTest, MemoryThatHoldsAnotherNameNowIsAnotherName) {
  OnNewThread([](ThreadState& thread) {
    char text[16] = "forward";
    const EventName before = NameOfText(thread, text);
    EXPECT_EQ(NameOfText(thread, text).ref, before.ref);
    std::strcpy(text, "loss");
    EXPECT_EQ(TextOf(NameOfText(thread, text).ref), "loss");
    EXPECT_EQ(TextOf(before.ref), "forward");
  });
}

TEST_F(NvtxNamesTest, ATextThatEndsWhereMemoryEndsIsComparedToItsEndAndNotBeyond) {
  constexpr size_t kPage = 4096;
  void* const pages =
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(pages) + kPage, kPage, PROT_NONE), 0);
  OnNewThread([end = static_cast<char*>(pages) + kPage](ThreadState& thread) {
    for (size_t length = 0; length < 70; ++length) {
      char* const text = end - length - 1;
      std::memset(text, 'n', length);
      text[length] = '\0';
      const EventName before = NameOfText(thread, text);
      EXPECT_EQ(NameOfText(thread, text).ref, before.ref);
      EXPECT_EQ(TextOf(before.ref), text);
      for (size_t i = 0; i < length; ++i) {
        text[i] = 'm';
        EXPECT_EQ(TextOf(NameOfText(thread, text).ref), text);
        text[i] = '\0';
        EXPECT_EQ(TextOf(NameOfText(thread, text).ref), text);
        text[i] = 'n';
      }
    }
  });
  munmap(pages, 2 * kPage);
}

TEST_F(NvtxNamesTest, ALongNameIsCutAndANullIsNone) {
  OnNewThread([](ThreadState& thread) {
    const std::string text(kMaxNameBytes + 100, 'x');
    EXPECT_EQ(TextOf(NameOfText(thread, text.c_str()).ref).size(), kMaxNameBytes);
    EXPECT_EQ(NameOfText(thread, nullptr).ref, 0u);
  });
  EXPECT_EQ(RegisterText(proto::EntryKind::kString, nullptr), kNoName);
}

TEST_F(NvtxNamesTest, WideTextIsUtf8AndWhatIsNoCodePointIsReplaced) {
  EXPECT_EQ(TextOf(NameOfWideText(L"a\u00e9\u20ac\U0001f600").ref), "a\u00e9\u20ac\U0001f600");
  const wchar_t surrogate[] = {L'x', static_cast<wchar_t>(0xd800), 0};
  EXPECT_EQ(TextOf(NameOfWideText(surrogate).ref), "x\ufffd");
}

TEST_F(NvtxNamesTest, AnOperatorsTextGivesItsNumbersAndIsInternedWithoutThem) {
  OnNewThread([](ThreadState& thread) {
    proto::NvtxAttributes attributes{};
    const EventName name =
        NameOfPushedText(thread, "aten::mm, seq = 41, op_id = 12345678901", attributes);
    EXPECT_EQ(TextOf(name.ref), "aten::mm");
    EXPECT_EQ(attributes.payload_type, proto::kOperatorPayload);
    EXPECT_EQ(attributes.payload, 12345678901u);
    EXPECT_EQ(attributes.category, 42u) << "0 is no sequence number";
  });
}

TEST_F(NvtxNamesTest, ATextThatOnlyLooksLikeAnOperatorsStaysWhole) {
  OnNewThread([](ThreadState& thread) {
    for (const char* const text : {"mine, op_id = ", "mine, op_id = 12x", "op_id = 3"}) {
      proto::NvtxAttributes attributes{};
      EXPECT_EQ(TextOf(NameOfPushedText(thread, text, attributes).ref), text);
      EXPECT_EQ(attributes.payload_type, 0u) << text;
    }
  });
}

}  // namespace
}  // namespace ranktap::agent
