// The messages of an .et file, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chakra/et_def.pb.h"
#include "collector/file/result.h"
#include "collector/import/byte_source.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// One thread. Every size is checked before it is believed.
class ChakraFile {
 public:
  static Result<ChakraFile> Open(const std::string& path);

  // Empty where the file begins with a node.
  const chakra::GlobalMetadata& metadata() const { return metadata_; }
  bool has_metadata() const { return has_metadata_; }
  // False: the end, or the place where the file is damaged.
  bool Next(chakra::Node* node);
  // The place at which reading stopped before the end; what is empty: it did not.
  const Damage& damage() const { return damage_; }
  uint64_t file_bytes() const { return source_.file_bytes(); }

 private:
  explicit ChakraFile(ByteSource source) : source_(std::move(source)) {}
  // The next message's bytes; false as Next().
  bool Take(std::string* message);
  bool Stop(std::string what);
  int Byte();

  ByteSource source_;
  std::vector<char> chunk_;
  size_t at_ = 0, end_ = 0;
  uint64_t before_ = 0;   // bytes of the file in front of chunk_
  uint64_t message_ = 0;  // where the one being read begins
  chakra::GlobalMetadata metadata_;
  bool has_metadata_ = true;
  std::string first_;  // a node where GlobalMetadata should be, until Next() has taken it
  Damage damage_;
};

// As a number, whichever member holds it; `otherwise` where there is none.
int64_t ChakraNumber(const chakra::Node& node, std::string_view name, int64_t otherwise = 0);
std::string ChakraText(const chakra::Node& node, std::string_view name);
const chakra::AttributeProto* FindChakraAttribute(const chakra::Node& node, std::string_view name);
int64_t ChakraNumber(const chakra::AttributeProto& attribute);

}  // namespace ranktap::collector
