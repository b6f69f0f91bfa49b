// libranktap.so: LD_PRELOAD and the injection variables name it. It needs no library, and its
// symbols are weak and without versions, so that every loader takes it: glibc's of any age, musl's,
// and that in a static program. It opens libranktap_agent.so at the first call of NVTX or CUDA, if
// the agent can live there; elsewhere it does nothing, and tells `ranktap run` why.
// Runs on: the loader (the constructor), threads of the program at their first NVTX or CUDA call.
// May not: need anything of libc, or keep NVTX waiting: a child that is forked while NVTX
// initialises hangs in its next NVTX call.
#include "agent/stub/stub.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK __attribute__((weak))
#define SHOWN __attribute__((visibility("default")))

struct link_map {
  uintptr_t base;
  const char* name;
};
struct symbol_place {  // Dl_info
  const char* file;
  void* file_base;
  const char* symbol;
  void* address;
};

WEAK void* dlopen(const char* file, int mode);
WEAK void* dlsym(void* handle, const char* name);
WEAK char* dlerror(void);
WEAK int dladdr1(const void* address, struct symbol_place* info, void** extra, int flags);
WEAK int dlinfo(void* handle, int request, void* argument);
WEAK char* getenv(const char* name);
WEAK const char* gnu_get_libc_version(void);
WEAK int PySys_AddAuditHook(void*, void*);

enum { kRtldLazy = 1, kRtldNow = 2, kRtldNoLoad = 4, kRtldNoDelete = 0x1000 };
enum { kLinkMap = 2, kNamespace = 1 };               // of dladdr1 and dlinfo
enum { kOldestMinor = RANKTAP_OLDEST_GLIBC_MINOR };  // glibc 2.x, which the agent needs
#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(text) #text

enum State { kFresh, kStarting, kReady, kOff };
static _Atomic int g_state = kFresh;
static _Atomic long g_starter_process, g_starter_thread;

struct Agent {
  int (*cuda)(void);
  int (*nvtx)(ExportTableFinder);
  int (*extension)(void*);
  void (*before_main)(void);
};
static struct Agent g_agent;

// NVTX's tables whose first call is still to come. More of them than anybody links.
enum { kMostTables = 64 };
static _Atomic(ExportTableFinder) g_waiting[kMostTables];
static _Atomic unsigned g_waiting_count;

// "2.36"
static int IsNewGlibc(void) {
  const char* text = gnu_get_libc_version == NULL ? "" : gnu_get_libc_version();
  int minor = 0;
  if (text[0] != '2' || text[1] != '.') return 0;
  for (text += 2; *text >= '0' && *text <= '9'; ++text) minor = 10 * minor + (*text - '0');
  return minor >= kOldestMinor;
}

static struct link_map* OwnMap(void) {
  struct symbol_place place;
  void* map = NULL;
  if (dladdr1 == NULL || dladdr1((const void*)&g_state, &place, &map, kLinkMap) == 0) return NULL;
  return map;
}

// NULL: the agent can live here.
static const char* WhyNot(void) {
  long name_space = 0;
  if (gnu_get_libc_version == NULL || dlopen == NULL || dlsym == NULL) {
    return "it is linked statically, or its C library is not glibc: no agent can be loaded";
  }
  if (!IsNewGlibc() || dlinfo == NULL) {
    return "its glibc is older than 2." TEXT(RANKTAP_OLDEST_GLIBC_MINOR) ", which the agent needs";
  }
  // A second agent in a second libc would meet the first one's threads.
  if (OwnMap() == NULL || dlinfo(OwnMap(), kNamespace, &name_space) != 0 || name_space != 0) {
    return "what it loads by dlmopen is not recorded";
  }
  return NULL;
}

static int IsSet(const char* name) {
  const char* const value = getenv == NULL ? NULL : getenv(name);
  return value != NULL && value[0] == '1' && value[1] == '\0';
}

static int IsNotZero(const char* name) {
  const char* const value = getenv == NULL ? NULL : getenv(name);
  return value != NULL && value[0] != '\0' && value[0] != '0';
}

