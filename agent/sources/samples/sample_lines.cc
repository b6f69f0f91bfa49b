// Lines of JSON in buffers that are reserved.
// Runs on: the sampler.  May not: see sample_lines.h.
#include "agent/sources/samples/sample_lines.h"

#include <array>
#include <charconv>
#include <cstring>

#include "agent/core/agent_state.h"
#include "agent/core/host_clock.h"
#include "proto/events.h"

namespace ranktap::agent::samples {

SampleLines::Text::Text(std::string_view mark) : mark_(Names().InternText(mark)) {
  bytes_.reserve(kMostBytes + sizeof(uint64_t));
  bytes_.assign(kHeadBytes, '\0');
}

void SampleLines::Text::Comma() {
  if (bytes_.back() != '[') bytes_ += ',';
}

void SampleLines::Text::BeginLine() { bytes_ += '['; }

void SampleLines::Text::EndLine() { bytes_ += "]\n"; }

void SampleLines::Text::Number(uint64_t number) {
  std::array<char, 24> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  Comma();
  bytes_.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

void SampleLines::Text::Quoted(std::string_view text) {
  Comma();
  bytes_ += '"';
  // The end of a path says more than its begin; a part of a character says nothing.
  if (text.size() > kMostNameBytes) text.remove_prefix(text.size() - kMostNameBytes);
  while (!text.empty() && (text[0] & 0xc0) == 0x80) text.remove_prefix(1);
  for (const char c : text) {
    if (c == '"' || c == '\\') bytes_ += '\\';
    bytes_ += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  bytes_ += '"';
}

void SampleLines::Text::Send(ThreadState& writer, proto::ArenaRef domain) {
  if (empty()) return;
  const uint64_t head[2] = {proto::kBytesSchema, bytes_.size() - kHeadBytes};
  std::memcpy(bytes_.data(), head, sizeof(head));
  bytes_.resize((bytes_.size() + 7) & ~size_t{7}, '\0');
  writer.EmitWith(
      proto::MarkEvent{
          .time_ticks = NowTicks(),
          .nvtx = {.domain = domain, .name = mark_, .payload_type = proto::kNvtxSchemaPayload}},
      {}, std::as_bytes(std::span(bytes_)));
  bytes_.resize(kHeadBytes);
}

SampleLines::SampleLines()
    : domain_(Names().Intern(proto::EntryKind::kNvtxDomain,
                             std::as_bytes(std::span(proto::kSampleDomain)))),
      again_(Names().InternText(proto::kSampledAgainMark)),
      codes_(proto::kSampledCodesMark),
      frames_(proto::kSampledFramesMark),
      children_(proto::kSampledChildrenMark),
      samples_(proto::kSamplesMark),
      threads_(proto::kThreadCountsMark),
      host_(proto::kHostCountsMark),
      nodes_(proto::kNodesMark),
      bus_nodes_(proto::kBusNodesMark),
      reads_(proto::kReadFilesMark),
      child_reads_(proto::kChildReadsMark) {}

void SampleLines::AddCode(uint32_t number, const proto::PythonCodeText& text) {
  // Escaped, a name may be twice as long.
  if (!codes_.HasRoom(2 * kMostLineBytes)) Send();
  codes_.BeginLine();
  codes_.Number(number);
  codes_.Quoted(text.file);
  codes_.Quoted(text.name);
  codes_.EndLine();
}

void SampleLines::AddFrame(uint32_t number, uint32_t parent, uint32_t code, uint32_t line) {
  if (!frames_.HasRoom(kMostLineBytes)) Send();
  frames_.BeginLine();
  for (const uint32_t value : {number, parent, code, line}) frames_.Number(value);
  frames_.EndLine();
}

void SampleLines::AddChild(int32_t thread, int32_t process) {
  if (!children_.HasRoom(kMostLineBytes)) Send();
  children_.BeginLine();
  for (const int32_t value : {thread, process}) children_.Number(static_cast<uint32_t>(value));
  children_.EndLine();
}

void SampleLines::AddSample(const Sample& sample) {
  if (!samples_.HasRoom(kMostLineBytes)) Send();
  samples_.BeginLine();
  samples_.Number(static_cast<uint32_t>(sample.thread));
  samples_.Number(sample.frame);
  samples_.Number(static_cast<uint64_t>(sample.state));
  samples_.Number(sample.looks);
  samples_.Number(sample.start_ticks);
  samples_.Number(sample.end_ticks);
  for (const uint64_t count : sample.counts) samples_.Number(count);
  samples_.EndLine();
}

void SampleLines::Add(Text* text, std::span<const uint64_t> numbers, std::string_view last) {
  if (!text->HasRoom(kMostLineBytes)) Send();
  text->BeginLine();
  for (const uint64_t number : numbers) text->Number(number);
  text->Quoted(last);
  text->EndLine();
}

void SampleLines::AddThread(std::span<const uint64_t> numbers, std::string_view name) {
  Add(&threads_, numbers, name);
}

void SampleLines::AddHost(std::span<const uint64_t> numbers, std::string_view cpus) {
  Add(&host_, numbers, cpus);
}

void SampleLines::AddNode(uint64_t node, std::string_view cpus) {
  Add(&nodes_, std::span(&node, 1), cpus);
}

void SampleLines::AddBusNode(uint64_t node, std::string_view bus) {
  Add(&bus_nodes_, std::span(&node, 1), bus);
}

void SampleLines::AddRead(int32_t thread, uint64_t ticks, std::string_view path) {
  const uint64_t numbers[] = {static_cast<uint32_t>(thread), ticks};
  Add(&reads_, numbers, path);
}

void SampleLines::AddChildRead(int32_t process, uint64_t ticks, uint64_t ns,
                               std::string_view path) {
  const uint64_t numbers[] = {static_cast<uint32_t>(process), ticks, ns};
  Add(&child_reads_, numbers, path);
}

void SampleLines::Send() {
  if (writer_ == nullptr) return;
  codes_.Send(*writer_, domain_);
  frames_.Send(*writer_, domain_);
  children_.Send(*writer_, domain_);
  samples_.Send(*writer_, domain_);
  reads_.Send(*writer_, domain_);
  child_reads_.Send(*writer_, domain_);
  nodes_.Send(*writer_, domain_);
  bus_nodes_.Send(*writer_, domain_);
  host_.Send(*writer_, domain_);
  threads_.Send(*writer_, domain_);
}

void SampleLines::TellAgain() {
  if (writer_ == nullptr) return;
  Send();
  writer_->EmitWith(
      proto::MarkEvent{.time_ticks = NowTicks(), .nvtx = {.domain = domain_, .name = again_}}, {},
      {});
}

}  // namespace ranktap::agent::samples
