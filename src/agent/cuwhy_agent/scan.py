"""
The walk over the data that feeds a failing operation.

First it is proved which part of which batch the operand is: the samples of the last batches are made
again and each part of them is compared with the operand's values. Then each sample of the data set is
held against the operand's own rule. What cannot be followed is said, never guessed.
"""
import random
import sys
import time

import torch

from cuwhy_agent import look, wire

FOUND_MAX = 100        # bad samples told of, over the whole data set
VALUES_MAX = 16
DEPTH_MAX = 6          # of the structure of a sample
PROGRESS_SECONDS = 0.2
SHIFT_VALUES_MIN = 3   # distinct values that make a constant shift a proof


class saved_randomness:
    """The generators are left as they were found."""

    def __enter__(self):
        numpy = sys.modules.get("numpy")
        self.states = (random.getstate(), torch.get_rng_state(), numpy and numpy.random.get_state())

    def __exit__(self, *_):
        own, torchs, numpys = self.states
        random.setstate(own)
        torch.set_rng_state(torchs)
        if numpys:
            sys.modules["numpy"].random.set_state(numpys)


def leaves(sample, path="", depth=0):
    """(path, tensor) for each part of a sample that is a number or an array of them."""
    if isinstance(sample, torch.Tensor):
        if sample.dtype in look.INTEGERS + look.REALS and sample.layout is torch.strided:
            yield path, sample.detach().cpu()
    elif isinstance(sample, (bool, complex, str, bytes)) or sample is None or depth == DEPTH_MAX:
        return
    elif isinstance(sample, (int, float)):
        yield path, torch.tensor(sample)
    elif type(sample).__module__ == "numpy":
        if getattr(sample, "dtype", None) is not None and sample.dtype.kind in "iuf":
            yield path, torch.as_tensor(sample)
    elif isinstance(sample, dict):
        for key, value in sample.items():
            yield from leaves(value, "%s[%r]" % (path, key), depth + 1)
    elif isinstance(sample, (list, tuple)):
        if sample and all(type(one) in (int, float) for one in sample):
            yield path, torch.tensor(sample)
            return
        names = getattr(sample, "_fields", None)
        for at, value in enumerate(sample):
            part = ".%s" % names[at] if names else "[%d]" % at
            yield from leaves(value, path + part, depth + 1)
    elif isinstance(getattr(sample, "__dict__", None), dict):
        for key, value in vars(sample).items():
            yield from leaves(value, "%s.%s" % (path, key), depth + 1)


def make_sample(dataset, collate, index):
    """One sample as the loader would hand it out; as the data set has it where it cannot be collated."""
    sample = dataset[index]
    if collate is not None:
        try:
            return collate([sample])
        except Exception:
            pass
    return sample


class Route:
    """How a part of the samples became the operand."""

    def __init__(self, path, cut=None, shift=0, how=""):
        self.path, self.cut, self.shift, self.how = path, cut, shift, how

    def values(self, leaf, dtype):
        """The values of one sample's part, as the operand had them."""
        if self.cut is not None:
            leaf = leaf[..., self.cut]
        return leaf.reshape(-1).to(dtype) + self.shift if self.shift else leaf.reshape(-1).to(dtype)


CUTS = ((None, ""), (slice(1, None), "[..., 1:]"), (slice(None, -1), "[..., :-1]"))


def routes(parts, path, operand):
    """The ways in which one part of a batch's samples is the operand."""
    for cut, words in CUTS:
        if cut is not None and any(part.dim() == 0 for part in parts):
            continue
        plain = Route(path, cut)
        values = torch.cat([plain.values(part, operand.dtype) for part in parts])
        if values.numel() != operand.numel() or values.numel() == 0:
            continue
        if same(values, operand):
            yield Route(path, cut, how="equal to the sample's %s" % ((path or "value") + words))
        elif operand.dtype in look.INTEGERS:
            shifts = (operand.long() - values.long()).unique()
            if shifts.numel() == 1 and values.unique().numel() >= SHIFT_VALUES_MIN:
                shift = int(shifts)
                yield Route(path, cut, shift, "the sample's %s %+d" % ((path or "value") + words, shift))


def same(a, b):
    return bool(torch.equal(a, b) or (a.dtype in look.REALS and torch.equal(a.isnan(), b.isnan()) and
                                      torch.equal(a[~a.isnan()], b[~b.isnan()])))


