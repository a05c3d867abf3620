#include "tests/support/fake_nccl/operation.hpp"

#include <cstring>
#include <numeric>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/fake_gpu/memory.hpp"

namespace tessera::test::fake_nccl {

using fake_gpu::inside;

namespace {

at::ScalarType dtype_of(NcclType type) {
  switch (type) {
    case NcclType::int8:
      return at::kChar;
    case NcclType::uint8:
      return at::kByte;
    case NcclType::int32:
      return at::kInt;
    case NcclType::int64:
      return at::kLong;
    case NcclType::float16:
      return at::kHalf;
    case NcclType::float32:
      return at::kFloat;
    case NcclType::float64:
      return at::kDouble;
    case NcclType::bfloat16:
      return at::kBFloat16;
  }
  TORCH_CHECK(false, "the fake NCCL has no type ", int(type));
}

size_t bytes_of(size_t count, NcclType type) { return count * c10::elementSize(dtype_of(type)); }

std::vector<int> everyone(int ranks) {
  std::vector<int> list(static_cast<size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

/// Reduces in rank order on all ranks.
void reduce(const std::vector<std::string>& addends, void* to, NcclType type, NcclOp op) {
  const c10::InferenceMode inference;
  at::Tensor total;
  for (const std::string& bytes : addends) {
    const at::ScalarType dtype = dtype_of(type);
    const auto count = static_cast<int64_t>(bytes.size() / c10::elementSize(dtype));
    at::Tensor addend = at::empty({count}, dtype);
    std::memcpy(addend.mutable_data_ptr(), bytes.data(), bytes.size());
    if (!total.defined()) {
      total = addend;
    } else if (op == NcclOp::sum) {
      total.add_(addend);
    } else {
      total = op == NcclOp::max ? total.maximum(addend) : total.minimum(addend);
    }
  }
  std::memcpy(to, total.const_data_ptr(), total.nbytes());
}

std::string described(const char* name, size_t count, NcclType type) {
  return str(name, " of ", count, " ", c10::toString(dtype_of(type)));
}

std::string described(const char* name, size_t count, NcclType type, NcclOp op) {
  const char* const kind = op == NcclOp::sum ? "sum" : op == NcclOp::max ? "max" : "min";
  return str(described(name, count, type), ", ", kind);
}

}  // namespace

Operation all_reduce(int ranks, const void* send, void* receive, size_t count, NcclType type,
                     NcclOp op) {
  Operation made{described("ncclAllReduce", count, type, op), {}, everyone(ranks), {}};
  const auto* const from = static_cast<const char*>(inside(send));
  for (int rank : made.senders) made.letters.push_back({rank, from, bytes_of(count, type)});
  made.combine = [to = inside(receive), type, op](const std::vector<std::string>& addends) {
    reduce(addends, to, type, op);
  };
  return made;
}

Operation all_gather(int ranks, const void* send, void* receive, size_t count, NcclType type) {
  Operation made{described("ncclAllGather", count, type), {}, everyone(ranks), {}};
  const auto* const from = static_cast<const char*>(inside(send));
  for (int rank : made.senders) made.letters.push_back({rank, from, bytes_of(count, type)});
  made.combine = [to = static_cast<char*>(inside(receive))](const std::vector<std::string>& parts) {
    size_t first = 0;
    for (const std::string& part : parts) {
      std::memcpy(to + first, part.data(), part.size());
      first += part.size();
    }
  };
  return made;
}

Operation reduce_scatter(int ranks, const void* send, void* receive, size_t count, NcclType type,
                         NcclOp op) {
  Operation made{described("ncclReduceScatter", count, type, op), {}, everyone(ranks), {}};
  const auto* const from = static_cast<const char*>(inside(send));
  const size_t bytes = bytes_of(count, type);
  for (int rank : made.senders) made.letters.push_back({rank, from + size_t(rank) * bytes, bytes});
  made.combine = [to = inside(receive), type, op](const std::vector<std::string>& addends) {
    reduce(addends, to, type, op);
  };
  return made;
}

Operation send(const void* buffer, size_t count, NcclType type, int peer) {
  const auto* const from = static_cast<const char*>(inside(buffer));
  return {described("a message", count, type), {{peer, from, bytes_of(count, type)}}, {}, {}};
}

Operation recv(void* buffer, size_t count, NcclType type, int peer) {
  Operation made{described("a message", count, type), {}, {peer}, {}};
  made.combine = [to = inside(buffer)](const std::vector<std::string>& parts) {
    std::memcpy(to, parts[0].data(), parts[0].size());
  };
  return made;
}

}  // namespace tessera::test::fake_nccl
