"""Relative links of all documents lead somewhere, anchors too, and pages that are to be short are.

    check_links.py TREE

A file that a document names from the top of the tree, as `src/storage/base/mutex.hpp`, is there.

A test that a document names, as `tests/a_test.cpp::its name`, or the beginning of it, is in that file.
Anchors are GitHub's: the heading in small letters, without punctuation, with hyphens for spaces.
"""

import pathlib
import re
import sys

most_bytes = {"README.md": 8 * 1024, "docs/architecture.md": 20 * 1024}
most_bytes_of_decision = 3000  # unless it says why
code = "bench|cmake|examples|include|packaging|python|scripts|servers|src|tests|tools"  # folders of the tree


def documents(tree):
    for path in sorted(tree.rglob("*.md")):
        inside = path.relative_to(tree).parts
        if inside[0] != "build" and not any(part.startswith(".") or part == "node_modules" for part in inside):
            yield path


def prose(text):
    """The text without code, in which brackets are none of links."""
    return re.sub(r"^( *)(```+|~~~+).*?^ *\2 *$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    found = set()
    for heading in re.findall(r"^#{1,6} +(.*?) *#* *$", prose(path.read_text()), re.MULTILINE):
        heading = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (anchor := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(anchor)
    return found


def names(file, test):
    if not file.exists():
        return False
    text = re.sub(r'"\s*\n\s*"', "", file.read_text())  # a name over two lines
    return re.search(rf'(def |TEST_CASE\(\s*"){re.escape(test)}', text) is not None


def faults(tree):
    for path in documents(tree):
        for file, name in re.findall(r"`([\w./-]+)::([^`:]+)`", prose(path.read_text())):
            if (tree / file).suffix in (".py", ".cpp") and not names(tree / file, name):
                yield f"{path.relative_to(tree)}: {file} has no test '{name}'"
        for file in re.findall(rf"`((?:{code})/[\w./-]*\.\w+)`", prose(path.read_text())):
            if not (tree / file).exists() and not (path.parent / file).exists():
                yield f"{path.relative_to(tree)}: {file} is not there"
        text = re.sub(r"(`+)[^`].*?\1", "", prose(path.read_text()))
        for link in re.findall(r"\]\(<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?: +\"[^\"]*\")?\)", text):
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.is_relative_to(tree):
                yield f"{path.relative_to(tree)}: {link} leads out of the tree"
            elif not target.exists():
                yield f"{path.relative_to(tree)}: {link} does not exist"
            elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
                yield f"{path.relative_to(tree)}: {link} has no such heading"
    for name, most in most_bytes.items():
        if (tree / name).exists() and (tree / name).stat().st_size > most:
            yield f"{name} has {(tree / name).stat().st_size} bytes, more than {most}: move some to other pages"
    for path in sorted(tree.glob("docs/decisions/0*.md")):
        if path.stat().st_size > most_bytes_of_decision and "This page is longer than others" not in path.read_text():
            yield f"{path.relative_to(tree)} has {path.stat().st_size} bytes, more than {most_bytes_of_decision}: move figures to bench/"


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    found = list(faults(tree))
    print("\n".join(found) or f"{sum(1 for _ in documents(tree))} documents")
    return bool(found)


sys.exit(main())
