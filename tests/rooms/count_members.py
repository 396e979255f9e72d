#!/usr/bin/env python3
"""Fails, naming them, where a class has more member functions than a reader can keep in mind.

    count_members.py CHECKOUT [CLASS...]      also says what is counted of these classes

Counted is what the class itself declares between its braces, private functions and overloads included;
not counted are constructors, destructors and assignment, and what is inherited.  It reads text, not C++: comments,
literals and the inside of brackets are dropped, and what is left up to a ';' or a body is a function if a name comes
before a '('.
"""
import pathlib
import re
import sys

MOST = 30
# The public array template has the interface of a container and of a file.
MORE = {"ooc_array": 1000}

CLASS = re.compile(
    r"\b(?:class|struct|union)\s+(?:\[\[[^\]]*\]\]\s*|alignas\s*\(\)\s*|OOC_\w+(?:\s*\(\))?\s+)*"
    r"(\w+(?:::\w+)*)\s*(?:<[^;]*>\s*)?(?:final\s*)?(?::(?!:)[^;]*)?$", re.S)
NO_FUNCTION = re.compile(r"(?:template\s*<.*>\s*)?(?:using|friend|typedef|static_assert|enum|class|struct|union)\b", re.S)
LABELS = re.compile(r"^(?:\s*(?:public|private|protected)\s*:(?!:))+")


def plain(text):
    """Without preprocessor lines and comments; literals are empty."""
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, lambda m: '""' if m[0][0] in "\"'" else " ", text, flags=re.S)


def end_of(text, at):
    """Past the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] in "({"
        depth -= text[i] in ")}"
        if depth == 0:
            return i + 1
    return len(text)


def function(statement, name):
    """The name of the function that the statement declares in class `name`, if that is to be counted."""
    s = re.sub(r"\bOOC_\w+\s*\(\)", "", LABELS.sub("", statement)).strip()
    if NO_FUNCTION.match(s):
        return None
    if named := re.search(r"\boperator\s*(\(\)|[^\s\w(]+|[\w:<>*& ]+?)\s*\(\)", s):
        return None if named[1] == "=" else "operator" + named[1]
    for _ in range(8):
        s = re.sub(r"<[^<>]*>", "", s)
    s = s.split("=")[0]
    named = re.search(r"(~?\w+)\s*\(\)", s)
    if not named or named[1].lstrip("~") in (name, "alignas", "decltype", "requires", "explicit"):
        return None
    return named[1]


def classes(text):
    """(class, names of its functions) for every class with a body."""
    found, open_classes, statement, i = [], [], "", 0
    while i < len(text):
        c = text[i]
        if c == "(":
            i = end_of(text, i)
            statement += "()"
            continue
        inner = CLASS.search(re.sub(r"^\s*template\s*<.*>\s*(?=class|struct)", "", LABELS.sub("", statement), flags=re.S))
        if c == "{" and (inner or re.search(r"\b(?:namespace\b[^;=]*|extern\s*\"\"\s*)$", statement)):
            open_classes.append((inner[1].split("::")[-1] if inner else None, []))
            statement = ""
        elif c == "{":
            i = end_of(text, i)
            if text[i:].lstrip()[:1] not in (",", ";", "{"):  # a body, and no initialiser
                if open_classes and open_classes[-1][0] and (f := function(statement, open_classes[-1][0])):
                    open_classes[-1][1].append(f)
                statement = ""
            continue
        elif c == "}":
            if open_classes:
                name, functions = open_classes.pop()
                if name:
                    found.append((name, functions))
            statement = "struct "  # up to its ';'
            if not open_classes or not name:
                statement = ""
        elif c == ";":
            if open_classes and open_classes[-1][0] and (f := function(statement, open_classes[-1][0])):
                open_classes[-1][1].append(f)
            statement = ""
        else:
            statement += c
        i += 1
    return found


def main():
    tree = pathlib.Path(sys.argv[1])
    problems, seen = [], 0
    for folder in ("include", "src", "servers", "tools"):
        for path in sorted((tree / folder).rglob("*.[ch]pp")):
            for name, functions in classes(plain(path.read_text())):
                seen += 1
                if len(functions) > MORE.get(name, MOST):
                    problems.append(f"{path.relative_to(tree)}: {name} has {len(functions)} member functions, more than "
                                    f"{MORE.get(name, MOST)}: make two classes of it")
                if name in sys.argv[2:]:
                    print(path.relative_to(tree), len(functions), " ".join(functions))
    if problems or not seen:
        sys.exit("\n".join(problems) or f"no class found under {tree}")


main()
