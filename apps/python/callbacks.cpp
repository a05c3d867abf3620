#include "apps/python/callbacks.hpp"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

namespace tessera::python {

using namespace detail;

namespace {

/// Calls the hooks that a Python object defines; the others do not wait for the GIL.
class PythonCallback : public Callback {
 public:
  PythonCallback(nb::object callback, nb::object model, std::set<std::string> hooks)
      : callback_(std::move(callback)), model_(std::move(model)), hooks_(std::move(hooks)) {}

  void on_train_begin() override {
    begin_run();
    call("on_train_begin", Logs());
  }
  void on_train_end(const Logs& logs) override {
    call("on_train_end", logs);
    runs_ = false;
  }
  void on_epoch_begin(int64_t epoch) override { call("on_epoch_begin", epoch, Logs()); }
  void on_epoch_end(int64_t epoch, Logs& logs) override {
    if (!defines("on_epoch_end")) return;
    const nb::gil_scoped_acquire gil;
    const nb::dict values = dict_of(logs);
    call("on_epoch_end", epoch, values);
    for (const auto& [name, value] : values) {
      set_value(logs, nb::cast<std::string>(nb::str(name)), nb::cast<double>(nb::float_(value)));
    }
  }
  void on_train_batch_begin(int64_t batch) override { call("on_train_batch_begin", batch, Logs()); }
  void on_test_begin() override {
    if (!runs_) tell_run();
    call("on_test_begin", Logs());
  }
  void on_test_end(const Logs& logs) override { call("on_test_end", logs); }
  void on_test_batch_begin(int64_t batch) override { call("on_test_batch_begin", batch, Logs()); }
  void on_predict_begin() override {
    tell_run();
    call("on_predict_begin", Logs());
  }
  void on_predict_end() override { call("on_predict_end", Logs()); }
  void on_predict_batch_begin(int64_t batch) override {
    call("on_predict_batch_begin", batch, Logs());
  }
  void on_predict_batch_end(int64_t batch) override { call("on_predict_batch_end", batch, Logs()); }
  void on_interrupt() override { call("on_interrupt"); }
  std::string class_name() const override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<std::string>(callback_.type().attr("__name__"));
  }

 protected:
  template <class... Arguments>
  void call(const char* hook, const Arguments&... arguments) const {
    if (!defines(hook)) return;
    const nb::gil_scoped_acquire gil;
    try {
      callback_.attr(hook)(argument(arguments)...);
    } catch (const nb::python_error& error) {
      // A signal that ended a pass inside the callback ends this one, too.
      const int signal = stop_signal();
      if (signal == 0 || !error.matches(nb::module_::import_("tessera").attr("Interrupted"))) throw;
      throw Interrupted(signal, "fit", signal_name(signal), "");
    }
  }

 private:
  static nb::object argument(int64_t number) { return nb::int_(number); }
  static nb::object argument(const Logs& logs) { return dict_of(logs); }
  static nb::object argument(const nb::dict& logs) { return logs; }

  bool defines(const char* hook) const { return hooks_.contains(hook); }
  void begin_run() {
    runs_ = true;
    tell_run();
  }
  /// Tells the Python object about the run, as Keras does.
  void tell_run() const {
    const nb::gil_scoped_acquire gil;
    nb::dict values;
    values["epochs"] = params().epochs;
    values["steps"] = params().steps ? nb::object(nb::int_(*params().steps)) : nb::none();
    values["verbose"] = params().verbose;
    if (nb::hasattr(callback_, "set_params")) callback_.attr("set_params")(values);
    if (nb::hasattr(callback_, "set_model")) callback_.attr("set_model")(model_);
  }

  nb::object callback_, model_;
  std::set<std::string> hooks_;
  bool runs_ = false;  ///< whether fit runs, whose validations are no runs of their own
};

/// A callback for which the metrics are read after every batch of fit.
template <class Base>
class WithTrainBatchEnd : public Base {
 public:
  using Base::Base;
  void on_train_batch_end(int64_t batch, const Logs& logs) override {
    this->call("on_train_batch_end", batch, logs);
  }
};

/// A callback for which the metrics are read after every batch of evaluate and validations.
template <class Base>
class WithTestBatchEnd : public Base {
 public:
  using Base::Base;
  void on_test_batch_end(int64_t batch, const Logs& logs) override {
    this->call("on_test_batch_end", batch, logs);
  }
};

CallbackHandle callback_of(nb::handle callback, nb::handle model) {
  const nb::object listed =
      nb::module_::import_("tessera.callbacks").attr("defined_hooks")(callback);
  std::set<std::string> hooks;
  for (const nb::handle hook : listed) hooks.insert(nb::cast<std::string>(hook));
  const bool train = hooks.contains("on_train_batch_end");
  const bool test = hooks.contains("on_test_batch_end");
  const auto made = [&]<class Made>(std::type_identity<Made>) -> CallbackHandle {
    return std::make_shared<Made>(nb::borrow(callback), nb::borrow(model), std::move(hooks));
  };
  using Both = WithTrainBatchEnd<WithTestBatchEnd<PythonCallback>>;
  if (train && test) return made(std::type_identity<Both>());
  if (train) return made(std::type_identity<WithTrainBatchEnd<PythonCallback>>());
  if (test) return made(std::type_identity<WithTestBatchEnd<PythonCallback>>());
  return made(std::type_identity<PythonCallback>());
}

}  // namespace

nb::dict dict_of(const Logs& logs) {
  nb::dict values;
  for (const auto& [name, value] : logs) values[name.c_str()] = value;
  return values;
}

std::vector<CallbackHandle> callbacks_of(nb::handle callbacks, nb::handle model) {
  if (callbacks.is_none()) return {};
  if (!nb::isinstance<nb::list>(callbacks) && !nb::isinstance<nb::tuple>(callbacks)) {
    return {callback_of(callbacks, model)};
  }
  std::vector<CallbackHandle> made;
  for (const nb::handle callback : callbacks) made.push_back(callback_of(callback, model));
  return made;
}

}  // namespace tessera::python
