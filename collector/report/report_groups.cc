#include "collector/report/report_groups.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kFirst[] = {"verdict", "insights", "waterfall",
                                       "steps",   "kernels",  "memory-peak"};

constexpr std::string_view kTime[] = {
    "verdict",  "insights", "waterfall", "steps",           "kernels", "kernel-histogram",
    "temporal", "idle",     "overlap",   "types",           "copies",  "bandwidth",
    "graphs",   "patterns", "usage",     "usage-over-time", "diff",    "key-figures"};
constexpr std::string_view kRanks[] = {"ranks",     "waterfall-by-rank", "stragglers", "comm",
                                       "groups",    "critical-path",     "align",      "pace",
                                       "rank-pairs"};
constexpr std::string_view kHost[] = {
    "apis",   "syncs",  "launches",      "launches-by-kernel", "queue",
    "stacks", "ranges", "range-kernels", "range-projection",   "range-trace"};
constexpr std::string_view kFramework[] = {"ops",        "modules", "parameters", "throughput",
                                           "flop-check", "layers",  "roofline"};
constexpr std::string_view kMemory[] = {"memory", "memory-peak", "memory-modules", "memory-steps",
                                        "memory-over-time"};
constexpr std::string_view kCapture[] = {"losses", "losses-by-writer", "gaps", "windows",
                                         "cost",   "devices"};

constexpr ReportGroup kGroups[] = {
    {"time", "where the step's time goes on the device", kTime},
    {"ranks", "who waits for whom", kRanks},
    {"host", "what the program's threads do meanwhile", kHost},
    {"framework", "operators, modules and FLOPs", kFramework},
    {"memory", "who holds it, and when", kMemory},
    {"capture", "what was recorded, and what is missing", kCapture},
};

}  // namespace

std::span<const ReportGroup> ReportGroups() { return kGroups; }
std::span<const std::string_view> FirstReports() { return kFirst; }

}  // namespace ranktap::collector
