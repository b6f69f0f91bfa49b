#include "collector/export/perfetto/perfetto_annotations.h"

#include <array>
#include <protozero/pbf_writer.hpp>

#include "collector/export/perfetto/perfetto_fields.h"

namespace ranktap::collector {
namespace {

namespace annotation = perfetto::annotation;

template <typename Write>
void Append(std::string* bytes, Write write) {
  protozero::pbf_writer event(*bytes);
  protozero::pbf_writer note(event, perfetto::event::kAnnotations);
  write(&note);
}

void NameIt(protozero::pbf_writer* writer, Note note) {
  writer->add_uint64(annotation::kNameId, static_cast<uint64_t>(note));
}
void NameIt(protozero::pbf_writer* writer, std::string_view name) {
  writer->add_bytes(annotation::kName, name.data(), name.size());
}

}  // namespace

std::string_view NameOf(Note note) {
  static constexpr std::array<std::string_view, static_cast<size_t>(Note::kLast) + 1> kNames = {
      "",
      "correlation",
      "device",
      "context",
      "stream",
      "grid",
      "block",
      "cluster",
      "registers per thread",
      "shared memory",
      "blocks per SM",
      "warps per SM",
      "est. achieved occupancy %",
      "priority",
      "graph id",
      "graph node id",
      "channel",
      "bytes",
      "memory bandwidth (GB/s)",
      "fromDevice",
      "toDevice",
      "domain",
      "category",
      "unfinished",
      "status",
      "reason",
      "event",
      "External id",
      "Sequence number",
      "Input Dims",
      "Input type",
      "Concrete Inputs",
      "Call stack",
      "flops",
      "Collective name",
      "dtype",
      "In msg nelems",
      "Out msg nelems",
      "Process Group Name",
      "Group size",
      "Record function id",
      "Fwd thread id",
      "Output Dims",
      "Output type"};
  return kNames[static_cast<size_t>(note)];
}

void Annotations::Add(Note name, double value) {
  Append(&bytes_, [&](protozero::pbf_writer* note) {
    NameIt(note, name);
    note->add_double(annotation::kDouble, value);
  });
}

void Annotations::Add(Note name, std::string_view text) {
  Append(&bytes_, [&](protozero::pbf_writer* note) {
    NameIt(note, name);
    note->add_bytes(annotation::kString, text.data(), text.size());
  });
}

void Annotations::Add(Note name, const uint32_t (&triple)[3]) {
  Append(&bytes_, [&](protozero::pbf_writer* note) {
    NameIt(note, name);
    for (const uint32_t value : triple) {
      protozero::pbf_writer element(*note, annotation::kArray);
      element.add_uint64(annotation::kUint, value);
    }
  });
}

void Annotations::Add(std::string_view name, uint64_t value) {
  Append(&bytes_, [&](protozero::pbf_writer* note) {
    NameIt(note, name);
    note->add_uint64(annotation::kUint, value);
  });
}

void Annotations::Add(std::string_view name, int64_t value) {
  Append(&bytes_, [&](protozero::pbf_writer* note) {
    NameIt(note, name);
    note->add_int64(annotation::kInt, value);
  });
}

void Annotations::Add(std::string_view name, double value) {
  Append(&bytes_, [&](protozero::pbf_writer* note) {
    NameIt(note, name);
    note->add_double(annotation::kDouble, value);
  });
}

void Annotations::Add(std::string_view name, std::string_view text) {
  Append(&bytes_, [&](protozero::pbf_writer* note) {
    NameIt(note, name);
    note->add_bytes(annotation::kString, text.data(), text.size());
  });
}

}  // namespace ranktap::collector
