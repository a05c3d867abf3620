#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// Runs `local`, which may fail on a single process (for example read a file). Then every process
/// continues or every process throws: those that failed their own errors, the others
/// RankFailures for `what`. Collective.
void collectively(const Mesh& mesh, const std::string& what, const std::function<void()>& local);

/// Runs `local` like collectively(); returns the text of the first process on every process.
std::string broadcast_text(const Mesh& mesh, const std::string& what,
                           const std::function<std::string()>& local);

/// Runs `local` like collectively(); returns the texts of all processes, by rank, on every process.
std::vector<std::string> gather_texts(const Mesh& mesh, const std::string& what,
                                      const std::function<std::string()>& local);

/// Writes a one-line warning to standard error, on the first process only.
void warn_once(const Mesh& mesh, const std::string& line);

}  // namespace tessera::detail
