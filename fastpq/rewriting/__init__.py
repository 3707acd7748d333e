"""Files made of files without decoding their values: encrypted, decrypted, under other keys, merged."""
