#include "tests/support/fake_nccl/mailbox.hpp"

#include <fstream>
#include <iterator>

namespace tessera::test::fake_nccl {

namespace fs = std::filesystem;

namespace {

/// Writes a file atomically.
void write_atomically(const fs::path& path, const std::string& bytes) {
  const fs::path part = path.string() + ".part";
  std::ofstream(part, std::ios::binary) << bytes;
  std::error_code ignored;  // the last rank that needed the folder has removed it
  fs::rename(part, path, ignored);
}

std::string letter(int from, int to, int64_t number) {
  return std::to_string(from) + "_to_" + std::to_string(to) + "_" + std::to_string(number);
}

}  // namespace

Mailbox::Mailbox(fs::path folder, int rank, int size)
    : folder_(std::move(folder)), rank_(rank), size_(size) {
  write_atomically(folder_ / ("here_" + std::to_string(rank)), "");
}

bool Mailbox::is_complete() const { return all("here_"); }

void Mailbox::send(int to, const std::string& message) {
  write_atomically(folder_ / letter(rank_, to, sent_[to]++), message);
}

std::optional<std::string> Mailbox::receive(int from) {
  const fs::path path = folder_ / letter(from, rank_, received_[from]);
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  ++received_[from];
  std::string message(std::istreambuf_iterator<char>(file), {});
  fs::remove(path);
  return message;
}

void Mailbox::leave() {
  write_atomically(folder_ / ("left_" + std::to_string(rank_)), "");
  std::error_code ignored;  // another rank may be removing it
  if (all("left_")) fs::remove_all(folder_, ignored);
}

bool Mailbox::all(const char* what) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!fs::exists(folder_ / (what + std::to_string(rank)))) return false;
  }
  return true;
}

}  // namespace tessera::test::fake_nccl
