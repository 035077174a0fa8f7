"""
Where in the user's code we are, and what things are called there.

A frame is the user's when its file is not torch's, not the agent's, not the standard library's and
not an installed package's. Where there is none, the innermost frame that is neither torch's nor the
agent's stands in for it.
"""
import ast
import functools
import linecache
import os
import sys
import sysconfig

import torch

STACK_MAX = 16   # frames told of a stack, the innermost ones
NAME_MAX = 60    # characters of an expression that still is a name
AGENT = os.path.dirname(os.path.abspath(__file__)) + os.sep
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
STDLIB = tuple({os.path.join(sysconfig.get_path(key), "") for key in ("stdlib", "platstdlib")})
RUNNER = os.path.join(os.path.dirname(os.path.dirname(AGENT)), "runner.py")
GENERATED = ("<eval_with_key>", "<frozen ", "<__array_function__", "<torch_package", "<attrs generated")

# What the operators of a line are called.
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.MatMult: "matmul",
             ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or"}

_kinds = {}


def kind(filename):
    """agent, torch, library or user."""
    found = _kinds.get(filename)
    if found is None:
        found = _kinds[filename] = _kind(filename)
    return found


def _kind(filename):
    if filename.startswith("<"):
        return "torch" if filename.startswith(GENERATED) else "user"
    path = os.path.abspath(filename)
    if path.startswith(AGENT) or path == RUNNER:
        return "agent"
    if path.startswith(TORCH):
        return "torch"
    if any(folder in path for folder in PACKAGES) or path.startswith(STDLIB):
        return "library"
    return "user"


def inward(frame):
    """The frames from the outermost to this one, without the agent's."""
    stack = []
    while frame is not None:
        if kind(frame.f_code.co_filename) != "agent":
            stack.append((frame, frame.f_lineno))
        frame = frame.f_back
    stack.reverse()
    return stack


def here():
    """The stack of the caller outside the agent."""
    return inward(sys._getframe(1))


def of_traceback(trace):
    """Likewise, of a traceback: the frames above the one that caught the error come first."""
    stack = []
    while trace is not None:
        if kind(trace.tb_frame.f_code.co_filename) != "agent":
            stack.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return stack


def users(stack):
    """The user's own frames; else those of libraries that are not torch."""
    mine = [one for one in stack if kind(one[0].f_code.co_filename) == "user"]
    return mine or [one for one in stack if kind(one[0].f_code.co_filename) == "library"]


def place(frame, line):
    code = frame.f_code
    text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
    return {"file": code.co_filename, "line": line, "function": code.co_name, "code": text or None}


def places(stack):
    return [place(*one) for one in users(stack)[-STACK_MAX:]]


def module_path(stack):
    """The path of the innermost nn.Module whose method is running: model.encoder.embed_tokens."""
    running = []
    for frame, _ in stack:
        owner = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames else None
        if isinstance(owner, torch.nn.Module):
            running.append((owner, frame))
    if not running:
        return None
    root, first = running[0]
    outside = [frame for frame, _ in stack[:[frame for frame, _ in stack].index(first)]]
    head = name_of(root, outside) or type(root).__name__
    if running[-1][0] is root:
        return head
    for path, module in root.named_modules():
        if module is running[-1][0]:
            return head + "." + path
    return head


def name_of(thing, stack):
    """What the innermost of these frames that knows a thing calls it: loader, self.loader, cfg.data."""
    name = variable_of(thing, stack)
    for frame in reversed([] if name else stack):
        for owner, value in list(frame.f_locals.items()):
            for key, inner in attributes(value):
                if inner is thing:
                    return owner + "." + key
    return name


def variable_of(thing, stack):
    """Likewise, of plain variables."""
    for frame in reversed(stack):
        if kind(frame.f_code.co_filename) in ("user", "library"):
            for names in (frame.f_locals, frame.f_globals):
                for name, value in list(names.items()):
                    if value is thing and name.isidentifier():
                        return name
    return None


def attributes(value):
    """The plain attributes of an object of the user's; none of a class, a module or a tensor."""
    if isinstance(value, (type, torch.Tensor)) or type(value).__module__ == "builtins":
        return []
    try:
        names = object.__getattribute__(value, "__dict__")
    except Exception:
        return []
    return list(names.items()) if isinstance(names, dict) else []


def argument(stack, tensor, position, keyword, op):
    """
    The user's own words for an operand: the text of the argument in the call, when the call in the
    line is the operation itself or a module that does nothing but call it; else the variable that
    is the tensor.
    """
    mine = users(stack)
    if not mine:
        return None
    frame, line = mine[-1]
    text = None
    if direct(stack, frame):
        text = argument_text(frame, line, position, keyword, op)
    return text or variable(frame, tensor)


