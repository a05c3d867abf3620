#include "apps/python/interruptible.hpp"

#include <csignal>

namespace tessera::python {

using namespace detail;

namespace {

bool is_active = false;  // changed on Python's main thread alone

bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

bool ignores_interrupts() {
  struct sigaction now = {};
  sigaction(SIGINT, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

Interruptible::Interruptible() {
  if (!is_main_thread() || is_active || ignores_interrupts()) return;
  clear_stop_signal();
  signals_.emplace();
  is_active = true;
}

Interruptible::~Interruptible() { deliver(); }

void Interruptible::end() {
  deliver();
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void Interruptible::deliver() {
  if (!signals_) return;
  signals_.reset();
  is_active = false;
  const int signal = stop_signal();
  clear_stop_signal();
  if (signal != 0) ::raise(signal);
}

}  // namespace tessera::python
