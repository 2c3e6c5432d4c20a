/*
 * The least that a Kafka broker can do, so that the bench knows what a load generator reaches at most on a machine.
 *
 *     limit_broker <port> <directory> keeps-nothing|stores
 *
 * One thread, one epoll, no code in common with Millstream or Apache Kafka. A Produce is parsed just enough to find its
 * batches. `keeps-nothing` acknowledges them. `stores` does what no broker can leave out that keeps its records: it
 * checks each batch's CRC-32C, assigns offsets, writes the batch to its partition's file, and remembers where it is;
 * assigned consumers read it back by sendfile. Neither looks at a record, replicates, syncs, expires or recovers
 * anything, or knows producers, groups and transactions.
 *
 * All versions that it advertises are served; ApiVersions keeps clients from the others. What it does not understand
 * ends the connection, so that a mistake here is an error of the row and never a fast one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PRODUCE = 0,
    FETCH = 1,
    LIST_OFFSETS = 2,
    METADATA = 3,
    API_VERSIONS = 18,
    CREATE_TOPICS = 19,
    DELETE_TOPICS = 20,
    INIT_PRODUCER_ID = 22
};
enum {
    NONE = 0,
    OFFSET_OUT_OF_RANGE = 1,
    CORRUPT_MESSAGE = 2,
    UNKNOWN_TOPIC_OR_PARTITION = 3,
    UNSUPPORTED_VERSION = 35,
    TOPIC_ALREADY_EXISTS = 36,
    UNKNOWN_TOPIC_ID = 100
};

/* key, lowest version advertised, lowest served, highest, first flexible one. Produce is advertised from 0 on for
 * librdkafka (KAFKA-18659). */
static const struct api { int key, advertised, lowest, highest, flexible; } APIS[] = {
    {PRODUCE, 0, 3, 13, 9},      {FETCH, 4, 4, 13, 12},      {LIST_OFFSETS, 1, 1, 6, 6},  {METADATA, 0, 0, 12, 9},
    {API_VERSIONS, 0, 0, 4, 3},  {CREATE_TOPICS, 5, 5, 7, 5}, {DELETE_TOPICS, 6, 6, 6, 4},
    {INIT_PRODUCER_ID, 0, 0, 5, 2},
};
#define API_COUNT (sizeof APIS / sizeof *APIS)

#define BATCH_HEAD 61
#define RECEIVE_AT_ONCE (256 << 10)
#define FRAME_MAX (200 << 20)
#define TOPICS_MAX 4096

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *enlarged(void *memory, size_t size) {
    void *found = realloc(memory, size);
    if (!found) die("realloc");
    return found;
}

/* ---- CRC-32C: three streams at a time, since one instruction takes three cycles and three fit side by side ---- */

#define CRC_POLYNOMIAL 0x82f63b78u
#define CRC_BLOCK 1024
static uint32_t crc_bytes[256];
static uint32_t crc_skip[4][256]; /* what a CRC becomes behind CRC_BLOCK more bytes of zeros */

static void crc_prepare(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = n;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ CRC_POLYNOMIAL : crc >> 1;
        crc_bytes[n] = crc;
    }
    for (int byte = 0; byte < 4; byte++)
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t crc = n << 8 * byte;
            for (int i = 0; i < CRC_BLOCK; i++) crc = crc >> 8 ^ crc_bytes[crc & 255];
            crc_skip[byte][n] = crc;
        }
}

#if defined(__SSE4_2__) && defined(__x86_64__)
#include <nmmintrin.h>

static uint32_t skipped(uint32_t crc) {
    return crc_skip[0][crc & 255] ^ crc_skip[1][crc >> 8 & 255] ^ crc_skip[2][crc >> 16 & 255] ^ crc_skip[3][crc >> 24];
}

