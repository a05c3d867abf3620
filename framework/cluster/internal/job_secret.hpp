#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::detail {

/// Access control of a job's listening processes.
struct JobAccess {
  /// shared secret of the job's processes; proved, never sent. Empty: none.
  std::string secret = {};
  /// whether a process without a secret may listen beyond its host
  bool insecure = false;
  /// whether what processes send each other is encrypted, under keys derived from the secret
  bool encrypt = false;
};

/// Returns the job's access: the secret from `cluster`, else from TESSERA_SECRET or the file named
/// by TESSERA_SECRET_FILE, which only its owner may read; TESSERA_INSECURE=1 and TESSERA_ENCRYPT=1
/// have the effects of Cluster::insecure and Cluster::encrypt. Throws ConfigError naming the
/// variable, or FileError.
JobAccess job_access(const Cluster& cluster, const EnvironmentLookup& environment = {});

/// Generates a random secret of 64 hexadecimal digits.
std::string make_secret();

/// Checks that a process may listen at `host`: it is on loopback, has a secret, or is `insecure`.
/// Returns a warning in the last case, otherwise "". Throws ConfigError if it may not, and if its
/// traffic is to be encrypted without a secret. `who` is the listener's name, such as "rank 0";
/// `where`: prefix of errors.
std::string check_access(const std::string& where, const std::string& who, const std::string& host,
                         const JobAccess& access);

/// Returns 32 cryptographically random bytes, for a challenge.
std::string random_nonce();

/// Returns the HMAC-SHA256 of the texts under the secret.
std::string proof_of(const std::string& secret, std::initializer_list<std::string_view> texts);

}  // namespace tessera::detail
