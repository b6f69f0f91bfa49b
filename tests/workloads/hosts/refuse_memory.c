/* A preload that refuses memory to the agent alone: to what libranktap_agent.so asks for on any
 * thread, and to all that its own threads ask for. The program and the collector get theirs.
 *   REFUSE_PROGRAM  the program it is for, by the name of its file; others are left alone
 *   REFUSE_FIRST    the first allocation that is refused, from 1; absent: none
 *   REFUSE_EVERY    then every so-manyth; absent or 0: that one alone
 *   REFUSE_REPORT   a file that gets, at the end, how many there were and how many were refused
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);

static atomic_ulong g_asked, g_refused;
static unsigned long g_first, g_every;
static int g_is_on;

static unsigned long Number(const char* name) {
  const char* const text = getenv(name);
  return text == NULL ? 0 : strtoul(text, NULL, 10);
}

__attribute__((constructor)) static void Begin(void) {
  const char* const program = getenv("REFUSE_PROGRAM");
  g_first = Number("REFUSE_FIRST");
  g_every = Number("REFUSE_EVERY");
  g_is_on = program != NULL && strcmp(program, program_invocation_short_name) == 0;
}

__attribute__((destructor)) static void Report(void) {
  const char* const path = getenv("REFUSE_REPORT");
  char text[64];
  if (!g_is_on || path == NULL) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int length =
      snprintf(text, sizeof(text), "%lu %lu\n", atomic_load(&g_asked), atomic_load(&g_refused));
  (void)!write(file, text, (size_t)length);
  close(file);
}

static int IsOfTheAgent(void* caller) {
  struct dl_find_object found;
  return _dl_find_object(caller, &found) == 0 &&
         strstr(found.dlfo_link_map->l_name, "libranktap_agent.so") != NULL;
}

static int IsOnItsThread(void) {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  return strncmp(name, "ranktap-", 8) == 0;
}

static int IsRefused(void* caller) {
  if (!g_is_on || (!IsOfTheAgent(caller) && !IsOnItsThread())) return 0;
  const unsigned long number = 1 + atomic_fetch_add(&g_asked, 1);
  if (g_first == 0 || number < g_first) return 0;
  if (number != g_first && (g_every == 0 || (number - g_first) % g_every != 0)) return 0;
  atomic_fetch_add(&g_refused, 1);
  errno = ENOMEM;
  return 1;
}

#define CALLER __builtin_return_address(0)

void* malloc(size_t bytes) { return IsRefused(CALLER) ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return IsRefused(CALLER) ? NULL : __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return IsRefused(CALLER) ? NULL : __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  return IsRefused(CALLER) ? NULL : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return IsRefused(CALLER) ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  void* const got = IsRefused(CALLER) ? NULL : __libc_memalign(alignment, bytes);
  if (got == NULL) return ENOMEM;
  *memory = got;
  return 0;
}
