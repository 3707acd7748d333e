import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.KmsClient;

/** The key service of file_kms.py for parquet-java: master keys in the file that FASTPQ_DEMO_KEYS names. */
public final class FileKms implements KmsClient {
    private final Map<String, byte[]> keys = new HashMap<>();

    @Override
    public void initialize(Configuration configuration, String instance, String url, String token) {
        try {
            for (String line : Files.readAllLines(Path.of(System.getenv("FASTPQ_DEMO_KEYS")))) {
                String[] entry = line.split(":");
                keys.put(entry[0], HexFormat.of().parseHex(entry[1]));
            }
        } catch (IOException error) {
            throw new IllegalStateException("the file of master keys cannot be read", error);
        }
    }

    @Override
    public String wrapKey(byte[] key, String masterKey) {
        return KeyToolkit.encryptKeyLocally(key, keys.get(masterKey), masterKey.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public byte[] unwrapKey(String wrapped, String masterKey) {
        return KeyToolkit.decryptKeyLocally(wrapped, keys.get(masterKey), masterKey.getBytes(StandardCharsets.UTF_8));
    }
}
