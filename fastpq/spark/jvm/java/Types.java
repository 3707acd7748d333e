package io.fastpq.spark;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;

/** Types of columns as files have them. */
final class Types {
    private static final String PART_OF_VARIANT = "__VARIANT_METADATA_KEY";    // of Spark's VariantMetadata

    private Types() {}

    /** Whether a column has a default for files that lack the column. The workers would take null instead. */
    static boolean hasDefault(StructType table, String[] columns) {
        for (StructField field : table.fields()) {
            for (String column : columns) {
                if (field.name().equalsIgnoreCase(column) && field.getExistenceDefaultValue().isDefined()) {
                    return true;
                }
            }
        }
        return false;
    }

    /** A schema whose user-defined types are replaced by the types that store their values. */
    static StructType stored(StructType schema) {
        return (StructType) stored((DataType) schema);
    }

    static DataType stored(DataType type) {
        if (type instanceof UserDefinedType) {
            return stored(((UserDefinedType<?>) type).sqlType());
        }
        if (type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields().clone();
            for (int i = 0; i < fields.length; i++) {
                if (fields[i].metadata().contains(PART_OF_VARIANT)) {
                    throw new UnsupportedOperationException("the format fastpq reads variants as a whole: set "
                        + "spark.sql.variant.pushVariantIntoScan to false");
                }
                fields[i] =
                    new StructField(fields[i].name(), stored(fields[i].dataType()), fields[i].nullable(), fields[i].metadata());
            }
            return new StructType(fields);
        }
        if (type instanceof ArrayType) {
            return new ArrayType(stored(((ArrayType) type).elementType()), ((ArrayType) type).containsNull());
        }
        if (type instanceof MapType) {
            MapType map = (MapType) type;
            return new MapType(stored(map.keyType()), stored(map.valueType()), map.valueContainsNull());
        }
        return type;
    }
}
