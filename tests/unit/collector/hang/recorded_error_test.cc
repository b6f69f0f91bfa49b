#include "collector/hang/recorded_error.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/unit/collector/temporary_directory.h"

namespace ranktap::collector {
namespace {

std::string ErrorOf(const std::string& text) {
  const TemporaryDirectory folder;
  const std::string file = folder.path() + "/error.json";
  std::ofstream(file) << text;
  return RecordedError(file);
}

TEST(RecordedError, AnExceptionIsToldWithTheProgramsInnermostLine) {
  EXPECT_EQ(ErrorOf(R"({"message": {"message": "ValueError: no such label\nin the file",
      "extraInfo": {"py_callstack": "Traceback (most recent call last):\n  File \"/job/train.py\", line 9, in <module>\n    main()\n  File \"/job/data.py\", line 31, in read\n  File \"/usr/lib/python3.11/json/decoder.py\", line 355, in raw_decode\n",
      "timestamp": "1795769881"}}})"),
            "ValueError: no such label, at data.py:31");
}

TEST(RecordedError, WhatIsNoSuchFileTellsNothing) {
  for (const char* const text :
       {"", "{", "[]", "3", R"({"message": 3})", R"({"message": "killed by a signal"})",
        R"({"message": {"message": 3, "extraInfo": []}})", "\xff\xfe\x00"}) {
    EXPECT_EQ(ErrorOf(text), "") << text;
  }
  EXPECT_EQ(ErrorOf(R"({"message": {"message": "KeyError: 1", "extraInfo": {"py_callstack":
                     "  File \"\n  File \"x\", line \n"}}})"),
            "KeyError: 1");
  const TemporaryDirectory folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& file : {pipe, folder.path(), folder.path() + "/none", std::string()}) {
    EXPECT_EQ(RecordedError(file), "") << file;
  }
}

}  // namespace
}  // namespace ranktap::collector
