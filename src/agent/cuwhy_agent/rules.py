"""
Which operands must be on the same device, as CUDA wants it (mode `redirect`).

One row an operation that differs from the common rule; whatever PyTorch is not known to refuse is let
through, since a mismatch that is none would be worse than one that is missed. Sources:
aten/src/ATen/TensorIterator.cpp (compute_types: a 0-dim CPU operand may meet CUDA ones, unless it is
written to), TensorAdvancedIndexing.cpp, IndexingUtils.h and autograd/python_variable_indexing.cpp
(indices, and values that are assigned), RNN.cpp, PackedSequence.cpp, TensorShape.cpp (cat).

A check takes (rule, operands, args, kwargs), operands being [(tensor, logical device or None)], and
returns None or (the odd tensor, a tensor on the device it should be on, what is expected in words).
It runs with `unguarded`, and only when the operands are on different devices.
"""
import torch

from .logical import CPU, Tensor, base


def _everything_on(device):
    return "all operands on %s" % device


def same(rule, operands, args, kwargs, scalars=True):
    """The common rule. `scalars`: a 0-dim CPU tensor may be among CUDA ones."""
    reference, common = next(((tensor, device) for tensor, device in operands
                              if device is not None and device is not CPU), (None, None))
    for tensor, device in operands:
        if device is None or device is common:
            continue
        written = rule.writes_self and tensor is args[0]
        if device is CPU and scalars and not written and base.dim(tensor) == 0:
            continue
        return tensor, reference, _everything_on(common)
    return None


def strict(rule, operands, args, kwargs):
    return same(rule, operands, args, kwargs, scalars=False)


def cat(rule, operands, args, kwargs):
    """Empty 1-d tensors are skipped by cat, whatever they are."""
    return strict(rule, [one for one in operands if tuple(base.size(one[0])) != (0,)], args, kwargs)


def rnn(rule, operands, args, kwargs):
    """Packed input brings batch_sizes, which is on the CPU."""
    packed = isinstance(args[1], Tensor) and (rule.name == "lstm" or isinstance(args[2], Tensor))
    return strict(rule, [one for one in operands if not (packed and one[0] is args[1])], args, kwargs)


def lengths(rule, operands, args, kwargs):
    """pack_padded_sequence(input, lengths): the lengths must be on the CPU."""
    odd = args[1] if len(args) > 1 else kwargs.get("lengths")
    on_cuda = any(tensor is odd and device not in (None, CPU) for tensor, device in operands)
    return (odd, args[0], "the lengths on the CPU") if on_cuda else None


def _selects(index):
    """False for a 0-dim integer, which is read as a number wherever it is."""
    return base.dim(index) > 0 or index.dtype in (torch.bool, torch.uint8)


def getitem(rule, operands, args, kwargs):
    """Indices may be on the CPU or on the device of what they index."""
    self, own = operands[0]
    values = None if rule.values is None else (args[rule.values] if len(args) > rule.values
                                               else kwargs.get("values", kwargs.get("value")))
    indices = [one for one in operands[1:] if one[0] is not values and _selects(one[0])]
    if own is None:
        return None
    for index, device in indices:
        if device not in (None, CPU, own):
            if own is CPU:
                return index, self, "the index on the CPU, like the tensor it indexes"
            return index, self, "the index on the CPU or on the device of the tensor it indexes"
    if isinstance(values, Tensor) and indices and base.numel(values) != 1:
        device = next((device for tensor, device in operands if tensor is values), None)
        if device not in (None, own):
            odd, other = (self, values) if own is CPU else (values, self)
            return odd, other, "the values on the device of the tensor they are put into"
    return None


CHECKS = {
    "__getitem__": getitem, "__setitem__": getitem, "index_put": getitem, "index_put_": getitem,
    "stack": strict, "embedding": strict, "cat": cat, "concat": cat, "concatenate": cat, "hstack": cat,
    "lstm": rnn, "gru": rnn, "rnn_tanh": rnn, "rnn_relu": rnn, "_pack_padded_sequence": lengths,
}
VALUES = {"__setitem__": 2, "index_put": 2, "index_put_": 2}  # where the values are that are assigned

