#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// Rethrows the caught error of a step on batch `batch` of the loader. If it names a row of the
/// batch, with a label out of range or numbers that are not finite, it then also names that row of
/// `data` ("the data"), unless these are a stream. Call it in a catch clause.
[[noreturn]] void rethrow_with_row(const BatchLoader& loader, int64_t batch, const Mesh& mesh,
                                   const std::string& data);

}  // namespace tessera::detail
