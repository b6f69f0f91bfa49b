// Runs a program on the stand-in in a folder of its own, and reads what its truth log and the
// reference CUPTI client wrote there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ranktap::standin_test {

using Json = nlohmann::json;
using Environment = std::vector<std::pair<std::string, std::string>>;

class SimulatedRun {
 public:
  // Waits for the program. The folder goes away with the object.
  SimulatedRun(const std::vector<std::string>& command, const Environment& environment);
  ~SimulatedRun();
  SimulatedRun(const SimulatedRun&) = delete;
  SimulatedRun& operator=(const SimulatedRun&) = delete;

  // As of waitpid.
  int status() const { return status_; }
  bool exited_with(int code) const;
  const std::string& output() const { return output_; }
  const std::string& errors() const { return errors_; }

  // The lines of one process that have this type ("": all), in the file's order.
  std::vector<Json> Truth(int pid, const std::string& type = "") const;
  std::vector<Json> Told(int pid, const std::string& type = "") const;
  // Of the processes that left a truth log.
  std::vector<int> Processes() const;

 private:
  std::vector<Json> Read(const std::string& stem, int pid, const std::string& type) const;

  std::string folder_;
  int status_ = 0;
  std::string output_;
  std::string errors_;
};

// Whole; empty where there is none.
std::string ReadFile(const std::string& path);

// build/<preset>/...
std::string BuildPath(const std::string& relative);

// The activity kinds the comparison with the truth needs.
inline constexpr char kDeviceKinds[] = "1,2,8,10,36,38,49";

}  // namespace ranktap::standin_test
