#include "collector/import/execution/chakra_file.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

namespace ranktap::collector {
namespace {

constexpr size_t kChunk = 64 << 10;
constexpr uint64_t kLargestMessage = 64 << 20;

}  // namespace

Result<ChakraFile> ChakraFile::Open(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return Failure{source.message()};
  ChakraFile file(std::move(*source));
  std::string message;
  constexpr char kNodesId = 0x08;  // a number, where GlobalMetadata has a text or a message
  if (file.Take(&message) && message.starts_with(kNodesId)) {
    file.has_metadata_ = false;
    file.first_ = std::move(message);
  } else if (!file.metadata_.ParseFromString(message)) {
    file.Stop("the first message is not a GlobalMetadata");
  }
  if (!file.damage_.what.empty()) {
    return Failure{fmt::format("{}: no execution trace of Chakra (at byte {}: {})", path,
                               file.damage_.offset, file.damage_.what)};
  }
  return file;
}

int ChakraFile::Byte() {
  if (at_ == end_) {
    before_ += end_;
    chunk_.resize(kChunk);
    at_ = 0;
    end_ = source_.Read(chunk_.data(), kChunk);
    if (end_ == 0) return -1;
  }
  return static_cast<unsigned char>(chunk_[at_++]);
}

bool ChakraFile::Stop(std::string what) {
  if (!source_.damage().empty()) what = source_.damage();
  damage_ = {message_, 0, std::move(what)};
  return false;
}

bool ChakraFile::Take(std::string* message) {
  if (!damage_.what.empty()) return false;
  message_ = before_ + at_;
  uint64_t size = 0;
  for (unsigned shift = 0;; shift += 7) {
    const int byte = Byte();
    if (byte < 0 && shift == 0 && source_.damage().empty()) return false;  // the end
    if (byte < 0) return Stop("the file ends inside the size of a message");
    size |= uint64_t{static_cast<unsigned char>(byte & 0x7f)} << shift;
    if (byte < 0x80) break;
    if (shift >= 28) return Stop("the size of a message is longer than its 5 bytes");
  }
  if (size > kLargestMessage) return Stop(fmt::format("a message of {} bytes", size));
  message->clear();
  while (message->size() < size) {
    const int first = Byte();
    if (first < 0) {
      return Stop(fmt::format("a message of {} bytes ends after {}", size, message->size()));
    }
    --at_;
    const size_t part = std::min<size_t>(size - message->size(), end_ - at_);
    message->append(chunk_.data() + at_, part);
    at_ += part;
  }
  return true;
}

bool ChakraFile::Next(chakra::Node* node) {
  std::string message = std::exchange(first_, {});
  if (message.empty() && !Take(&message)) return false;
  return node->ParseFromString(message) || Stop("a message is not a Node; the rest is not read");
}

const chakra::AttributeProto* FindChakraAttribute(const chakra::Node& node, std::string_view name) {
  for (const chakra::AttributeProto& attribute : node.attr()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t ChakraNumber(const chakra::AttributeProto& attribute) {
  using Case = chakra::AttributeProto::ValueCase;
  switch (attribute.value_case()) {
    case Case::kInt32Val:
      return attribute.int32_val();
    case Case::kInt64Val:
      return attribute.int64_val();
    case Case::kUint32Val:
      return attribute.uint32_val();
    case Case::kUint64Val:
      return static_cast<int64_t>(attribute.uint64_val());
    case Case::kSint32Val:
      return attribute.sint32_val();
    case Case::kSint64Val:
      return attribute.sint64_val();
    case Case::kFixed32Val:
      return attribute.fixed32_val();
    case Case::kFixed64Val:
      return static_cast<int64_t>(attribute.fixed64_val());
    case Case::kSfixed32Val:
      return attribute.sfixed32_val();
    case Case::kSfixed64Val:
      return attribute.sfixed64_val();
    case Case::kBoolVal:
      return attribute.bool_val() ? 1 : 0;
    default:
      return 0;
  }
}

int64_t ChakraNumber(const chakra::Node& node, std::string_view name, int64_t otherwise) {
  const chakra::AttributeProto* const found = FindChakraAttribute(node, name);
  return found == nullptr ? otherwise : ChakraNumber(*found);
}

std::string ChakraText(const chakra::Node& node, std::string_view name) {
  const chakra::AttributeProto* const found = FindChakraAttribute(node, name);
  return found == nullptr ? std::string() : found->string_val();
}

}  // namespace ranktap::collector
