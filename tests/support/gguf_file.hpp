#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tessera::test {

/// Makes the bytes of a GGUF file.
class GgufFile {
 public:
  void add_u32(const std::string& key, uint32_t value) { add(key, 4, number(value)); }
  void add_f32(const std::string& key, float value) { add(key, 6, number(value)); }
  void add_text(const std::string& key, const std::string& value) { add(key, 8, text(value)); }
  /// Adds a value of any type.
  void add(const std::string& key, uint32_t type, const std::string& bytes) {
    values_ += text(key) + number(type) + bytes;
    ++value_count_;
  }
  /// Adds a tensor; `extents` in the order of the file, the last axis first.
  void add_tensor(const std::string& name, const std::vector<uint64_t>& extents, uint32_t type,
                  const std::string& bytes) {
    tensors_ += text(name) + number(static_cast<uint32_t>(extents.size()));
    for (const uint64_t extent : extents) tensors_ += number(extent);
    tensors_ += number(type) + number(static_cast<uint64_t>(data_.size()));
    data_ += bytes;
    pad(data_);
    ++tensor_count_;
  }
  std::string bytes(uint32_t version = 3) const {
    std::string all = "GGUF" + number(version) + number(tensor_count_) + number(value_count_);
    all += values_ + tensors_;
    pad(all);
    return all + data_;
  }

  template <class T>
  static std::string number(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }
  static std::string text(const std::string& value) {
    return number(static_cast<uint64_t>(value.size())) + value;
  }

 private:
  static void pad(std::string& bytes) { bytes.resize((bytes.size() + 31) / 32 * 32); }

  std::string values_, tensors_, data_;
  uint64_t value_count_ = 0, tensor_count_ = 0;
};

}  // namespace tessera::test
