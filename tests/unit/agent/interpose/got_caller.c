// A module that calls through its table: what got_patcher_test and confinement_test redirect.
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

int CallGetppid(void) { return getppid(); }
int CallGetpgrp(void) { return getpgrp(); }
unsigned CallGetuid(void) { return getuid(); }
int CallPrctl(int option, unsigned long a, unsigned long b) { return prctl(option, a, b, 0, 0); }
int CallSetfsuid(unsigned id) { return setfsuid(id); }
