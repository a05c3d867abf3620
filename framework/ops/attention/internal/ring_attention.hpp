#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/ops/attention/internal/attention_terms.hpp>

namespace tessera::detail {

/// Returns whether keys and values are as long as the query and sharded over the same dimensions.
bool is_ring(const DTensor& query, const DTensor& key, const DTensor& value);

/// Computes attention whose keys and values rotate between the devices that hold them. `in`: query,
/// key, value, masks and, last, lengths. Returns output and log-sum-exp.
std::pair<DTensor, DTensor> ring_attention(const AttentionTerms& terms, bool zigzag,
                                           const std::vector<DTensor>& in);

}  // namespace tessera::detail
