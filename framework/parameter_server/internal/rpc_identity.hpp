#pragma once

#include <string>

namespace tessera::detail {

/// A key and its certificate, as PEM.
struct RpcIdentity {
  std::string key;
  std::string certificate;
};

/// Derives the key and certificate from the secret. All tasks of a job get the same ones, with
/// which they authenticate each other in TLS.
RpcIdentity identity_of(const std::string& secret);

/// Subject name of all these certificates.
inline constexpr const char* identity_name = "tessera";

}  // namespace tessera::detail
