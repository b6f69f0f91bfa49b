// The program's lookups by dlsym: each is offered to those of ours who know the name, and goes on
// to libc's by a jump, with its return address. By that dlsym decides what RTLD_NEXT is. Runs on:
// AnswerLookups as PatchGlobalOffsetTables; answers on the program's threads.  May not: change
// errno in an answer.
#pragma once

namespace ranktap::agent {

// Null: libc is to look. Called for every lookup, RTLD_NEXT's too; in a fork child as well.
using LookupAnswer = void* (*)(void* handle, const char* name);

// For good, and once; whoever answers puts DlsymHook into tables.
void AnswerLookups(LookupAnswer answer);

// The function that is to stand in tables for `dlsym`.
void* DlsymHook();

}  // namespace ranktap::agent
