// The reasons why processes of the command have no agent: lines that libranktap.so sends to a
// socket beside the collector's (agent/stub/reason.c).
#pragma once

#include <string>
#include <vector>

#include "collector/file/file_descriptor.h"

namespace ranktap::collector {

class AgentReasons {
 public:
  // It hears nothing if no socket can be made.
  explicit AgentReasons(const std::string& collector_socket);
  ~AgentReasons();
  AgentReasons(const AgentReasons&) = delete;
  AgentReasons& operator=(const AgentReasons&) = delete;

  // On stderr, each once, five at most: "PROGRAM: why". Does not wait. What stands in the way of
  // tracing `command` itself was said before it ran, and is not said again.
  void Tell(const std::string& command);

 private:
  std::vector<std::string> Take();

  std::string path_;
  FileDescriptor socket_;
};

}  // namespace ranktap::collector
