// Asks Apache Kafka's own server-side assignors and its own hash of topics, line by line; tests/groups/kafka_assignors.py writes
// the questions. Run by `java -cp '<Apache Kafka's jars>/*' Assignors.java`.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class Assignors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] fields = line.split("\t", -1);
            System.out.println(fields[0].equals("hash") ? hash(fields) : assign(fields));
            System.out.flush();
        }
    }

    private static List<String> parts(String text, String separator) {
        return text.isEmpty() ? List.of() : Arrays.asList(text.split(separator, -1));
    }

    // assignor, "true" if homogeneous, topic=partitions,…, then for each member: name, instance, topic,…, topic:1.2.3,…
    private static String assign(String[] fields) throws Exception {
        PartitionAssignor assignor = fields[0].equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : parts(fields[2], ",")) {
            counts.put(Uuid.fromString(topic.split("=")[0]), Integer.parseInt(topic.split("=")[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int at = 3; at + 3 < fields.length; at += 4) {
            Set<Uuid> topics = new HashSet<>();
            for (String topic : parts(fields[at + 2], ",")) topics.add(Uuid.fromString(topic));
            List<ConsumerGroupTargetAssignmentMemberValue.TopicPartition> stored = new ArrayList<>();
            for (String owned : parts(fields[at + 3], ",")) {
                Uuid topic = Uuid.fromString(owned.split(":")[0]);
                List<Integer> partitions = new ArrayList<>();
                for (String index : parts(owned.split(":")[1], "\\.")) {
                    partitions.add(Integer.parseInt(index));
                    owners.computeIfAbsent(topic, key -> new HashMap<>()).put(Integer.parseInt(index), fields[at]);
                }
                stored.add(new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                    .setTopicId(topic).setPartitions(partitions));
            }
            members.put(fields[at], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(),
                fields[at + 1].isEmpty() ? Optional.empty() : Optional.of(fields[at + 1]),
                topics,
                Assignment.fromRecord(new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(stored))));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                return counts.getOrDefault(topic, -1);
            }

            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        SubscriptionType type = fields[1].equals("true") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        TreeMap<String, String> answers = new TreeMap<>();
        assignor.assign(new GroupSpecImpl(members, type, owners), describer).members().forEach((name, assignment) -> {
            TreeSet<String> topics = new TreeSet<>();
            assignment.partitions().forEach((topic, partitions) -> topics.add(topic + ":" + new TreeSet<>(partitions)));
            answers.put(name, topics.toString());
        });
        return answers.toString();
    }

    // "hash", then for each topic: name, id, and for each partition its racks: a,b;a;…
    private static String hash(String[] fields) {
        Map<String, Long> hashes = new HashMap<>();
        for (int at = 1; at + 2 < fields.length; at += 3) {
            String name = fields[at];
            Uuid id = Uuid.fromString(fields[at + 1]);
            List<String> partitions = Arrays.asList(fields[at + 2].split(";", -1));
            CoordinatorMetadataImage.TopicMetadata topic = new CoordinatorMetadataImage.TopicMetadata() {
                public String name() {
                    return name;
                }

                public Uuid id() {
                    return id;
                }

                public int partitionCount() {
                    return partitions.size();
                }

                public List<String> partitionRacks(int partition) {
                    return new ArrayList<>(parts(partitions.get(partition), ","));
                }
            };
            hashes.put(name, Utils.computeTopicHash(name, new OneTopic(topic)));
        }
        return hashes.size() + " " + Utils.computeGroupHash(hashes);
    }

    private record OneTopic(CoordinatorMetadataImage.TopicMetadata topic) implements CoordinatorMetadataImage {
        public Set<Uuid> topicIds() {
            return Set.of(topic.id());
        }

        public Set<String> topicNames() {
            return Set.of(topic.name());
        }

        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.of(topic);
        }

        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.of(topic);
        }

        public CoordinatorMetadataDelta emptyDelta() {
            throw new UnsupportedOperationException();
        }

        public long version() {
            return 1;
        }

        public boolean isEmpty() {
            return false;
        }
    }
}
