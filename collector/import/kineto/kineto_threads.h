// The threads and processes of a Kineto file, by pid and tid as written. A part of kineto_tables.h.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>

#include "collector/import/kineto/kineto_event.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

class KinetoThreads {
 public:
  explicit KinetoThreads(Trace* trace) : trace_(trace) {}

  uint16_t WriterOf(const KinetoEvent& event);
  // The process of this event is a device that stands as a process with calls.
  void AddDevice(const KinetoEvent& event) { devices_.emplace(event.pid); }
  // A name of a thread or process, which may come before or after its events.
  void AddMetadata(const KinetoEvent& event);
  // Behind the last event.
  void NameAll();
  // Processes that ran operators or called CUDA.
  std::set<std::string> OfHost() const;

 private:
  Trace* trace_;
  std::unordered_map<std::string, uint16_t> writers_;  // by "pid/tid"
  std::set<std::string> devices_;
  std::string last_pid_, last_tid_;
  uint16_t last_writer_ = 0;
  bool has_last_writer_ = false;
  std::unordered_map<std::string, std::string> thread_names_;   // by "pid/tid"
  std::unordered_map<std::string, std::string> process_names_;  // by pid
  std::string key_;                                             // scratch
};

}  // namespace ranktap::collector
