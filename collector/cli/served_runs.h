// What `ranktap serve` answers: the list of runs, the page of each, and its trace for Perfetto.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collector/serve/http_server.h"

namespace ranktap::collector {

// Threads may call Answer at the same time: runs are opened one after the other.
class ServedRuns {
 public:
  // `root`: a run, or a folder of runs. `baselines`: where `ranktap baseline` has tagged some; the
  // root's own ranktap-baselines is looked into as well. Every path begins with "/SECRET/":
  // 127.0.0.1 is everybody's who is on this machine.
  ServedRuns(std::string root, const std::string& baselines, std::string secret);

  HttpResponse Answer(const HttpRequest& request);

 private:
  struct Entry {
    std::string name;  // the last part of its path
    std::string path;
  };
  std::vector<Entry> Runs() const;
  // Names of baselines by the id of each of their runs.
  std::map<std::string, std::vector<std::string>> Tags() const;
  HttpResponse List() const;
  HttpResponse Page(const Entry& entry);
  HttpResponse Trace(const Entry& entry);
  HttpResponse Summary(const Entry& entry);
  HttpResponse Compare(std::string_view names);
  std::optional<Entry> Named(std::string_view name) const;
  HttpResponse OfRun(std::string_view name_and_rest);

  std::string root_, secret_;
  std::set<std::string> baselines_;  // folders
  bool is_run_ = false;
  bool lists_files_ = false;  // of other tools, each a run of its own
  std::mutex mutex_;
};

}  // namespace ranktap::collector
