#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/comm/cpu/transport.hpp>

namespace tessera::detail {

/// How a process joins its peers over Gloo's TCP transport.
struct GlooOptions {
  int rank = 0;
  int size = 1;
  /// The address or host name by which the other ranks reach this process.
  std::string address = "127.0.0.1";
  /// Secret that every process must prove to know before its connection is given to Gloo; empty: a
  /// secret that the ranks exchange through `gather`.
  std::string secret = {};
  /// Whether to encrypt all messages, under keys derived from the secret.
  bool encrypt = false;
  /// How long to wait for each connection.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// Takes this rank's text and returns the texts of all ranks, by rank. Called twice.
  std::function<std::vector<std::string>(const std::string& text)> gather;
};

/// Connects every pair of ranks over TCP. Collective. Throws CommError if a connection fails, if
/// the Gloo in another library would run instead of libgloo, and in a build without Gloo.
std::unique_ptr<Transport> gloo_transport(const GlooOptions& options);

}  // namespace tessera::detail
