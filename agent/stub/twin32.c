// The same name for programs of 32 bits, which the loader's $LIB leads here: empty, since there is
// no agent for them, and without it their loader complains on the job's stderr.
// Runs on: nothing.  May not: have code.
