// One of several processes that train the guide's model: by=loop or by=fit.
#include <cstdio>
#include <string>

#include "apps/common/run_app.hpp"
#include "tests/strategy/guide_model.hpp"

namespace tessera::test {
namespace {

int run(int argc, char** argv) {
  const bool fits = argc > 1 && std::string(argv[1]) == "by=fit";
  const strategy::MultiWorkerMirroredStrategy strategy;
  for (const double loss : fits ? fit_losses(strategy, 210) : loop_losses(strategy, 210)) {
    std::printf("%.9g\n", loss);
  }
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
