// A trace in which a sampler told of the frames
//
//   1 main (train.py:97) > 2 forward (torch/nn/linear.py:5) > 3 decode (json/decoder.py:7)
//   4 main (train.py:98) > 6 save (<ranktap/pauses.py>:9) > 7 forward (torch/nn/linear.py:5)
//   5 main, whose caller is itself
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "collector/trace/run.h"
#include "proto/sample_marks.h"
#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {

class SampledTrace {
 public:
  static constexpr uint32_t kMain = 40;

  SampledTrace() {
    v1::Dictionary names;
    v1::Text* const domain = names.add_nvtx_domains();
    domain->set_id(1);
    domain->set_text(std::string(proto::kSampleDomain));
    const std::string bytes = names.SerializeAsString();
    EXPECT_TRUE(trace_.dictionary.Add(std::as_bytes(std::span(bytes))));
    trace_.hello.mutable_process()->set_pid(kMain);
    AddMark(
        proto::kSampledCodesMark,
        "[1,\"/job/train.py\",\"main\"]\n[2,\"/v/site-packages/torch/nn/linear.py\",\"forward\"]\n"
        "[3,\"/usr/lib/python3.11/json/decoder.py\",\"decode\"]\n"
        "[4,\"<ranktap/pauses.py>\",\"save\"]\nnot a line\n[9]\n");
    AddMark(proto::kSampledFramesMark,
            "[1,0,1,97]\n[2,1,2,5]\n[3,2,3,7]\n[4,0,1,98]\n[5,5,1,1]\n[6,4,4,9]\n[7,6,2,5]\n");
  }

  Trace& trace() { return trace_; }
  // Lines of "[thread, frame, state, looks, start, end, CPU time]".
  void AddSamples(std::string_view lines) { AddMark(proto::kSamplesMark, lines); }
  // Of a mark of this name (proto/sample_marks.h).
  void AddMark(std::string_view name, std::string_view lines) {
    Ranges& marks = trace_.marks;
    marks.start.push_back(0);
    marks.end.push_back(0);
    marks.name.push_back(trace_.dictionary.AppendString(name));
    marks.domain.push_back(1);
    marks.writer.push_back(0);
    marks.depth.push_back(0);
    marks.kind.push_back(0);
    const uint64_t head[2] = {0, lines.size()};
    std::string payload(sizeof(head), '\0');
    std::memcpy(payload.data(), head, sizeof(head));
    trace_.payloads.push_back(payload + std::string(lines));
    marks.inline_payload.PadTo(marks.size());
    marks.inline_payload.back() = static_cast<uint32_t>(trace_.payloads.size());
  }

 private:
  Trace trace_;
};

}  // namespace ranktap::collector
