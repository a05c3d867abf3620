#include <tessera/layers/preprocessing/internal/hash_buckets.hpp>

#include <bit>
#include <charconv>
#include <cstring>

#include <ATen/ATen.h>

#include <tessera/framework/ops/custom_op.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/text/internal/farm_hash.hpp>

namespace tessera::detail {
namespace {

uint64_t sip_hash(std::string_view text, uint64_t key0, uint64_t key1) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575u, v1 = key1 ^ 0x646f72616e646f6du;
  uint64_t v2 = key0 ^ 0x6c7967656e657261u, v3 = key1 ^ 0x7465646279746573u;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const uint64_t size = text.size();
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    take(word);
  }
  uint64_t last = 0;
  std::memcpy(&last, text.data(), text.size());
  take(last | size << 56);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

/// FarmHash's FingerprintCat64.
uint64_t joined_fingerprint(uint64_t a, uint64_t b) {
  constexpr uint64_t factor = 0xc6a4a7935bd1e995u;
  const auto shifted = [](uint64_t value) { return value ^ (value >> 47); };
  const uint64_t mixed = ((a ^ factor) ^ shifted(b * factor) * factor) * factor;
  return shifted(shifted(mixed) * factor);
}

/// Returns bucket(i) for each element i, on the device of `like`.
template <class Bucket>
at::Tensor each_on_host(const at::Tensor& like, const Bucket& bucket) {
  at::Tensor result = at::empty(like.sizes(), at::kLong);
  int64_t* const out = result.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < result.numel(); ++i) out[i] = bucket(i);
  return result.to(like.device());
}

at::Tensor on_host(const at::Tensor& numbers) { return numbers.cpu().contiguous(); }

/// Computes hash_buckets() of a block. Inputs: numbers, `buckets` and the salt, if there is one.
at::Tensor hashed_block(std::span<const at::Tensor> in) {
  const at::Tensor numbers = on_host(in[0]);
  const int64_t* const data = numbers.const_data_ptr<int64_t>();
  HashSalt salt;
  for (size_t i = 2; i < in.size(); ++i) salt.push_back(in[i].item<int64_t>());
  const auto buckets = in[1].item<int64_t>();
  return each_on_host(in[0], [&](int64_t i) { return hash_bucket(data[i], buckets, salt); });
}

/// Computes cross_buckets() of a block. Inputs: tensors of numbers, and `buckets`.
at::Tensor crossed_block(std::span<const at::Tensor> in) {
  std::vector<at::Tensor> columns;
  for (const at::Tensor& numbers : in.first(in.size() - 1)) columns.push_back(on_host(numbers));
  const auto buckets = in.back().item<int64_t>();
  std::vector<uint64_t> row(columns.size());
  return each_on_host(in[0], [&](int64_t i) {
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = static_cast<uint64_t>(columns[c].const_data_ptr<int64_t>()[i]);
    }
    return cross_bucket(row, buckets);
  });
}

DTensor int64_scalar(int64_t value, const Mesh& mesh) {
  return pack(at::scalar_tensor(value, at::kLong), Layout::replicated(mesh, 0));
}

}  // namespace

int64_t hash_bucket(std::string_view text, int64_t buckets, const HashSalt& salt) {
  const uint64_t hash =
      salt.empty() ? fingerprint64(text)
                   : sip_hash(text, static_cast<uint64_t>(salt[0]), static_cast<uint64_t>(salt[1]));
  return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
}

int64_t hash_bucket(int64_t number, int64_t buckets, const HashSalt& salt) {
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return hash_bucket({digits, static_cast<size_t>(end - digits)}, buckets, salt);
}

int64_t cross_bucket(std::span<const uint64_t> numbers, int64_t buckets) {
  uint64_t hash = 0xdecafcaffe;
  for (const uint64_t number : numbers) hash = joined_fingerprint(hash, number);
  return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
}

DTensor hash_buckets(const DTensor& numbers, int64_t buckets, const HashSalt& salt) {
  static const ops::CustomOp op("hash_buckets", {.forward = hashed_block});
  std::vector<DTensor> inputs = {numbers, int64_scalar(buckets, numbers.mesh())};
  for (const int64_t key : salt) inputs.push_back(int64_scalar(key, numbers.mesh()));
  return op(inputs);
}

DTensor cross_buckets(const std::vector<DTensor>& numbers, int64_t buckets) {
  static const ops::CustomOp op("cross_buckets", {.forward = crossed_block});
  std::vector<DTensor> inputs = numbers;
  inputs.push_back(int64_scalar(buckets, numbers[0].mesh()));
  return op(inputs);
}

}  // namespace tessera::detail