static unsigned Length(const char* text) {
  unsigned length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

// The agent lies beside this file, or in a folder around it.
static void* OpenAgent(void) {
  static const char kName[] = "libranktap_agent.so";
  static char path[4096];
  const struct link_map* const map = OwnMap();
  unsigned length = map == NULL ? 0 : Length(map->name);
  if (length + sizeof(kName) >= sizeof(path)) return NULL;
  for (unsigned i = 0; i <= length && length != 0; ++i) path[i] = map->name[i];
  for (int folders = 0; folders < 4; ++folders) {
    while (length > 0 && path[length - 1] != '/') --length;
    for (unsigned i = 0; i < sizeof(kName); ++i) path[length + i] = kName[i];
    if (length == 0 || stub_is_file(path)) break;
    --length;
  }
  void* const handle = dlopen(path, kRtldNow);
  if (handle == NULL) return NULL;
  // NVTX and the driver may close what they opened; handlers stay in their tables.
  (void)dlopen(map->name, kRtldLazy | kRtldNoLoad | kRtldNoDelete);
  return handle;
}

static int FindAgent(void) {
  void* const handle = OpenAgent();
  if (handle == NULL) {
    const char* const why = dlerror == NULL ? NULL : dlerror();
    stub_tell("the agent cannot be loaded: ", why == NULL ? "" : why);
    return 0;
  }
  *(void**)&g_agent.cuda = dlsym(handle, "InitializeInjection");
  *(void**)&g_agent.nvtx = dlsym(handle, "InitializeInjectionNvtx2");
  *(void**)&g_agent.extension = dlsym(handle, "InitializeInjectionNvtxExtension");
  *(void**)&g_agent.before_main = dlsym(handle, "RanktapBeforeMain");
  return g_agent.cuda != NULL && g_agent.nvtx != NULL && g_agent.extension != NULL &&
         g_agent.before_main != NULL;
}

static int OpenNow(void) {
  if (IsSet("RANKTAP_DISABLE")) return 0;
  const char* const why = WhyNot();
  if (why == NULL) return FindAgent();
  stub_tell(why, "");
  return 0;
}

// Whether the agent is open; opens it at the first call. A call from within, by a signal handler,
// and a child that was forked meanwhile get no.
static int IsReady(void) {
  int state = atomic_load(&g_state);
  if (state == kReady || state == kOff) return state == kReady;
  if (state == kFresh) {
    int expected = kFresh;
    atomic_store(&g_starter_process, stub_getpid());
    if (atomic_compare_exchange_strong(&g_state, &expected, kStarting)) {
      atomic_store(&g_starter_thread, stub_gettid());
      state = OpenNow() ? kReady : kOff;
      atomic_store(&g_state, state);
      return state == kReady;
    }
  }
  while ((state = atomic_load(&g_state)) == kStarting) {
    if (atomic_load(&g_starter_process) != stub_getpid()) return 0;
    if (atomic_load(&g_starter_thread) == stub_gettid()) return 0;
    stub_yield();
  }
  return state == kReady;
}

// Tables that wait get the agent's handlers, or none. Another thread may be at it; where this one
// is, in a signal handler, or the parent's was, the call that led here is dropped.
static int InstallWaiting(void) {
  static _Atomic long holder;  // process << 32 | thread
  static unsigned done;
  const long process = stub_getpid() << 32;
  const long self = process | stub_gettid();
  for (long found = 0; !atomic_compare_exchange_strong(&holder, &found, self); found = 0) {
    if (found == self || (found & ~0xffffffffL) != process) return 0;
    stub_yield();
  }
  const int ready = IsReady();
  for (; done < atomic_load(&g_waiting_count) && done < kMostTables; ++done) {
    const ExportTableFinder table = atomic_load(&g_waiting[done]);
    if (table == NULL) break;  // on its way, in another thread
    stub_remove_thunks(table, /*all=*/!(ready && g_agent.nvtx(table)));
  }
  atomic_store(&holder, 0);
  return 1;
}

long stub_first_call(unsigned module, unsigned slot, const long* arguments, long otherwise) {
  if (!InstallWaiting()) return otherwise;
  const unsigned count = atomic_load(&g_waiting_count);
  for (unsigned i = 0; i < count && i < kMostTables; ++i) {
    const Call call = stub_handler(atomic_load(&g_waiting[i]), module, slot);
    if (call == NULL) continue;
    return call(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  }
  return otherwise;
}

// NVTX 2 and 3. Quick: until it returns, whoever forks makes a child that NVTX will not serve. So
// NVTX gets functions that open the agent when they are called, after NVTX's own start.
SHOWN int InitializeInjectionNvtx2(ExportTableFinder table) {
  if (atomic_load(&g_state) == kReady) return g_agent.nvtx(table);
  if (atomic_load(&g_state) == kOff) return 0;
  if (IsSet("RANKTAP_DISABLE")) return 0;
  const char* const why = WhyNot();
  if (why != NULL) {
    stub_tell(why, "");
    return 0;
  }
  const unsigned place = atomic_fetch_add(&g_waiting_count, 1);
  if (place >= kMostTables) return IsReady() && g_agent.nvtx(table);
  if (!stub_install_thunks(table)) return 0;
  atomic_store(&g_waiting[place], table);
  return 1;
}

SHOWN int InitializeInjectionNvtx(ExportTableFinder table) {
  return InitializeInjectionNvtx2(table);
}

SHOWN int InitializeInjectionNvtxExtension(void* module) {
  return IsReady() ? g_agent.extension(module) : 0;
}

SHOWN int InitializeInjection(void) { return IsReady() ? g_agent.cuda() : 0; }

// Python's hook has to be there before the interpreter starts: in a Python program, and only where
// somebody wants it, the agent is opened at once.
__attribute__((constructor)) static void BeforeMain(void) {
  if (PySys_AddAuditHook == NULL || WhyNot() != NULL) return;
  if (!IsSet("RANKTAP_PYTHON") && !IsNotZero("RANKTAP_SAMPLE_US")) return;
  if (IsReady()) g_agent.before_main();
}
