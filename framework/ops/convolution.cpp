#include <tessera/framework/ops/convolution.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera {

std::string Convolution::image_term(const char* channel) const {
  std::string text = "n";
  for (int64_t i = 0; i < spatial(); ++i) text += str(" ~s", i);
  return text + (grouped ? " g " : " ") + channel;
}

std::string Convolution::kernel_term() const {
  std::string text;
  for (int64_t i = 0; i < spatial(); ++i) text += ". ";
  return text + (grouped ? "c g o" : "c o");
}

at::Tensor Convolution::filters(const at::Tensor& kernel) const {
  const int64_t c = spatial();
  std::vector<int64_t> order;
  if (grouped) order.push_back(c + 1);
  order.insert(order.end(), {c + channel_axes(), c});
  for (int64_t i = 0; i < c; ++i) order.push_back(i);
  const at::Tensor turned = kernel.permute(order);
  return grouped ? turned.flatten(0, 1) : turned;
}

at::Tensor Convolution::kernel_of(const at::Tensor& filters, int64_t groups) const {
  const at::Tensor turned = grouped ? filters.unflatten(0, {groups, -1}) : filters;
  const int64_t c = channel_axes();
  std::vector<int64_t> order;
  for (int64_t i = 0; i < spatial(); ++i) order.push_back(c + 1 + i);
  order.push_back(c);
  for (int64_t i = 0; i < c; ++i) order.push_back(i);
  return turned.permute(order).contiguous();
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
  std::vector<std::pair<int64_t, int64_t>> cells;
  for (int64_t i = 0; i < spatial(); ++i) {
    const Interval have = in.range(0, i + 1), reads = windows[i].reads(out[size_t(i)]);
    cells.push_back(padding_cells(have, reads));
    const auto [before, after] = cells.back();
    if (before != after || have.empty()) continue;
    local.padding[size_t(i)] = before;
    cells.back() = {0, 0};
  }
  return fit_axes(channels_first(in[0], spatial()), 2, cells);
}

}  // namespace tessera
