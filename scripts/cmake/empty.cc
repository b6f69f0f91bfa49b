// A library that only precompiles headers needs a source.
