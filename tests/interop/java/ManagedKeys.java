import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.KmsClient;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroupFactory;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;

/**
 * parquet-java's key tools with a key service in memory, for the tests.
 *
 *   read   OPTIONS FILE ...       prints a line for each row of each file, fields separated by tabs
 *   write  OPTIONS FILE ROWS      writes the columns id, price and name
 *   rotate OPTIONS FOLDER         rotates the master keys of a folder
 *   digest OPTIONS FILE ...       prints for each file a line: number of rows, and a digest of their text, nested as they are
 *   copy   OPTIONS FILE FOLDER CASE ...
 *                                 writes the rows of a file anew for each case: FOLDER/NAME.parquet, where a case is
 *                                 NAME CODEC VERSION DICTIONARY OPTIONS, separated by semicolons, its options as above
 *
 * OPTIONS are name=value, separated by spaces: Hadoop properties without their parquet.encryption.
 */
public final class ManagedKeys {
    private static final String SCHEMA =
            "message rows { required int64 id; optional double price; optional binary name (STRING); }";

    /** Wraps with the keys under test.wrap, unwraps with those under test.unwrap: ID:HEX,ID:HEX. */
    public static final class Kms implements KmsClient {
        private Map<String, byte[]> wrapping;
        private Map<String, byte[]> unwrapping;

        @Override
        public void initialize(Configuration configuration, String instance, String url, String token) {
            wrapping = keys(configuration.get("test.wrap"));
            unwrapping = keys(configuration.get("test.unwrap"));
        }

        @Override
        public String wrapKey(byte[] key, String masterKey) throws KeyAccessDeniedException {
            return KeyToolkit.encryptKeyLocally(key, wrapping.get(masterKey), masterKey.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public byte[] unwrapKey(String wrapped, String masterKey) throws KeyAccessDeniedException {
            return KeyToolkit.decryptKeyLocally(
                    wrapped, unwrapping.get(masterKey), masterKey.getBytes(StandardCharsets.UTF_8));
        }

        private static Map<String, byte[]> keys(String list) {
            Map<String, byte[]> keys = new HashMap<>();
            for (String entry : list.split(",")) {
                String[] sides = entry.split(":");
                keys.put(sides[0], HexFormat.of().parseHex(sides[1]));
            }
            return keys;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(
                "parquet.crypto.factory.class", "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory");
        configuration.set("parquet.encryption.kms.client.class", Kms.class.getName());
        set(configuration, arguments[1]);
        if (arguments[0].equals("write")) {
            write(configuration, arguments[2], Integer.parseInt(arguments[3]));
        } else if (arguments[0].equals("rotate")) {
            KeyToolkit.rotateMasterKeys(arguments[2], configuration);
        } else if (arguments[0].equals("digest")) {
            for (int i = 2; i < arguments.length; i++) {
                System.out.println(digest(configuration, arguments[i]));
            }
        } else if (arguments[0].equals("copy")) {
            for (int i = 4; i < arguments.length; i++) {
                copy(configuration, arguments[2], arguments[3], arguments[i].split(";"));
            }
        } else {
            for (int i = 2; i < arguments.length; i++) {
                read(configuration, arguments[i]);
            }
        }
    }

    private static void set(Configuration configuration, String options) {
        for (String option : options.split(" ")) {
            String name = option.substring(0, option.indexOf('='));
            String full = name.startsWith("test.") ? name : "parquet.encryption." + name;
            configuration.set(full, option.substring(option.indexOf('=') + 1));
        }
    }

    private static ParquetReader<Group> open(Configuration configuration, String file) throws Exception {
        return ParquetReader.builder(new GroupReadSupport(), new Path(file))
                .withConf(configuration)
                .usePageChecksumVerification()
                .build();
    }

    private static String digest(Configuration configuration, String file) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        int rows = 0;
        try (ParquetReader<Group> reader = open(configuration, file)) {
            for (Group row = reader.read(); row != null; row = reader.read()) {
                digest.update(row.toString().getBytes(StandardCharsets.UTF_8));
                rows++;
            }
        }
        return rows + " " + HexFormat.of().formatHex(digest.digest());
    }

    private static void copy(Configuration common, String source, String folder, String[] parts) throws Exception {
        Configuration plain = new Configuration();
        Configuration configuration = new Configuration(common);
        set(configuration, parts[4].replace('|', ';'));
        ParquetWriter<Group> writer = null;
        try (ParquetReader<Group> reader = open(plain, source)) {
            for (Group row = reader.read(); row != null; row = reader.read()) {
                if (writer == null) {
                    writer = ExampleParquetWriter.builder(new Path(folder, parts[0] + ".parquet"))
                            .withConf(configuration)
                            .withType((MessageType) row.getType())
                            .withCompressionCodec(CompressionCodecName.valueOf(parts[1]))
                            .withWriterVersion(ParquetProperties.WriterVersion.fromString(parts[2]))
                            .withDictionaryEncoding(Boolean.parseBoolean(parts[3]))
                            .withPageRowCountLimit(70)
                            .withBloomFilterEnabled("name", true)
                            .build();
                }
                writer.write(row);
            }
        }
        writer.close();
    }

    private static void read(Configuration configuration, String file) throws Exception {
        StringBuilder out = new StringBuilder();
        try (ParquetReader<Group> reader =
                ParquetReader.builder(new GroupReadSupport(), new Path(file)).withConf(configuration).build()) {
            for (Group row = reader.read(); row != null; row = reader.read()) {
                for (int field = 0; field < row.getType().getFieldCount(); field++) {
                    boolean present = row.getFieldRepetitionCount(field) > 0;
                    out.append(field > 0 ? "\t" : "").append(present ? row.getValueToString(field, 0) : "null");
                }
                out.append('\n');
            }
        }
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    private static void write(Configuration configuration, String file, int rows) throws Exception {
        MessageType schema = MessageTypeParser.parseMessageType(SCHEMA);
        SimpleGroupFactory factory = new SimpleGroupFactory(schema);
        try (ParquetWriter<Group> writer = ExampleParquetWriter.builder(new Path(file))
                .withConf(configuration)
                .withType(schema)
                .withPageRowCountLimit(1000)
                .build()) {
            for (int i = 0; i < rows; i++) {
                Group row = factory.newGroup().append("id", (long) i);
                if (i % 3 != 0) {
                    row.append("price", i / 4.0);
                }
                if (i % 5 != 0) {
                    row.append("name", "name " + i % 7);
                }
                writer.write(row);
            }
        }
    }
}
