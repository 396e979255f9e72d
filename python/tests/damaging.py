"""Bytes of a store that get lost on the disk."""

import os
import pathlib


def damage(folder):
    """Overwrites 40 bytes in the middle of the largest stripe object."""
    largest = max(pathlib.Path(folder).glob("shares/*/*.data"), key=lambda f: f.stat().st_size)
    with open(largest, "r+b") as file:
        file.seek(largest.stat().st_size // 2)
        file.write(os.urandom(40))
