"""The papers' experiments on this system: see ../README.md."""
