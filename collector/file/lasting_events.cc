#include "collector/file/lasting_events.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "collector/file/entry_set.h"
#include "proto/decode.h"
#include "proto/encode.h"
#include "proto/framework_marks.h"
#include "proto/operator_payload.h"
#include "proto/sample_marks.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kLastingMarks[] = {
    proto::kGroupsMark,        proto::kTreeMark,
    proto::kSettingsMark,      proto::kSignaturesMark,
    proto::kStacksMark,        proto::kSampledCodesMark,
    proto::kSampledFramesMark, proto::kSampledChildrenMark,
    proto::kNodesMark,         proto::kBusNodesMark};

// Texts are dictionary ids already.
struct SameIds {
  uint32_t IdOf(proto::EntryKind, proto::ArenaRef ref) { return ref; }
  uint32_t IdOfText(std::span<const std::byte>) { return 0; }
};

// Events as they lie in a ring, which is what an encoder takes.
class LastingRows {
 public:
  template <typename Event>
  void Add(Event event, std::span<const std::byte> payload) {
    const size_t size = sizeof(event) + proto::EventEncoder::Padded(payload.size());
    if (size > UINT16_MAX) return;
    event.header = {.kind = static_cast<uint16_t>(Event::kKind),
                    .bytes = static_cast<uint16_t>(size),
                    .text_bytes = 0,
                    .payload_bytes = static_cast<uint16_t>(payload.size())};
    std::vector<uint64_t>& bytes = rows_.emplace_back(size / sizeof(uint64_t));
    std::memcpy(bytes.data(), &event, sizeof(event));
    if (!payload.empty()) {
      std::memcpy(reinterpret_cast<std::byte*>(bytes.data()) + sizeof(event), payload.data(),
                  payload.size());
    }
  }
  // A whole frame without positions; empty where there are no rows.
  std::string Frame(uint32_t writer) const {
    proto::EventEncoder encoder;
    for (const std::vector<uint64_t>& row : rows_) {
      (void)encoder.Add(reinterpret_cast<const proto::EventHeader*>(row.data()),
                        row.size() * sizeof(uint64_t));
    }
    const auto events = static_cast<uint32_t>(encoder.count());
    if (events == 0) return {};
    std::string payload;
    SameIds ids;
    encoder.Encode(ids, payload);
    const proto::FrameHeader header = proto::MakeFrameHeader(
        {.type = proto::FrameType::kEvents, .writer = writer, .events = events},
        std::as_bytes(std::span(payload)));
    return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + payload;
  }

 private:
  std::vector<std::vector<uint64_t>> rows_;  // words: aligned
};

// Of a signatures mark, whose rows begin with a number, behind schema and size; 0 where they do
// not.
uint64_t WindowOf(std::span<const std::byte> payload) {
  constexpr size_t kHeadBytes = 2 * sizeof(uint64_t);
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  const size_t begin = std::min(text.find('[', kHeadBytes) + 1, text.size());
  uint64_t number = 0;
  (void)std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number == 0 ? 0 : (number - 1) / proto::kSignaturesOfWindow;
}

template <typename Event>
constexpr bool kIsToldOnce =
    std::is_same_v<Event, proto::MarkEvent> || std::is_same_v<Event, proto::NameEvent> ||
    std::is_same_v<Event, proto::ContextEvent> || std::is_same_v<Event, proto::StreamEvent>;

}  // namespace

void LastingEvents::AddNames(std::span<const std::byte> dictionary) {
  (void)ForEachEntry(dictionary, [this](uint32_t field, uint64_t id, std::string_view entry) {
    const bool is_domain = field == v1::Dictionary::kNvtxDomainsFieldNumber;
    if (!is_domain && field != v1::Dictionary::kStringsFieldNumber) return;
    const std::string_view text = TextOfEntry(entry);
    if (is_domain && domains_.size() < kMostNames && text.starts_with("ranktap.")) {
      domains_.insert(id);
      if (text == proto::kSampleDomain) sample_domains_.insert(id);
    }
    if (!is_domain && text == proto::kSampledAgainMark && again_.size() < kMostNames) {
      again_.insert(id);
    }
    if (!is_domain && std::ranges::find(kLastingMarks, text) != std::end(kLastingMarks) &&
        names_.size() < kMostNames) {
      names_.insert(id);
      if (text == proto::kSignaturesMark) signatures_.insert(id);
    }
  });
}

