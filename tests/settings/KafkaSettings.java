import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.*;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints, as JSON, what Apache Kafka itself says of its settings. Standard input holds {"scope": {"name": ["sample", ...]}};
 * each sample comes back with Kafka's verdict.
 */
public class KafkaSettings {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        Map<?, ?> samples = json.readValue(System.in, Map.class);
        Map<String, Object> answer = new TreeMap<>();
        answer.put("broker", describe(AbstractKafkaConfig.CONFIG_DEF.configKeys(), samples.get("broker")));
        answer.put("dynamic", describe(DynamicConfig.Broker.configKeys(), samples.get("dynamic")));
        answer.put("topic", describe(LogConfig.configKeys(), samples.get("topic")));
        answer.put("group", describe(GroupConfig.CONFIG_DEF.configKeys(), samples.get("group")));
        answer.put("client-metrics", describe(ClientMetricsConfigs.configDef().configKeys(), samples.get("client-metrics")));
        answer.put("update_modes", new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes()));
        Map<String, List<String>> synonyms = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, list) -> synonyms.put(name, list.stream().map(ConfigSynonym::name).toList()));
        answer.put("topic_synonyms", synonyms);
        Map<String, String> groupSynonyms = new TreeMap<>();
        GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach((name, synonym) -> groupSynonyms.put(name, synonym.orElse(null)));
        answer.put("group_synonyms", groupSynonyms);
        Map<String, List<String>> brokerSynonyms = new TreeMap<>();
        for (String name : AbstractKafkaConfig.CONFIG_DEF.names()) brokerSynonyms.put(name, DynamicBrokerConfig.brokerConfigSynonyms(name, true));
        answer.put("broker_synonyms", brokerSynonyms);
        answer.put("environment", fromEnvironment(samples.get("environment")));
        json.writeValue(System.out, answer);
    }

    /** What the start script of Apache Kafka's image makes of environment variables: lines of name=value. */
    private static List<String> fromEnvironment(Object variables) {
        Map<String, String> given = new TreeMap<>();
        if (variables instanceof Map<?, ?> map) map.forEach((name, value) -> given.put((String) name, (String) value));
        scala.collection.immutable.Map<String, String> environment =
            scala.collection.immutable.Map$.MODULE$.from(scala.jdk.javaapi.CollectionConverters.asScala(given));
        return scala.jdk.javaapi.CollectionConverters.asJava(kafka.docker.KafkaDockerWrapper$.MODULE$.getServerConfigsFromEnv(environment));
    }

    private static List<Object> describe(Map<String, ConfigDef.ConfigKey> keys, Object samplesOfScope) {
        Map<?, ?> samples = samplesOfScope == null ? Map.of() : (Map<?, ?>) samplesOfScope;
        List<Object> rows = new ArrayList<>();
        for (ConfigDef.ConfigKey key : new TreeMap<>(keys).values()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("name", key.name);
            row.put("type", key.type.name());
            row.put("has_default", key.hasDefault());
            row.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            row.put("validator", key.validator == null ? null : key.validator.toString());
            row.put("validator_class", key.validator == null ? null : key.validator.getClass().getSimpleName());
            row.put("importance", key.importance.name());
            row.put("internal", key.internalConfig);
            Map<String, Object> verdicts = new LinkedHashMap<>();
            if (samples.get(key.name) instanceof List<?> list) for (Object sample : list) verdicts.put((String) sample, verdict(key, (String) sample));
            row.put("verdicts", verdicts);
            row.put("documentation", key.documentation);
            rows.add(row);
        }
        return rows;
    }

    private static boolean verdict(ConfigDef.ConfigKey key, String sample) {
        try {
            Object parsed = ConfigDef.parseType(key.name, sample, key.type);
            if (key.validator != null) key.validator.ensureValid(key.name, parsed);
            return true;
        } catch (RuntimeException refused) {
            return false;
        }
    }
}
