"""A user's client of a key service, in a file for ``spark-submit --py-files``."""

import os

from fastpq.encryption.keys import KmsConnectionConfig
from fastpq.spark.example.file_kms import VARIABLE, FileKms


class Client(FileKms):
    """FileKms, which has its master keys from a file that a variable names."""

    def __init__(self, config: KmsConnectionConfig) -> None:
        if VARIABLE not in os.environ:
            raise KeyError(f"{VARIABLE} is not set in this process")
        super().__init__(config)
