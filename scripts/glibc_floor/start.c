// How a program starts under a loader older than glibc 2.34. There the program's constructors are
// run by a function that its own start file hands over; the newer start file, which we are linked
// with, hands over none, since newer loaders find them. They leave that to us when we hand one
// over.
#include <stddef.h>

typedef void (*Constructor)(int, char**, char**);
typedef int (*Main)(int, char**, char**);
extern const Constructor __preinit_array_start[], __preinit_array_end[];
extern const Constructor __init_array_start[], __init_array_end[];
extern void _init(void);

static void Construct(int count, char** arguments, char** environment) {
  const size_t first = (size_t)(__preinit_array_end - __preinit_array_start);
  for (size_t i = 0; i < first; ++i) __preinit_array_start[i](count, arguments, environment);
  _init();
  const size_t all = (size_t)(__init_array_end - __init_array_start);
  for (size_t i = 0; i < all; ++i) __init_array_start[i](count, arguments, environment);
}

__attribute__((visibility("default"))) int __real___libc_start_main(
    Main main, int count, char** arguments, void (*construct)(int, char**, char**),
    void (*destruct)(void), void (*loader_end)(void), void* stack_end);

int __wrap___libc_start_main(Main main, int count, char** arguments, Constructor construct,
                             void (*destruct)(void), void (*loader_end)(void), void* stack_end) {
  (void)construct;
  return __real___libc_start_main(main, count, arguments, Construct, destruct, loader_end,
                                  stack_end);
}
