#include "proto/encode_entry.h"

#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "proto/events.h"
#include "proto/redact.h"

namespace ranktap::proto {
namespace {

using Content = std::span<const std::byte>;

// The head of an entry; nullopt: it is too short.
template <typename Head>
std::optional<Head> HeadOf(Content content) {
  if (content.size() < sizeof(Head)) return std::nullopt;
  Head head;
  std::memcpy(&head, content.data(), sizeof(head));
  return head;
}

std::string Chars(Content bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Paths and names are the program's: what it calls a range may hold a password.
std::string Told(Content bytes) {
  std::string text = Chars(bytes);
  RedactText(text);
  return text;
}

bool WriteText(uint32_t id, Content content, protozero::pbf_writer entry) {
  entry.add_uint32(1, id);
  entry.add_bytes(2, Told(content));
  return true;
}

bool WriteLaunchShape(uint32_t id, const LaunchShape& shape, protozero::pbf_writer entry) {
  entry.add_uint32(1, id);
  entry.add_packed_uint32(2, std::begin(shape.grid), std::end(shape.grid));
  entry.add_packed_uint32(3, std::begin(shape.block), std::end(shape.block));
  if ((shape.cluster[0] | shape.cluster[1] | shape.cluster[2]) != 0) {
    entry.add_packed_uint32(4, std::begin(shape.cluster), std::end(shape.cluster));
  }
  entry.add_uint32(5, shape.registers_per_thread);
  entry.add_uint32(6, shape.static_shared_bytes);
  entry.add_uint32(7, shape.dynamic_shared_bytes);
  entry.add_uint32(8, shape.local_bytes_per_thread);
  entry.add_uint32(9, shape.shared_executed_bytes);
  entry.add_uint32(10, shape.max_active_clusters);
  entry.add_sint32(11, shape.priority);
  return true;
}

bool WriteApiFunction(uint32_t id, const ApiFunctionEntry& function, Content name,
                      protozero::pbf_writer entry) {
  entry.add_uint32(1, id);
  entry.add_uint32(2, static_cast<uint32_t>(function.domain));
  entry.add_uint32(3, function.cbid);
  entry.add_string(4, Chars(name));
  return true;
}

bool WriteStack(uint32_t id, std::span<const uint32_t> words, protozero::pbf_writer entry) {
  const std::vector<int64_t> frames = StackDistances(words);
  entry.add_uint32(1, id);
  entry.add_packed_sint64(2, frames.begin(), frames.end());
  if ((words[0] & kStackTruncated) != 0) entry.add_bool(3, true);
  return true;
}

bool WriteModule(uint32_t id, const ModuleEntry& module, Content texts,
                 protozero::pbf_writer entry) {
  entry.add_uint32(1, id);
  entry.add_bytes(2, Told(texts.subspan(module.build_id_bytes)));
  entry.add_bytes(3, Chars(texts.first(module.build_id_bytes)));
  entry.add_uint64(4, module.start);
  entry.add_uint64(5, module.bytes);
  entry.add_uint64(6, module.bias);
  entry.add_uint32(7, module.order);
  return true;
}

}  // namespace

std::vector<int64_t> StackDistances(std::span<const uint32_t> words) {
  std::vector<int64_t> distances;
  uint64_t previous = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    int64_t distance = static_cast<int32_t>(words[i]);
    if (distance == kFarFrame) {
      if (words.size() - i < kMostWordsAFrame) break;
      const uint64_t address = uint64_t{words[i + 2]} << 32 | words[i + 1];
      distance = static_cast<int64_t>(address - previous);
      i += 2;
    }
    distances.push_back(distance);
    previous += static_cast<uint64_t>(distance);
  }
  return distances;
}

bool EncodeEntry(EntryKind kind, uint32_t id, Content content, protozero::pbf_writer& dictionary) {
  const auto field = static_cast<uint32_t>(kind);
  switch (kind) {
    case EntryKind::kString:
    case EntryKind::kNvtxDomain:
      return WriteText(id, content, {dictionary, field});
    case EntryKind::kLaunchShape: {
      const auto shape = HeadOf<LaunchShape>(content);
      return shape && WriteLaunchShape(id, *shape, {dictionary, field});
    }
    case EntryKind::kApiFunction: {
      const auto function = HeadOf<ApiFunctionEntry>(content);
      return function && WriteApiFunction(id, *function, content.subspan(sizeof(*function)),
                                          {dictionary, field});
    }
    case EntryKind::kStack: {
      std::vector<uint32_t> words(content.size() / sizeof(uint32_t));
      std::memcpy(words.data(), content.data(), words.size() * sizeof(uint32_t));
      return !words.empty() && WriteStack(id, words, {dictionary, field});
    }
    case EntryKind::kModule: {
      const auto module = HeadOf<ModuleEntry>(content);
      return module && module->build_id_bytes <= content.size() - sizeof(*module) &&
             WriteModule(id, *module, content.subspan(sizeof(*module)), {dictionary, field});
    }
    case EntryKind::kNvtxSchema:
    case EntryKind::kNvtxEnum:
      dictionary.add_bytes(field, Chars(content));
      return true;
  }
  return false;
}

}  // namespace ranktap::proto
