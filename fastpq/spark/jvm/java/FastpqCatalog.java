package io.fastpq.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Paths as tables: fastpq.`/folder` in SQL, with the setting spark.sql.catalog.fastpq.
 *
 * Options for every path are settings below that name (spark.sql.catalog.fastpq.kms.client).
 */
public final class FastpqCatalog implements TableCatalog {
    private String name;
    private Map<String, String> options;

    @Override
    public void initialize(String given, CaseInsensitiveStringMap settings) {
        name = given;
        options = settings.asCaseSensitiveMap();
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Table loadTable(Identifier path) throws NoSuchTableException {
        if (path.namespace().length > 0) {
            throw new NoSuchTableException(path);
        }
        Map<String, String> all = new java.util.HashMap<>(options);
        all.put("path", path.name());
        return new FastpqProvider().tableOf(new CaseInsensitiveStringMap(all));
    }

    @Override
    public Identifier[] listTables(String[] namespace) {
        return new Identifier[0];       // every path is one
    }

    @Override
    public Table createTable(Identifier path, StructType schema, Transform[] partitions, Map<String, String> properties) {
        throw fixed();
    }

    @Override
    public Table alterTable(Identifier path, TableChange... changes) {
        throw fixed();
    }

    @Override
    public boolean dropTable(Identifier path) {
        throw fixed();
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw fixed();
    }

    private static UnsupportedOperationException fixed() {
        return new UnsupportedOperationException("paths are read as tables, and not made, changed or dropped as such");
    }
}
