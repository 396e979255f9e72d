"""Files of other formats whose elements are used where they lie, and arrays as others read them: what these formats say."""
