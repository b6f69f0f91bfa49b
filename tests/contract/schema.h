// What protoc makes of the .proto files themselves: the generated classes are of the lite runtime
// and cannot list their fields.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <string>

namespace ranktap {

// Of ranktap.v1; nullptr: no such message.
inline const google::protobuf::Descriptor* FindInSchema(const std::string& message) {
  static const auto* pool = [] {
    auto* made = new google::protobuf::DescriptorPool;
    google::protobuf::FileDescriptorSet set;
    std::ifstream input(RANKTAP_V1_DESCRIPTOR, std::ios::binary);
    if (!set.ParseFromIstream(&input)) return made;
    for (const auto& file : set.file()) made->BuildFile(file);
    return made;
  }();
  return pool->FindMessageTypeByName("ranktap.v1." + message);
}

}  // namespace ranktap
