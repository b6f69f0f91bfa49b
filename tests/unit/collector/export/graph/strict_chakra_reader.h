// A reader as strict as the strictest: ASTRA-sim's feeder V3, whose getters are typed and throw.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "chakra/et_def.pb.h"
#include "collector/import/execution/chakra_file.h"

namespace ranktap::collector {

class StrictChakraReader {
 public:
  explicit StrictChakraReader(const std::string& path) {
    Result<ChakraFile> file = ChakraFile::Open(path);
    EXPECT_TRUE(file) << file.message();
    if (!file) return;
    for (chakra::Node node; file->Next(&node);) nodes_.push_back(node);
    EXPECT_EQ(file->damage().what, "");
  }
  const std::vector<chakra::Node>& nodes() const { return nodes_; }

  // Fails the test for whatever a simulator would end for.
  void Check() const {
    std::map<uint64_t, const chakra::Node*> seen;
    uint64_t next = 1;
    for (const chakra::Node& node : nodes_) {
      EXPECT_EQ(node.id(), next++) << "ids are dense";
      // Each leads to one that came before: there is no cycle.
      for (const uint64_t on : node.ctrl_deps()) EXPECT_TRUE(seen.contains(on)) << node.id();
      for (const uint64_t on : node.data_deps()) EXPECT_TRUE(seen.contains(on)) << node.id();
      CheckAttributes(node);
      seen.emplace(node.id(), &node);
    }
  }
  // Of this name's beginning.
  std::vector<const chakra::Node*> Named(std::string_view name) const {
    std::vector<const chakra::Node*> found;
    for (const chakra::Node& node : nodes_) {
      if (std::string_view(node.name()).starts_with(name)) found.push_back(&node);
    }
    return found;
  }
  std::vector<const chakra::Node*> OfType(chakra::NodeType type) const {
    std::vector<const chakra::Node*> found;
    for (const chakra::Node& node : nodes_) {
      if (node.type() == type) found.push_back(&node);
    }
    return found;
  }
  // Over data and control dependencies.
  bool Follows(const chakra::Node& later, uint64_t earlier) const {
    std::set<uint64_t> open = {later.id()}, done;
    while (!open.empty()) {
      const uint64_t id = *open.begin();
      open.erase(open.begin());
      if (!done.insert(id).second) continue;
      if (id == earlier) return true;
      for (const uint64_t on : nodes_[id - 1].data_deps()) open.insert(on);
      for (const uint64_t on : nodes_[id - 1].ctrl_deps()) open.insert(on);
    }
    return false;
  }

 private:
  using Case = chakra::AttributeProto::ValueCase;
  static void Has(const chakra::Node& node, const char* name, Case type) {
    const chakra::AttributeProto* const found = FindChakraAttribute(node, name);
    ASSERT_NE(found, nullptr) << node.name() << " has no " << name;
    EXPECT_EQ(found->value_case(), type) << node.name() << ": " << name;
  }
  static void CheckAttributes(const chakra::Node& node) {
    Has(node, "is_cpu_op", Case::kBoolVal);
    const bool on_host = ChakraNumber(node, "is_cpu_op") != 0;
    switch (node.type()) {
      case chakra::COMP_NODE:
        Has(node, "num_ops", Case::kInt64Val);
        Has(node, "tensor_size", Case::kUint64Val);
        return;
      case chakra::COMM_COLL_NODE: {
        Has(node, "comm_type", Case::kInt64Val);
        const std::set<int64_t> simulated = {chakra::ALL_REDUCE, chakra::ALL_GATHER,
                                             chakra::ALL_TO_ALL, chakra::REDUCE_SCATTER,
                                             chakra::BROADCAST};
        EXPECT_TRUE(simulated.contains(ChakraNumber(node, "comm_type"))) << node.name();
        break;
      }
      case chakra::COMM_SEND_NODE:
      case chakra::COMM_RECV_NODE:
        for (const char* name : {"comm_src", "comm_dst", "comm_tag"}) {
          Has(node, name, Case::kInt32Val);
          EXPECT_GE(ChakraNumber(node, name), 0) << node.name();
        }
        break;
      default:
        ADD_FAILURE() << node.name() << " is of type " << node.type();
        return;
    }
    EXPECT_FALSE(on_host) << node.name();
    Has(node, "comm_size", Case::kInt64Val);
    Has(node, "pg_name", Case::kStringVal);
    const std::string group = ChakraText(node, "pg_name");
    EXPECT_FALSE(group.empty());
    EXPECT_EQ(group.find_first_not_of("0123456789"), group.npos) << group;
  }

  std::vector<chakra::Node> nodes_;
};

}  // namespace ranktap::collector
