#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// Does what may fail on one process alone, such as reading a file; then every process goes on, or
/// every one throws: those at fault their own errors, the others RankFailures for `what`.
/// Collective.
void collectively(const Mesh& mesh, const std::string& what, const std::function<void()>& local);

/// Makes a text, which may fail on one process alone as collectively() says; every process gets the
/// text of the first one.
std::string broadcast_text(const Mesh& mesh, const std::string& what,
                           const std::function<std::string()>& local);

/// Makes a text on each process, which may fail on one alone as collectively() says; every process
/// gets all of them, by rank.
std::vector<std::string> gather_texts(const Mesh& mesh, const std::string& what,
                                      const std::function<std::string()>& local);

/// Writes a warning of one line to the standard error output, on the first process only.
void warn_once(const Mesh& mesh, const std::string& line);

}  // namespace tessera::detail