# Operands on several devices are right here, or CUDA's rule is not known well enough.
ALLOWED = frozenset("""
    copy_ fill fill_ set_ resize_as_ resize_as_sparse_ type_as view_as expand_as reshape_as as_subclass
    is_same_size is_set_to result_type can_cast promote_types broadcast_tensors align_tensors meshgrid
    atleast_1d atleast_2d atleast_3d tensor_split unflatten pad_sequence flatten_dense_tensors
    unflatten_dense_tensors ctc_loss bernoulli bernoulli_ slice_scatter select_scatter diagonal_scatter
    as_strided_scatter gradient nonzero_static map_ map2_ tensor as_tensor asarray arange linspace
    logspace range full scalar_tensor from_numpy frombuffer normal is_shared requires_grad_ where_
    swap_tensors new resize_ histogramdd segment_reduce
""".split())
ALLOWED_PREFIXES = ("new_", "quantize", "fake_quantize", "fused_moving", "fbgemm", "mkldnn", "miopen",
                    "cudnn", "sparse_", "q_", "dequantize", "to_")

# The device of the result is the default one unless `device` says otherwise, whatever the operands.
FACTORIES = frozenset("""
    arange linspace logspace range full tensor zeros ones empty rand randn randint randperm eye
    scalar_tensor empty_strided
""".split())
COPIES_DATA = frozenset(["tensor", "as_tensor", "asarray"])  # a tensor as data decides after all
TAKES_DTYPE = frozenset(["tensor", "as_tensor", "asarray", "new_tensor"])
TAKES_DATA = TAKES_DTYPE | frozenset(["new"])  # nested lists of numbers
SHARES_DATA = frozenset(["as_tensor", "asarray", "frombuffer"])  # the memory of an array

WRITE_SELF = frozenset("add_ sub_ mul_ div_ __iadd__ __isub__ __imul__ __idiv__ __itruediv__".split())

# The names that users know, where they are not that of the function itself.
PUBLIC = {
    "cross_entropy_loss": "torch.nn.functional.cross_entropy",
    "nll_loss_nd": "torch.nn.functional.nll_loss", "nll_loss2d": "torch.nn.functional.nll_loss",
    "grid_sampler": "torch.nn.functional.grid_sample",
    "affine_grid_generator": "torch.nn.functional.affine_grid",
    "max_pool2d_with_indices": "torch.nn.functional.max_pool2d",
    "lstm": "torch.nn.LSTM", "gru": "torch.nn.GRU", "rnn_tanh": "torch.nn.RNN", "rnn_relu": "torch.nn.RNN",
    "lstm_cell": "torch.nn.LSTMCell", "gru_cell": "torch.nn.GRUCell",
    "rnn_tanh_cell": "torch.nn.RNNCell", "rnn_relu_cell": "torch.nn.RNNCell",
    "_pack_padded_sequence": "torch.nn.utils.rnn.pack_padded_sequence",
    "__getitem__": "torch.Tensor.index", "__setitem__": "torch.Tensor.index_put_",
}
SPECIAL_METHODS = {"truediv": "div", "mod": "remainder", "floordiv": "floor_divide", "and": "bitwise_and",
                   "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
                   "rshift": "bitwise_right_shift"}  # the rest is called as its operator
# What operands are called where the schema of the operator says otherwise than the function in Python.
ROLES = {
    "__getitem__": ["self", "index"], "__setitem__": ["self", "index", "values"],
    "grad": ["self", "grad"],
    "embedding": ["weight", "input"], "embedding_bag": ["weight", "input", "offsets"],
    "rnn_tanh": ["input", "hx", "params"], "rnn_relu": ["input", "hx", "params"],
    "lstm": ["input", "hx", "params"], "gru": ["input", "hx", "params"],
}


