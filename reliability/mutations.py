"""Mutants of Python source: each with one small change, like a slip of the pen.

A comparison is reversed or loses its equality, a sum becomes a difference, a number grows, a condition is negated, a
result or a statement is dropped. Annotations, messages, protocols and enumerations are not changed, because they have
no behavior, or other distinct numbers would do as well. `reliability.mutants` runs the mutants.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

_COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_TWINS = (("max", "min"), ("maximum", "minimum"), ("argmax", "argmin"), ("any", "all"), ("log", "exp"), ("sum", "mean"))
_NAMES = {a: b for pair in _TWINS for a, b in (pair, pair[::-1])} | {"sqrt": "square", "zeros": "ones", "ones": "zeros"}
_BARE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)  # conditions without other changes are negated


@dataclass(frozen=True)
class Mutant:
    """One change: its module, place and lines, and the text of the line before and after it."""

    module: str
    place: str
    lines: range
    before: str
    after: str
    tree: ast.Module
    slot: tuple[ast.AST, str, int | None]
    other: ast.AST
    inside: bool  # in a function, which does not run at import

    def __str__(self) -> str:
        return f"{self.module}:{self.lines.start} {self.place}: {self.before}  →  {self.after}"

    def code(self) -> CodeType:
        """Compile the whole module with this change."""
        old = _put(self.slot, self.other)
        try:
            return compile(ast.fix_missing_locations(self.tree), self.module, "exec")
        finally:
            _put(self.slot, old)


def mutants_of(source: str, module: str) -> list[Mutant]:
    """Return all mutants of a module."""
    tree = ast.parse(source)
    found = []
    for slot, place, statement, scope in _sites(tree, (), None, tree):
        node = _get(slot)
        inside = isinstance(scope, ast.FunctionDef)
        for other in _changes(node, slot):
            ast.copy_location(other, node)
            body = getattr(statement, "body", None)
            end = body[0].lineno if isinstance(body, list) else statement.end_lineno + 1
            before = _text(scope if inside else statement)
            old = _put(slot, other)
            after = _text(scope if inside else _replaced(statement, node, other))
            _put(slot, old)
            was, becomes = _difference(before, after)
            lines = range(statement.lineno, max(end, statement.lineno + 1))
            found.append(Mutant(module, ".".join(place), lines, was, becomes, tree, slot, other, inside))
    return found


def _sites(
    node: ast.AST, place: tuple[str, ...], statement: Any, scope: ast.AST
) -> Iterator[tuple[tuple, tuple[str, ...], Any, ast.AST]]:
    """Yield every node below a node that may be changed, with its slot, class or function, statement and scope."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _untouched(child):
                continue
            there, inner, around = place, child if isinstance(child, ast.stmt) else statement, scope
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                there = (*place, child.name)
                if not isinstance(scope, ast.FunctionDef):
                    around = child
            elif inner is not None:
                yield (node, field, index), place, inner, scope
            if not isinstance(child, ast.Raise):
                yield from _sites(child, there, inner, around)


def _untouched(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return any(isinstance(n, ast.Name) and n.id in ("Protocol", "IntEnum") for b in node.bases for n in ast.walk(b))
    if isinstance(node, ast.FunctionDef):  # only a docstring and a refusal
        last = node.body[-1]
        return len(node.body) <= 2 and isinstance(last, ast.Raise) and "NotImplementedError" in ast.unparse(last)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        called = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
        return node.targets[0].id == "__all__" or called in ("TypeVar", "logging.getLogger")
    if isinstance(node, ast.Expr):
        logs = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith("logger.")
        return logs or isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom, ast.expr_context))


def _changes(node: Any, slot: tuple) -> Iterator[ast.AST]:
    """Yield the nodes that may replace a node."""
    parent, field, _ = slot
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                for other in _COMPARISONS[type(op)]:
                    yield ast.Compare(node.left, [*node.ops[:i], other(), *node.ops[i + 1 :]], node.comparators)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
        case ast.AugAssign():
            if type(node.op) in _OPERATORS:
                yield ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value)
            yield ast.Pass()
        case ast.Assign() if not isinstance(node.targets[0], (ast.Name, ast.Tuple)):
            yield ast.Pass()
        case ast.UnaryOp():
            yield node.operand
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(node.value + 1)
        case ast.Constant(value=float()):
            yield ast.Constant(2 * node.value if node.value else 1.0)
        case ast.Constant(value=str()) if isinstance(parent, ast.Compare):
            yield ast.Constant(node.value + "?")
        case ast.Call(func=ast.Name()) if node.func.id in _NAMES:
            yield ast.Call(ast.Name(_NAMES[node.func.id], ast.Load()), node.args, node.keywords)
        case ast.Call(func=ast.Attribute()) if node.func.attr in _NAMES:
            func = ast.Attribute(node.func.value, _NAMES[node.func.attr], ast.Load())
            yield ast.Call(func, node.args, node.keywords)
        case ast.Return() if node.value is not None and ast.unparse(node.value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Expr() | ast.Raise():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
    if field == "test" and isinstance(node, _BARE):
        yield ast.UnaryOp(ast.Not(), node)


def _get(slot: tuple) -> Any:
    parent, field, index = slot
    value = getattr(parent, field)
    return value if index is None else value[index]


def _put(slot: tuple, node: ast.AST) -> Any:
    """Put a node into a slot; return the replaced node."""
    parent, field, index = slot
    old = _get(slot)
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node
    return old


def _replaced(statement: ast.AST, node: ast.AST, other: ast.AST) -> ast.AST:
    return other if statement is node else statement


def _text(node: ast.AST) -> list[str]:
    return ast.unparse(node).splitlines()


def _difference(before: list[str], after: list[str]) -> tuple[str, str]:
    """Return the first lines in which two texts differ."""
    for old, new in zip(before, after, strict=False):
        if old != new:
            return old.strip(), new.strip()
    return before[-1].strip(), after[-1].strip()
