// A program that gives up rights, or changes its shape, after its first event. It prints what each
// of its threads may do, once for threads that may do the same, before and after it becomes another
// user; so a thread that is not its own shows only where it may do something else.
// usage: rights CALL WAY [cuda]   77, and why on stderr: not possible here
//   CALL   capset keepcaps securebits bounding ambient nonewprivs landlock ids groups fsids
//          thread: capset in a thread that ends
//          unshare-vm unshare-sighand unshare-thread setns-user setns-mnt setns-time
//   WAY    libc, syscall, dlsym; libcap, late: through libcap, opened before or after the event
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <nvtx3/nvToolsExt.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "tests/workloads/hosts/device_work.h"

extern "C" int capset(void* header, const void* data);

namespace {

using RawCall = long (*)(long, ...);
constexpr uid_t kSomebody = 1000;

std::string g_way;
void* g_libcap = nullptr;

bool By(const char* way) { return g_way == way; }
bool ByLibcap() { return By("libcap") || By("late"); }

[[noreturn]] void NotHere(const char* why) {
  std::fprintf(stderr, "rights: %s\n", why);
  std::exit(77);
}

RawCall Raw() {
  return By("dlsym") ? reinterpret_cast<RawCall>(dlsym(RTLD_DEFAULT, "syscall")) : &syscall;
}

template <typename Function>
Function* Libcap(const char* name) {
  void* const found = dlsym(g_libcap, name);
  if (found == nullptr) NotHere(name);
  return reinterpret_cast<Function*>(found);
}

long SetCapabilities(unsigned inheritable, bool all) {
  if (ByLibcap()) {
    void* const none = Libcap<void*()>("cap_init")();
    return Libcap<int(void*)>("cap_set_proc")(none);
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  if (!all) std::memset(data, 0, sizeof(data));
  data[0].inheritable = inheritable;
  return By("libc") ? capset(&header, data) : Raw()(SYS_capset, &header, data);
}

long Prctl(int option, unsigned long a, unsigned long b) {
  if (ByLibcap()) {
    using Call = int(long, long, long, long, long, long);
    return Libcap<Call>("cap_prctl")(option, static_cast<long>(a), static_cast<long>(b), 0, 0, 0);
  }
  if (By("libc")) return prctl(option, a, b, 0, 0);
  if (By("dlsym")) {
    using Call = int(int, ...);
    return reinterpret_cast<Call*>(dlsym(RTLD_DEFAULT, "prctl"))(option, a, b, 0ul, 0ul);
  }
  return syscall(SYS_prctl, option, a, b, 0, 0);
}

long DropBounding() {
  long result = 0;
  for (unsigned long bit = 0; bit <= CAP_LAST_CAP; ++bit) {
    const int dropped = ByLibcap() ? Libcap<int(int)>("cap_drop_bound")(static_cast<int>(bit)) : -1;
    result |= ByLibcap() ? dropped : Prctl(PR_CAPBSET_DROP, bit, 0);
  }
  return result;
}

long RaiseAmbient() {
  // Kept over the change of user by the ambient set alone.
  if (By("libc") || By("syscall") || By("dlsym")) SetCapabilities(1u << CAP_NET_RAW, true);
  return Prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW);
}

long Landlock() {
  const unsigned long handled = 1ul << 13;  // files' removal, of the first version
  const long rules = syscall(444, &handled, sizeof(handled), 0);
  if (rules < 0) NotHere("no landlock");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return Raw()(446, rules, 0);
}

long Ids() {
  if (By("libc")) return setresgid(kSomebody, kSomebody, kSomebody);
  return Raw()(SYS_setresgid, kSomebody, kSomebody, kSomebody);
}

long Groups() {
  const gid_t group = kSomebody;
  return By("libc") ? setgroups(1, &group) : Raw()(SYS_setgroups, 1, &group);
}

// A child in a user namespace of its own, whose number is wanted while it waits.
pid_t ChildInUserNamespace() {
  int done[2];
  if (pipe(done) != 0) NotHere("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    const char answer = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
    (void)!write(done[1], &answer, 1);
    for (;;) pause();
  }
  char answer = 'n';
  (void)!read(done[0], &answer, 1);
  close(done[0]);
  close(done[1]);
  if (answer != 'y') NotHere("no user namespaces");
  return child;
}

pid_t g_child = 0;

long Enter(const char* space, int kind) {
  const std::string whose = g_child == 0 ? "self" : std::to_string(g_child);
  const int file = open(("/proc/" + whose + "/ns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) NotHere("no such namespace");
  const long result = By("libc") ? setns(file, kind) : Raw()(SYS_setns, file, kind);
  const int error = errno;
  close(file);
  errno = error;
  return result;
}

long Unshare(int flags) { return By("libc") ? unshare(flags) : Raw()(SYS_unshare, flags); }

long Make(const std::string& call) {
  if (call == "capset") return SetCapabilities(0, false);
  if (call == "thread") {
    long result = -1;
    std::thread([&result] { result = SetCapabilities(0, false); }).join();
    return result;
  }
  if (call == "keepcaps") return Prctl(PR_SET_KEEPCAPS, 1, 0);
  if (call == "securebits") return Prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0);
  if (call == "bounding") return DropBounding();
  if (call == "ambient") return RaiseAmbient();
  if (call == "nonewprivs") return Prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
  if (call == "landlock") return Landlock();
  if (call == "ids") return Ids();
  if (call == "groups") return Groups();
  if (call == "fsids") return By("libc") ? setfsuid(kSomebody) : Raw()(SYS_setfsuid, kSomebody);
  if (call == "unshare-vm") return Unshare(CLONE_VM);
  if (call == "unshare-sighand") return Unshare(CLONE_SIGHAND);
  if (call == "unshare-thread") return Unshare(CLONE_THREAD);
  if (call == "setns-user") return Enter("user", CLONE_NEWUSER);
  if (call == "setns-mnt") return Enter("mnt", 0);
  if (call == "setns-time") return Enter("time_for_children", 0x80);
  NotHere("no such call");
}

void Mark() {
  nvtxRangePushA("range");
  nvtxRangePop();
}

void Say(const char* what, long result) {
  std::printf("%s: %s\n", what, result < 0 ? std::strerror(errno) : "done");
}

void PrintRights(const char* when) {
  std::set<std::string> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string rights;
    for (std::string line; std::getline(status, line);) {
      for (const char* wanted : {"Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp"}) {
        if (line.starts_with(wanted)) rights += "  " + line + "\n";
      }
    }
    all.insert(rights);
  }
  std::printf("%s:\n", when);
  for (const std::string& rights : all) std::printf("%s", rights.c_str());
  std::printf("securebits %d\n", prctl(PR_GET_SECUREBITS));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: rights CALL WAY [cuda]\n");
    return 2;
  }
  const std::string call = argv[1];
  g_way = argv[2];
  if (geteuid() != 0) NotHere("this needs root");
  if (call == "setns-user") g_child = ChildInUserNamespace();
  if (By("libcap")) g_libcap = dlopen("libcap.so.2", RTLD_NOW);
  if (argc > 3) {
    start_device(0);
    launch_in_ranges(100);
  }
  Mark();
  if (By("late")) g_libcap = dlopen("libcap.so.2", RTLD_NOW);
  if (ByLibcap() && g_libcap == nullptr) NotHere("no libcap.so.2");
  Say(call.c_str(), Make(call));
  // Threads that are not of this program may be copies of the one that ended.
  if (call != "thread") PrintRights("then");
  Mark();
  Say("groups", setgroups(0, nullptr));
  Say("user", setresuid(kSomebody, kSomebody, kSomebody));
  PrintRights("as somebody");
  if (argc > 3) launch_in_ranges(100);
  for (int i = 0; i < 10; ++i) Mark();
  if (g_child != 0) kill(g_child, SIGKILL);
  std::printf("end\n");
  return 7;
}
