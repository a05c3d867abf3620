#include "apps/bench/networks.hpp"

namespace tessera::bench {

namespace {

constexpr int64_t classes = 10;

SymbolicTensor normalized(const SymbolicTensor& x) { return BatchNormalization()(x); }

SymbolicTensor convolution(const SymbolicTensor& x, int64_t filters, int64_t window,
                           int64_t stride = 1) {
  const SymbolicTensor in = stride > 1 && window > 1 ? ZeroPadding2D(window / 2)(x) : x;
  const char* const padding = stride > 1 ? "valid" : "same";
  return normalized(
      Conv2D(filters, window, {.strides = stride, .padding = padding, .use_bias = false})(in));
}

SymbolicTensor bottleneck(const SymbolicTensor& x, int64_t filters, int64_t stride, bool first) {
  const auto relu = [](const SymbolicTensor& y) { return ReLU()(y); };
  const SymbolicTensor inner = relu(convolution(x, filters, 1, stride));
  const SymbolicTensor y = convolution(relu(convolution(inner, filters, 3)), 4 * filters, 1);
  const SymbolicTensor shortcut = first ? convolution(x, 4 * filters, 1, stride) : x;
  return relu(Add()({shortcut, y}));
}

SymbolicTensor inverted_residual(const SymbolicTensor& x, int64_t in, int64_t out, int64_t factor,
                                 int64_t stride) {
  const auto relu6 = [](const SymbolicTensor& y) { return ReLU({.max_value = 6})(y); };
  SymbolicTensor y = factor > 1 ? relu6(convolution(x, factor * in, 1)) : x;
  if (stride > 1) y = ZeroPadding2D(1)(y);
  y = relu6(normalized(DepthwiseConv2D(
      3, {.strides = stride, .padding = stride > 1 ? "valid" : "same", .use_bias = false})(y)));
  y = convolution(y, out, 1);
  return stride == 1 && in == out ? Add()({x, y}) : y;
}

}  // namespace

Functional resnet50(int64_t pixels) {
  const Input image({pixels, pixels, 3});
  SymbolicTensor x = ReLU()(convolution(image, 64, 7, 2));
  x = MaxPooling2D(3, {.strides = 2})(ZeroPadding2D(1)(x));
  struct Stack {
    int64_t filters, blocks, stride;
  };
  for (const Stack& stack : {Stack{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}}) {
    for (int64_t i = 0; i < stack.blocks; ++i) {
      x = bottleneck(x, stack.filters, i == 0 ? stack.stride : 1, i == 0);
    }
  }
  return Functional({image}, {Dense(classes)(GlobalAveragePooling2D()(x))});
}

Functional mobilenet_v2(int64_t pixels) {
  const Input image({pixels, pixels, 3});
  SymbolicTensor x = ReLU({.max_value = 6})(convolution(image, 32, 3, 2));
  struct Stack {
    int64_t factor, filters, blocks, stride;
  };
  int64_t in = 32;
  for (const Stack& s : {Stack{1, 16, 1, 1},
                         {6, 24, 2, 2},
                         {6, 32, 3, 2},
                         {6, 64, 4, 2},
                         {6, 96, 3, 1},
                         {6, 160, 3, 2},
                         {6, 320, 1, 1}}) {
    for (int64_t i = 0; i < s.blocks; ++i) {
      x = inverted_residual(x, in, s.filters, s.factor, i == 0 ? s.stride : 1);
      in = s.filters;
    }
  }
  x = ReLU({.max_value = 6})(convolution(x, 1280, 1));
  return Functional({image}, {Dense(classes)(GlobalAveragePooling2D()(x))});
}

}  // namespace tessera::bench
