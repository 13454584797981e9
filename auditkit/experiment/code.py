"""Which code a function reaches.

The code of a result is what its function can reach: the function, the helpers and constants that it
names, those that these name, and so on, within the package and the experiments. A helper that
changes makes a result stale; an edit elsewhere does not, nor do comments, layout, docstrings,
annotations and the words of an error.
"""

import ast
import functools
import hashlib
import importlib.util
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOTS = ("auditkit", "experiments", "benchmarks")
# What runs, draws and says things about a result does not change it; datasets are known by the
# hashes that their loader checks.
APART = (
    "auditkit.experiment",
    "auditkit.figures",
    "auditkit.claims",
    "auditkit.cli",
    "auditkit._files",
    "auditkit.datasets.catalogue",
    "auditkit.datasets.sources",
    "auditkit.datasets.store",
)


def sha256_of(value: Any) -> str:
    """Return the hash of whatever JSON can say."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def closure(function: Callable[..., Any]) -> dict[str, str]:
    """Return a short hash of every definition that a function reaches, by module and name.

    Names are followed through files. Of a notebook, functions are followed and variables are not.

    Parameters
    ----------
    function : callable
        A function whose source can be read.

    Returns
    -------
    dict
        The first ten digits of a SHA-256 by ``"module:name"``.

    References
    ----------
    `status` of ``python -m experiments`` names what differs from the stored ones.

    Examples
    --------
    >>> list(closure(sha256_of))
    ['auditkit.experiment.code:sha256_of']
    """
    function = inspect.unwrap(function)
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (TypeError, OSError):
        raise ValueError(
            "function must be a Python function whose source can be read, from a file or a "
            f"notebook, so that its results can be traced to it, got {function!r}"
        ) from None
    home, known = function.__module__, _globals(function)
    roots = {*ROOTS, home.partition(".")[0]}
    try:
        own: ast.stmt | None = ast.parse(text).body[0]
    except SyntaxError:  # a lambda is cut out together with a part of its line
        own = None
    if isinstance(own, ast.FunctionDef):
        digest, waiting = _digest([own]), list(_named(own, home, known))
    else:
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        waiting = [known[name] for name in function.__code__.co_names if name in known]
    found = {f"{home}:{function.__qualname__}": digest}
    while waiting:
        module, name = waiting.pop()
        if module.partition(".")[0] not in roots or _apart(module, home):
            continue
        key = f"{module}:{name}"
        if key in found:
            continue
        in_a_file = _source(module) is not None
        made = _written(module, name) if in_a_file else _in_a_notebook(module, name, function)
        if made.digest:
            found[key] = made.digest
        waiting += made.further
    return dict(sorted(found.items()))


class Reference(NamedTuple):
    """A name of a module; ``*`` stands for the whole module."""

    module: str
    name: str


def _apart(module: str, home: str) -> bool:
    return module != home and any(f"{module}.".startswith(f"{one}.") for one in APART)


class Definition(NamedTuple):
    """What makes a name: the hash of its statements, if it has any, and what they refer to."""

    digest: str | None = None
    further: tuple[Reference, ...] = ()


def _in_a_notebook(module: str, name: str, function: Callable[..., Any]) -> Definition:
    """Return what makes a name of a notebook, of which only functions can be read."""
    value = getattr(function, "__globals__", {}).get(name)
    if not inspect.isfunction(value) or value.__module__ != module:
        return Definition()
    try:
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))
    except OSError:
        return Definition()
    return _made(ast.parse(text).body, module, _globals(value))


@functools.cache  # many studies reach the same definitions
def _written(module: str, name: str) -> Definition:
    """Return what makes a name of a file."""
    source = _source(module)
    assert source is not None
    if name == "*":
        return Definition(None, tuple(Reference(module, one) for one in source.made))
    if name in source.imported and name not in source.made:
        return Definition(None, (source.imported[name],))
    if _is_module(f"{module}.{name}"):
        return Definition()  # a package's module: its own names are followed where they are used
    here = {one: Reference(module, one) for one in source.made} | source.imported
    return _made([*source.made.get(name, []), *source.loose], module, here)


def _made(statements: list[ast.stmt], module: str, known: Mapping[str, Reference]) -> Definition:
    further = tuple(one for each in statements for one in _named(each, module, known))
    return Definition(_digest(statements) if statements else None, further)


class Source(NamedTuple):
    """A module as it is written: who makes which name, what it imports, and what it does."""

    made: dict[str, list[ast.stmt]]
    imported: dict[str, Reference]
    loose: list[ast.stmt]


@functools.cache
def _source(module: str) -> Source | None:
    path = _path(module)
    if path is None:
        return None
    made: dict[str, list[ast.stmt]] = {}
    imported: dict[str, Reference] = {}
    loose: list[ast.stmt] = []
    waiting = list(ast.parse(path.read_text(encoding="utf-8")).body)
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for statement in waiting:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imported |= _imports(statement, package)
        elif isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test):
            continue
        elif isinstance(statement, ast.If | ast.Try | ast.With):
            waiting += [one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.stmt)]
        elif isinstance(statement, ast.Expr):
            loose += [] if isinstance(statement.value, ast.Constant) else [statement]
        else:
            for name in _makes(statement):
                made.setdefault(name, []).append(statement)
    return Source(made, imported, loose)


def _path(module: str) -> Path | None:
    """Return the file of a module; of a package that loads lazily, the stub with its names."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    path = Path(spec.origin)
    return path.with_suffix(".pyi") if path.with_suffix(".pyi").exists() else path


