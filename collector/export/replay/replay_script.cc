#include "collector/export/replay/replay_script.h"

#include "collector/file/embedded_file.h"

RANKTAP_EMBED(ranktap_replay_script, RANKTAP_REPLAY_SCRIPT);

namespace ranktap::collector {

std::string_view ReplayScript() {
  return EmbeddedText(ranktap_replay_script_begin, ranktap_replay_script_end);
}

}  // namespace ranktap::collector
