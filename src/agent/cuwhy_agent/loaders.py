"""
Which samples each DataLoader has handed out, batch by batch.

The index lists are taken where the loader draws them; how many of them have been delivered is the
iterator's own count, in the order of drawing, so that workers and prefetching change nothing. No
batch is kept alive, and of the data sets only the one that was drawn from last.
"""
import collections
import weakref

import torch
from torch.utils.data import dataloader

from cuwhy_agent import frames, look

DRAWN_MAX = 512  # batches remembered, those that workers prefetch included
RECENT_MAX = 64  # batches that a scan tries

_ring = collections.deque(maxlen=DRAWN_MAX)
_epochs = {}     # id(loader) -> (weak reference, how often it was iterated)
_latest = None


class Source:
    """One iteration over a loader."""

    def __init__(self, iterator, loader, epoch):
        self.iterator, self.loader = weakref.ref(iterator), weakref.ref(loader)
        self.epoch = epoch
        self.ordered = getattr(loader, "in_order", True)
        self.iterable = isinstance(loader.dataset, torch.utils.data.IterableDataset)
        self.drawn = 0
        self.kept = None  # (dataset, collate_fn) while this is the source drawn from last

    def parts(self):
        """(dataset, collate_fn or None) if they are still there."""
        if self.kept:
            return self.kept
        iterator, loader = self.iterator(), self.loader()
        if iterator is not None:
            return iterator._dataset, iterator._collate_fn if iterator._auto_collation else None
        if loader is not None:
            return loader.dataset, loader.collate_fn if loader._auto_collation else None
        return None


    def delivered(self, number):
        """Whether the program has got a batch; once the iterator is gone, any that was drawn may be it."""
        iterator = self.iterator()
        return self.ordered and (iterator is None or number < iterator._num_yielded)


class Batch:
    def __init__(self, source, number, indices):
        self.source, self.number, self.indices = source, number, indices


def epoch_of(loader):
    """How often a loader was iterated before."""
    seen, count = _epochs.get(id(loader), (None, 0))
    if seen is None or seen() is not loader:
        key, count = id(loader), 0
        seen = weakref.ref(loader, lambda _: _epochs.pop(key, None))
    _epochs[id(loader)] = seen, count + 1
    return count


def before_init(args, kwargs):
    loader = args[1] if len(args) > 1 else kwargs["loader"]
    args[0]._cuwhy = Source(args[0], loader, epoch_of(loader))


def before_reset(args, kwargs):
    """Persistent workers: the same iterator serves another epoch."""
    first = args[2] if len(args) > 2 else (kwargs or {}).get("first_iter", False)
    if not first:
        before_init(args, kwargs)


def drew(iterator, indices):
    global _latest
    source = getattr(iterator, "_cuwhy", None)
    if source is None:
        return
    known = None if source.iterable else list(indices) if isinstance(indices, (list, tuple)) else [indices]
    _ring.append(Batch(source, source.drawn, known))
    source.drawn += 1
    if _latest is not source:
        if _latest is not None:
            _latest.kept = None
        _latest = source
        source.kept = iterator._dataset, iterator._collate_fn if iterator._auto_collation else None


def install():
    base, many = dataloader._BaseDataLoaderIter, dataloader._MultiProcessingDataLoaderIter
    next_index = base._next_index

    def _next_index(self):
        indices = next_index(self)
        drew(self, indices)
        return indices

    _next_index.__wrapped__ = next_index
    base._next_index = _next_index
    base.__init__ = look.method(base.__init__, before_init, None, -1)
    many._reset = look.method(many._reset, before_reset, None, -1)


def recent(stack):
    """The batches drawn last, newest first, with the names that their loaders have on this stack."""
    names = {}
    found = []
    users = [frame for frame, _ in frames.users(stack)]
    for batch in reversed(_ring):
        source = batch.source
        if not source.delivered(batch.number):
            continue
        if source not in names:
            loader, parts = source.loader(), source.parts()
            dataset = parts[0] if parts else None
            names[source] = (frames.name_of(loader, users) if loader is not None else None,
                             frames.variable_of(dataset, users) if dataset is not None else None)
        found.append((batch, names[source]))
        if len(found) == RECENT_MAX:
            break
    return found
