// What the sampler says, as lines of marks (proto/sample_marks.h), gathered for a second.
// Runs on: the sampler.  May not: allocate once it is made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "agent/core/writer.h"
#include "proto/python_frames.h"
#include "proto/sample_marks.h"

namespace ranktap::agent::samples {

// Of one thread: CPU time and time without a CPU in ns, major faults, bytes read from storage.
using LookCounts = std::array<uint64_t, 4>;

struct Sample {
  int32_t thread;
  uint32_t frame;
  proto::SampleState state;
  uint32_t looks;
  uint64_t start_ticks, end_ticks;
  LookCounts counts;
};

class SampleLines {
 public:
  SampleLines();
  // Whose ring the marks go to.
  void SetWriter(ThreadState* writer) { writer_ = writer; }

  void AddCode(uint32_t number, const proto::PythonCodeText& text);
  void AddFrame(uint32_t number, uint32_t parent, uint32_t code, uint32_t line);
  void AddChild(int32_t thread, int32_t process);
  void AddSample(const Sample& sample);
  // Numbers and a text, as proto/sample_marks.h has them.
  void AddThread(std::span<const uint64_t> numbers, std::string_view name);
  void AddHost(std::span<const uint64_t> numbers, std::string_view cpus);
  void AddNode(uint64_t node, std::string_view cpus);
  void AddBusNode(uint64_t node, std::string_view bus);
  void AddRead(int32_t thread, uint64_t ticks, std::string_view path);
  void AddChildRead(int32_t process, uint64_t ticks, uint64_t ns, std::string_view path);

  // All that was gathered: code objects first, then frames, then samples.
  void Send();
  // Sends, and says that what was told so far will be told again.
  void TellAgain();

 private:
  class Text {
   public:
    explicit Text(std::string_view mark);
    bool HasRoom(size_t bytes) const { return bytes_.size() + bytes < kMostBytes; }
    bool empty() const { return bytes_.size() == kHeadBytes; }
    void BeginLine();
    void Number(uint64_t number);
    void Quoted(std::string_view text);
    void EndLine();
    void Send(ThreadState& writer, proto::ArenaRef domain);

   private:
    static constexpr size_t kHeadBytes = 16, kMostBytes = 48 << 10;
    void Comma();
    std::string bytes_;
    proto::ArenaRef mark_;
  };

  // A name may take so much of a mark.
  static constexpr size_t kMostNameBytes = 1024, kMostLineBytes = 2 * kMostNameBytes + 256;

  void Add(Text* text, std::span<const uint64_t> numbers, std::string_view last);

  proto::ArenaRef domain_, again_;
  Text codes_, frames_, children_, samples_, threads_, host_, nodes_, bus_nodes_, reads_,
      child_reads_;
  ThreadState* writer_ = nullptr;
};

}  // namespace ranktap::agent::samples