def follow(batch, operand):
    """The routes from a batch's samples to the operand; raises what the data set raises."""
    dataset, collate = batch.source.parts()
    by_path = {}
    for index in batch.indices:
        for path, leaf in leaves(make_sample(dataset, collate, index)):
            by_path.setdefault(path, []).append(leaf)
    found = []
    for path, parts in by_path.items():
        if len(parts) == len(batch.indices):
            found.extend(routes(parts, path, operand))
    return found


class Walk:
    """Holds samples against the rule of a fault, by one route."""

    def __init__(self, route, fault, dtype):
        self.route, self.fault, self.dtype = route, fault, dtype
        self.found, self.values, self.total = [], {}, 0

    def bad(self, sample):
        for path, leaf in leaves(sample):
            if path == self.route.path:
                values = self.route.values(leaf, self.dtype)
                if values.dtype in look.INTEGERS:
                    values = values.to(torch.int64)
                return values[look.outside(values, self.fault.low, self.fault.high, self.fault.ignore)]
        return ()

    def take(self, index, sample):
        bad = self.bad(sample)
        if len(bad) == 0:
            return
        self.total += 1
        if len(self.found) < FOUND_MAX:
            self.found.append(index)
        if len(self.values) < VALUES_MAX:
            self.values.update(dict.fromkeys(map(look.number, bad.tolist())))


class Progress:
    def __init__(self, total, limit):
        self.total, self.end, self.next = total, time.monotonic() + limit, 0.0

    def late(self, done):
        now = time.monotonic()
        if now >= self.next:
            self.next = now + PROGRESS_SECONDS
            wire.say("progress", done=done, total=self.total)
        return now >= self.end


def scan(finding, limit):
    """The fields of the `scan` event for a finding (None: there is none)."""
    with look.hushed(), saved_randomness(), torch.no_grad():
        if finding is None or finding.operand is None:
            return {"problem": "no operand was seen whose values could be followed to a sample"}
        if not finding.batches:
            return {"problem": "no DataLoader had handed out a batch"}
        return search(finding, Progress(None, limit))


def search(finding, progress):
    problem = "the operand's values are not those of any part of the samples that were handed out last"
    for batch, (loader, dataset) in finding.batches:
        about = {"loader": loader, "dataset": dataset_name(batch, dataset)}
        if batch.source.iterable:
            return dict(about, problem="an iterable data set has no indices to look samples up by")
        if batch.indices is None or batch.source.parts() is None:
            continue
        if progress.late(0):
            problem = "the time limit came before the operand was found in a batch"
            break
        try:
            found = follow(batch, finding.operand)
        except Exception as error:
            problem = "the samples of a batch could not be made again: %s: %s" % (type(error).__name__, error)
            continue
        if found:
            about.update(epoch=batch.source.epoch, batch=batch.number)
            return dict(about, **walk(batch, found, finding, progress))
    loader, dataset = finding.batches[0][1]
    return {"loader": loader, "dataset": dataset_name(finding.batches[0][0], dataset), "problem": problem}


def dataset_name(batch, name):
    parts = batch.source.parts()
    return name or (type(parts[0]).__name__ if parts else None)


def walk(batch, found, finding, progress):
    """Each sample against the rule, by every route that was proved: they must agree."""
    dataset, collate = batch.source.parts()
    walks = [Walk(route, finding.fault, finding.operand.dtype) for route in found]
    told = {"field": found[0].path or None, "how": found[0].how, "samples": bad_of_batch(batch, walks[0])}
    size = length(dataset)
    if size is None:
        return dict(told, problem="the data set has no length, so only the failing batch was looked at")
    progress.total = size
    scanned = errors = 0
    for index in range(size):
        if progress.late(index):
            break
        try:
            sample = make_sample(dataset, collate, index)
            for one in walks:
                one.take(index, sample)
        except Exception:
            errors += 1
        scanned += 1
    first = walks[0]
    told.update(scanned=scanned, size=size, complete=scanned == size, errors=errors)
    if any(one.found != first.found or one.total != first.total for one in walks):
        return dict(told, problem="several parts of the samples hold these values and differ elsewhere: %s" %
                    ", ".join(one.route.path or "value" for one in walks))
    values = [float(one) if isinstance(one, str) else one for one in list(first.values)[:VALUES_MAX]]
    return dict(told, found=first.found, values=values, total_bad_samples=first.total)


def bad_of_batch(batch, first):
    dataset, collate = batch.source.parts()
    bad = []
    for index in batch.indices:
        if type(index) is int and len(first.bad(make_sample(dataset, collate, index))):
            bad.append(index)
    return bad


def length(dataset):
    try:
        return len(dataset)
    except Exception:
        return None
