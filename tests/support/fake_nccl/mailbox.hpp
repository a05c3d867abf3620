#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace tessera::test::fake_nccl {

/// Messages between the ranks of a communicator, as files in a folder.
class Mailbox {
 public:
  Mailbox(std::filesystem::path folder, int rank, int size);

  /// Whether all ranks have joined.
  bool is_complete() const;
  /// Sends a message; those between two ranks arrive in order.
  void send(int to, const std::string& message);
  /// Returns the next message of a rank, if it has arrived.
  std::optional<std::string> receive(int from);
  /// Leaves the mailbox. The last rank removes the folder.
  void leave();

 private:
  bool all(const char* what) const;

  const std::filesystem::path folder_;
  const int rank_, size_;
  std::map<int, int64_t> sent_, received_;
};

}  // namespace tessera::test::fake_nccl
