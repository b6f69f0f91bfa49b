#include <cstdio>

#include "collector/file/printable.h"
#include "collector/terminal/complain.h"
#include "proto/redact.h"

namespace ranktap::collector {

void Complain(std::string_view message) {
  std::string text = Printable(message);
  proto::RedactText(text);
  std::fprintf(stderr, "ranktap: %s\n", text.c_str());
}

int Complained(std::string_view message, int status) {
  Complain(message);
  return status;
}

}  // namespace ranktap::collector
