#include "collector/file/printable.h"

#include <gtest/gtest.h>

namespace ranktap::collector {
namespace {

TEST(PrintableTest, WhatATerminalWouldObeyIsReplaced) {
  EXPECT_EQ(Printable("\x1b[31mred\x07"), "?[31mred?");
  EXPECT_EQ(Printable("a line\nranktap: all is well\r\t"), "a line?ranktap: all is well??");
  EXPECT_EQ(Printable("\x7f"), "?");
  // C1: U+009B begins a sequence as ESC [ does.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m"),
            "?31m");
  // Bidirectional marks, embeddings, overrides, isolates; separators of lines and paragraphs.
  for (const char* const mark :
       {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6",
        "\xe2\x81\xa9", "\xe2\x80\xa8", "\xe2\x80\xa9"}) {
    EXPECT_EQ(Printable(std::string("a") + mark + "b"), "a?b");
  }
}

TEST(PrintableTest, EachByteThatIsNoUtf8IsReplaced) {
  EXPECT_EQ(Printable("\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(Printable("\xff\xfe"), "??");
  EXPECT_EQ(Printable("\xe2\x80"), "??");       // cut off
  EXPECT_EQ(Printable("\xc0\x9b"), "??");       // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");  // half of a pair
}

TEST(PrintableTest, TextOfAnyLanguageStaysAsItIs) {
  for (const char* const text : {"", "void f<int>(float*)", "größe", "カーネル", "𝛼β", "שלום"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, ACellIsNoFormula) {
  for (const char* const text : {"=1+1", "+1", "-1", "@SUM(A1)"}) {
    EXPECT_EQ(PrintableCell(text), "'" + std::string(text));
  }
  EXPECT_EQ(PrintableCell("a=1"), "a=1");
  EXPECT_EQ(PrintableCell("\n=1"), "?=1");
  EXPECT_EQ(PrintableCell(""), "");
}

}  // namespace
}  // namespace ranktap::collector
