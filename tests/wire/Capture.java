import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Prints what Apache Kafka's own serializers make of every message in every version, filled by the rule of values.py:
 * a counter goes up with every leaf, plain fields come in their order and tagged ones after them by tag, and each
 * leaf's value follows from the counter alone. Message classes and their versions' schemas are found by reflection.
 */
public class Capture {
    static final List<String> PACKAGES = List.of(
        "org/apache/kafka/common/message/", "org/apache/kafka/common/metadata/", "org/apache/kafka/raft/generated/",
        "org/apache/kafka/coordinator/group/generated/", "org/apache/kafka/coordinator/transaction/generated/",
        "org/apache/kafka/coordinator/share/generated/");

    enum Variant { FULL, NULL, DEFAULT, LONG }

    final Variant variant;
    int counter = 0;

    Capture(Variant variant) {
        this.variant = variant;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (Map.Entry<String, Class<?>> each : messageClasses().entrySet()) {
            short first = each.getValue().getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            short last = each.getValue().getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            for (short version = first; version <= last; version++) {
                for (Variant variant : Variant.values()) {
                    if (variant != Variant.LONG || version == last) {
                        print(out, each.getKey(), version, variant, each.getValue());
                    }
                }
            }
        }
        out.flush();
    }

    static Map<String, Class<?>> messageClasses() throws Exception {
        Map<String, Class<?>> found = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            String file = new File(path).getName();
            if (!file.startsWith("kafka") || !file.endsWith(".jar")) continue;
            try (JarFile jar = new JarFile(path)) {
                for (String entry : (Iterable<String>) jar.stream().map(e -> e.getName())::iterator) {
                    String folder = entry.substring(0, entry.lastIndexOf('/') + 1);
                    if (!PACKAGES.contains(folder) || !entry.endsWith(".class") || entry.contains("$")) continue;
                    Class<?> kind = Class.forName(entry.substring(0, entry.length() - 6).replace('/', '.'));
                    if (ApiMessage.class.isAssignableFrom(kind)) found.put(kind.getSimpleName(), kind);
                }
            }
        }
        return found;
    }

    static void print(PrintStream out, String name, short version, Variant variant, Class<?> kind) throws Exception {
        ApiMessage message = (ApiMessage) kind.getDeclaredConstructor().newInstance();
        if (variant != Variant.DEFAULT) {
            Schema schema = ((Schema[]) kind.getField("SCHEMAS").get(null))[version];
            new Capture(variant).fill(message, schema);
        }
        ByteBuffer bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        line(out, name, version, variant.name().toLowerCase(), bytes);
        if (variant != Variant.FULL) return;
        if (kind.getPackageName().equals("org.apache.kafka.common.metadata")) {
            ApiMessageAndVersion record = new ApiMessageAndVersion(message, version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer framed = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(framed));
            line(out, name, version, "framed", framed.flip());
        } else if (kind.getPackageName().startsWith("org.apache.kafka.coordinator")) {
            boolean isKey = name.endsWith("Key");
            line(out, name, version, "framed", isKey
                ? MessageUtil.toCoordinatorTypePrefixedByteBuffer(message)
                : MessageUtil.toVersionPrefixedByteBuffer(version, message));
        }
    }

    static void line(PrintStream out, String name, short version, String variant, ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        String hex = copy.length == 0 ? "-" : HexFormat.of().formatHex(copy);
        out.print(name + " " + version + " " + variant + " " + hex + "\n");
    }

    void fill(Message message, Schema schema) throws Exception {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (var field : new TreeMap<>(tagged.fields()).values()) set(message, field.name, field.type);
            } else {
                set(message, bound.def.name, bound.def.type);
            }
        }
    }

    void set(Message message, String snakeName, Type type) throws Exception {
        for (Field field : message.getClass().getDeclaredFields()) {
            if (field.getName().equalsIgnoreCase(snakeName.replace("_", ""))) {
                field.setAccessible(true);
                field.set(message, value(type, field.getType(), field.getGenericType()));
                return;
            }
        }
        throw new IllegalStateException(message.getClass() + " has no field " + snakeName);
    }

    Object value(Type type, Class<?> kind, java.lang.reflect.Type generic) throws Exception {
        if (variant == Variant.NULL && type.isNullable()) return null;
        if (type.isArray()) return array(type.arrayElementType().get(), kind, generic);
        if (type instanceof Schema schema) {
            Message nested = (Message) kind.getDeclaredConstructor().newInstance();
            fill(nested, schema);
            return nested;
        }
        return leaf(type.toString(), kind);
    }

    @SuppressWarnings("unchecked")
    Object array(Type element, Class<?> kind, java.lang.reflect.Type generic) throws Exception {
        // A field is a List of something, or a generated collection that extends one of something.
        java.lang.reflect.Type holder = generic instanceof ParameterizedType ? generic : kind.getGenericSuperclass();
        Class<?> inner = (Class<?>) ((ParameterizedType) holder).getActualTypeArguments()[0];
        Collection<Object> values = kind == List.class
            ? new ArrayList<>() : (Collection<Object>) kind.getDeclaredConstructor().newInstance();
        boolean isStructure = element instanceof Schema;
        int count = variant == Variant.NULL ? 0 : variant == Variant.FULL ? 2 : isStructure ? 1 : 40;
        for (int i = 0; i < count; i++) values.add(value(element, inner, inner));
        return values;
    }

    Object leaf(String type, Class<?> kind) {
        int n = ++counter;
        boolean isLong = variant == Variant.LONG;
        switch (type.replace("COMPACT_", "").replace("NULLABLE_", "")) {
            case "BOOLEAN": return n % 2 == 1;
            case "INT8": return (byte) (n % 128);
            case "INT16": return (short) (n * 257 % 32768);
            case "UINT16": return n * 4099 % 65536;
            case "INT32": return (int) (n * 16777619L % 2147483648L);
            case "UINT32": return n * 3000000019L % 4294967296L;
            case "INT64": return n * 72057594037927L;
            case "FLOAT64": return n + 0.5;
            case "STRING": return "s" + n + (n % 3 == 0 ? "\u00fc\u20ac\ud834\udd1e" : "") + (isLong && n % 4 == 1 ? "x".repeat(140) : "");
            case "UUID": return uuid(n);
            case "BYTES": return kind == ByteBuffer.class ? ByteBuffer.wrap(run(n, isLong ? 150 : 3)) : run(n, isLong ? 150 : 3);
            case "RECORDS": return MemoryRecords.readableRecords(ByteBuffer.wrap(run(n, isLong ? 17000 : 20)));
            default: throw new IllegalStateException("no rule for " + type);
        }
    }

    static Uuid uuid(int n) {
        ByteBuffer bytes = ByteBuffer.wrap(run(n, 16));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }

    static byte[] run(int n, int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) bytes[i] = (byte) (n + i);
        return bytes;
    }
}