@functools.cache
def _is_module(name: str) -> bool:
    return _path(name) is not None


def _makes(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    else:
        for node in ast.walk(statement):
            # `A[0] = 1` and `A.b = 1` change A
            if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
                inner = node.value
                while isinstance(inner, ast.Subscript | ast.Attribute):
                    inner = inner.value
                if isinstance(inner, ast.Name):
                    yield inner.id
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _imports(statement: ast.Import | ast.ImportFrom, package: str) -> dict[str, Reference]:
    if isinstance(statement, ast.Import):
        names = [(one.asname or one.name.partition(".")[0], one) for one in statement.names]
        return {name: Reference(one.name if one.asname else name, "") for name, one in names}
    origin = statement.module or ""
    if statement.level:
        parent = ".".join(package.split(".")[: len(package.split(".")) - statement.level + 1])
        origin = f"{parent}.{origin}" if origin else parent
    ours = origin.partition(".")[0] in (*ROOTS, package.partition(".")[0])
    return {one.asname or one.name: _reference(origin, one.name, ours) for one in statement.names}


def _reference(origin: str, name: str, ours: bool) -> Reference:
    """Return what an import brings; a module goes without a name."""
    whole = f"{origin}.{name}"
    return Reference(whole, "") if ours and _is_module(whole) else Reference(origin, name)


def _globals(function: Callable[..., Any]) -> Mapping[str, Reference]:
    """Return what a function's names may refer to."""
    module = function.__module__
    source = _source(module)
    if source is not None:
        return {name: Reference(module, name) for name in source.made} | source.imported
    found = {}
    for name, value in getattr(function, "__globals__", {}).items():
        if inspect.ismodule(value):
            found[name] = Reference(value.__name__, "")
        elif inspect.isfunction(value) or inspect.isclass(value):
            found[name] = Reference(value.__module__, value.__qualname__)
    return found


def _named(statement: ast.AST, module: str, known: Mapping[str, Reference]) -> Iterator[Reference]:
    """Yield what a statement refers to, outside of its errors and annotations."""
    tree = _essence(statement)
    local: dict[str, Reference] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            local |= _imports(node, module)
    known = {**known, **local}
    followed = set()
    for node in ast.walk(tree):
        # module.name, also where the module has a path of its own: package.module.name
        chain = _chain(node)
        if len(chain) > 1 and chain[0] in known and known[chain[0]].name == "":
            place, rest = known[chain[0]].module, chain[1:]
            while len(rest) > 1 and _is_module(f"{place}.{rest[0]}"):
                place, rest = f"{place}.{rest[0]}", rest[1:]
            yield Reference(place, rest[0])
            followed.add(id(_root(node)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in known and id(node) not in followed:
            target = known[node.id]
            yield target if target.name else Reference(target.module, "*")


def _chain(node: ast.AST) -> list[str]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) and names else []


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


class _Essence(ast.NodeTransformer):
    """Takes away what does not change a result."""

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.copy_location(ast.Raise(), node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        node.returns = None
        # which grid a study runs on, and within what it is compared, is not what a cell does
        node.decorator_list = [one for one in node.decorator_list if not _is_study(one)]
        return self._undocumented(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.generic_visit(node)
        return self._undocumented(node)

    def _undocumented(self, node: Any) -> Any:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node


def _is_study(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("study")


def _essence(statement: ast.AST) -> Any:
    copy = ast.parse(ast.unparse(statement)) if isinstance(statement, ast.stmt) else statement
    return _Essence().visit(copy)


def _digest(statements: list[ast.stmt]) -> str:
    text = "\n".join(
        ast.unparse(ast.fix_missing_locations(_essence(statement))) for statement in statements
    )
    return hashlib.sha256(text.encode()).hexdigest()[:10]
