#include <cstdio>

#include "collector/file/printable.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {

void Complain(std::string_view message) {
  std::fprintf(stderr, "ranktap: %s\n", Printable(message).c_str());
}

int Complained(std::string_view message, int status) {
  Complain(message);
  return status;
}

}  // namespace ranktap::collector
