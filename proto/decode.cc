#include "proto/decode.h"

namespace ranktap::proto {

bool ParseFields(std::span<const std::byte> section, SectionFields* fields) {
  try {
    protozero::pbf_reader reader(reinterpret_cast<const char*>(section.data()), section.size());
    while (reader.next()) {
      if (reader.tag() == kCountField && reader.wire_type() == protozero::pbf_wire_type::varint) {
        fields->count = reader.get_uint32();
        continue;
      }
      if (reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
        reader.skip();
        continue;
      }
      const uint32_t tag = reader.tag();
      const protozero::data_view view = reader.get_view();
      if (tag >= fields->bytes.size()) continue;  // of a newer agent
      fields->bytes[tag] = std::as_bytes(std::span(view.data(), view.size()));
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return fields->count <= kMaxEventsPerFrame;
}

}  // namespace ranktap::proto