def direct(stack, frame):
    """Only torch's frames lie between the user's line and the operation, of one module at most."""
    inner = stack[[one for one, _ in stack].index(frame) + 1:]
    forwards = [one for one, _ in inner if one.f_code.co_name == "forward"]
    return len(forwards) <= 1 and all(kind(one.f_code.co_filename) == "torch" for one, _ in inner)


def variable(frame, tensor):
    """A variable of the frame that is the tensor, or another view of all of its elements."""
    same = None
    for name, value in list(frame.f_locals.items()):
        if value is tensor:
            return name
        if type(value) is torch.Tensor and same_elements(value, tensor):
            same = name
    return same


def same_elements(a, b):
    try:
        return (isinstance(b, torch.Tensor) and a.numel() > 0 and a.data_ptr() == b.data_ptr() and
                a.dtype == b.dtype and a.numel() == b.numel())
    except Exception:
        return False


def statement(frame, line):
    """The innermost statement around a line, as (node, source); None without source."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    return parsed("".join(lines), line)


@functools.lru_cache(maxsize=256)  # an error that the program catches may come again and again
def parsed(source, line):
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None, source
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            if found is None or node.lineno >= found.lineno:
                found = node
    return found, source


def running_span(frame):
    """The source span of the running instruction (Python 3.11 on), else None."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    for at, span in enumerate(positions()):
        if at * 2 == frame.f_lasti:
            return span if None not in span else None
    return None


def candidates(node, kinds, line, span):
    """The calls or subscripts of a statement that may be the running one, the likeliest first."""
    found = []
    for one in ast.walk(node):
        if isinstance(one, kinds) and one.lineno <= line <= one.end_lineno:
            exact = span == (one.lineno, one.end_lineno, one.col_offset, one.end_col_offset)
            found.append((not exact, one))
    exact = [one for inexact, one in found if not inexact]
    return exact or [one for _, one in found]


def argument_text(frame, line, position, keyword, op):
    node, source = statement(frame, line)
    if node is None or position is None:
        return None
    span = running_span(frame)
    subscript = op in ("torch.Tensor.index", "torch.Tensor.index_put_")
    operators = binary(node, last_name(op), line, span)
    found = operators or candidates(node, ast.Subscript if subscript else ast.Call, line, span)
    if not subscript and not operators:
        found = [call for call in found if last_name(called(call)) == last_name(op)] or found
    if len(found) != 1:
        return None
    if operators:
        arg = operand(found[0], position)
    elif subscript:
        arg = subscript_part(found[0], position)
    else:
        arg = call_part(found[0], position, keyword, op, frame)
    text = ast.get_source_segment(source, arg) if arg is not None else None
    text = " ".join(text.split()) if text else None
    return text if text and len(text) <= NAME_MAX else None


def binary(node, name, line, span):
    """The places of a statement where an operation is written as an operator."""
    kinds = tuple(kind for kind, called in OPERATORS.items() if called == name.rstrip("_"))
    found = candidates(node, (ast.BinOp, ast.AugAssign), line, span) if kinds else []
    return [one for one in found if isinstance(one.op, kinds)]


def operand(node, position):
    sides = (node.target, node.value) if isinstance(node, ast.AugAssign) else (node.left, node.right)
    return sides[position] if position < 2 else None


def last_name(dotted):
    return dotted.rsplit(".", 1)[-1]


def called(call):
    parts, node = [], call.func
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "?")
    return ".".join(reversed(parts))


def subscript_part(node, position):
    index = node.slice
    if type(index).__name__ == "Index":  # Python 3.8
        index = index.value
    if isinstance(index, ast.Tuple):
        return index.elts[position] if position < len(index.elts) else None
    return index if position == 0 else None


def call_part(call, position, keyword, op, frame):
    """position counts as in the function form; the method form gives its tensor before the dot."""
    for one in call.keywords:
        if one.arg == keyword:
            return one.value
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == last_name(op) and not is_module(func.value, frame):
        if position == 0:
            return func.value
        position -= 1
    if position >= len(call.args) or any(isinstance(one, ast.Starred) for one in call.args[:position + 1]):
        return None
    return call.args[position]


def is_module(node, frame):
    """torch.gather and F.one_hot against x.gather."""
    name = node
    while isinstance(name, ast.Attribute):
        name = name.value
    if not isinstance(name, ast.Name):
        return False
    value = frame.f_locals.get(name.id, frame.f_globals.get(name.id))
    return isinstance(value, type(sys)) or isinstance(value, type)
