import java.nio.ByteBuffer;
import java.nio.file.Paths;
import java.util.HexFormat;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.column.values.bloomfilter.BloomFilter;
import org.apache.parquet.filter2.compat.FilterCompat;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.internal.column.columnindex.ColumnIndex;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.parquet.io.LocalInputFile;

/**
 * Indexes as parquet-java sees them, for the tests: the peer that decides whether those that we write are right.
 *
 *   index FILE                   prints a line for each page: column, null page, null count, boundary order, bounds in hex,
 *                                first row and size
 *   bloom FILE COLUMN VALUE...   prints for each row group and each long value whether the bloom filter may hold it
 *   rows  FILE COLUMN VALUE      prints how many rows parquet-java reads for COLUMN = VALUE, after all kinds of pruning
 */
public final class Indexes {
    public static void main(String[] arguments) throws Exception {
        LocalInputFile input = new LocalInputFile(Paths.get(arguments[1]));
        if (arguments[0].equals("rows")) {
            System.out.println(rows(input, arguments[2], Long.parseLong(arguments[3])));
            return;
        }
        try (ParquetFileReader reader = ParquetFileReader.open(input)) {
            for (BlockMetaData block : reader.getFooter().getBlocks()) {
                for (ColumnChunkMetaData column : block.getColumns()) {
                    if (arguments[0].equals("index")) {
                        print(reader, column);
                    } else if (column.getPath().toDotString().equals(arguments[2])) {
                        probe(reader.readBloomFilter(column), arguments);
                    }
                }
            }
        }
    }

    private static void print(ParquetFileReader reader, ColumnChunkMetaData column) throws Exception {
        ColumnIndex index = reader.readColumnIndex(column);
        OffsetIndex offsets = reader.readOffsetIndex(column);
        for (int page = 0; offsets != null && page < offsets.getPageCount(); page++) {
            StringBuilder line = new StringBuilder(column.getPath().toDotString());
            if (index == null) {
                line.append("\t-\t-\t-\t-\t-");
            } else {
                line.append('\t').append(index.getNullPages().get(page));
                line.append('\t').append(index.getNullCounts().get(page));
                line.append('\t').append(index.getBoundaryOrder());
                line.append('\t').append(hex(index.getMinValues().get(page)));
                line.append('\t').append(hex(index.getMaxValues().get(page)));
            }
            line.append('\t').append(offsets.getFirstRowIndex(page)).append('\t').append(offsets.getCompressedPageSize(page));
            System.out.println(line);
        }
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private static void probe(BloomFilter filter, String[] arguments) {
        StringBuilder line = new StringBuilder();
        for (int i = 3; i < arguments.length; i++) {
            line.append(filter == null ? '-' : filter.findHash(filter.hash(Long.parseLong(arguments[i]))) ? '1' : '0');
        }
        System.out.println(line);
    }

    private static long rows(LocalInputFile input, String column, long value) throws Exception {
        FilterPredicate predicate = FilterApi.eq(FilterApi.longColumn(column), value);
        ParquetReadOptions options = ParquetReadOptions.builder()
                .withRecordFilter(FilterCompat.get(predicate))
                .useStatsFilter(true).useDictionaryFilter(true).useBloomFilter(true).useColumnIndexFilter(true)
                .build();
        long rows = 0;
        try (ParquetFileReader reader = ParquetFileReader.open(input, options)) {
            for (var pages = reader.readNextFilteredRowGroup(); pages != null; pages = reader.readNextFilteredRowGroup()) {
                rows += pages.getRowCount();
            }
        }
        return rows;
    }
}