static uint64_t word_at(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static uint32_t crc32c(const uint8_t *at, size_t size) {
    uint64_t crc = 0xffffffffu;
    for (; size >= 3 * CRC_BLOCK; at += 3 * CRC_BLOCK, size -= 3 * CRC_BLOCK) {
        uint64_t second = 0, third = 0;
        for (int i = 0; i < CRC_BLOCK; i += 8) {
            crc = _mm_crc32_u64(crc, word_at(at + i));
            second = _mm_crc32_u64(second, word_at(at + CRC_BLOCK + i));
            third = _mm_crc32_u64(third, word_at(at + 2 * CRC_BLOCK + i));
        }
        crc = skipped(skipped((uint32_t)crc) ^ (uint32_t)second) ^ (uint32_t)third;
    }
    for (; size >= 8; at += 8, size -= 8) crc = _mm_crc32_u64(crc, word_at(at));
    for (; size; at++, size--) crc = _mm_crc32_u8((uint32_t)crc, *at);
    return (uint32_t)crc ^ 0xffffffffu;
}
#else
static uint32_t crc32c(const uint8_t *at, size_t size) {
    uint32_t crc = 0xffffffffu;
    for (; size; at++, size--) crc = crc >> 8 ^ crc_bytes[(crc ^ *at) & 255];
    return crc ^ 0xffffffffu;
}
#endif

/* ---- topics and their files ---- */

struct place { int64_t offset, position; }; /* of a batch's first record, and of the batch in the file */

struct partition {
    int file; /* -1 until the first batch */
    int64_t next_offset, size;
    struct place *places;
    size_t place_count, place_room;
};

struct topic {
    char *name;
    int name_size;
    uint8_t id[16];
    bool deleted;
    int partition_count;
    struct partition *partitions;
};

static struct topic topics[TOPICS_MAX];
static int topic_count;
static const char *directory;
static bool stores;
static uint16_t own_port;
static int64_t next_producer_id = 1000;
static bool appended; /* since waiting fetches were last looked at */

static struct topic *topic_named(const uint8_t *name, int size) {
    static int last;
    for (int tried = 0; tried < topic_count; tried++) {
        int index = (last + tried) % topic_count;
        struct topic *topic = &topics[index];
        if (!topic->deleted && topic->name_size == size && !memcmp(topic->name, name, size)) {
            last = index;
            return topic;
        }
    }
    return NULL;
}

static struct topic *topic_of_id(const uint8_t *id) {
    uint32_t index;
    memcpy(&index, id + 12, 4);
    index = be32toh(index);
    if (index >= (uint32_t)topic_count || topics[index].deleted || memcmp(topics[index].id, id, 16)) return NULL;
    return &topics[index];
}

static void path_of(const struct topic *topic, int index, char *path, size_t size) {
    snprintf(path, size, "%s/%s-%d.log", directory, topic->name, index);
}

static struct topic *topic_create(const uint8_t *name, int size, int partition_count) {
    if (topic_count == TOPICS_MAX) return NULL;
    struct topic *topic = &topics[topic_count];
    *topic = (struct topic){.name_size = size, .partition_count = partition_count};
    topic->name = strndup((const char *)name, size);
    memcpy(topic->id, "limit-broker", 12);
    uint32_t index = htobe32(topic_count);
    memcpy(topic->id + 12, &index, 4);
    topic->partitions = calloc(partition_count, sizeof *topic->partitions);
    if (!topic->partitions) die("calloc");
    for (int i = 0; i < partition_count; i++) topic->partitions[i].file = -1;
    topic_count++;
    return topic;
}

static void topic_delete(struct topic *topic) {
    char path[4096];
    for (int i = 0; i < topic->partition_count; i++) {
        struct partition *partition = &topic->partitions[i];
        if (partition->file < 0) continue;
        close(partition->file);
        path_of(topic, i, path, sizeof path);
        unlink(path);
        free(partition->places);
    }
    free(topic->partitions);
    topic->partitions = NULL;
    topic->partition_count = 0;
    topic->deleted = true;
}

static void file_open(struct topic *topic, int index) {
    char path[4096];
    path_of(topic, index, path, sizeof path);
    topic->partitions[index].file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (topic->partitions[index].file < 0) die(path);
}

/* The error code of one partition's batch, and its base offset. */
static int append(struct topic *topic, int index, uint8_t *batch, int64_t size, int64_t *base_offset) {
    if (!topic || index < 0 || index >= topic->partition_count) return UNKNOWN_TOPIC_OR_PARTITION;
    struct partition *partition = &topic->partitions[index];
    uint32_t length, crc, last_delta;
    if (size < BATCH_HEAD || batch[16] != 2) return CORRUPT_MESSAGE;
    memcpy(&length, batch + 8, 4);
    memcpy(&crc, batch + 17, 4);
    memcpy(&last_delta, batch + 23, 4);
    if (be32toh(length) + 12 != size) return CORRUPT_MESSAGE;
    *base_offset = partition->next_offset;
    if (stores) {
        if (crc32c(batch + 21, size - 21) != be32toh(crc)) return CORRUPT_MESSAGE;
        uint64_t offset = htobe64(partition->next_offset);
        memcpy(batch, &offset, 8);
        memset(batch + 12, 0, 4); /* the leader epoch; the CRC covers neither */
        if (partition->file < 0) file_open(topic, index);
        for (int64_t done = 0; done < size;) {
            ssize_t wrote = write(partition->file, batch + done, size - done);
            if (wrote < 0) die("write");
            done += wrote;
        }
        if (partition->place_count == partition->place_room) {
            partition->place_room = partition->place_room ? 2 * partition->place_room : 64;
            partition->places = enlarged(partition->places, partition->place_room * sizeof *partition->places);
        }
        partition->places[partition->place_count++] = (struct place){partition->next_offset, partition->size};
        partition->size += size;
        appended = true;
    }
    partition->next_offset += (int64_t)be32toh(last_delta) + 1;
    return NONE;
}

/* From the batch that holds the offset, as many whole batches as fit, at least one. */
static int64_t stretch(const struct partition *partition, int64_t offset, int64_t size_max, int64_t *position) {
    size_t low = 0, high = partition->place_count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (partition->places[middle].offset <= offset) low = middle;
        else high = middle;
    }
    *position = partition->places[low].position;
    size_t first = low;
    high = partition->place_count;
    while (high - low > 1) { /* the last batch that begins within reach is the end, unless it is the first */
        size_t middle = (low + high) / 2;
        if (partition->places[middle].position <= *position + size_max) low = middle;
        else high = middle;
    }
    if (partition->size - *position <= size_max) return partition->size - *position;
    size_t end = low == first ? first + 1 : low;
    return (end < partition->place_count ? partition->places[end].position : partition->size) - *position;
}

