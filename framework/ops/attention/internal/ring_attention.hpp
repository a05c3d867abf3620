#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/ops/attention/internal/attention_terms.hpp>

namespace tessera::detail {

/// Whether keys and values are as long as the query and cut over the same dimensions.
bool is_ring(const DTensor& query, const DTensor& key, const DTensor& value);

/// Attention whose keys and values go round between the devices that hold them: query, key, value,
/// masks and, last, lengths. Gives the result and the logarithms of sums.
std::pair<DTensor, DTensor> ring_attention(const AttentionTerms& terms, bool zigzag,
                                           const std::vector<DTensor>& in);

}  // namespace tessera::detail
