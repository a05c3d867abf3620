#include <tessera/framework/io/weights_file.hpp>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"

namespace weights_file_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

ModelHandle model_of(const std::string& dtype, const LayoutMap& layouts = {}) {
  const Sequential model({Dense(2, {.name = "score", .dtype = dtype})});
  model.build({-1, 3});
  if (layouts.defined()) model.compile({.layouts = layouts});
  return model;
}

}  // namespace

TEST_CASE("if the first process cannot write weights, all processes throw") {
  const test::TempFolder folder;
  test::write_file(folder / "file", "text");
  const auto run = [&](int, const std::shared_ptr<Communicator>& communicator) {
    const LayoutMap layouts(test::rank_mesh({{"batch", 2}}, communicator));
    const ModelHandle model = model_of("float32", layouts);
    save_weights(model.model(), folder / "good.safetensors");
    test::expect(exists(folder / "good.safetensors"), "a file");
    try {
      save_weights(model.model(), folder / "file/bad.safetensors");
    } catch (const FileError& error) {
      const std::string text = error.what();
      test::expect(text.find("bad.safetensors") != std::string::npos, text);
      return;
    }
    test::expect(false, "no error");
  };
  CHECK_NOTHROW(test::run_ranks(2, run));
}

TEST_CASE("weights of another dtype are refused with the dtype to use") {
  const test::TempFolder folder;
  const std::string path = folder / "w.safetensors";
  save_weights(model_of("float64").model(), path);
  const ModelHandle single = model_of("float32");
  CHECK_THROWS_WITH(load_weights(single.model(), path),
                    Contains("F64") && Contains("make the model with dtype \"float64\""));
  CHECK_NOTHROW(load_weights(model_of("float64").model(), path));
}

}  // namespace weights_file_test
