#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

/// Returns the bytes of hexadecimal digits.
inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// A file of tests/golden/hdf5_cases.json.
struct Hdf5Case {
  std::string name;
  std::string bytes;
  Json about;  ///< expected contents, or the text of its refusal
};

/// Returns the cases of a list, "good" or "refused".
inline std::vector<Hdf5Case> hdf5_cases(const std::string& list) {
  const Json golden = read_json_file(golden_path("hdf5_cases.json").string());
  std::vector<Hdf5Case> cases;
  for (const Json& entry : golden.at(list)) {
    const std::string packed = from_hex(entry["bytes"].get<std::string>());
    std::string bytes(entry["size"].get<size_t>(), '\0');
    uLongf size = bytes.size();
    const int result = ::uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                                    reinterpret_cast<const Bytef*>(packed.data()), packed.size());
    if (result != Z_OK || size != bytes.size()) throw std::runtime_error("hdf5_cases.json");
    cases.push_back({entry["name"].get<std::string>(), std::move(bytes), entry});
  }
  return cases;
}

/// Returns the case of that name.
inline Hdf5Case hdf5_case(const std::string& list, const std::string& name) {
  for (Hdf5Case& one : hdf5_cases(list)) {
    if (one.name == name) return std::move(one);
  }
  throw std::runtime_error("hdf5_cases.json has no " + name);
}

}  // namespace tessera::test
