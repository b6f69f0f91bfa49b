// The stand-in's CUPTI that takes its time to load: until there is the file that
// RANKTAP_STANDIN_GATE names. For what happens to a process meanwhile.
#include <unistd.h>

#include <cstdlib>

__attribute__((constructor)) static void WaitForTheGate() {
  const char* const gate = std::getenv("RANKTAP_STANDIN_GATE");
  while (gate != nullptr && access(gate, F_OK) != 0) usleep(1000);
}
