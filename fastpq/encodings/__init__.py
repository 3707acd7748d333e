"""One file an encoding, with kernels in c/: views holds variable-length values, status the errors, registry the table of all."""
