"""
What the text of an uncaught PyTorch error says of shapes, dtypes and devices.

One row of RULES a message: a pattern, the cause, the operation, the operand and how it is found in
the frame of torch's that raised. These errors are raised on the host, so what they say is certain.
"""
import ast
import re

import torch

from cuwhy_agent import findings, frames
from cuwhy_agent.blame import about

F = "torch.nn.functional."


class Rule:
    def __init__(self, pattern, cause, op, role, names=(), position=0, expect=None):
        self.pattern = re.compile(pattern, re.S)
        self.cause, self.op, self.role = cause, op, role
        self.names = names or (role,)  # local variables that hold the operand, in torch's frames
        self.position, self.expect = position, expect


def by_batch(match):
    """Sizes that differ in the first dimension are two batch sizes."""
    first, second = (re.findall(r"\d+", text) for text in match.groups()[:2])
    return "batch_size" if first and second and first[0] != second[0] and first[1:] == second[1:] else "shape"


def by_dimension(match):
    return "batch_size" if match.group(3) == "0" else "shape"


def other_device(text):
    """The argument that the message names, and the operation's name in it."""
    named = re.search(r"checking argument for argument (\w+) in method (?:wrapper_)?(?:CUDA_|_)*(\w+?)\)",
                      text)
    return named.groups() if named else (None, None)


RULES = (
    Rule(r"(\w+)\(\): Expected reduction dim .*(?:non-zero size|numel\(\) == 0)|reduction function (\w+) on |"
         r"(\w+)\(\).* (?:no elements|no identity|does not have an identity)", "empty_batch", "torch.{name}",
         "input", expect="at least one element"),
    Rule(r"mat1 and mat2 shapes cannot be multiplied", "shape", F + "linear", "input"),
    Rule(r"Given groups=\d+, weight of size \[.*?\], expected input\[.*?\] to have \d+ channels, but got",
         "shape", F + "conv{dims}d", "input"),
    Rule(r"Calculated padded input size per channel: .*Kernel size can't be greater than actual input size",
         "shape", F + "conv{dims}d", "input"),
    Rule(r"Expected .*D.* input to conv_?(?:transpose)?(\d)d, but got input of size", "shape",
         F + "conv{1}d", "input"),
    Rule(r"Expected more than 1 value per channel when training", "batch_size", F + "batch_norm", "input",
         expect="more than one value per channel while training: drop_last=True, or eval()"),
    Rule(r"Expected more than 1 spatial element when training", "shape", F + "instance_norm", "input"),
    Rule(r"(?:running_mean|weight|bias) should contain \d+ elements not \d+", "shape",
         F + "batch_norm", "input"),
    Rule(r"Given normalized_shape=.*expected input with shape", "shape", F + "layer_norm", "input"),
    Rule(r"[Ii]nput.size\(-1\) must be equal to input_size", "shape", "torch.nn.RNNBase", "input"),
    Rule(r"Using a target size \((.*?)\) that is different to the input size \((.*?)\)", by_batch,
         F + "binary_cross_entropy", "target", position=1, expect="targets of the input's shape"),
    Rule(r"Target size \((.*?)\) must be the same as input size \((.*?)\)", by_batch,
         F + "binary_cross_entropy_with_logits", "target", position=1, expect="targets of the input's shape"),
    Rule(r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at "
         r"non-singleton dimension (\d+)",
         by_dimension, None, "other"),
    Rule(r"shape '\[.*?\]' is invalid for input of size \d+", "shape", "torch.Tensor.view", "self"),
    Rule(r"view size is not compatible with input tensor's size and stride", "shape",
         "torch.Tensor.view", "self"),
    Rule(r"stack expects each tensor to be equal size", "shape", "torch.stack", "tensors"),
    Rule(r"Sizes of tensors must match except in dimension", "shape", "torch.cat", "tensors"),
    Rule(r"each element in list of batch should be of equal size", "shape",
         "torch.utils.data.default_collate", "batch"),
    Rule(r"default_collate: batch must contain tensors.*found <class 'NoneType'>", "other",
         "torch.utils.data.default_collate", "batch", expect="no sample that is None"),
    Rule(r"Expected (?:input )?batch1_sizes|batch1 and batch2 must have same number of batches", "batch_size",
         "torch.bmm", "mat2"),
    Rule(r"was expecting embedding dimension of", "shape", F + "multi_head_attention_forward", "query"),
    Rule(r"Expected all tensors to be on the same device", "device_mismatch", None, None),
    Rule(r"(?:indices should be either on cpu or on the same device|"
         r"Input, output and indices must be on the current device)", "device_mismatch", None, "index"),
    Rule(r"Input type \(torch\.(cuda\.)?\w+\) and weight type \(torch\.(cuda\.)?\w+\) should be the same",
         lambda match: "device_mismatch" if match.group(1) != match.group(2) else "other",
         F + "conv{dims}d", "input"),
    Rule(r"Target values should be in the range|Target values should be in \[", "label_range",
         "torch.nn.AdaptiveLogSoftmaxWithLoss", "target", position=1),
)

