#include "collector/terminal/examples.h"

namespace ranktap::collector {
namespace {

struct Examples {
  std::string_view verb, first, second;
};
constexpr Examples kExamples[] = {
    {"bisect", "ranktap bisect v1.2 main --level full -- python train.py --steps 100",
     "ranktap bisect v1.2 main --build 'make -j' --by memory-peak -- ./train"},
    {"run", "ranktap run -o slow -- torchrun --nproc-per-node=4 train.py",
     "ranktap run --level full --delay 60 --duration 30 -- python train.py"},
    {"collect", "ranktap collect -o runs --socket /tmp/ranktap.sock --level ranges",
     "ranktap collect --all-users"},
    {"start", "ranktap start --duration 10", "ranktap start slow --level full --duration 30"},
    {"stop", "ranktap stop", "ranktap stop slow"},
    {"status", "ranktap status", "ranktap status --format json"},
    {"stacks", "ranktap stacks slow", "ranktap stacks slow --ranks 0-3"},
    {"dump", "ranktap dump", "ranktap dump slow --last 30s --after 5s"},
    {"top", "ranktap top", "ranktap top slow --once --over 1"},
    {"calibrate", "ranktap calibrate", "ranktap calibrate --format json"},
    {"doctor", "ranktap doctor", "ranktap doctor --format json"},
    {"report", "ranktap report slow", "ranktap report slow kernels --where 'total > 10ms'"},
    {"view", "ranktap view slow", "ranktap view slow -o slow.html"},
    {"serve", "ranktap serve runs", "ranktap serve runs --port 8800"},
    {"export", "ranktap export slow --format perfetto",
     "ranktap export slow --format chrome --ranks 0 -o rank0.json"},
    {"sql", "ranktap sql slow 'SELECT name, count(*) FROM kernels GROUP BY name'",
     "ranktap sql slow 'SELECT * FROM ranks' --format csv"},
    {"merge", "ranktap merge rank0.json rank1.json -o job.json",
     "ranktap merge node0 node1 -o both.pftrace"},
    {"profile-model", "ranktap profile-model net.py:Net --input-shape 8,128",
     "ranktap profile-model torchvision.models:resnet18 --input-shape 8,3,224,224"},
    {"whatif", "ranktap whatif slow", "ranktap whatif slow --module blocks.2 x0.5 --no-dataloader"},
    {"diff", "ranktap diff slow -- fast",
     "ranktap diff slow -- fast --fail-if 'step>3%' --format markdown"},
    {"baseline", "ranktap baseline tag main slow", "ranktap baseline list"},
    {"mcp", "ranktap mcp runs", "ranktap mcp slow"},
    {"verify", "ranktap verify slow", "ranktap verify slow --format json"},
    {"completion", "ranktap completion bash", "ranktap completion zsh"},
};

}  // namespace

std::string ExamplesOf(std::string_view verb) {
  for (const Examples& one : kExamples) {
    if (verb != "ranktap " + std::string(one.verb)) continue;
    return "\nExamples:\n  " + std::string(one.first) + "\n  " + std::string(one.second) + "\n";
  }
  return "";
}

}  // namespace ranktap::collector
