#include <tessera/framework/comm/internal/collectively.hpp>

#include <iostream>

#include <tessera/framework/cluster/internal/collective_error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

void collectively(const Mesh& mesh, const std::string& what, const std::function<void()>& local) {
  broadcast_text(mesh, what, [&] {
    local();
    return "";
  });
}

std::vector<std::string> gather_texts(const Mesh& mesh, const std::string& what,
                                      const std::function<std::string()>& local) {
  GatherTexts gather;
  if (!mesh.is_local()) {
    gather = [&](const std::string& text) { return communicator_of(mesh).gather("agree", text); };
  }
  return collectively(gather, what, "every process succeeds", local);
}

std::string broadcast_text(const Mesh& mesh, const std::string& what,
                           const std::function<std::string()>& local) {
  return gather_texts(mesh, what, local)[0];
}

void warn_once(const Mesh& mesh, const std::string& line) {
  if (is_first_rank(mesh)) std::cerr << "Warning: " << line << '\n';
}

}  // namespace tessera::detail
