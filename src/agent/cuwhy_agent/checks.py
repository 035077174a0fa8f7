"""
What each operation asks of its index-like operands.

A check gets the arguments of a call that is about to run and returns the Fault it would run into, or
None. It is exact: an operand that may be in order is in order, and whatever a check does not
understand it leaves alone.
"""
import torch

from cuwhy_agent import look
from cuwhy_agent.look import PLAIN

LABEL_DTYPES = (torch.int64, torch.uint8)
MASK_DTYPES = (torch.bool, torch.uint8)


class Fault:
    """An operand that breaks its operation's rule. The fields are those of struct finding."""

    def __init__(self, cause, role, tensor, position, low=None, high=None, ignore=None, keyword=None,
                 expect=None, detail=None, measured=True, silent=False, weak=False, facts=None):
        self.cause, self.role, self.tensor = cause, role, tensor
        self.position = position            # of the argument in the user's call, in its function form
        self.keyword = keyword or role
        self.low, self.high, self.ignore = low, high, ignore
        self.expect, self.detail = expect, detail
        self.measured = measured            # bad elements are those outside low..high
        self.silent = silent
        self.weak = weak                    # a likely cause of trouble, not an error by itself
        self.facts = facts or {}


def arg(args, kwargs, position, *names):
    if len(args) > position:
        return args[position]
    if kwargs:
        for name in names:
            if name in kwargs:
                return kwargs[name]
    return None


def leaves(hook, tensor, low, high, ignore=None):
    """Does an element leave the range. Keeps count of what was looked at and what could not be."""
    bad = look.look(tensor, low, high, ignore)
    if bad is not None:
        hook.calls += 1
    elif type(tensor) in PLAIN and not look.is_cpu(tensor) and not tensor.is_meta:
        hook.unseen += 1
    return bad


def is_plain(*tensors):
    return all(type(one) in PLAIN for one in tensors)


def size(tensor, dim):
    """The length of a dimension; None when there is no such dimension."""
    shape = tensor.shape or (1,)
    return shape[dim] if type(dim) is int and -len(shape) <= dim < len(shape) else None


def along_dim(hook, args, kwargs, wraps=False):
    """gather, scatter, index_select, index_add...: 0 <= index < self.size(dim)."""
    self, dim = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "dim", "axis")
    index = arg(args, kwargs, 2, "index")
    length = size(self, dim) if type(self) in PLAIN else None
    if length is None or not leaves(hook, index, -length if wraps else 0, length - 1) or 0 in self.shape:
        return None  # of an empty tensor, not every operation looks at its index
    return Fault("index_range", "index", index, 2, -length if wraps else 0, length - 1,
                 expect=index_of(dim, length))


def index_of(dim, length):
    return "an index of dimension %d, which has %d elements" % (dim, length)


def along_dim_wrapping(hook, args, kwargs):
    """index_fill: negative indices count from the end (TensorAdvancedIndexing.cpp)."""
    return along_dim(hook, args, kwargs, wraps=True)


def over_all(hook, args, kwargs):
    """take and put_: an index of the flattened tensor, negative ones from the end."""
    self, index = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "index")
    length = self.numel() if type(self) in PLAIN else None
    if length is None or not leaves(hook, index, -length, length - 1):
        return None
    return Fault("index_range", "index", index, 1, -length, length - 1,
                 expect="an index of the flattened tensor, which has %d elements" % length)


def take_along_dim(hook, args, kwargs):
    """Newer versions of PyTorch wrap any index around, so a probe decides."""
    self, index = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "indices")
    dim = arg(args, kwargs, 2, "dim")
    if type(self) not in PLAIN:
        return None
    length = self.numel() if dim is None else size(self, dim)
    if length is None or not leaves(hook, index, 0, length - 1):
        return None
    if not raises(torch.take_along_dim, torch.zeros(1), torch.ones(1, dtype=torch.int64), 0):
        return None
    return Fault("index_range", "indices", index, 1, 0, length - 1)


def raises(function, *args):
    """What this version of PyTorch does with a small example of a fault, on the CPU."""
    try:
        function(*args)
    except Exception:
        return True
    return False


