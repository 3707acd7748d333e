import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZoneOffset;
import java.util.HexFormat;
import org.apache.spark.types.variant.Variant;
import org.apache.spark.types.variant.VariantBuilder;

/** Spark's variants: lines of hex metadata and value to JSON, or lines of JSON to hex metadata and value. */
public final class Variants {
    public static void main(String[] arguments) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[1]), StandardCharsets.UTF_8)) {
            out.append(arguments[0].equals("to_json") ? toJson(line) : fromJson(line)).append('\n');
        }
        Files.writeString(Path.of(arguments[2]), out.toString(), StandardCharsets.UTF_8);
    }

    private static String toJson(String line) {
        String[] parts = line.split(" ");
        try {
            return new Variant(HexFormat.of().parseHex(parts[1]), HexFormat.of().parseHex(parts[0])).toJson(ZoneOffset.UTC);
        } catch (RuntimeException error) {
            return "error: " + error.getMessage();
        }
    }

    private static String fromJson(String line) throws Exception {
        Variant variant = VariantBuilder.parseJson(line, false);
        return HexFormat.of().formatHex(variant.getMetadata()) + " " + HexFormat.of().formatHex(variant.getValue());
    }
}