void LastingEvents::Take(const proto::FrameView& frame) {
  LastingRows told, resources, sampled;
  std::map<uint64_t, LastingRows> described;
  (void)proto::DecodeEvents(
      frame.payload, frame.header.events,
      [&]<typename Event>(const proto::Section<Event>& section) {
        constexpr bool kIsResource = std::is_same_v<Event, proto::ResourceEvent>;
        if constexpr (kIsToldOnce<Event> || kIsResource) {
          std::vector<Event> rows;
          std::vector<std::span<const std::byte>> payloads(section.count);
          const auto take = [&](uint32_t i, std::span<const std::byte> bytes) {
            payloads[i] = bytes;
          };
          if (section.count > proto::kMaxEventsPerFrame || !proto::DecodeRows(section, &rows) ||
              !proto::DecodePayloads(section, take)) {
            return false;
          }
          for (size_t i = 0; i < rows.size(); ++i) {
            if constexpr (kIsResource) {
              resources.Add(rows[i], {});
            } else if constexpr (std::is_same_v<Event, proto::MarkEvent>) {
              const proto::NvtxAttributes& nvtx = rows[i].nvtx;
              const bool is_sampled = sample_domains_.contains(nvtx.domain);
              if (is_sampled && again_.contains(nvtx.name)) {
                sampled = {};
                Forget(&sampled_);
              } else if (names_.contains(nvtx.name) && domains_.contains(nvtx.domain)) {
                LastingRows* of = is_sampled ? &sampled : &told;
                if (signatures_.contains(nvtx.name)) of = &described[WindowOf(payloads[i])];
                of->Add(rows[i], payloads[i]);
              }
            } else {
              told.Add(rows[i], {});
            }
          }
        }
        return true;
      });
  Add(told.Frame(frame.header.writer), &told_);
  Add(resources.Frame(frame.header.writer), &resources_);
  Add(sampled.Frame(frame.header.writer), &sampled_);
  for (auto& [window, rows] : described) {
    Add(rows.Frame(frame.header.writer), &described_[window]);
  }
  while (described_.size() > kMostWindows) {
    Forget(&described_.begin()->second);
    described_.erase(described_.begin());
  }
}

void LastingEvents::Forget(std::deque<std::string>* frames) {
  for (const std::string& frame : *frames) bytes_ -= frame.size();
  frames->clear();
}

void LastingEvents::ForEachName(
    const std::function<void(proto::EntryKind, uint64_t id)>& take) const {
  ForEach([&take](const std::string& bytes) {
    const proto::FrameView frame = proto::DecodeFrame(std::as_bytes(std::span(bytes)));
    (void)proto::DecodeEvents(frame.payload, frame.header.events,
                              [&take]<typename Event>(const proto::Section<Event>& section) {
                                size_t index = 0;
                                proto::ForEachColumn<Event>([&]<typename C>() {
                                  const auto column = section.columns[index++];
                                  if constexpr (C::kEncoding == proto::Encoding::kRef) {
                                    (void)proto::DecodeColumn<C>(column, section.count,
                                                                 [&take](uint32_t, uint64_t id) {
                                                                   take(C::kEntryKind, id);
                                                                 });
                                  }
                                });
                                return true;
                              });
  });
}

// Nodes of graphs come by the thousand: they never push out what is told once.
void LastingEvents::Add(std::string frame, std::deque<std::string>* frames) {
  if (frame.empty()) return;
  bytes_ += frame.size();
  frames->push_back(std::move(frame));
  while (bytes_ > kMostBytes) {
    std::deque<std::string>* oldest = &told_;
    const auto of_windows = std::ranges::find_if(
        described_, [](const auto& of_window) { return !of_window.second.empty(); });
    if (of_windows != described_.end()) oldest = &of_windows->second;
    if (!sampled_.empty()) oldest = &sampled_;
    if (!resources_.empty()) oldest = &resources_;
    bytes_ -= oldest->front().size();
    oldest->pop_front();
  }
}

}  // namespace ranktap::collector
