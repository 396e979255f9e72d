# The compiled module is for the package alone, which has the types that users see.
from typing import Any

import numpy as np

# To a type checker an Array is a NumPy array: it has all names of one, and is an argument and an out= of functions.
class ArrayBase(np.ndarray[Any, np.dtype[Any]]): ...

def __getattr__(name: str) -> Any: ...
