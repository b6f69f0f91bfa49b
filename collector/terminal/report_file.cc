#include "collector/terminal/report_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/terminal/complain.h"

namespace ranktap::collector {
namespace {

int CouldNotWrite(const std::string& path) {
  return Complained(fmt::format("{}: could not write the report: {}; name another file with -o",
                                path, std::strerror(errno)),
                    kFailure);
}

}  // namespace

int PrintInto(const std::string& path, const std::function<int()>& print) {
  if (path.empty()) return print();
  const std::string part = path + ".part";
  if (std::freopen(part.c_str(), "w", stdout) == nullptr) return CouldNotWrite(path);
  const int status = print();
  if (status != kSuccess) {
    std::remove(part.c_str());
    return status;
  }
  if (std::rename(part.c_str(), path.c_str()) == 0) return kSuccess;
  const int failure = CouldNotWrite(path);
  std::remove(part.c_str());
  return failure;
}

}  // namespace ranktap::collector
