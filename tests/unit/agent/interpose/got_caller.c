// A module that calls through its table: what got_patcher_test redirects.
#include <unistd.h>

int CallGetppid(void) { return getppid(); }
int CallGetpgrp(void) { return getpgrp(); }
unsigned CallGetuid(void) { return getuid(); }
