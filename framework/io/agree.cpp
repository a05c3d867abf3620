#include <tessera/framework/io/agree.hpp>

#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/communicator.hpp>
#include <tessera/framework/comm/status.hpp>

namespace tessera {

void agree(const Mesh& mesh, const std::string& what, const std::function<void()>& local) {
  const StatusWord word = exchanged(mesh, what, [&](StatusWord&) { local(); });
  if (word.status() != StepStatus::error) return;
  throw FileError(what, "every process succeeds", str("an error on rank ", word.rank()),
                  "look at what that process says");
}

bool is_first_rank(const Mesh& mesh) {
  return mesh.is_local() || communicator_of(mesh).rank() == 0;
}

void warn_once(const Mesh& mesh, const std::string& line) {
  if (is_first_rank(mesh)) std::cerr << "Warning: " << line << '\n';
}

}  // namespace tessera
