// Pieces of Chakra's files.
#pragma once

#include <string>
#include <string_view>

#include "chakra/et_def.pb.h"
#include "collector/export/graph/graph_groups.h"
#include "collector/export/output_file.h"

namespace ranktap::collector {

chakra::AttributeProto* ChakraAttribute(const char* name, chakra::Node* node);
// A list of JSON as Python's str() has it, "['float', '']"; "[]" for the empty text.
std::string PythonText(std::string_view json);
// Its size as a varint, then it.
void WriteMessage(const google::protobuf::MessageLite& message, OutputFile* file);
// {"1": [0, 1]}
std::string GroupsText(const GraphGroups::Members& members);

}  // namespace ranktap::collector
