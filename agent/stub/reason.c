// Why there is no agent, told to `ranktap run`; and the few system calls that the stub makes.
// Runs on: as stub.c.  May not: use libc, wait, raise a signal (no file is written, for
// RLIMIT_FSIZE's sake).
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/stub/stub.h"

#if defined(__x86_64__)
enum {
  kRead = 0,
  kClose = 3,
  kYield = 24,
  kGetpid = 39,
  kSocket = 41,
  kSendto = 44,
  kGettid = 186,
  kOpenAt = 257,
  kReadlinkAt = 267,
  kAccessAt = 269
};
#elif defined(__aarch64__)
enum {
  kAccessAt = 48,
  kOpenAt = 56,
  kClose = 57,
  kRead = 63,
  kReadlinkAt = 78,
  kYield = 124,
  kGetpid = 172,
  kGettid = 178,
  kSocket = 198,
  kSendto = 206
};
#endif
enum { kHere = -100 };  // AT_FDCWD
enum { kUnix = 1, kDatagram = 2, kCloseOnExec = 02000000, kDontWait = 0x40, kNoSignal = 0x4000 };

static long System(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#endif
}

long stub_getpid(void) { return System(kGetpid, 0, 0, 0, 0, 0, 0); }
long stub_gettid(void) { return System(kGettid, 0, 0, 0, 0, 0, 0); }
void stub_yield(void) { System(kYield, 0, 0, 0, 0, 0, 0); }
int stub_is_file(const char* path) { return System(kAccessAt, kHere, (long)path, 0, 0, 0, 0) == 0; }

// The environment as the program was started: no libc tells a static program's.
static unsigned ReadEnvironment(char* buffer, unsigned size) {
  const long file = System(kOpenAt, kHere, (long)"/proc/self/environ", kCloseOnExec, 0, 0, 0);
  if (file < 0) return 0;
  unsigned filled = 0;
  long got;
  while (filled < size &&
         (got = System(kRead, file, (long)(buffer + filled), size - filled, 0, 0, 0)) > 0) {
    filled += (unsigned)got;
  }
  System(kClose, file, 0, 0, 0, 0, 0);
  return filled;
}

static const char* FindSocket(const char* environment, unsigned size) {
  static const char kName[] = "RANKTAP_SOCKET=";
  for (unsigned begin = 0; begin < size;) {
    unsigned i = 0;
    while (kName[i] != '\0' && begin + i < size && environment[begin + i] == kName[i]) ++i;
    if (kName[i] == '\0') return environment + begin + i;
    while (begin < size && environment[begin] != '\0') ++begin;
    ++begin;
  }
  return NULL;
}

// Appends what fits; the buffer stays terminated.
static unsigned Append(char* buffer, unsigned at, unsigned size, const char* text) {
  while (*text != '\0' && at + 1 < size) buffer[at++] = *text++;
  buffer[at] = '\0';
  return at;
}

void stub_tell(const char* text, const char* detail) {
  static char environment[64 << 10];
  static char line[1024];
  static _Atomic int told;
  struct {
    uint16_t family;
    char path[108];
  } address = {.family = kUnix};
  if (atomic_exchange(&told, 1) != 0) return;
  const unsigned size = ReadEnvironment(environment, sizeof(environment) - 1);
  environment[size] = '\0';
  const char* const socket_path = FindSocket(environment, size);
  if (socket_path == NULL || socket_path[0] != '/') return;
  Append(address.path, Append(address.path, 0, sizeof(address.path), socket_path),
         sizeof(address.path), ".why");
  long length = System(kReadlinkAt, kHere, (long)"/proc/self/exe", (long)line, 400, 0, 0);
  if (length < 0) length = 0;
  unsigned at = Append(line, (unsigned)length, sizeof(line), ": ");
  at = Append(line, Append(line, at, sizeof(line), text), sizeof(line), detail);
  const long file = System(kSocket, kUnix, kDatagram | kCloseOnExec, 0, 0, 0, 0);
  if (file < 0) return;
  System(kSendto, file, (long)line, at, kDontWait | kNoSignal, (long)&address, sizeof(address));
  System(kClose, file, 0, 0, 0, 0, 0);
}
