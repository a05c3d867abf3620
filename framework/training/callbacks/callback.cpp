#include <tessera/framework/training/callbacks/callback.hpp>

#include <cxxabi.h>

#include <cstdlib>
#include <iostream>

#include <tessera/framework/training/trainer.hpp>

namespace tessera {

using namespace detail;

Model& Callback::model() const { return trainer_->model(); }

std::string Callback::class_name() const {
  int status = 0;
  char* text = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
  const std::string name = text ? text : typeid(*this).name();
  std::free(text);
  const size_t scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

void Callback::print(const std::string& line) const {
  if (params_.is_first_rank) std::cout << line << '\n' << std::flush;
}

void Callback::warn(const std::string& line) const {
  if (params_.is_first_rank) std::cerr << "Warning: " << line << '\n';
}

}  // namespace tessera
