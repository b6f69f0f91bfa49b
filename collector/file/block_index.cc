#include "collector/file/block_index.h"

#include <protozero/pbf_writer.hpp>

#include "ranktap/v1/trace.pb.h"

namespace ranktap::collector {

void BlockIndex::Add(uint64_t offset, const BlockHeader& header) {
  v1::BlockEntry entry;
  entry.set_offset(offset);
  entry.set_type(static_cast<uint32_t>(header.type));
  entry.set_events(header.events);
  entry.set_stored_bytes(header.stored_bytes);
  entry.set_raw_bytes(header.raw_bytes);
  entry.set_first_received_ns(header.first_received_ns);
  entry.set_last_received_ns(header.last_received_ns);
  protozero::pbf_writer(bytes_).add_message(v1::Index::kBlocksFieldNumber,
                                            entry.SerializeAsString());
  ++blocks_;
}

void BlockIndex::Clear() {
  bytes_.clear();
  blocks_ = 0;
}

}  // namespace ranktap::collector
