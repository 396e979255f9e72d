"""Sentences of the pages under "Start" and "How to" are short, and what the sources read of the environment is documented.

    check_prose.py TREE

A sentence ends with a full stop, a question mark or an exclamation mark.  Code in a line counts as one word.  A cell of a
table, an item of a list and a heading are sentences of their own.
"""

import pathlib
import re
import sys

most_words = 30


def pages(tree):
    """Those that docs/index.md lists under the two captions."""
    for caption, listed in re.findall(r":caption: (.*)\n(?::.*\n)*\n((?:[\w/.-]+\n)+)", (tree / "docs/index.md").read_text()):
        if caption in ("Start", "How to"):
            yield from (tree / "docs" / f"{name}.md" for name in listed.split())


def pieces(text):
    """Paragraphs, items and cells, without code."""
    text = re.sub(r"^( *)(```+).*?^ *\2 *$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ *(?:[-*]|\d+\.|#+|>) +", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\|.*\|$", lambda row: "\n\n" + row[0].replace("|", "\n\n") + "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    return re.split(r"\n\s*\n", text)


def long_sentences(text):
    for piece in pieces(text):
        for sentence in re.split(r"(?<=[.?!])[)\"*]*\s+", " ".join(piece.split())):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > most_words:
                yield f"{len(words)} words: {sentence}"


def undocumented(tree):
    known = (tree / "docs/environment.md").read_text()
    for folder in ("include", "src", "servers", "tools", "python/oocarray", "python/src"):
        for path in sorted((tree / folder).rglob("*.[chp]*")):
            for name in re.findall(r'"(OOC_[A-Z_]+)"', path.read_text(errors="replace")):
                if f"`{name}`" not in known:
                    yield f"docs/environment.md lacks {name}, which {path.relative_to(tree)} reads"


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    checked = list(pages(tree))
    found = [f"{page.relative_to(tree)}: {fault}" for page in checked for fault in long_sentences(page.read_text())]
    if (tree / "docs/environment.md").exists():
        found += sorted(set(undocumented(tree)))
    print("\n".join(found) or f"{len(checked)} pages")
    return bool(found) or not checked


sys.exit(main())
