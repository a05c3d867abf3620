#pragma once

#include <cstddef>
#include <string>

namespace tessera::detail {

/// Reads a secret from a file that only its owner may read, without surrounding white space.
/// `where`: the variable or option that names the file. Throws FileError if it cannot be read,
/// ConfigError naming `where` if others may read it, and whatever check_secret() throws.
std::string read_secret_file(const std::string& where, const std::string& path);

/// Reads at most `max_bytes` of a file that only its owner may read. Throws like
/// read_secret_file().
std::string read_private_file(const std::string& where, const std::string& path, size_t max_bytes);

/// Returns the secret. Throws ConfigError naming `where` if it is too short (guessable) or too
/// long.
std::string check_secret(const std::string& where, const std::string& secret);

/// Whether two secrets are equal, compared in constant time.
bool same_secret(const std::string& one, const std::string& other);

}  // namespace tessera::detail
