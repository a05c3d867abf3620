#include <tessera/datasets/load_safetensors.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/io/format/safetensors.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace load_safetensors_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::string_literals;

namespace {

SafeTensor stored(const std::string& name, const std::string& dtype, const Shape& shape,
                  const std::string& bytes) {
  return {name, dtype, shape, std::as_bytes(std::span(bytes))};
}

}  // namespace

TEST_CASE("tensors of every dtype are read by name") {
  const test::TempFolder folder;
  const std::string path = folder / "a.safetensors";
  const struct {
    const char* name;
    at::ScalarType dtype;
  } kinds[] = {{"F32", at::kFloat},
               {"F64", at::kDouble},
               {"F16", at::kHalf},
               {"BF16", at::kBFloat16},
               {"I64", at::kLong},
               {"I32", at::kInt},
               {"I16", at::kShort},
               {"I8", at::kChar},
               {"U8", at::kByte},
               {"BOOL", at::kBool},
               {"C64", at::kComplexFloat},
               {"F8_E5M2", at::kFloat8_e5m2},
               {"F8_E4M3", at::kFloat8_e4m3fn}};
  std::vector<at::Tensor> expected;
  std::vector<SafeTensor> tensors;
  for (const auto& kind : kinds) {
    expected.push_back(at::tensor({0, 1, 1, 0, 1, 1}).view({2, 3}).to(kind.dtype));
    const at::Tensor& tensor = expected.back();
    tensors.push_back({kind.name,
                       kind.name,
                       {2, 3},
                       {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  tensors.push_back({"empty", "F32", {0, 4}, {}});
  tensors.push_back({"scalar", "F32", {}, tensors[0].data.subspan(4, 4)});
  write_safetensors(path, tensors);
  std::map<std::string, at::Tensor> read = datasets::load_safetensors(path);
  CHECK(read.size() == tensors.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(kinds[i].name);
    const at::Tensor& tensor = read.at(kinds[i].name);
    CHECK(tensor.scalar_type() == kinds[i].dtype);
    const bool is_complex = expected[i].is_complex();
    CHECK((is_complex ? tensor.equal(expected[i])
                      : tensor.to(at::kDouble).equal(expected[i].to(at::kDouble))));
  }
  CHECK(read.at("empty").sizes() == at::IntArrayRef({0, 4}));
  CHECK(read.at("scalar").item<float>() == 1);
  // A tensor keeps the file's memory, and may be changed.
  const at::Tensor kept = read.at("F64");
  read.clear();
  kept.mul_(2);
  CHECK(kept.sum().item<double>() == 8);
}

TEST_CASE("unsigned tensors are widened, and dtypes that tensors lack are refused by name") {
  const test::TempFolder folder;
  const std::string path = folder / "a.safetensors";
  const std::string ones(8, '\xFF');
  const std::string two = ones.substr(0, 2), four = ones.substr(0, 4);
  write_safetensors(path, {stored("a", "U16", {1}, two), stored("b", "U32", {1}, four)});
  const auto read = datasets::load_safetensors(path);
  CHECK(read.at("a").equal(at::tensor({65535}, at::kInt)));
  CHECK(read.at("b").equal(at::tensor({int64_t{4294967295}}, at::kLong)));
  const auto error = [&] { return test::error_line([&] { datasets::load_safetensors(path); }); };
  write_safetensors(path, {stored("c", "U64", {1}, ones)});
  CHECK_THAT(error(), Contains("a.safetensors, tensor \"c\"] integers below 2^63"));
  write_safetensors(path, {stored("d", "F4", {4}, two)});
  CHECK_THAT(error(), Contains("tensor \"d\"] a dtype that tensors have. Received: F4."));
}

TEST_CASE("an index names the files of its tensors, which are beside it") {
  const test::TempFolder folder;
  const std::string index = folder / "model.safetensors.index.json";
  const std::string bytes = "\0\0\x80\x3F"s;
  write_safetensors(folder / "model-1.safetensors",
                    {stored("a", "F32", {1}, bytes), stored("unlisted", "F32", {1}, bytes)});
  write_safetensors(folder / "model-2.safetensors", {stored("b", "F32", {}, bytes)});
  const auto error = [&](const std::string& text) {
    test::write_file(index, text);
    return test::error_line([&] { datasets::load_safetensors(index); });
  };
  CHECK(error(R"({"metadata": {"total_size": 8}, "weight_map":
                  {"a": "model-1.safetensors", "b": "model-2.safetensors"}})") == "no error");
  const auto read = datasets::load_safetensors(index);
  CHECK(read.size() == 2);
  CHECK(read.at("a").equal(at::ones({1})));
  CHECK(read.at("b").item<float>() == 1);
  CHECK_THAT(error(R"({"weight_map": {"c": "model-2.safetensors"}})"),
             Contains("model-2.safetensors] the tensor \"c\", as ") && Contains("index.json says"));
  for (const char* name : {"../x", "/etc/passwd", "", ".."}) {
    CAPTURE(name);
    CHECK_THAT(error(str(R"({"weight_map": {"c": ")", name, "\"}}")),
               Contains("weight_map.c") && Contains("the name of a file beside the index"));
  }
  CHECK_THAT(error("{}"), Contains("weight_map"));
  CHECK_THAT(error(R"({"weight_map": {"c": "none"}})"), Contains("none]"));
}

}  // namespace load_safetensors_test
