"""A header as doxygen is to see it: the comment at its beginning belongs to the file.

    prologue.py HEADER
"""

import pathlib
import re
import sys

lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
begin = next((i for i, line in enumerate(lines) if not re.match(r"//(?!/)", line)), len(lines))
text = "\n".join(["/// @file", *("/" + line for line in lines[:begin]), *lines[begin:]])
text = re.sub(r"^inline (namespace literals)", r"\1", text, flags=re.MULTILINE)  # else its members are there twice
text = re.sub(r"^ *friend \w+;\n", "", text, flags=re.MULTILINE)
print(text)