# The attributes in which modules keep the size of input that they take.
SIZES = ("in_features", "in_channels", "num_features", "normalized_shape", "input_size", "embed_dim")


def explain(error, stack):
    """Tells of the fault that an error which reached the top names; False if it names none."""
    if findings.explain(error):
        return True
    if findings.made:
        return True  # the check before the call said more
    while error is not None:
        text = str(error)
        for rule in RULES:
            match = rule.pattern.search(text)
            if match:
                tell(rule, match, text, stack_of(error) or stack)
                return True
        error = error.__cause__ or error.__context__
    return False


def stack_of(error):
    return frames.of_traceback(error.__traceback__) if error.__traceback__ else None


def tell(rule, match, text, stack):
    cause = rule.cause(match) if callable(rule.cause) else rule.cause
    role, op = rule.role, rule.op
    if cause == "device_mismatch":
        named, method = other_device(text)
        role, op = role or named, op or (method and "torch." + method)
    tensor = operand(stack, rule.names if rule.role else (role,))
    if op is None:
        op = operator_of(stack)
    elif "{name}" in op:
        op = op.replace("{name}", next(one for one in match.groups() if one))
    elif "{" in op:
        dims = tensor.dim() - 2 if tensor is not None and tensor.dim() > 2 else 2
        op = op.replace("{dims}", str(dims)).replace("{1}", match.group(1) if match.groups() else "2")
    lines = [line.strip() for line in text.splitlines() if match.group(0)[:20] in line] or [text.strip()]
    expect = rule.expect or ("all operands on one device" if cause == "device_mismatch" else wanted(stack))
    fault = about(cause, role, tensor, rule.position, lines[0][:300], expect)
    findings.add(op or "torch", fault, stack)


def operand(stack, names):
    """The tensor that torch's innermost frames call by one of these names."""
    for frame, _ in reversed(stack):
        if frames.kind(frame.f_code.co_filename) != "torch":
            break
        for name in names:
            value = frame.f_locals.get(name)
            if isinstance(value, torch.Tensor):
                return value
    return None


def wanted(stack):
    """What the module that was running takes, in its own words: in_features=128."""
    for frame, _ in reversed(stack):
        module = frame.f_locals.get("self")
        if isinstance(module, torch.nn.Module):
            for name in SIZES:
                if hasattr(module, name):
                    return "%s with %s=%s" % (type(module).__name__, name, getattr(module, name))
            return None
    return None


def operator_of(stack):
    """The operation of a line that has but one operator."""
    if not stack:
        return None
    node, _ = frames.statement(*stack[-1])
    if node is None:
        return None
    operators = [one.op for one in ast.walk(node) if isinstance(one, (ast.BinOp, ast.AugAssign))]
    found = [frames.OPERATORS.get(type(one)) for one in operators]
    return "torch." + found[0] if len(found) == 1 and found[0] else None
