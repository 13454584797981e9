"""Copy the executed pages to a folder, each with a first cell that installs what it needs.

Colab opens one notebook and nothing else: the cell fetches the release, so that the chapter finds
the package, its experiments and the shipped data.
"""

import sys
import zipfile
from pathlib import Path

import nbformat

REPOSITORY = "https://github.com/dp-auditkit/dp-auditkit"
SETUP = """\
!git clone --quiet --depth 1 --branch {tag} {repository} book
%pip install --quiet -e book[chapters]
import sys
from pathlib import Path
# a running kernel does not see what was installed in place
sys.path[:0] = [str(Path("book").resolve()), str(Path("book/chapters").resolve())]
%cd book/{folder}"""
FOLDERS = ("chapters", "chapters/appendices", "book")

if __name__ == "__main__":
    tag, target = sys.argv[1], Path(sys.argv[2])
    for folder in FOLDERS:
        (target / folder).mkdir(parents=True)
        for path in sorted(Path("_build/jupyter_execute", folder).glob("*.ipynb")):
            notebook = nbformat.read(path, as_version=4)
            setup = SETUP.format(tag=tag, repository=REPOSITORY, folder=folder)
            notebook.cells.insert(0, nbformat.v4.new_code_cell(setup))
            nbformat.write(notebook, target / folder / path.name)
    with zipfile.ZipFile("_build/html/book/auditkit-student.zip") as students:
        students.extractall(target)
