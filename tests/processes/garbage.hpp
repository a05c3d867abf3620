#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/file_descriptor.hpp>

namespace tessera::test {

using namespace detail;

/// Connections that send anything but what an HTTP/2 server expects, and stay open.
class Garbage {
 public:
  /// Opens one of every kind to each of these ports of 127.0.0.1. Throws std::runtime_error if one
  /// cannot be reached.
  void send_to(const std::vector<int>& ports);
  size_t connections() const { return open_.size(); }

 private:
  void send(int port, const std::string& bytes);
  std::string random_bytes(size_t count);

  std::mt19937 random_{5};
  std::vector<FileDescriptor> open_;
};

}  // namespace tessera::test
