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
MASKED = (-100, -1, 0, 255)  # values that stand for "no label" and are masked out
SHIFT_VALUES_MIN = 3   # distinct values that make a constant shift or another order a proof


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

    def __init__(self, path, cut=None, shift=0, dropped=None, how=""):
        self.path, self.cut, self.shift, self.dropped, self.how = path, cut, shift, dropped, how

    def values(self, leaf, dtype):
        """The values of one sample's part, as the operand had them."""
        if self.cut is not None:
            leaf = leaf[..., self.cut]
        values = leaf.reshape(-1).to(dtype)
        if self.dropped is not None:
            values = values[values != self.dropped]
        return values + self.shift if self.shift else values


CUTS = ((None, ""), (slice(1, None), "[..., 1:]"), (slice(None, -1), "[..., :-1]"))


class PlainCount(Exception):
    """The operand counts (0, 1, 2...): that a part of the samples holds such values, too, proves nothing."""


def routes(parts, path, operand, indices):
    """The ways in which one part of a batch's samples is the operand."""
    for cut, words in CUTS:
        if cut is not None and any(part.dim() == 0 for part in parts):
            continue
        plain = Route(path, cut)
        values = torch.cat([plain.values(part, operand.dtype) for part in parts])
        named = "the sample's %s" % ((path or "value") + words)
        if values.numel() < operand.numel() or operand.numel() == 0:
            continue
        if values.numel() > operand.numel():
            yield from without_one_value(values, operand, path, cut, named)
        elif same(values, operand):
            if operand.tolist() == list(range(len(indices))) == indices:
                raise PlainCount()
            yield Route(path, cut, how="equal to " + named)
        elif operand.dtype in look.INTEGERS and operand.unique().numel() >= SHIFT_VALUES_MIN:
            yield from shifted_or_permuted(values, operand, path, cut, named, len(parts))


def shifted_or_permuted(values, operand, path, cut, named, samples):
    shifts = (operand.long() - values.long()).unique()
    permuted = values.numel() == samples and same(values.sort()[0], operand.sort()[0])
    if shifts.numel() != 1 and not permuted:
        return
    if is_count(operand.sort()[0]):
        raise PlainCount()
    if permuted:
        yield Route(path, cut, how="%s, in another order" % named)
    else:
        yield Route(path, cut, int(shifts), how="%s %+d" % (named, int(shifts)))


def without_one_value(values, operand, path, cut, named):
    """part[part != value], the usual mask."""
    for value in MASKED if operand.dtype in look.INTEGERS else ():
        if (values == value).any() and same(values[values != value], operand):
            if is_count(operand):
                raise PlainCount()
            yield Route(path, cut, dropped=value, how="%s where it is not %d" % (named, value))


def is_count(values):
    """An arithmetic progression of integers."""
    steps = values.long().diff().unique() if values.dtype in look.INTEGERS else ()
    return len(steps) == 1 and int(steps) != 0 and values.numel() >= SHIFT_VALUES_MIN


def same(a, b):
    return bool(torch.equal(a, b) or (a.dtype in look.REALS and torch.equal(a.isnan(), b.isnan()) and
                                      torch.equal(a[~a.isnan()], b[~b.isnan()])))


def follow(batch, parts_of_source, operand):
    """The routes from a batch's samples to the operand; raises what the data set raises."""
    dataset, collate = parts_of_source
    by_path = {}
    for index in batch.indices:
        for path, leaf in leaves(make_sample(dataset, collate, index)):
            by_path.setdefault(path, []).append(leaf)
    found, refused = [], None
    for path, parts in by_path.items():
        try:
            if len(parts) == len(batch.indices):
                found.extend(routes(parts, path, operand, batch.indices))
        except PlainCount as error:
            refused = error
    if refused and not found:
        raise refused
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
        if finding is None or not finding.batches:
            return {"problem": "no DataLoader had handed out a batch" if finding else
                    "no operand was seen whose values could be followed to a sample"}
        if finding.computed:
            return dict(newest(finding), problem="the values were computed by the model")
        if finding.operand is None:
            return dict(newest(finding), problem="the operand has no values to follow to a sample")
        return search(finding, Progress(None, limit))


def newest(finding):
    """The batch that was handed out last, which is the one the program was at."""
    batch, (loader, dataset) = finding.batches[0]
    return {"loader": loader, "dataset": dataset_name(finding, batch, dataset), "epoch": batch.source.epoch,
            "batch": batch.number}


def search(finding, progress):
    problem = "the data set of the batches that were handed out last is gone"
    for batch, (loader, dataset) in finding.batches:
        about = {"loader": loader, "dataset": dataset_name(finding, batch, dataset)}
        if batch.source.iterable:
            return dict(newest(finding),
                        problem="an iterable data set has no indices to look samples up by")
        if batch.indices is None or finding.parts[batch.source] is None:
            continue
        if progress.late(0):
            problem = "the time limit came before the operand was found in a batch"
            break
        try:
            found = follow(batch, finding.parts[batch.source], finding.operand)
            problem = "the values could not be traced back to the data set (they were changed on the way)"
        except PlainCount:
            problem = "the values are a plain count, which any numbered field matches"
            break
        except Exception as error:
            problem = "the samples of a batch could not be made again: %s: %s" % (type(error).__name__, error)
            continue
        if found:
            about.update(epoch=batch.source.epoch, batch=batch.number)
            return dict(about, **walk(batch, found, finding, progress))
    return dict(newest(finding), problem=problem)


def dataset_name(finding, batch, name):
    parts = finding.parts[batch.source]
    return name or (type(parts[0]).__name__ if parts else None)


def walk(batch, found, finding, progress):
    """Each sample against the rule, by every route that was proved: they must agree."""
    dataset, collate = finding.parts[batch.source]
    walks = [Walk(route, finding.fault, finding.operand.dtype) for route in found]
    told = {"field": found[0].path or None, "how": found[0].how,
            "samples": bad_of_batch(batch, dataset, collate, walks[0])}
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
    told.update(scanned=scanned, size=size, complete=scanned == size and not errors, errors=errors)
    if any(one.found != first.found or one.total != first.total for one in walks):
        return dict(told, problem="several parts of the samples hold these values and differ elsewhere: %s" %
                    ", ".join(one.route.path or "value" for one in walks))
    values = [float(one) if isinstance(one, str) else one for one in list(first.values)[:VALUES_MAX]]
    return dict(told, found=first.found, values=values, total_bad_samples=first.total)


def bad_of_batch(batch, dataset, collate, first):
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
