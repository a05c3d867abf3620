#include <tessera/framework/training/callback.hpp>

#include <iostream>

namespace tessera {

void Callback::print(const std::string& line) const {
  if (params_.is_first_rank) std::cout << line << '\n' << std::flush;
}

void Callback::warn(const std::string& line) const {
  if (params_.is_first_rank) std::cerr << "Warning: " << line << '\n';
}

}  // namespace tessera
