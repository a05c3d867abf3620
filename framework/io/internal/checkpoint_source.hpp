#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/io/format/checkpoint_reader.hpp>

namespace tessera::detail {

/// The elements [begin, end) of a tensor that will be read.
struct CheckpointRead {
  std::string tensor;
  Shape begin, end;
};

/// The files or memory from which training state is restored.
class CheckpointSource {
 public:
  virtual ~CheckpointSource() = default;
  /// Returns the name in errors.
  virtual const std::string& name() const = 0;
  virtual const std::vector<CheckpointTensor>& tensors() const = 0;
  /// Returns the tensor called `name`, or nullptr.
  virtual const CheckpointTensor* find(std::string_view name) const = 0;
  virtual const Json& state() const = 0;
  virtual std::vector<double> step_losses() const = 0;
  /// Announces all that this process will read. Collective.
  virtual void prepare(const std::vector<CheckpointRead>& /*reads*/) {}
  /// Does what CheckpointReader::read() does.
  virtual void read(std::string_view name, const Shape& begin, const Shape& end,
                    std::span<std::byte> out, CheckpointShare share) const = 0;
  virtual uint64_t bytes_read() const { return 0; }
};

}  // namespace tessera::detail
