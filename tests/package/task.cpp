// A user's program that becomes a task of a parameter server job.
#include <iostream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/parameter_server/cluster_coordinator.hpp>

int main() {
  try {
    const tessera::strategy::ParameterServerStrategy strategy;
    std::cout << strategy.name() << "\n";
  } catch (const tessera::ConfigError& error) {
    std::cout << error.what() << "\n";
  }
}
