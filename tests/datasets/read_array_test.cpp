#include <tessera/datasets/read_array.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/zip_file.hpp"

namespace read_array_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::difference;

TEST_CASE("arrays of every dtype and shape are written and read back") {
  const test::TempFolder folder;
  const std::string path = folder / "a.npy";
  for (const at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kLong, at::kInt, at::kByte, at::kBool}) {
    const at::Tensor array = at::arange(6).reshape({2, 3}).to(dtype).t();
    datasets::save_npy(path, array);
    CHECK(datasets::load_npy(path).scalar_type() == dtype);
    CHECK(difference(datasets::load_npy(path), array) == "");
  }
  datasets::save_npy(path, at::scalar_tensor(2.5, at::kBFloat16));
  CHECK(datasets::load_npy(path).item<float>() == 2.5f);
  datasets::save_npy(path, at::empty({0, 3}));
  CHECK(datasets::load_npy(path).sizes() == at::IntArrayRef({0, 3}));
}

TEST_CASE("an archive of arrays becomes a table, and the reverse") {
  const test::TempFolder folder;
  const std::string path = folder / "a.npz";
  Table table(
      {{"x", at::arange(12, at::kFloat).reshape({3, 4})}, {"y", at::tensor({2, 0, 1}, at::kLong)}});
  datasets::save_npz(path, table);
  const Table read = datasets::load_npz(path);
  CHECK(read.names() == table.names());
  CHECK(difference(read["x"].numbers(), table["x"].numbers()) == "");
  CHECK(difference(read["y"].numbers(), table["y"].numbers()) == "");
  CHECK(difference(datasets::load_npz(path, "y"), table["y"].numbers()) == "");
  Table none({{"x", at::empty({0, 2})}});
  datasets::save_npz(path, none);
  CHECK(datasets::load_npz(path)["x"].numbers().sizes() == at::IntArrayRef({0, 2}));
  table.add("t", {"a", "b", "c"});
  CHECK_THAT(test::error_line([&] { datasets::save_npz(path, table); }),
             Contains("a.npz] columns of numbers. Received: texts in \"t\"."));
}

TEST_CASE("archives of numpy.savez and numpy.savez_compressed are read") {
  const Table table = datasets::load_npz(test::golden_path("arrays.npz"));
  CHECK(table.names() == std::vector<std::string>{"x", "y"});
  CHECK(difference(table["x"].numbers(), at::arange(6, at::kDouble).reshape({3, 2})) == "");
  CHECK(difference(table["y"].numbers(), at::tensor({1, 0, 1}, at::kInt)) == "");
}

TEST_CASE("files that are no archive, and archives with invalid arrays, are refused by name") {
  const test::TempFolder folder;
  const std::string path = folder / "a.npz";
  const auto error = [&](const std::vector<test::ZipEntry>& entries) {
    test::write_file(path, test::zip_bytes(entries));
    return test::error_line([&] { datasets::load_npz(path); });
  };
  datasets::save_npy(folder / "x.npy", at::zeros({2, 2}));
  datasets::save_npy(folder / "y.npy", at::zeros({3}));
  const std::string x = test::read_file(folder / "x.npy"), y = test::read_file(folder / "y.npy");
  CHECK(error({{.name = "x.npy", .text = x}}) == "no error");
  CHECK_THAT(error({{.name = "x.npy", .text = x}, {.name = "y.npy", .text = y}}),
             Contains("a.npz, y.npy] arrays of equally many rows. Received: shape (3,). To fix: "
                      "read it by load_npz(path, \"y\")."));
  CHECK(datasets::load_npz(path, "y").size(0) == 3);
  CHECK_THAT(test::error_line([&] { datasets::load_npz(path, "z"); }),
             Contains("the name of an array in it. Received: \"z\""));
  CHECK_THAT(error({{.name = "x.npy", .text = x.substr(0, x.size() - 1)}}),
             Contains("a.npz, x.npy, byte ") &&
                 Contains("the 16 bytes of shape (2, 2). Received: the file ends here."));
  std::string larger = x;
  larger.replace(larger.find("(2, 2)"), 6, "(9, 9)");
  CHECK_THAT(error({{.name = "x.npy", .text = larger}}), Contains("a shorter file"));
  CHECK_THAT(error({{.name = "notes.txt", .text = "x"}}),
             Contains("a.npz] an archive of arrays, as numpy.savez writes it."));
  test::write_file(path, "no zip");
  CHECK_THAT(test::error_line([&] { datasets::load_npz(path); }),
             Contains("a zip archive") && Contains("save the arrays anew with numpy.savez"));
}

}  // namespace read_array_test