/* ---- connections: what came in, and what is to go out, in memory and from files ---- */

struct segment { int file; off_t from; size_t size; }; /* file -1: of the connection's own bytes */

struct connection {
    int socket;
    uint8_t *in;
    size_t in_size, in_room;
    uint8_t *out;
    size_t out_size, out_room;
    struct segment *segments;
    size_t segment_count, segment_room, segment_next;
    bool writable_wanted, broken;
    int64_t waits_until_ms; /* a Fetch at the front of `in` is answered by then; 0: none */
    struct connection *next, **link;
};

static struct connection *connections;
static int poller;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct segment *segment_add(struct connection *c) {
    if (c->segment_count == c->segment_room) {
        c->segment_room = c->segment_room ? 2 * c->segment_room : 16;
        c->segments = enlarged(c->segments, c->segment_room * sizeof *c->segments);
    }
    return &c->segments[c->segment_count++];
}

static void out_bytes(struct connection *c, const void *bytes, size_t size) {
    if (c->out_size + size > c->out_room) {
        c->out_room = 2 * (c->out_size + size) + 1024;
        c->out = enlarged(c->out, c->out_room);
    }
    memcpy(c->out + c->out_size, bytes, size);
    struct segment *last = c->segment_count ? &c->segments[c->segment_count - 1] : NULL;
    bool unsent = c->segment_count > c->segment_next;
    if (unsent && last->file < 0 && last->from + last->size == c->out_size) last->size += size;
    else *segment_add(c) = (struct segment){-1, c->out_size, size};
    c->out_size += size;
}

static void out_8(struct connection *c, int value) { uint8_t byte = value; out_bytes(c, &byte, 1); }
static void out_16(struct connection *c, int value) { uint16_t v = htobe16(value); out_bytes(c, &v, 2); }
static void out_32(struct connection *c, int64_t value) { uint32_t v = htobe32(value); out_bytes(c, &v, 4); }
static void out_64(struct connection *c, int64_t value) { uint64_t v = htobe64(value); out_bytes(c, &v, 8); }

static void out_varint(struct connection *c, uint32_t value) {
    for (; value > 127; value >>= 7) out_8(c, value | 128);
    out_8(c, value);
}

/* Lengths of arrays and texts, and the tags behind a structure: compact in flexible versions. */
static void out_count(struct connection *c, bool flexible, int count) {
    flexible ? out_varint(c, count + 1) : out_32(c, count);
}

static void out_tags(struct connection *c, bool flexible) {
    if (flexible) out_8(c, 0);
}

static void out_text(struct connection *c, bool flexible, const void *text, int size) {
    flexible ? out_varint(c, size + 1) : out_16(c, size);
    if (size > 0) out_bytes(c, text, size);
}

