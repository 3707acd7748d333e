"""Files made of files without decoding their values: encrypted, decrypted, under other keys, merged.

files has the functions. Each column chunk is copied by chunk_copy, its pages by page_copy. redaction removes values from the
key-value metadata of an encrypted file, and report names the parts left out.
"""
