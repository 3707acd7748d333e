"""Jobs over datasets, with one task for each file: verify, encrypt, decrypt, rotate keys, compact."""