static void segments_flush(struct connection *c) {
    while (c->segment_next < c->segment_count && !c->broken) {
        struct segment *s = &c->segments[c->segment_next];
        bool more = c->segment_next + 1 < c->segment_count;
        ssize_t sent = s->file < 0 ? send(c->socket, c->out + s->from, s->size, MSG_NOSIGNAL | (more ? MSG_MORE : 0))
                                   : sendfile(c->socket, s->file, &(off_t){s->from}, s->size);
        if (sent < 0 && errno == EAGAIN) break;
        if (sent <= 0) {
            c->broken = true;
            return;
        }
        s->from += sent;
        s->size -= sent;
        if (!s->size) c->segment_next++;
    }
    if (c->segment_next == c->segment_count) c->segment_next = c->segment_count = c->out_size = 0;
    bool wanted = c->segment_count > 0;
    if (wanted != c->writable_wanted) {
        c->writable_wanted = wanted;
        epoll_ctl(poller, EPOLL_CTL_MOD, c->socket, &(struct epoll_event){wanted ? EPOLLOUT : EPOLLIN, {.ptr = c}});
    }
}

/* ---- requests ---- */

struct reader { uint8_t *at, *end; bool failed, flexible; };

static uint8_t *take(struct reader *r, size_t size) {
    static uint8_t zeros[16];
    if (r->failed || size > (size_t)(r->end - r->at)) {
        r->failed = true;
        return zeros;
    }
    r->at += size;
    return r->at - size;
}

static int in_8(struct reader *r) { return *take(r, 1); }
static int in_16(struct reader *r) { uint16_t v; memcpy(&v, take(r, 2), 2); return (int16_t)be16toh(v); }
static int32_t in_32(struct reader *r) { uint32_t v; memcpy(&v, take(r, 4), 4); return (int32_t)be32toh(v); }
static int64_t in_64(struct reader *r) { uint64_t v; memcpy(&v, take(r, 8), 8); return (int64_t)be64toh(v); }

static uint32_t in_varint(struct reader *r) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        int byte = in_8(r);
        value |= (uint32_t)(byte & 127) << shift;
        if (!(byte & 128)) break;
    }
    return value;
}

static int in_count(struct reader *r) {
    int count = r->flexible ? (int)in_varint(r) - 1 : in_32(r);
    if (count > r->end - r->at) r->failed = true; /* each element has a byte at least */
    return r->failed ? 0 : count;
}

static uint8_t *in_text(struct reader *r, int *size) {
    *size = r->flexible ? (int)in_varint(r) - 1 : in_16(r);
    if (*size < 0) return NULL;
    uint8_t *text = take(r, *size);
    if (r->failed) *size = 0;
    return text;
}

static uint8_t *in_blob(struct reader *r, int64_t *size) {
    *size = r->flexible ? (int64_t)in_varint(r) - 1 : in_32(r);
    if (*size < 0) *size = 0;
    uint8_t *blob = take(r, *size);
    if (r->failed) *size = 0;
    return blob;
}

static void in_tags(struct reader *r) {
    if (!r->flexible) return;
    for (uint32_t left = in_varint(r); left && !r->failed; left--) {
        in_varint(r);
        take(r, in_varint(r));
    }
}

/* A topic by name or id, as the version has it, said again in the response. */
static struct topic *topic_echoed(struct connection *c, struct reader *r, bool by_id) {
    if (by_id) {
        uint8_t *id = take(r, 16);
        out_bytes(c, id, 16);
        return r->failed ? NULL : topic_of_id(id);
    }
    int size;
    uint8_t *name = in_text(r, &size);
    out_text(c, r->flexible, name, size);
    return name ? topic_named(name, size) : NULL;
}

/* False: acks=0, no response. */
static bool produce(struct connection *c, struct reader *r, int version) {
    int ignored;
    in_text(r, &ignored); /* transactional id */
    int acks = in_16(r);
    in_32(r); /* timeout */
    int topics_left = in_count(r);
    out_count(c, r->flexible, topics_left);
    for (; topics_left > 0 && !r->failed; topics_left--) {
        struct topic *topic = topic_echoed(c, r, version >= 13);
        int left = in_count(r);
        out_count(c, r->flexible, left);
        for (; left > 0 && !r->failed; left--) {
            int index = in_32(r);
            int64_t size, base_offset = -1;
            uint8_t *batch = in_blob(r, &size);
            in_tags(r);
            if (r->failed) break;
            out_32(c, index);
            out_16(c, append(topic, index, batch, size, &base_offset));
            out_64(c, base_offset);
            out_64(c, -1); /* append time */
            if (version >= 5) out_64(c, 0); /* log start */
            if (version >= 8) {
                out_count(c, r->flexible, 0); /* record errors */
                out_text(c, r->flexible, NULL, -1);
            }
            out_tags(c, r->flexible);
        }
        in_tags(r);
        out_tags(c, r->flexible);
    }
    out_32(c, 0); /* throttle time */
    out_tags(c, r->flexible);
    return acks != 0;
}

