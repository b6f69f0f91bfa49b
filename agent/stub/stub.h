// Inside libranktap.so, which has no libc to lean on.
#pragma once

typedef const void* (*ExportTableFinder)(unsigned id);
typedef long (*Call)(long, long, long, long, long, long);

// NVTX's functions of one object become ours, which open the agent when one is called. 0: a table
// that is not understood.
int stub_install_thunks(ExportTableFinder table);

// Takes those out that are still there; `all`: whatever is there.
void stub_remove_thunks(ExportTableFinder table, int all);

// The function at this place of the table; NULL: nothing, or one of ours.
Call stub_handler(ExportTableFinder table, unsigned module, unsigned slot);

// A function of NVTX was called for the first time. `otherwise`: what it returns where nobody
// records.
long stub_first_call(unsigned module, unsigned slot, const long* arguments, long otherwise);

// A line for `ranktap run`, by a socket beside RANKTAP_SOCKET's. Never waits.
void stub_tell(const char* text, const char* detail);

// System calls, without errno.
long stub_getpid(void);
long stub_gettid(void);
void stub_yield(void);
int stub_is_file(const char* path);
