// The compiled module of the Python package: Tessera's models for Python. Layers are written in
// C++.
#include <nanobind/nanobind.h>

#include <tessera/framework/nn/layer.hpp>

#include "apps/python/errors.hpp"
#include "apps/python/generation.hpp"
#include "apps/python/layouts.hpp"
#include "apps/python/model.hpp"

NB_MODULE(_tessera, module) {
  namespace nb = nanobind;
  // A model may live as long as the process, which is no leak.
  nb::set_leak_warnings(false);
  tessera::python::translate_errors();
  tessera::python::bind_meshes(module);
  tessera::python::bind_models(module);
  tessera::python::bind_generation(module);
  module.def("set_random_seed", &tessera::set_random_seed, nb::arg("seed"),
             "Sets the seed of weights, of shuffling and of random layers "
             "(keras.utils.set_random_seed).");
}
