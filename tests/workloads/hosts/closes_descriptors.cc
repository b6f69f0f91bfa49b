// A daemon's habit: closes every descriptor but the first three, in the middle of its work, then
// opens files of its own under the same numbers and checks that nobody wrote into them. usage:
// closes_descriptors LAUNCHES
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/workloads/hosts/device_work.h"

namespace {

constexpr int kOwnFiles = 64;

}  // namespace

int main(int argc, char** argv) {
  int launches = argc > 1 ? std::atoi(argv[1]) : 100;
  start_device(0);
  launch_in_ranges(launches);
  syscall(SYS_close_range, 3, ~0u, 0);
  std::vector<int> own;
  for (int i = 0; i < kOwnFiles; ++i) own.push_back(open("/tmp", O_TMPFILE | O_RDWR, 0600));
  launch_in_ranges(launches);
  int disturbed = 0;
  for (int file : own) {
    struct stat status {};
    // Gone, or no longer an empty file of ours: somebody used a number that was not theirs.
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0) ++disturbed;
  }
  std::printf("counts launches=%d ranges=%d disturbed=%d\n", 2 * launches, 2 * launches, disturbed);
  return disturbed == 0 ? 0 : 1;
}
