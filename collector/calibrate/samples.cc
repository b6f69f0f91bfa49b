#include "collector/calibrate/samples.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace ranktap::collector {

MeasuredRate MedianOf(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  const double median = rates.empty() ? 0 : rates[rates.size() / 2];
  if (!(median > 0)) return {};
  return {.rate = median, .spread_percent = 100 * (rates.back() - rates.front()) / median};
}

std::string Today() {
  const time_t now = time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string HostName() {
  char name[256] = "";
  (void)gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace ranktap::collector