def subscript(hook, args, kwargs):
    """x[key] and x[key] = value: -n <= index < n for each index tensor, n the size of its dimension."""
    self, key = args[0], args[1]
    if type(self) not in PLAIN:
        return None
    if type(key) in PLAIN and key.dtype not in MASK_DTYPES:
        operands = ((0, key, 0),)
    else:
        operands = index_operands(self, key if type(key) is tuple else (key,))
    for position, index, dim in operands:
        length = size(self, dim) if self.dim() else None
        if length is None:
            return None
        if leaves(hook, index, -length, length - 1):
            if selects_nothing(self, key if type(key) is tuple else (key,), dim):
                return None
            return Fault("index_range", "index", index, position, -length, length - 1,
                         expect=index_of(dim, length))
    return None


def selects_nothing(self, items, dim):
    """Another part of the key selects no element at all: then no index is ever looked at."""
    at = 0
    for one in items:
        if one is Ellipsis:
            at += self.dim() - sum(map(index_width, items))
        elif isinstance(one, slice) and len(range(self.shape[at])[one]) == 0:
            return True
        elif is_array(one) and (is_mask(one) and not one.any() or 0 in one.shape):
            return True
        at += 0 if one is Ellipsis else index_width(one)
    return 0 in self.shape[:dim] + self.shape[dim + 1:]


def index_put(hook, args, kwargs):
    """The method form of x[i, j] = value; its indices come as a tuple, None for a whole dimension."""
    self, key = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "indices")
    if type(key) not in (tuple, list):
        return None
    key = tuple(slice(None) if one is None else one for one in key)
    fault = subscript(hook, (self, key), None)
    if fault:
        fault.role, fault.keyword, fault.position = "indices", "indices", 1
    return fault


def index_operands(self, items):
    """(position in the key, index tensor, dimension it indexes); nothing for a key not understood."""
    widths = [index_width(one) for one in items]
    if None in widths or sum(widths) > self.dim():
        return
    dim = 0
    for position, (one, width) in enumerate(zip(items, widths)):
        if one is Ellipsis:
            dim += self.dim() - sum(widths)
            continue
        index = as_index(one)
        if index is not None:
            yield position, index, dim
        dim += width


def index_width(one):
    """How many dimensions a part of a key consumes; None when it is none we know."""
    if one is None or one is Ellipsis or type(one) is bool:
        return 0
    if isinstance(one, (slice, int)):
        return 1
    if is_array(one):
        return one.ndim if is_mask(one) else 1
    if type(one) is list and all(type(value) is int for value in one):
        return 1
    return None


def is_array(one):
    return type(one) in PLAIN or type(one).__module__ == "numpy" and type(one).__name__ == "ndarray"


def is_mask(array):
    return str(array.dtype).rpartition(".")[2] in ("bool", "uint8")


def as_index(one):
    """A part of a key as the tensor of indices that it stands for; None for slices, masks and numbers."""
    if is_array(one):
        return None if is_mask(one) else one if type(one) in PLAIN else torch.from_numpy(one)
    return torch.tensor(one, dtype=torch.int64) if type(one) is list else None


def masked_scatter(hook, args, kwargs):
    """source must have an element for each True of the mask, as broadcast (IndexKernel.cu)."""
    self, mask = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "mask")
    source = arg(args, kwargs, 2, "source")
    if not is_plain(self, mask, source) or mask.dtype != torch.bool:
        return None
    if not look.is_cpu(mask):
        hook.unseen += 1
        return None
    hook.calls += 1
    if source.numel() >= self.numel() >= mask.numel():
        return None
    wanted = int(torch.broadcast_tensors(mask, self)[0].sum())
    if wanted <= source.numel():
        return None
    return Fault("shape", "source", source, 2, measured=False,
                 detail="the mask has %d True elements, the source %d elements" % (wanted, source.numel()),
                 expect="at least %d elements" % wanted)


def max_unpool(hook, args, kwargs):
    """Each index is a place in the output plane (MaxUnpooling.cu)."""
    indices, shape = arg(args, kwargs, 1, "indices"), arg(args, kwargs, 2, "output_size")
    if not isinstance(shape, (tuple, list)):
        return None
    plane = 1
    for length in tuple(shape)[-3 if hook.op.endswith("3d") else -2:]:
        plane *= length
    if not leaves(hook, indices, 0, plane - 1):
        return None
    return Fault("index_range", "indices", indices, 1, 0, plane - 1,
                 expect="a place in an output plane of %d elements" % plane)


