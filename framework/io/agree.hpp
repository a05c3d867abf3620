#pragma once

#include <functional>
#include <string>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {

/// Does what may fail on one process alone, such as reading a file; then every process goes on, or
/// every one throws: the one at fault its own error, the others a FileError for `what` that names
/// its rank. Collective.
void agree(const Mesh& mesh, const std::string& what, const std::function<void()>& local);

/// Whether this is the process that writes files and texts.
bool is_first_rank(const Mesh& mesh);

/// Writes a warning of one line to the standard error output, on the first process only.
void warn_once(const Mesh& mesh, const std::string& line);

}  // namespace tessera
