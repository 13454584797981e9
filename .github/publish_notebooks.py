"""Copy the executed chapters to a folder, each with a first cell that installs what it needs.

Colab opens one notebook and nothing else: the cell fetches the release, so that the chapter finds
the package, its experiments and the shipped data.
"""

import sys
from pathlib import Path

import nbformat

REPOSITORY = "https://github.com/dp-auditkit/dp-auditkit"
SETUP = """\
!git clone --quiet --depth 1 --branch {tag} {repository} book
%cd book/chapters
%pip install --quiet -e ..[chapters]"""

if __name__ == "__main__":
    tag, target = sys.argv[1], Path(sys.argv[2])
    target.mkdir(parents=True)
    for path in sorted(Path("_build/jupyter_execute/chapters").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        setup = SETUP.format(tag=tag, repository=REPOSITORY)
        notebook.cells.insert(0, nbformat.v4.new_code_cell(setup))
        nbformat.write(notebook, target / path.name)