def embedding(hook, args, kwargs):
    """torch.embedding(weight, indices): a row of the table."""
    weight, indices = arg(args, kwargs, 0, "weight"), arg(args, kwargs, 1, "indices", "input")
    rows = size(weight, 0) if type(weight) in PLAIN else None
    if rows is None or not leaves(hook, indices, 0, rows - 1) or 0 in weight.shape[1:]:
        return None
    return Fault("embedding_range", "input", indices, 0, 0, rows - 1,
                 expect="a row of the table, which has %d rows" % rows)


def embedding_bag(hook, args, kwargs):
    """Likewise; and each offset starts a bag inside the indices."""
    fault = embedding(hook, args, kwargs)
    indices, offsets = arg(args, kwargs, 1, "indices"), arg(args, kwargs, 2, "offsets")
    if fault or not is_plain(indices, offsets) or indices.dim() != 1:
        return fault
    count = indices.numel()
    if not leaves(hook, offsets, 0, count):
        return None
    return Fault("embedding_range", "offsets", offsets, 1, 0, count,
                 expect="a start within the %d indices" % count)


def one_hot(hook, args, kwargs):
    tensor, classes = arg(args, kwargs, 0, "input", "self", "tensor"), arg(args, kwargs, 1, "num_classes")
    if not (classes is None or type(classes) is int):
        return None
    high = classes - 1 if classes is not None and classes > 0 else None
    if not leaves(hook, tensor, 0, high):
        return None
    return Fault("label_range", "input", tensor, 0, 0, high, keyword="tensor",
                 expect="a class index" + ("" if high is None else " below num_classes, %d" % classes))


def label_fault(target, classes, ignore=None, low=0):
    expect = "a class index: the scores have %d class%s" % (classes, "" if classes == 1 else "es")
    if ignore is not None:
        expect += "; %d is ignored" % ignore
    return Fault("label_range", "target", target, 1, low, classes - 1, ignore, expect=expect)


def cross_entropy(hook, args, kwargs):
    """torch._C._nn.{cross_entropy_loss,nll_loss*}(input, target, weight, reduction, ignore_index)."""
    input, target = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "target")
    if type(input) not in PLAIN or type(target) not in PLAIN or target.dtype not in LABEL_DTYPES:
        return None
    shape, labels = input.shape, target.shape
    if len(shape) == 0 or len(shape) > 1 and (len(labels) != len(shape) - 1 or labels[0] != shape[0]):
        return None  # raises, and then blame.target has its say
    if 0 in labels and look.is_cpu(target) and arg(args, kwargs, 3, "reduction") in (None, 1):
        return Fault("empty_batch", "target", target, 1, measured=False, silent=True, weak=True,
                     detail="the mean over no element is not a number (NaN)",
                     expect="at least one element")
    ignore = arg(args, kwargs, 4, "ignore_index")
    ignore = -100 if ignore is None else ignore
    classes = shape[1] if len(shape) > 1 else shape[0]
    return label_fault(target, classes, ignore) if leaves(hook, target, 0, classes - 1, ignore) else None


def multi_margin(hook, args, kwargs):
    """Here nothing is ignored (MultiMarginLoss.cu)."""
    input, target = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "target")
    if type(input) not in PLAIN or not 1 <= input.dim() <= 2:
        return None
    classes = input.shape[-1]
    return label_fault(target, classes) if leaves(hook, target, 0, classes - 1) else None


def multilabel_margin(hook, args, kwargs):
    """Class indices, and -1 ends the list of a row."""
    input, target = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "target")
    if type(input) not in PLAIN or input.dim() == 0:
        return None
    classes = input.shape[-1]
    return label_fault(target, classes, low=-1) if leaves(hook, target, -1, classes - 1) else None


def binary_cross_entropy(hook, args, kwargs):
    """Loss.cu asserts the input within 0..1 (NaN is not), newer versions the target, too."""
    for position, role in enumerate(("input", "target")):
        tensor = arg(args, kwargs, position, role)
        if not leaves(hook, tensor, 0.0, 1.0):
            continue
        silent = role == "target" and not raises(
            torch._C._nn.binary_cross_entropy, torch.zeros(1), torch.full((1,), 2.0))
        low, high = tensor.min(), tensor.max()  # NaN where there is any
        real = look.outside(tensor[~torch.isnan(tensor)], 0.0, 1.0, None).any() if bool(low != low) else True
        cause = "bce_input_range" if real else "nan"
        words = "probabilities, as a sigmoid makes them" if role == "input" else "targets"
        return Fault(cause, role, tensor, position, 0.0, 1.0, silent=silent, expect=words + " from 0 to 1")
    return None


