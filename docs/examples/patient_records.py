"""Patients: a key for each group of columns, and a check that nobody altered the file."""

from make_data import patients

import fastpq
from fastpq.encryption import CryptoFactory, EncryptionConfiguration, Keyring, KmsConnectionConfig

keyring = Keyring.create("keyring.json", "a long passphrase")
for name in ("footer", "identity", "medical"):
    keyring.create_key(name)
factory, connection = CryptoFactory(lambda _: keyring), KmsConnectionConfig()

columns = {"identity": ["name", "born"], "medical": ["diagnosis"]}
encryption = EncryptionConfiguration(
    "footer", column_keys=columns, complete_columns=True, plaintext_footer=True
)
keys = factory.file_encryption_properties(
    connection, encryption, "patients.parquet", aad_prefix=b"patients"
)
fastpq.write_table(patients(), "patients.parquet", encryption_properties=keys)

# Anybody can tell which master keys a file needs.
print(*fastpq.inspect_encryption("patients.parquet").master_key_ids)

opening = factory.file_decryption_properties(connection)
with fastpq.ParquetFile("patients.parquet", decryption_properties=opening) as file:
    asthma = file.count([("diagnosis", "=", "J45")])
    print(f"{asthma} of {file.num_rows} patients have asthma")

# A flipped bit does not go unnoticed.
with open("patients.parquet", "r+b") as raw:
    raw.seek(5000)
    byte = raw.read(1)[0]
    raw.seek(5000)
    raw.write(bytes([byte ^ 1]))
report = fastpq.verify_file("patients.parquet", decryption_properties=opening)
print("sound after a flipped bit:", report.is_sound)