/* False: there is too little yet, and time left. Nothing has been written then. */
static bool fetch(struct connection *c, struct reader *r, int version, int32_t correlation_id) {
    if (version < 15) in_32(r); /* replica id */
    int wait_ms = in_32(r);
    int64_t size_min = in_32(r), size_left = in_32(r);
    in_8(r); /* isolation level */
    if (version >= 7) take(r, 8); /* a session, which it never gets */
    struct reader topics_at = *r;
    /* Twice over the same bytes: first to count what there is, then to answer. */
    for (int round = 0; round < 2; round++) {
        int64_t total = 0;
        bool failing = false;
        struct reader at = topics_at;
        size_t head = 0, body_begins = 0;
        if (round) {
            head = c->out_size;
            out_32(c, 0); /* length, known later: files are not part of `out` */
            body_begins = c->out_size;
            out_32(c, correlation_id);
            out_tags(c, r->flexible);
            out_32(c, 0); /* throttle time */
            if (version >= 7) {
                out_16(c, NONE);
                out_32(c, 0); /* no session */
            }
        }
        int topics_left = in_count(&at);
        if (round) out_count(c, r->flexible, topics_left);
        for (; topics_left > 0 && !at.failed; topics_left--) {
            struct topic *topic;
            if (round) topic = topic_echoed(c, &at, version >= 13);
            else if (version >= 13) {
                uint8_t *id = take(&at, 16);
                topic = at.failed ? NULL : topic_of_id(id);
            } else {
                int size;
                uint8_t *name = in_text(&at, &size);
                topic = name ? topic_named(name, size) : NULL;
            }
            int left = in_count(&at);
            if (round) out_count(c, r->flexible, left);
            for (; left > 0 && !at.failed; left--) {
                int index = in_32(&at);
                if (version >= 9) in_32(&at); /* leader epoch */
                int64_t offset = in_64(&at);
                if (version >= 12) in_32(&at); /* last fetched epoch */
                if (version >= 5) in_64(&at); /* log start of followers */
                int64_t size_max = in_32(&at), found = 0, position = 0;
                in_tags(&at);
                int error = NONE;
                struct partition *partition = NULL;
                if (!topic || index < 0 || index >= topic->partition_count) {
                    error = version >= 13 && !topic ? UNKNOWN_TOPIC_ID : UNKNOWN_TOPIC_OR_PARTITION;
                } else {
                    partition = &topic->partitions[index];
                    if (offset < 0 || offset > partition->next_offset) error = OFFSET_OUT_OF_RANGE;
                    else if (offset < partition->next_offset && partition->place_count && total < size_left) {
                        if (size_max > size_left - total) size_max = size_left - total;
                        found = stretch(partition, offset, size_max, &position);
                    }
                }
                failing |= error != NONE;
                total += found;
                if (!round) continue;
                out_32(c, index);
                out_16(c, error);
                out_64(c, partition ? partition->next_offset : -1); /* high watermark */
                out_64(c, partition ? partition->next_offset : -1); /* last stable offset */
                if (version >= 5) out_64(c, 0); /* log start */
                r->flexible ? out_varint(c, 0) : out_32(c, -1); /* aborted transactions: null */
                if (version >= 11) out_32(c, -1); /* preferred replica */
                r->flexible ? out_varint(c, found + 1) : out_32(c, found);
                if (found) *segment_add(c) = (struct segment){partition->file, position, found};
                out_tags(c, r->flexible);
            }
            in_tags(&at);
            if (round) out_tags(c, r->flexible);
        }
        if (at.failed) {
            r->failed = true;
            return true;
        }
        if (!round && total < size_min && !failing && wait_ms > 0) {
            int64_t now = now_ms();
            if (!c->waits_until_ms) c->waits_until_ms = now + wait_ms;
            if (now < c->waits_until_ms) return false;
        }
        if (round) {
            out_tags(c, r->flexible);
            uint32_t length = htobe32(c->out_size - body_begins + total);
            memcpy(c->out + head, &length, 4);
        }
    }
    c->waits_until_ms = 0;
    return true;
}

