"""Files of other formats whose elements are used where they lie: what these formats say of them."""
