// Brings in what ended processes left in their spools (proto/spool.h): each file's frames go
// through the server as if its process were connected, with all checks, and the file is removed
// once they are stored. A file whose process lives is left alone: it is locked.
//
// A thread of its own, which looks at start and every kLookEvery. Nothing is lost when it is
// stopped half-way: the file stays, and positions keep the next collector from storing anything
// twice.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "proto/frame.h"

namespace ranktap::collector {

struct SpoolDirectory {
  std::string path;
  uid_t owner;  // it is used only if it is this user's, and nobody else may enter
};

class SpoolAdopter {
 public:
  // A socket whose other end the server reads as that user's.
  using Connect = std::function<FileDescriptor(uid_t owner)>;
  // Called on the adopter's thread: a file that cannot be taken, with the reason and the offset.
  using Complain = std::function<void(const std::string&)>;
  using FindDirectories = std::function<std::vector<SpoolDirectory>()>;

  SpoolAdopter(FindDirectories find, Connect connect, Complain complain);
  // Stops half-way.
  ~SpoolAdopter();

  // Those of one user, or of everybody.
  static std::vector<SpoolDirectory> DirectoriesOf(uid_t user);
  static std::vector<SpoolDirectory> DirectoriesOfAll();

 private:
  void Run();
  void Look(const SpoolDirectory& directory);
  // One line each for the first of a user's; then their number, whenever it is ten times more.
  void ComplainOf(uid_t owner, const std::string& what);
  // True when the file is stored and can go.
  bool Take(int file, const std::string& path, uid_t owner);
  // Each false: the connection has ended, or the file was turned down.
  bool Send(std::span<const std::byte> bytes);
  // Reads what is there, and on until `enough`.
  bool Hear(const std::function<bool()>& enough);
  bool HearFrame(const proto::FrameView& frame);
  bool stopping();

  FindDirectories find_;
  Connect connect_;
  Complain complain_;
  std::map<std::string, std::set<std::string>> refused_;  // by directory; names complained about
  std::map<uid_t, uint64_t> complaints_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  int socket_ = -1;  // the open connection's, for the destructor to shut down; under mutex_

  std::vector<std::byte> heard_;
  bool welcomed_ = false;
  uint64_t acked_ = 0;  // frames
  std::string refusal_;
  std::thread thread_;
};

}  // namespace ranktap::collector
