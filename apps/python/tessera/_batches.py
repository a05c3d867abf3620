"""The batches of Python iterables, for the compiled module."""
import collections.abc


class Batches:
    """The batches of an iterable, pass by pass.

    A pass of what can be iterated over again, such as a list or a torch DataLoader, begins anew. A
    generator is read once: each pass goes on where the one before ended. Within a pass, reading goes
    on where it stopped, so that `steps_per_epoch` skips and repeats nothing.
    """

    def __init__(self, source):
        self._source = source
        self._is_once = isinstance(source, collections.abc.Iterator)
        self._iterator = None  # of the pass that is being read
        self._pass = 0
        self._taken = 0  # batches of this pass that were taken
        self._first = None  # the first batch, read ahead for its shapes
        self._ended = False  # whether the pass has ended

    def steps(self):
        """Returns the number of batches in a pass; None if it is unknown."""
        try:
            return len(self._source)
        except TypeError:
            return None

    def first(self):
        """Returns the first batch, which the first pass then begins with."""
        if self._first is None:
            self._begin()
            batch = self._next()
            if batch is None:
                raise ValueError("[data] there is at least one batch. Received: an iterable without "
                                 "any. To fix: pass an iterable that yields batches.")
            self._taken = 0
            self._first = [batch]
        return self._first[0]

    def start(self, number, step):
        """Begins to read pass `number` with batch `step`."""
        goes_on = number == self._pass and step == self._taken and self._iterator is not None
        if not goes_on:
            if not (number == self._pass and 0 < self._taken < step and self._iterator):
                if self._is_once and 0 < step:
                    raise ValueError(f"[data] a generator is read once, from its first batch on. "
                                     f"Received: a pass that begins with batch {step}. To fix: pass "
                                     f"an object that can be iterated over again.")
                self._pass = number
                self._begin()
            while self._taken < step and self.next() is not None:
                pass

    def next(self):
        """Returns the next batch of the pass, None after the last."""
        if self._taken == 0 and self._first:
            self._taken = 1
            return self._first.pop()
        return self._next()

    def _begin(self):
        if self._is_once and self._ended:
            raise ValueError("[data] a generator is read once. Received: another pass over one that "
                             "has ended. To fix: pass steps_per_epoch, or an object that can be "
                             "iterated over again.")
        self._taken = 0
        if not self._is_once:
            self._ended = False
            self._first = None
            begin = getattr(self._source, "on_epoch_begin", None)
            if begin:
                begin()
        self._iterator = iter(self._source)

    def _next(self):
        try:
            batch = next(self._iterator)
        except StopIteration:
            self._end()
            return None
        self._taken += 1
        # Nobody asks for a batch beyond a known number.
        if self._taken == self.steps():
            self._end()
        return batch

    def _end(self):
        if self._ended:
            return
        self._ended = True
        end = getattr(self._source, "on_epoch_end", None)
        if end:
            end()


def parts(batch):
    """Returns (x, y, sample_weight) of a batch, None for what it lacks."""
    if isinstance(batch, (tuple, list)):
        if 1 <= len(batch) <= 3:
            return (*batch, None, None)[:3]
        raise ValueError(f"[data] a batch is x, (x, y) or (x, y, sample_weight). Received: "
                         f"{len(batch)} values. To fix: put several inputs into a tuple of their own.")
    return batch, None, None
