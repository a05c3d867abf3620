// A user's program that reads a Parquet file; here it is given its own source, which is none.
#include <iostream>

#include <tessera/datasets/arrow/read_parquet.hpp>
#include <tessera/framework/base/error.hpp>

int main(int, char** arguments) {
  try {
    std::cout << tessera::datasets::read_parquet(arguments[0]).rows() << "\n";
  } catch (const tessera::FileError& error) {
    std::cout << error.what() << "\n";
  }
}
