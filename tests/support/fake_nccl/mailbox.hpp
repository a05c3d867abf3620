#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace tessera::test::fake_nccl {

/// Messages between the ranks of a communicator: files in a folder that is theirs.
class Mailbox {
 public:
  Mailbox(std::filesystem::path folder, int rank, int size);

  /// Whether all ranks are there.
  bool is_complete() const;
  /// Messages of a pair of ranks arrive in the order in which they are sent.
  void send(int to, const std::string& message);
  /// The next message of a rank, if it is there.
  std::optional<std::string> receive(int from);
  /// This rank uses it no more. The last one removes the folder.
  void leave();

 private:
  bool all(const char* what) const;

  const std::filesystem::path folder_;
  const int rank_, size_;
  std::map<int, int64_t> sent_, received_;
};

}  // namespace tessera::test::fake_nccl
