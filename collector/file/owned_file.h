// The one place that opens what lies where another user may write. Everything goes by directory
// descriptor and by name, follows no link, waits for no FIFO or device, and is looked at once more
// when it is open: what is not `owner`'s, or not of its kind, is refused. `path` is for messages.
// Thread-safe.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/file/result.h"

namespace ranktap::collector {

Result<FileDescriptor> OpenOwnedDirectory(int parent, const std::string& name, uid_t owner,
                                          const std::string& path);
// A regular file. `access`: O_RDONLY or O_RDWR.
Result<FileDescriptor> OpenOwnedFile(int directory, const std::string& name, uid_t owner,
                                     const std::string& path, int access = O_RDONLY);
// The whole of one, which fails where it is longer than `most_bytes`.
Result<std::string> ReadOwnedFile(int directory, const std::string& name, uid_t owner,
                                  const std::string& path, size_t most_bytes);

// For verbs that read what they are told to: a regular file of anybody's, by path, links followed.
// A FIFO or a device under the name is refused instead of waited for.
Result<FileDescriptor> OpenRegularFile(const std::string& path);
Result<std::string> ReadRegularFile(const std::string& path, size_t most_bytes);

// The names in the directory, but for "." and ".."; at most `most` names.
std::vector<std::string> NamesIn(int directory, size_t most);

}  // namespace ranktap::collector