class Rule:
    """What is known of one operation. `owner`: "torch", "torch.Tensor", "torch.nn.functional", ..."""
    __slots__ = ("name", "owner", "check", "always", "factory", "writes_self", "values", "result")

    def __init__(self, name, owner, checked=True):
        self.name = name
        self.owner = owner
        self.check = _check_for(name) if checked else None
        self.always = self.check is lengths
        self.factory = name in FACTORIES
        self.writes_self = name in WRITE_SELF
        self.values = VALUES.get(name)
        self.result = "self" if self.check is getitem else "operands"

    def public(self):
        """The name that the user would recognise."""
        if self.name in PUBLIC:
            return PUBLIC[self.name]
        name = self.name
        if name.startswith("__"):
            return "%s.%s" % (self.owner, _operator_name(name))
        functional = torch.nn.functional
        if self.owner == "torch" and hasattr(functional, name) and not hasattr(Tensor, name):
            return "torch.nn.functional." + name
        if self.owner in ("torch.linalg", "torch.fft", "torch.special"):
            name = name[len(self.owner.rpartition(".")[2]) + 1:]
        return "%s.%s" % (self.owner, name)

    def is_operator(self):
        """Written as a + b."""
        return self.name.startswith("__") and self.check is not getitem

    def position(self, tensor, args):
        """Which argument of the user's call, in its function form, is a tensor; None if that is not known."""
        if self.check is getitem and len(args) > 1:
            args = args[1] if type(args[1]) is tuple else args[1:2]
        at = next((at for at, one in enumerate(args) if one is tensor), None)
        reflected = self.name.startswith("__r") and hasattr(Tensor, "__%s" % self.name[3:])
        if at is None or self.name in ROLES and self.check is not getitem:
            return None  # the function in Python has another order
        return 1 - at if self.is_operator() and reflected and at < 2 else at

    def roles(self, args, kwargs):
        """The operation's own names of its operands: [(tensor, name)]."""
        names = ROLES.get(self.name) or _schema_names(self.name, args)
        if self.public().startswith("torch.nn.functional."):
            names = ["input" if name == "self" else name for name in names]
        found = []
        pairs = list(zip(names + ["operand"] * len(args), args)) + [(k, v) for k, v in kwargs.items()]
        for name, value in pairs:
            if isinstance(value, Tensor):
                found.append((value, name))
            elif isinstance(value, (list, tuple)):
                found.extend((one, name) for one in value if isinstance(one, Tensor))
        return found


def _check_for(name):
    if name in CHECKS:
        return CHECKS[name]
    private = name.startswith("_") and not name.startswith("__")
    if private or name in ALLOWED or name.startswith(ALLOWED_PREFIXES) or name.rstrip("_").endswith("_like"):
        return None
    return same


def _operator_name(name):
    """The name of the operator behind __add__, __radd__, __iadd__."""
    plain = name.strip("_")
    written = name in WRITE_SELF or plain in ("ifloordiv", "imod", "ipow", "iand", "ior", "ixor")
    if written or (plain[0] == "r" and hasattr(Tensor, "__%s__" % plain[1:])):
        plain = plain[1:]
    return SPECIAL_METHODS.get(plain, plain) + ("_" if written else "")


def _fits(schema, args):
    for argument, value in zip(schema.arguments, args):
        kind = str(argument.type)
        if isinstance(value, Tensor) and not kind.startswith(("Tensor", "Optional[Tensor")):
            return False
        if isinstance(value, (list, tuple)) and "List" not in kind and "[" not in kind:
            return False
        if isinstance(value, (int, float)) and "Tensor" in kind:
            return False
    return len(schema.arguments) >= len(args)


def _schema_names(name, args):
    """Names of the positional arguments, from the schema in PyTorch's registry."""
    for candidate in (name, _operator_name(name)) if name.startswith("__") else (name,):
        schemas = torch._C._jit_get_schemas_for_operator("aten::" + candidate)
        for schema in schemas:
            if _fits(schema, args):
                return [argument.name for argument in schema.arguments]
    return ["self", "other"]
