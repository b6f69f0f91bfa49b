#include "collector/trace/dictionary.h"

#include <algorithm>

#include "collector/file/trace_state.h"
#include "proto/redact.h"

namespace ranktap::collector {
namespace {

template <typename Message>
bool Parse(std::string_view content, Message* message) {
  return message->ParseFromArray(content.data(), static_cast<int>(content.size()));
}

template <typename Triple>
void CopyTriple(const Triple& from, uint32_t (&to)[3]) {
  for (int i = 0; i < std::min(3, from.size()); ++i) to[i] = from.Get(i);
}

}  // namespace

bool Dictionary::Add(std::span<const std::byte> bytes) {
  return ForEachEntry(bytes, [this](uint32_t field, uint64_t id, std::string_view entry) {
    // The content follows the tag (one byte: all fields are below 16) and the length.
    size_t skip = 1;
    while (skip < entry.size() && (static_cast<uint8_t>(entry[skip]) & 0x80) != 0) ++skip;
    AddEntry(field, id, entry.substr(std::min(skip + 1, entry.size())));
  });
}

uint32_t Dictionary::AppendString(std::string_view text) {
  std::string kept(text);
  proto::RedactText(kept);
  return strings_.Append(std::move(kept));
}

uint32_t Dictionary::AppendApi(ApiFunction api) { return apis_.Append(std::move(api)); }

uint32_t Dictionary::AppendShape(const proto::LaunchShape& shape) { return shapes_.Append(shape); }

void Dictionary::AddEntry(uint32_t field, uint64_t id, std::string_view content) {
  const auto add_text = [&](EntryList<std::string>* list) {
    v1::Text text;
    std::string* const room = list->Room(id);
    if (!room->empty() || !Parse(content, &text)) return;
    *room = std::move(*text.mutable_text());
    proto::RedactText(*room);  // agents before 0.2 did not
  };
  const auto add_message = [&](auto* map) {
    auto [at, is_new] = map->try_emplace(id);
    if (is_new && !Parse(content, &at->second)) map->erase(at);
  };
  switch (field) {
    case v1::Dictionary::kStringsFieldNumber:
      return add_text(&strings_);
    case v1::Dictionary::kNvtxDomainsFieldNumber:
      return add_text(&domains_);
    case v1::Dictionary::kShapesFieldNumber: {
      v1::LaunchShapeEntry shape;
      if (Parse(content, &shape)) AddShape(static_cast<uint32_t>(id), shape);
      return;
    }
    case v1::Dictionary::kApiFunctionsFieldNumber: {
      v1::ApiFunction api;
      if (!Parse(content, &api)) return;
      *apis_.Room(id) = {static_cast<proto::ApiDomain>(api.domain()), api.cbid(), api.name()};
      return;
    }
    case v1::Dictionary::kSchemasFieldNumber: {
      v1::PayloadSchema schema;
      if (Parse(content, &schema)) {
        schemas_.try_emplace({schema.domain(), schema.schema_id()}, schema);
      }
      return;
    }
    case v1::Dictionary::kEnumsFieldNumber: {
      v1::PayloadEnum enumeration;
      if (Parse(content, &enumeration)) {
        enums_.try_emplace({enumeration.domain(), enumeration.enum_id()}, enumeration);
      }
      return;
    }
    case v1::Dictionary::kStacksFieldNumber:
      return AddStack(static_cast<uint32_t>(id), content);
    case v1::Dictionary::kModulesFieldNumber:
      return add_message(&modules_);
    case v1::Dictionary::kWritersFieldNumber:
      return add_message(&writers_);
    default:
      return;  // a kind of a newer agent
  }
}

void Dictionary::AddShape(uint32_t id, const v1::LaunchShapeEntry& entry) {
  proto::LaunchShape& shape = shapes_.Room(id)->emplace();
  CopyTriple(entry.grid(), shape.grid);
  CopyTriple(entry.block(), shape.block);
  CopyTriple(entry.cluster(), shape.cluster);
  shape.registers_per_thread = entry.registers_per_thread();
  shape.static_shared_bytes = entry.static_shared_bytes();
  shape.dynamic_shared_bytes = entry.dynamic_shared_bytes();
  shape.local_bytes_per_thread = entry.local_bytes_per_thread();
  shape.shared_executed_bytes = entry.shared_executed_bytes();
  shape.max_active_clusters = entry.max_active_clusters();
  shape.priority = entry.priority();
}

const proto::LaunchShape* Dictionary::Shape(uint32_t id) const {
  const auto* const shape = shapes_.Find(id);
  return shape != nullptr && shape->has_value() ? &**shape : nullptr;
}

const v1::PayloadSchema* Dictionary::Schema(uint32_t domain, uint64_t schema_id) const {
  const auto found = schemas_.find({domain, schema_id});
  return found == schemas_.end() ? nullptr : &found->second;
}

const v1::PayloadEnum* Dictionary::Enum(uint32_t domain, uint64_t enum_id) const {
  const auto found = enums_.find({domain, enum_id});
  return found == enums_.end() ? nullptr : &found->second;
}

const v1::Writer* Dictionary::Writer(uint32_t id) const {
  const auto found = writers_.find(id);
  return found == writers_.end() ? nullptr : &found->second;
}

const v1::Module* Dictionary::ModuleAt(uint64_t address) const {
  const v1::Module* found = nullptr;
  for (const auto& [id, module] : modules_) {
    if (address < module.load_address() || address - module.load_address() >= module.size()) {
      continue;
    }
    if (found == nullptr || module.order() > found->order()) found = &module;
  }
  return found;
}

void Dictionary::AddStack(uint32_t id, std::string_view content) {
  v1::Stack stack;
  if (!Parse(content, &stack)) return;
  NativeStack& known = *stacks_.Room(id);
  known.truncated = stack.truncated();
  known.frames.assign(stack.frames().begin(), stack.frames().end());
  uint64_t address = 0;
  for (uint64_t& frame : known.frames) frame = address += frame;
}

}  // namespace ranktap::collector
