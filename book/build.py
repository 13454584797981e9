"""Build the site: run the notebooks side by side, then let Jupyter Book lay them out.

Five things that Jupyter Book leaves to chance are settled here.

- Its cache looks at a notebook's own cells. Change the package, the data or the lock and the page
  keeps the old numbers. The cache is therefore kept under a key, a hash of all three and of the
  profile, and dropped when the key changes.
- It runs notebooks one after another. They are run in parallel first; it then finds them cached.
- A cell that fails leaves nothing in the cache, so it fails again in every build.
- Kernels that run side by side have one thread each: more would only wait for one another.
- What a run takes, in seconds and memory, is written down for the page that says so.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import ProjectNb
from jupyter_cache.cache.main import JupyterCacheBase
from jupyter_cache.executors.basic import ExecutionWorkerLocalMProc, ProcessData
from jupyter_cache.executors.utils import ExecutionResult

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
KEYED = ("auditkit", "chapters/experiments", "data", "requirements.lock")


def main() -> int:
    """Build the book under the given root and return Sphinx's exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    root = parser.parse_args().root.resolve()
    os.environ["AUDITKIT_FIGURES"] = str(root / "_build" / "figures")
    for name in THREADS:
        os.environ.setdefault(name, "1")
    run_notebooks(root, fresh_cache(root))
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    options = ["-W", "-n", "--keep-going"]
    # the configuration names the cache relative to where the command runs
    return subprocess.run([jupyter_book, "build", ".", *options], cwd=root, check=False).returncode


def fresh_cache(root: Path) -> Path:
    """Return the notebook cache, emptied if what the notebooks stand on has changed."""
    cache, key = root / "_build" / ".jupyter_cache", root / "_build" / "cache-key"
    now = hash_of(keyed_files(root))
    if not key.exists() or key.read_text() != now:
        shutil.rmtree(root / "_build", ignore_errors=True)
        # numba compiles a kernel anew when its own file changes, but not when one it calls does
        for kernel in root.glob("auditkit/**/*.nb[ic]"):
            kernel.unlink()
        key.parent.mkdir()
        key.write_text(now)
    return cache


def keyed_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of everything that a notebook's output depends on."""
    for name in KEYED:
        top = root / name
        files = sorted(path for path in top.rglob("*") if path.is_file()) if top.is_dir() else [top]
        for path in files:
            if path.suffix not in {".pyc", ".nbi", ".nbc"}:
                yield path.relative_to(root).as_posix(), path.read_bytes()
    yield "profile", os.environ.get("AUDITKIT_PROFILE", "quick").encode()


def hash_of(files: Iterator[tuple[str, bytes]]) -> str:
    """Return one digest of names and contents; lengths keep neighbours from running together."""
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def run_notebooks(root: Path, cache_path: Path) -> None:
    """Execute side by side those notebooks that the cache does not hold."""
    cache = get_cache(cache_path)
    for path in notebooks(root):
        cache.add_nb_to_project(path, read_data={"name": "myst_nb_md", "type": "plugin"})
    if cache.list_unexecuted():
        execute(cache)


def execute(cache: JupyterCacheBase) -> None:
    """Run what is not cached; a failing notebook is left for Sphinx, which shows the traceback."""
    waiting = [
        ProcessData(record.pk, record.uri, cache, 900, False) for record in cache.list_unexecuted()
    ]
    # a process runs one notebook, so that its children's memory is that of the one kernel
    with multiprocessing.Pool(maxtasksperchild=1) as pool:
        for status, uri in pool.imap_unordered(Measured(), waiting):
            if status != 0:
                name = Path(uri).name
                print(f"failed: {name}; Sphinx runs it again and shows where", file=sys.stderr)


class Measured(ExecutionWorkerLocalMProc):
    """Runs a notebook and writes down how long it took and how much memory at most."""

    @staticmethod
    def execute(project_nb: ProjectNb, data: ProcessData) -> ExecutionResult:
        """Run it as Jupyter Cache does, then look at the kernel that has just ended."""
        result = ExecutionWorkerLocalMProc.execute(project_nb, data)
        page = Path(project_nb.uri)
        root = Path(os.environ["AUDITKIT_FIGURES"]).parents[1]
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        about = {
            "page": page.relative_to(root).with_suffix("").as_posix(),
            "profile": os.environ.get("AUDITKIT_PROFILE", "quick"),
            "seconds": round(result.time, 1),
            "megabytes": round(peak / (2**20 if sys.platform == "darwin" else 2**10)),
            "cores": os.cpu_count(),
        }
        folder = root / "_build" / "runs"
        folder.mkdir(exist_ok=True)
        name = about["page"].replace("/", "-")
        (folder / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")
        return result


def notebooks(root: Path) -> list[str]:
    """Return the notebooks among the pages of the table of contents."""
    pages = [
        root / f"{name}.md" for name in listed(yaml.safe_load((root / "_toc.yml").read_text()))
    ]
    return [str(page) for page in pages if "format_name: myst" in page.read_text()[:400]]


def listed(node: dict | list) -> Iterator[str]:
    """Yield every page that a part of the table of contents names."""
    if isinstance(node, list):
        for item in node:
            yield from listed(item)
        return
    for key in ("root", "file"):
        if key in node:
            yield node[key]
    for key in ("parts", "chapters", "sections"):
        yield from listed(node.get(key, []))


if __name__ == "__main__":
    sys.exit(main())