static void list_offsets(struct connection *c, struct reader *r, int version) {
    in_32(r); /* replica id */
    if (version >= 2) in_8(r); /* isolation level */
    if (version >= 2) out_32(c, 0); /* throttle time */
    int topics_left = in_count(r);
    out_count(c, r->flexible, topics_left);
    for (; topics_left > 0 && !r->failed; topics_left--) {
        struct topic *topic = topic_echoed(c, r, false);
        int left = in_count(r);
        out_count(c, r->flexible, left);
        for (; left > 0 && !r->failed; left--) {
            int index = in_32(r);
            if (version >= 4) in_32(r); /* leader epoch */
            int64_t timestamp = in_64(r);
            in_tags(r);
            bool known = topic && index >= 0 && index < topic->partition_count;
            out_32(c, index);
            out_16(c, known ? NONE : UNKNOWN_TOPIC_OR_PARTITION);
            out_64(c, -1);
            /* Earliest is 0; any time is taken for "latest". */
            out_64(c, !known ? -1 : timestamp == -2 ? 0 : topic->partitions[index].next_offset);
            if (version >= 4) out_32(c, 0); /* leader epoch */
            out_tags(c, r->flexible);
        }
        in_tags(r);
        out_tags(c, r->flexible);
    }
    out_tags(c, r->flexible);
}

static void metadata_topic(
    struct connection *c, bool flexible, int version, struct topic *topic, const uint8_t *name, int size) {
    out_16(c, topic ? NONE : UNKNOWN_TOPIC_OR_PARTITION);
    out_text(c, flexible, topic ? (uint8_t *)topic->name : name, topic ? topic->name_size : size);
    if (version >= 10) out_bytes(c, topic ? topic->id : (const uint8_t[16]){0}, 16);
    if (version >= 1) out_8(c, false); /* internal */
    out_count(c, flexible, topic ? topic->partition_count : 0);
    for (int i = 0; topic && i < topic->partition_count; i++) {
        out_16(c, NONE);
        out_32(c, i);
        out_32(c, 1); /* leader */
        if (version >= 7) out_32(c, 0); /* its epoch */
        for (int list = 0; list < 2; list++) { /* replicas, ISR */
            out_count(c, flexible, 1);
            out_32(c, 1);
        }
        if (version >= 5) out_count(c, flexible, 0); /* offline */
        out_tags(c, flexible);
    }
    if (version >= 8) out_32(c, INT32_MIN); /* authorized operations */
    out_tags(c, flexible);
}

static void metadata(struct connection *c, struct reader *r, int version) {
    static const char host[] = "127.0.0.1", cluster[] = "limit-broker";
    if (version >= 3) out_32(c, 0); /* throttle time */
    out_count(c, r->flexible, 1);
    out_32(c, 1);
    out_text(c, r->flexible, host, sizeof host - 1);
    out_32(c, own_port);
    if (version >= 1) out_text(c, r->flexible, NULL, -1); /* rack */
    out_tags(c, r->flexible);
    if (version >= 2) out_text(c, r->flexible, cluster, sizeof cluster - 1);
    if (version >= 1) out_32(c, 1); /* controller */
    int count = in_count(r);
    if (count < 0 || (version == 0 && count == 0)) {
        int alive = 0;
        for (int i = 0; i < topic_count; i++) alive += !topics[i].deleted;
        out_count(c, r->flexible, alive);
        for (int i = 0; i < topic_count; i++)
            if (!topics[i].deleted) metadata_topic(c, r->flexible, version, &topics[i], NULL, 0);
    } else {
        out_count(c, r->flexible, count);
        for (; count > 0 && !r->failed; count--) {
            uint8_t *id = version >= 10 ? take(r, 16) : NULL;
            int size;
            uint8_t *name = in_text(r, &size);
            in_tags(r);
            if (r->failed) break;
            struct topic *topic = name ? topic_named(name, size) : id ? topic_of_id(id) : NULL;
            metadata_topic(c, r->flexible, version, topic, name, size);
        }
    }
    if (version >= 8 && version <= 10) out_32(c, INT32_MIN);
    out_tags(c, r->flexible);
}

