import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.parquet.crypto.ColumnDecryptionProperties;
import org.apache.parquet.crypto.ColumnEncryptionProperties;
import org.apache.parquet.crypto.FileDecryptionProperties;
import org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.parquet.crypto.ParquetCipher;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroupFactory;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.ReadSupport;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.InputFile;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;

/**
 * parquet-java with explicit keys, for the tests: the peer that decides whether our encrypted files are right.
 *
 *   read  FILE FOOTER_KEY COLUMN=KEY,...         prints a line for each row, fields separated by tabs
 *   find  FILE FOOTER_KEY COLUMN=KEY,... ID      prints the rows of that id, of which all indexes of the file are asked
 *   write FILE FOOTER_KEY COLUMN=KEY,... ROWS    writes the columns id, price and name
 *
 * Keys are hexadecimal; "-" stands for none, of which without any column keys a plaintext file is read.
 */
public final class ExplicitKeys {
    private static final String SCHEMA =
            "message rows { required int64 id; optional double price; optional binary name (STRING); }";

    public static void main(String[] arguments) throws Exception {
        byte[] footerKey = arguments[2].equals("-") ? null : HexFormat.of().parseHex(arguments[2]);
        Map<String, byte[]> columnKeys = columnKeys(arguments[3]);
        if (arguments[0].equals("read")) {
            read(arguments[1], footerKey, columnKeys, FilterCompat.NOOP);
        } else if (arguments[0].equals("find")) {
            FilterPredicate wanted = FilterApi.eq(FilterApi.longColumn("id"), Long.parseLong(arguments[4]));
            read(arguments[1], footerKey, columnKeys, FilterCompat.get(wanted));
        } else {
            write(arguments[1], footerKey, columnKeys, Integer.parseInt(arguments[4]));
        }
    }

    private static Map<String, byte[]> columnKeys(String list) {
        Map<String, byte[]> keys = new HashMap<>();
        if (!list.equals("-")) {
            for (String entry : list.split(",")) {
                String[] sides = entry.split("=");
                keys.put(sides[0], HexFormat.of().parseHex(sides[1]));
            }
        }
        return keys;
    }

    private static void read(
            String file, byte[] footerKey, Map<String, byte[]> columnKeys, FilterCompat.Filter filter) throws Exception {
        Map<ColumnPath, ColumnDecryptionProperties> columns = new HashMap<>();
        for (Map.Entry<String, byte[]> entry : columnKeys.entrySet()) {
            ColumnPath path = ColumnPath.fromDotString(entry.getKey());
            columns.put(path, ColumnDecryptionProperties.builder(path).withKey(entry.getValue()).build());
        }
        FileDecryptionProperties.Builder keys = FileDecryptionProperties.builder().withColumnKeys(columns);
        if (footerKey != null) {
            keys = keys.withFooterKey(footerKey);
        }
        boolean plaintext = footerKey == null && columnKeys.isEmpty();
        InputFile input = new LocalInputFile(Paths.get(file));
        ParquetReader.Builder<Group> builder = new ParquetReader.Builder<Group>(input) {
            @Override
            protected ReadSupport<Group> getReadSupport() {
                return new GroupReadSupport();
            }
        };
        StringBuilder out = new StringBuilder();
        try (ParquetReader<Group> reader =
                builder.withDecryption(plaintext ? null : keys.build())
                        .withFilter(filter)
                        .usePageChecksumVerification()
                        .build()) {
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

    private static void write(String file, byte[] footerKey, Map<String, byte[]> columnKeys, int rows) throws Exception {
        Map<ColumnPath, ColumnEncryptionProperties> columns = new HashMap<>();
        for (Map.Entry<String, byte[]> entry : columnKeys.entrySet()) {
            ColumnPath path = ColumnPath.fromDotString(entry.getKey());
            columns.put(path, ColumnEncryptionProperties.builder(path).withKey(entry.getValue()).build());
        }
        FileEncryptionProperties keys = FileEncryptionProperties.builder(footerKey)
                .withAlgorithm(ParquetCipher.AES_GCM_V1)
                .withEncryptedColumns(columns.isEmpty() ? null : columns)
                .build();
        MessageType schema = MessageTypeParser.parseMessageType(SCHEMA);
        SimpleGroupFactory factory = new SimpleGroupFactory(schema);
        try (ParquetWriter<Group> writer = ExampleParquetWriter.builder(new LocalOutputFile(Paths.get(file)))
                .withType(schema)
                .withCompressionCodec(CompressionCodecName.SNAPPY)
                .withPageRowCountLimit(1000)
                .withEncryption(keys)
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
