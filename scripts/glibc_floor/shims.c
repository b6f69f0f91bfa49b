// What libranktap_agent.so and bin/ranktap call and glibc 2.17 does not have, for packaging builds:
// an archive that `stubs` puts behind libc.so. Where glibc has it in another form, that; where the
// system call is all there is to it, that; where only a newer glibc can do it, glibc's own, if
// there. Runs on: any thread; the constructor on the loader's. May not: be shown to anybody
// (-fvisibility=hidden).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// libstdc++ leaves out atomics where it is true.
char __libc_single_threaded = 0;

#define GLIBC __attribute__((visibility("default")))
struct stat;
enum { kStatVersion = 1 };
GLIBC int __xstat(int version, const char* path, struct stat* status);
GLIBC int __lxstat(int version, const char* path, struct stat* status);
GLIBC int __fxstat(int version, int fd, struct stat* status);
GLIBC int __fxstatat(int version, int fd, const char* path, struct stat* status, int flags);
int stat(const char* path, struct stat* to) { return __xstat(kStatVersion, path, to); }
int stat64(const char* path, struct stat* to) { return __xstat(kStatVersion, path, to); }
int lstat(const char* path, struct stat* to) { return __lxstat(kStatVersion, path, to); }
int lstat64(const char* path, struct stat* to) { return __lxstat(kStatVersion, path, to); }
int fstat(int fd, struct stat* to) { return __fxstat(kStatVersion, fd, to); }
int fstat64(int fd, struct stat* to) { return __fxstat(kStatVersion, fd, to); }
int fstatat(int fd, const char* path, struct stat* to, int flags) {
  return __fxstatat(kStatVersion, fd, path, to, flags);
}

GLIBC int fcntl(int fd, int command, ...);
int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(fd, command, argument);
}

ssize_t getrandom(void* to, size_t size, unsigned flags) {
  return syscall(SYS_getrandom, to, size, flags);
}
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }
int memfd_create(const char* name, unsigned flags) {
  return (int)syscall(SYS_memfd_create, name, flags);
}

const char* sigabbrev_np(int number) {
  static const char* const kNames[] = {
      [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
      [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
      [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
      [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
      [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
      [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
      [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
      [SIGIO] = "POLL",   [SIGPWR] = "PWR",       [SIGSYS] = "SYS"};
  const unsigned known = sizeof(kNames) / sizeof(kNames[0]);
  return number > 0 && (unsigned)number < known ? kNames[number] : NULL;
}

// Resolved before anybody calls: dlsym may not be called in the child of a fork, or under a lock of
// ours.
static int (*g_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static int (*g_clocklock)(pthread_mutex_t*, clockid_t, const struct timespec*);
static pid_t (*g_fork)(void);
__attribute__((constructor(101))) static void FindNewer(void) {
  *(void**)&g_clockwait = dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
  *(void**)&g_clocklock = dlsym(RTLD_DEFAULT, "pthread_mutex_clocklock");
  *(void**)&g_fork = dlsym(RTLD_DEFAULT, "_Fork");
}

// The same instant on the clock that glibc before 2.30 waits by. When somebody sets that clock, it
// comes earlier or later: at most a second later, since nobody waits longer at once.
static struct timespec OnRealClock(clockid_t clock, const struct timespec* until) {
  const long long second = 1000000000;
  struct timespec now;
  clock_gettime(clock, &now);
  long long left = (until->tv_sec - now.tv_sec) * second + (until->tv_nsec - now.tv_nsec);
  if (left > second) left = second;
  if (left < 0) left = 0;
  clock_gettime(CLOCK_REALTIME, &now);
  const long long sum = now.tv_nsec + left;
  return (struct timespec){.tv_sec = now.tv_sec + sum / second, .tv_nsec = sum % second};
}
static int HasCome(clockid_t clock, const struct timespec* until) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec > until->tv_sec ||
         (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  if (g_clockwait != NULL) return g_clockwait(condition, mutex, clock, until);
  const struct timespec real = OnRealClock(clock, until);
  const int result = pthread_cond_timedwait(condition, mutex, &real);
  // A wake-up without a cause, which callers expect.
  return result == ETIMEDOUT && !HasCome(clock, until) ? 0 : result;
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  if (g_clocklock != NULL) return g_clocklock(mutex, clock, until);
  for (;;) {
    const struct timespec real = OnRealClock(clock, until);
    const int result = pthread_mutex_timedlock(mutex, &real);
    if (result != ETIMEDOUT || HasCome(clock, until)) return result;
  }
}

// Hooked where the program calls it: there it is glibc's.
pid_t _Fork(void) {
  if (g_fork != NULL) return g_fork();
  errno = ENOSYS;
  return -1;
}
