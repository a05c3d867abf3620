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
using namespace std::string_literals;

TEST_CASE("arrays of every dtype and shape are written and read back") {
  const test::TempFolder folder;
  const std::string path = folder / "a.npy";
  for (const at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte,
        at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor array = at::arange(6).reshape({2, 3}).to(dtype).t();
    datasets::save_npy(path, array);
    CHECK(datasets::load_npy(path).scalar_type() == dtype);
    CHECK(datasets::load_npy(path).equal(array));
  }
  datasets::save_npy(path, at::scalar_tensor(2.5, at::kBFloat16));
  CHECK(datasets::load_npy(path).item<float>() == 2.5f);
  CHECK(datasets::load_npy(path).add_(1).item<float>() == 3.5f);
  datasets::save_npy(path, at::empty({0, 3}));
  CHECK(datasets::load_npy(path).sizes() == at::IntArrayRef({0, 3}));
}

TEST_CASE("conjugate and negated views are written with the values that they show") {
  const test::TempFolder folder;
  const std::string path = folder / "a.npy";
  const at::Tensor number = at::complex(at::tensor({1.0, 2.0}), at::tensor({3.0, -4.0}));
  datasets::save_npy(path, number.conj());
  CHECK(datasets::load_npy(path).equal(number.conj().resolve_conj()));
  const at::Tensor negated = at::imag(number.conj());
  REQUIRE(negated.is_neg());
  datasets::save_npy(path, negated);
  CHECK(datasets::load_npy(path).equal(at::tensor({-3.0, 4.0})));
  datasets::save_npz(folder / "a.npz", Table({{"x", negated}}));
  CHECK(datasets::load_npz(folder / "a.npz", "x").equal(at::tensor({-3.0, 4.0})));
}

TEST_CASE("unsigned, column-major and text arrays of NumPy are read") {
  const test::TempFolder folder;
  const std::string path = folder / "a.npy";
  const auto write = [&](const std::string& descr, bool fortran, const std::string& shape,
                         const std::string& data) {
    std::string head = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + "}\n";
    head.insert(0, std::string("\x93NUMPY\1\0", 8) + static_cast<char>(head.size()) + '\0');
    test::write_file(path, head + data);
  };
  write("<u2", false, "(2,)", "\xFF\xFF\1\0"s);
  CHECK(datasets::load_npy(path).equal(at::tensor({65535, 1}, at::kInt)));
  write(">u4", false, "(1,)", "\xFF\xFF\xFF\xFE");
  CHECK(datasets::load_npy(path).equal(at::tensor({int64_t{4294967294}}, at::kLong)));
  write("<u8", false, "(1,)", std::string(8, '\xFF'));
  CHECK_THAT(test::error_line([&] { datasets::load_npy(path); }),
             Contains("a.npy] integers below 2^63"));
  write(">i2", true, "(2, 3)", "\0\1\0\4\0\2\0\5\0\3\0\6"s);
  CHECK(datasets::load_npy(path).equal(at::tensor({1, 2, 3, 4, 5, 6}, at::kShort).view({2, 3})));
  CHECK(datasets::load_npy(path).is_contiguous());
  write("|S2", false, "(3, 1)", "yesnook"s.substr(0, 6));
  CHECK_THAT(test::error_line([&] { datasets::load_npy(path); }),
             Contains("a.npy] an array of numbers. Received: texts."));
  const std::string texts = test::read_file(path);
  write("|i1", false, "(3,)", "abc");
  test::write_file(folder / "a.npz",
                   test::zip_bytes({{.name = "label.npy", .text = texts},
                                    {.name = "x.npy", .text = test::read_file(path)}}));
  const Table table = datasets::load_npz(folder / "a.npz");
  CHECK(table["label"].texts() == std::vector<std::string>{"ye", "sn", "oo"});
  CHECK(table["x"].numbers().scalar_type() == at::kChar);
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
             Contains("[save_npz] columns of numbers. Received: texts in \"t\"."));
}

TEST_CASE("arrays of different rows are saved under their names") {
  const test::TempFolder folder;
  const std::string path = folder / "b.npz";
  datasets::save_npz(path, {{"x", at::ones({2, 3})}, {"rate", at::tensor(0.5)}});
  CHECK(difference(datasets::load_npz(path, "x"), at::ones({2, 3})) == "");
  CHECK(difference(datasets::load_npz(path, "rate"), at::tensor(0.5)) == "");
  CHECK_THROWS_WITH(datasets::save_npz(path, {{"x", at::ones({2})}, {"x", at::ones({2})}}),
                    Contains("arrays have names of their own. Received: \"x\""));
  CHECK_THROWS_WITH(datasets::save_npz(path, {{"x", at::Tensor()}}),
                    Contains("no array for \"x\""));
  CHECK(difference(datasets::load_npz(path, "x"), at::ones({2, 3})) == "");
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
