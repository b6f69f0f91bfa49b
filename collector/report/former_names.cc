#include "collector/report/former_names.h"

#include <string>

namespace ranktap::collector {
namespace {

constexpr FormerName kColumns[] = {
    {"ranks", "door", "loaded_by"},
    {"bandwidth", "mean_gbps", "mean_gb_per_s"},
    {"bandwidth", "std_gbps", "std_gb_per_s"},
    {"bandwidth", "min_gbps", "min_gb_per_s"},
    {"bandwidth", "p25_gbps", "p25_gb_per_s"},
    {"bandwidth", "p50_gbps", "p50_gb_per_s"},
    {"bandwidth", "p75_gbps", "p75_gb_per_s"},
    {"bandwidth", "max_gbps", "max_gb_per_s"},
};

}  // namespace

std::span<const FormerName> FormerColumnNames() { return kColumns; }

void AcceptFormerNames(Table* table) {
  for (const FormerName& name : kColumns) {
    if (name.report != table->name) continue;
    for (TableColumn& column : table->columns) {
      if (column.name == name.now) column.also.emplace_back(name.former);
    }
  }
}

}  // namespace ranktap::collector