static void create_topics(struct connection *c, struct reader *r, int version) {
    out_32(c, 0); /* throttle time */
    int count = in_count(r);
    out_count(c, true, count);
    for (; count > 0 && !r->failed; count--) {
        int size, ignored;
        uint8_t *name = in_text(r, &size);
        int partition_count = in_32(r);
        in_16(r); /* replicas */
        for (int left = in_count(r); left > 0 && !r->failed; left--) { /* assignments */
            in_32(r);
            take(r, 4 * in_count(r));
            in_tags(r);
        }
        for (int left = in_count(r); left > 0 && !r->failed; left--) { /* configs, all of which are ignored */
            in_text(r, &ignored);
            in_text(r, &ignored);
            in_tags(r);
        }
        in_tags(r);
        if (r->failed || !name) break;
        bool exists = topic_named(name, size) != NULL;
        struct topic *topic = exists ? NULL : topic_create(name, size, partition_count > 0 ? partition_count : 1);
        if (!exists && !topic) {
            r->failed = true;
            break;
        }
        out_text(c, true, name, size);
        if (version >= 7) out_bytes(c, topic ? topic->id : (const uint8_t[16]){0}, 16);
        out_16(c, exists ? TOPIC_ALREADY_EXISTS : NONE);
        out_text(c, true, NULL, -1);
        out_32(c, topic ? topic->partition_count : -1);
        out_16(c, topic ? 1 : -1);
        out_count(c, true, 0); /* configs */
        out_tags(c, true);
    }
    out_tags(c, true);
}

static void delete_topics(struct connection *c, struct reader *r) {
    out_32(c, 0); /* throttle time */
    int count = in_count(r);
    out_count(c, true, count);
    for (; count > 0 && !r->failed; count--) {
        int size;
        uint8_t *name = in_text(r, &size);
        uint8_t *id = take(r, 16);
        in_tags(r);
        if (r->failed) break;
        struct topic *topic = name ? topic_named(name, size) : topic_of_id(id);
        out_text(c, true, name, size);
        out_bytes(c, topic ? topic->id : id, 16);
        out_16(c, topic ? NONE : UNKNOWN_TOPIC_OR_PARTITION);
        out_text(c, true, NULL, -1);
        out_tags(c, true);
        if (!topic) continue;
        for (struct connection *each = connections; each; each = each->next)
            for (size_t i = each->segment_next; i < each->segment_count; i++)
                if (each->segments[i].file >= 0) each->broken = true; /* it would be sent from a closed file */
        topic_delete(topic);
    }
    out_tags(c, true);
}

static void api_versions(struct connection *c, int version, bool known) {
    bool flexible = known && version >= 3;
    out_16(c, known ? NONE : UNSUPPORTED_VERSION);
    out_count(c, flexible, API_COUNT);
    for (size_t i = 0; i < API_COUNT; i++) {
        out_16(c, APIS[i].key);
        out_16(c, APIS[i].advertised);
        out_16(c, APIS[i].highest);
        out_tags(c, flexible);
    }
    if (known && version >= 1) out_32(c, 0); /* throttle time */
    out_tags(c, flexible);
}

static void init_producer_id(struct connection *c, struct reader *r) {
    out_32(c, 0); /* throttle time */
    out_16(c, NONE);
    out_64(c, next_producer_id++);
    out_16(c, 0); /* epoch */
    out_tags(c, r->flexible);
}

/* False: the frame's response has to wait. */
static bool handle(struct connection *c, uint8_t *frame, size_t size) {
    struct reader r = {frame, frame + size, false, false};
    int key = in_16(&r), version = in_16(&r);
    int32_t correlation_id = in_32(&r);
    const struct api *api = NULL;
    for (size_t i = 0; i < API_COUNT; i++)
        if (APIS[i].key == key) api = &APIS[i];
    bool known = api && version >= api->lowest && version <= api->highest;
    if (!known && key != API_VERSIONS) {
        fprintf(stderr, "api %d version %d is not served\n", key, version);
        c->broken = true;
        return true;
    }
    int ignored;
    in_text(&r, &ignored); /* the client's id is never compact */
    r.flexible = known && version >= api->flexible;
    in_tags(&r);
    if (key == FETCH) {
        bool answered = fetch(c, &r, version, correlation_id);
        c->broken |= r.failed;
        return answered;
    }
    size_t head = c->out_size, segment_count = c->segment_count;
    size_t last_size = segment_count ? c->segments[segment_count - 1].size : 0;
    out_32(c, 0);
    out_32(c, correlation_id);
    if (key != API_VERSIONS) out_tags(c, r.flexible);
    bool answers = true;
    switch (key) {
        case PRODUCE: answers = produce(c, &r, version); break;
        case LIST_OFFSETS: list_offsets(c, &r, version); break;
        case METADATA: metadata(c, &r, version); break;
        case API_VERSIONS: api_versions(c, version, known); break;
        case CREATE_TOPICS: create_topics(c, &r, version); break;
        case DELETE_TOPICS: delete_topics(c, &r); break;
        case INIT_PRODUCER_ID: init_producer_id(c, &r); break;
    }
    if (r.failed) {
        fprintf(stderr, "api %d version %d: a request that ends too early\n", key, version);
        c->broken = true;
    }
    if (answers) {
        uint32_t length = htobe32(c->out_size - head - 4);
        memcpy(c->out + head, &length, 4);
    } else { /* taken back */
        c->out_size = head;
        c->segment_count = segment_count;
        if (segment_count) c->segments[segment_count - 1].size = last_size;
    }
    return true;
}

