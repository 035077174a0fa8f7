"""
Which operand was to blame for a call that raised, and why, where that is plain to see.

The errors are PyTorch's own, raised on the host: of shapes, dtypes and devices.
"""
import torch

from cuwhy_agent.checks import LABEL_DTYPES, MASK_DTYPES, Fault, arg


def about(cause, role, tensor, position, detail, expect=None):
    return Fault(cause, role, tensor, position, measured=False, detail=detail, expect=expect)


def shape_text(tensor):
    return "[%s]" % ", ".join(map(str, tensor.shape))


def dtype_text(tensor):
    return str(tensor.dtype).replace("torch.", "")


def target(hook, args, kwargs, error):
    """Why a loss with class targets did not like them."""
    input, target = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "target")
    if not isinstance(input, torch.Tensor) or not isinstance(target, torch.Tensor):
        return None
    both = "the scores have shape %s, the targets %s" % (shape_text(input), shape_text(target))
    if input.device != target.device:
        return about("device_mismatch", "target", target, 1,
                     "the scores are on %s, the targets on %s" % (input.device, target.device))
    batch = "class indices of shape [%s]" % ", ".join(map(str, input.shape[:1] + input.shape[2:]))
    if target.dtype not in LABEL_DTYPES:
        if target.shape == input.shape and not target.is_floating_point():
            return about("label_shape", "target", target, 1, both, batch)
        return about("label_dtype", "target", target, 1, "the targets are %s" % dtype_text(target),
                     "class indices of dtype int64")
    if target.dim() != max(input.dim() - 1, 0):
        more = "; integers of the scores' shape look like one-hot rows" if target.shape == input.shape else ""
        return about("label_shape", "target", target, 1, both + more, batch)
    if input.dim() > 1 and input.shape[0] != target.shape[0]:
        return about("batch_size", "target", target, 1, both, batch)
    if input.shape[2:] != target.shape[1:]:
        return about("label_shape", "target", target, 1, both, batch)
    return None


def binary(hook, args, kwargs, error):
    input, target = arg(args, kwargs, 0, "input"), arg(args, kwargs, 1, "target")
    if isinstance(target, torch.Tensor) and isinstance(input, torch.Tensor) and input.dtype != target.dtype:
        return about("label_dtype", "target", target, 1, "the scores are %s, the targets %s" % (
            dtype_text(input), dtype_text(target)), "targets of the scores' dtype")
    return None


def dtype(hook, args, kwargs, error):
    """An index-like operand whose dtype the operation does not take, or whose shape does not fit."""
    role, position, names = hook.operand
    index = arg(args, kwargs, position, *names)
    if not isinstance(index, torch.Tensor):
        return None
    text = str(error)
    if "scalar type" in text or "dtype" in text:
        return about("label_dtype", role, index, hook.user_position,
                     "the %s is %s" % (role, dtype_text(index)), "indices of dtype int64")
    if "size" in text.lower() or "dimension" in text or "1-d " in text or "shape" in text:
        return about("shape", role, index, hook.user_position,
                     "the %s has shape %s" % (role, shape_text(index)), text.splitlines()[0][:200])
    return None


def subscript(hook, args, kwargs, error):
    text = str(error)
    if "shape" not in text and "must be long" not in text:
        return None
    key = args[1] if type(args[1]) is tuple else (args[1],)
    for position, one in enumerate(key):
        if isinstance(one, torch.Tensor):
            if "must be long" in text:
                if one.dtype in MASK_DTYPES + (torch.int64, torch.int32):
                    continue
                return about("label_dtype", "index", one, position, "the index is %s" % dtype_text(one),
                             "indices of dtype int64")
            return about("shape", "index", one, position, text.splitlines()[0],
                         "the indexed tensor has shape %s" % shape_text(args[0]))
    return None