def ctc_loss(hook, args, kwargs):
    """Labels below the number of classes, padding beyond the target's length aside."""
    scores, targets = arg(args, kwargs, 0, "log_probs"), arg(args, kwargs, 1, "targets")
    lengths = arg(args, kwargs, 3, "target_lengths")
    if not is_plain(scores, targets) or scores.dim() not in (2, 3):
        return None
    classes = scores.shape[-1]
    if not leaves(hook, targets, 0, classes - 1):
        return None
    lengths = torch.as_tensor(lengths).reshape(-1).tolist()
    used = targets[:sum(lengths)] if targets.dim() == 1 else torch.cat(
        [row[:length] for row, length in zip(targets, lengths)])
    if not look.look(used, 0, classes - 1, None):
        return None
    return Fault("label_range", "targets", used, 1, 0, classes - 1, silent=True,
                 expect="label indices below %d" % classes)


def multinomial(hook, args, kwargs):
    """Finite, not negative, and each row has something to draw (MultinomialKernel.cu)."""
    input = arg(args, kwargs, 0, "input")
    expect = "finite probabilities from 0 up, with a sum above 0 in each row"
    bad = leaves(hook, input, 0.0, None)
    if bad is None or not 1 <= input.dim() <= 2 or input.numel() == 0:
        return None
    if bad:
        return Fault("probability_invalid", "input", input, 0, 0.0, None, expect=expect)
    empty = input.sum(-1).reshape(-1) <= 0
    if not bool(empty.any()):
        return None
    row = int(empty.nonzero()[0])
    return Fault("probability_invalid", "input", input, 0, 0.0, None, measured=False, expect=expect,
                 detail="row %d sums to 0" % row,
                 facts={"bad_values": [0.0], "bad_count": int(empty.sum()), "bad_elements": [{"at": [row]}]})


def bernoulli(hook, args, kwargs):
    """The probabilities are the tensor itself, or the argument p of the method."""
    p = arg(args, kwargs, 1, "p") if "Tensor.bernoulli" in hook.op else None
    own = p is None and not hook.op.endswith("_")
    probabilities = arg(args, kwargs, 0, "input") if own else p
    if not leaves(hook, probabilities, 0.0, 1.0):
        return None
    return Fault("probability_invalid", "input" if own else "p", probabilities, 0 if own else 1, 0.0, 1.0,
                 expect="probabilities from 0 to 1")


def poisson(hook, args, kwargs):
    """NaN and negative rates; an infinite one is allowed."""
    rates = arg(args, kwargs, 0, "input")
    if not leaves(hook, rates, 0.0, None) or bool(torch.isinf(rates).any()):
        return None
    return Fault("probability_invalid", "input", rates, 0, 0.0, None, expect="rates from 0 up")


def bincount(hook, args, kwargs):
    input = arg(args, kwargs, 0, "input")
    if not leaves(hook, input, 0, None):
        return None
    return Fault("index_range", "input", input, 0, 0, None, expect="one dimension of numbers from 0 up")


def repeat_interleave(hook, args, kwargs):
    """repeat_interleave(repeats) or repeat_interleave(input, repeats, dim)."""
    repeats, position = arg(args, kwargs, 1, "repeats"), 1
    if repeats is None:
        repeats, position = arg(args, kwargs, 0, "repeats"), 0
    if not leaves(hook, repeats, 0, None):
        return None
    return Fault("index_range", "repeats", repeats, position, 0, None, expect="counts from 0 up")


def assert_async(hook, args, kwargs):
    input = arg(args, kwargs, 0, "input")
    if not is_plain(input) or input.numel() != 1:
        return None
    if not look.is_cpu(input):
        hook.unseen += 1
        return None
    hook.calls += 1
    if bool(input):
        return None
    message = arg(args, kwargs, 1, "assert_msg")
    return Fault("other", "input", input, 0, measured=False, expect="a value that is true",
                 detail=message if isinstance(message, str) else None,
                 facts={"bad_values": [0], "bad_count": 1, "bad_elements": [{"at": [0] * input.dim()}]})
