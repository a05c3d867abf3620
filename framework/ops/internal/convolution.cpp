#include <tessera/framework/ops/internal/convolution.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>

namespace tessera::detail {

std::string Convolution::image_term(const char* channel) const {
  std::string text = "n";
  for (int64_t i = 0; i < spatial(); ++i) text += str(" ~s", i);
  return text + (grouped ? " g " : " ") + channel;
}

std::string Convolution::kernel_term(const char* channel) const {
  std::string text;
  for (int64_t i = 0; i < spatial(); ++i) text += ". ";
  return text + channel + (grouped ? " g o" : " o");
}

Shape Convolution::conv_shape(std::string_view op, const Specs& in) const {
  check_floating(op, in[0]);
  check_windows(op, windows, in[0], channel_axes());
  const Shape &x = in[0].shape, &kernel = in[1].shape;
  const size_t r = size_t(spatial());
  check_channels(op, x.back(), kernel[r], in);
  if (grouped) check_channels(op, x[r + 1], kernel[r + 1], in);
  Shape y = {x[0]};
  for (size_t i = 0; i < r; ++i) y.push_back(windows[int64_t(i)].outputs(x[i + 1]));
  if (grouped) y.push_back(x[r + 1]);
  y.push_back(kernel.back());
  return y;
}

at::Tensor Convolution::filters(const at::Tensor& kernel) const {
  const int64_t c = spatial();
  std::vector<int64_t> order;
  if (grouped) order.push_back(c + 1);
  order.insert(order.end(), {c + channel_axes(), c});
  for (int64_t i = 0; i < c; ++i) order.push_back(i);
  const at::Tensor turned = kernel.permute(order);
  const at::Tensor filters = grouped ? turned.flatten(0, 1) : turned;
  return filters.is_cpu() ? filters.movedim(1, -1).contiguous().movedim(-1, 1) : filters;
}

at::Tensor Convolution::kernel_of(const at::Tensor& filters, int64_t groups) const {
  const at::Tensor turned = grouped ? filters.unflatten(0, {groups, -1}) : filters;
  const int64_t c = channel_axes();
  std::vector<int64_t> order;
  for (int64_t i = 0; i < spatial(); ++i) order.push_back(c + 1 + i);
  order.push_back(c);
  for (int64_t i = 0; i < c; ++i) order.push_back(i);
  return turned.permute(order);
}

at::Tensor Convolution::image_of(const at::Tensor& y, int64_t groups) const {
  const at::Tensor last = channels_last(y);
  return grouped ? last.unflatten(-1, {groups, -1}) : last;
}

Convolution::Local Convolution::local() const {
  Local all;
  for (int64_t i = 0; i < spatial(); ++i) {
    all.stride.push_back(windows[i].stride);
    all.dilation.push_back(windows[i].dilation);
  }
  all.padding = all.output_padding = std::vector<int64_t>(size_t(spatial()), 0);
  return all;
}

at::Tensor Convolution::padded(const LocalArgs& in, const std::vector<Interval>& out,
                               Local& local) const {
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (int64_t i = 0; i < spatial(); ++i) {
    const Interval have = in.range(0, i + 1), reads = windows[i].reads(out[size_t(i)]);
    counts.push_back(padding_counts(have, reads));
    const auto [before, after] = counts.back();
    if (before != after || have.empty()) continue;
    local.padding[size_t(i)] = before;
    counts.back() = {0, 0};
  }
  return crop_or_pad(channels_first(in[0], spatial()), 2, counts);
}

at::Tensor like_kernel(const std::vector<int64_t>& sizes, const at::TensorOptions& options) {
  std::vector<int64_t> order = {0};
  for (size_t i = 2; i < sizes.size(); ++i) order.push_back(static_cast<int64_t>(i));
  order.push_back(1);
  return at::empty_permuted(sizes, order, options);
}

void check_channels(std::string_view op, int64_t a, int64_t b, const Specs& in) {
  if (a == b) return;
  throw ShapeError(std::string(op), "channels and groups of both operands are equal",
                   to_string(in[0].shape) + " and " + to_string(in[1].shape),
                   "build the kernel for this input");
}

}  // namespace tessera::detail
