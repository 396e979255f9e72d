"""The modules of the package: which imports which."""

import ast
import graphlib
import pathlib

import oocarray

folder = pathlib.Path(oocarray.__file__).parent


class Imports(ast.NodeVisitor):
    """The modules of the package that a module needs when it runs, wherever it imports them."""

    def __init__(self):
        self.found = set()

    def visit_If(self, node):
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_ImportFrom(self, node):
        if node.level == 1:
            self.found |= {node.module} if node.module else {a.name for a in node.names}


def imports_of(module):
    visitor = Imports()
    visitor.visit(ast.parse(module.read_text()))
    return visitor.found


def test_modules_import_each_other_in_no_circle():
    graph = {m.stem: imports_of(m) for m in folder.glob("*.py") if m.stem != "__init__"}
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, with the circle
    assert order.index("_core") < order.index("_array") < order.index("_opening") < order.index("_store") < order.index("_places")


def test_no_module_is_longer_than_500_lines():
    assert not [m.name for m in folder.glob("*.py") if len(m.read_text().splitlines()) > 500]