static void frames_handle(struct connection *c) {
    size_t done = 0;
    while (c->in_size - done >= 4 && !c->broken) {
        uint32_t length;
        memcpy(&length, c->in + done, 4);
        length = be32toh(length);
        if (length > FRAME_MAX) {
            c->broken = true;
            return;
        }
        if (c->in_size - done - 4 < length) {
            size_t needed = 4 + (size_t)length + RECEIVE_AT_ONCE;
            if (needed > c->in_room) c->in = enlarged(c->in, c->in_room = needed);
            break;
        }
        if (!handle(c, c->in + done + 4, length)) break;
        done += 4 + length;
    }
    if (done) memmove(c->in, c->in + done, c->in_size -= done);
    if (c->segment_count > c->segment_next) segments_flush(c);
}

static void receive(struct connection *c) {
    if (c->in_room - c->in_size < RECEIVE_AT_ONCE) {
        c->in = enlarged(c->in, c->in_room = c->in_size + 2 * RECEIVE_AT_ONCE);
    }
    ssize_t received = recv(c->socket, c->in + c->in_size, c->in_room - c->in_size, 0);
    if (received < 0 && errno == EAGAIN) return;
    if (received <= 0) {
        c->broken = true;
        return;
    }
    c->in_size += received;
    if (!c->waits_until_ms) frames_handle(c);
}

static void accept_one(int listener) {
    int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct connection *c = calloc(1, sizeof *c);
    if (!c) die("calloc");
    c->socket = socket;
    c->next = connections;
    c->link = &connections;
    if (c->next) c->next->link = &c->next;
    connections = c;
    epoll_ctl(poller, EPOLL_CTL_ADD, socket, &(struct epoll_event){EPOLLIN, {.ptr = c}});
}

static void drop(struct connection *c) {
    *c->link = c->next;
    if (c->next) c->next->link = c->link;
    close(c->socket);
    free(c->in);
    free(c->out);
    free(c->segments);
    free(c);
}

/* Fetches that wait: all of them when something came, else those whose time has come. The ms until the next one's. */
static int waiting_look(void) {
    int64_t nearest = -1, now = connections ? now_ms() : 0;
    for (struct connection *c = connections; c; c = c->next) {
        if (!c->waits_until_ms || c->broken) continue;
        if (appended || now >= c->waits_until_ms) frames_handle(c);
        if (c->waits_until_ms && (nearest < 0 || c->waits_until_ms < nearest)) nearest = c->waits_until_ms;
    }
    appended = false;
    return nearest < 0 ? -1 : nearest > now ? (int)(nearest - now) : 0;
}

int main(int count, char **words) {
    if (count != 4 || (strcmp(words[3], "keeps-nothing") && strcmp(words[3], "stores"))) {
        fprintf(stderr, "usage: %s <port> <directory> keeps-nothing|stores\n", words[0]);
        return 2;
    }
    stores = !strcmp(words[3], "stores");
    directory = words[2];
    mkdir(directory, 0755);
    signal(SIGPIPE, SIG_IGN);
    crc_prepare();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t address_size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) die("listen");
    getsockname(listener, (struct sockaddr *)&address, &address_size);
    own_port = ntohs(address.sin_port);
    poller = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &(struct epoll_event){EPOLLIN, {.ptr = NULL}});
    printf("limit broker on 127.0.0.1:%d\n", own_port);
    fflush(stdout);
    for (int wait_ms = -1;; wait_ms = waiting_look()) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, wait_ms);
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) accept_one(listener);
            else if (c->broken) continue;
            else if (events[i].events & EPOLLOUT) {
                segments_flush(c);
                /* What came while it could not be answered is still in `in` and in the socket. */
                if (!c->segment_count && !c->waits_until_ms) frames_handle(c);
            } else receive(c);
        }
        for (struct connection *c = connections, *next; c; c = next) {
            next = c->next;
            if (c->broken) drop(c);
        }
    }
}
