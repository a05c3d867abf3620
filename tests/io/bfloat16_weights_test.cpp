// Models whose variables are bfloat16, in every format of weights.
#include <tessera/tessera.hpp>

#include <filesystem>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/io/format/safetensors.hpp>

#include "tests/io/resumable.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/files.hpp"
#include "tests/support/small_model.hpp"

namespace bfloat16_weights_test {

using namespace tessera;
using namespace tessera::detail;
using test::checkpoint_layouts;
using test::checkpoint_model;
using test::Everything;

namespace {

/// Returns the dtypes of the tensors of a safetensors file.
std::set<std::string> dtypes_in(const std::filesystem::path& path) {
  std::set<std::string> dtypes;
  const SafetensorsFile file(path.string());
  for (const SafeTensor& tensor : file.tensors()) dtypes.insert(tensor.dtype);
  return dtypes;
}

/// Returns the dtypes of all weights and optimizer variables.
std::set<at::ScalarType> dtypes_of(const ModelHandle& model) {
  std::set<at::ScalarType> dtypes;
  for (const auto& [path, full] : Everything(model).tensors) dtypes.insert(full.scalar_type());
  return dtypes;
}

/// Names the weights, without the optimizer's variables, that are not bitwise equal.
std::string other_weights(const ModelHandle& model, const ModelHandle& expected) {
  const std::vector<at::Tensor> a = test::full_weights(model), b = test::full_weights(expected);
  if (a.size() != b.size()) return "other weights";
  std::string numbers;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].scalar_type() != b[i].scalar_type() || !at::equal(a[i], b[i])) numbers += str(i, " ");
  }
  return numbers;
}

const std::set<at::ScalarType> only_bfloat16 = {at::kBFloat16};

}  // namespace

TEST_CASE("a checkpoint of bfloat16 weights is restored bit for bit on other meshes") {
  const test::DTypeScope scope("bfloat16");
  const test::TempFolder folder;
  const ModelHandle model = checkpoint_model(checkpoint_layouts("mixed", 8));
  test::fill(model, 5);
  REQUIRE(dtypes_of(model) == only_bfloat16);
  Checkpoint(model).save(folder / "saved");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "saved")) {
    if (entry.path().extension() != ".safetensors") continue;
    CHECK(dtypes_in(entry.path()) == std::set<std::string>{"BF16"});
    ++files;
  }
  CHECK(files > 0);
  const Everything expected(model);
  for (const auto& [kind, devices] : std::vector<std::pair<std::string, int64_t>>{
           {"data", 1}, {"data", 4}, {"model", 2}, {"spatial", 4}, {"mixed", 4}}) {
    CAPTURE(kind, devices);
    const ModelHandle other = checkpoint_model(checkpoint_layouts(kind, devices));
    CHECK(Checkpoint(other).restore(folder / "saved").tensors == 18);
    CHECK(dtypes_of(other) == only_bfloat16);
    CHECK(Everything(other).difference(expected) == "");
  }
}

TEST_CASE("a run in bfloat16 resumes bit for bit") {
  const test::DTypeScope scope("bfloat16");
  const Json optimizer = test::optimizer_named("adam");
  const ModelHandle uninterrupted = test::dropout_model(optimizer, test::some_layouts());
  const test::Run expected = test::train(uninterrupted, {});
  REQUIRE(dtypes_of(uninterrupted) == only_bfloat16);
  const test::TempFolder folder;
  const BackupAndRestoreOptions options{.save_freq = 10};
  const ModelHandle first = test::dropout_model(optimizer, test::some_layouts());
  CHECK_THROWS_AS(
      test::train(first, {test::Interruption(13), BackupAndRestore(folder / "backup", options)}),
      StateError);
  const ModelHandle second = test::dropout_model(optimizer, test::some_layouts());
  const test::Run resumed = test::train(second, {BackupAndRestore(folder / "backup", options)});
  CHECK(resumed.steps == 11);
  CHECK(test::differs(expected, resumed) == "");
  CHECK(Everything(second).difference(Everything(uninterrupted)) == "");
}

TEST_CASE("every format keeps bfloat16 weights bit for bit") {
  const test::DTypeScope scope("bfloat16");
  const test::TempFolder folder;
  const ModelHandle model = checkpoint_model(checkpoint_layouts("model", 4));
  // An optimizer that made no step has no variables in a .keras file.
  model.fit(at::rand({8, 64}), at::arange(8), {.verbose = 0});
  test::fill(model, 6);
  for (const char* name : {"w.weights.h5", "w.weights.json", "w.safetensors"}) {
    CAPTURE(name);
    const std::string path = folder / name;
    const bool sharded = path.ends_with(".json");
    save_weights(model.model(), path,
                 sharded ? SaveWeightsOptions{.max_shard_size = 5e-6} : SaveWeightsOptions{});
    for (const auto& [kind, devices] :
         std::vector<std::pair<std::string, int64_t>>{{"data", 1}, {"spatial", 2}, {"mixed", 8}}) {
      CAPTURE(kind, devices);
      const ModelHandle other = checkpoint_model(checkpoint_layouts(kind, devices));
      load_weights(other.model(), path);
      CHECK(other_weights(other, model) == "");
    }
  }
  CHECK(dtypes_in(std::filesystem::path(folder / "w.safetensors")) ==
        std::set<std::string>{"BF16"});
  model.save(folder / "model.keras");
  const ModelHandle loaded =
      load_model(folder / "model.keras", {.layouts = checkpoint_layouts("spatial", 2)});
  CHECK(Everything(loaded).difference(Everything(model)) == "");
  CHECK(dtypes_of(loaded) == only_bfloat16);
}

}  // namespace bfloat16_weights_test
