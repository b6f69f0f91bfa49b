#include <cstdio>

#include "collector/cli/command.h"

namespace ranktap::collector {

void Complain(std::string_view message) {
  std::fprintf(stderr, "ranktap: %.*s\n", static_cast<int>(message.size()), message.data());
}

int Complained(std::string_view message, int status) {
  Complain(message);
  return status;
}

}  // namespace ranktap::collector
