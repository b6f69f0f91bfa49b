// The payload of an NVTX range or mark, decoded by the schema that the program registered: names
// and values. On demand: the model keeps the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

using PayloadValue = std::variant<uint64_t, int64_t, double, std::string>;

struct PayloadField {
  std::string name;  // "payload" where the program gave none
  PayloadValue value;
};

// Every field of row `row`. It leaves out what cannot be decoded (no schema, cut off, a pointer
// into the dead process).
std::vector<PayloadField> DecodePayload(const Trace& trace, const Ranges& ranges, size_t row);

// Bytes of one payload by its schema. Total over any input.
void DecodeBySchema(const Dictionary& dictionary, uint32_t domain, uint64_t schema_id,
                    std::span<const std::byte> bytes, std::vector<PayloadField>* fields);

}  // namespace ranktap::collector
