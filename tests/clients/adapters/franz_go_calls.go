// The calls of json_lines_client.py, in the words of franz-go: one JSON call a line on stdin, one JSON answer a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type record struct {
	Offset    int64        `json:"offset"`
	Key       []byte       `json:"key"`
	Value     []byte       `json:"value"`
	Headers   [][2]*string `json:"headers"`
	Timestamp int64        `json:"timestamp"`
}

type call struct {
	Call       string            `json:"call"`
	Topic      string            `json:"topic"`
	Partitions int               `json:"partitions"`
	Replicas   int16             `json:"replicas"`
	Configs    map[string]string `json:"configs"`
	Name       string            `json:"name"`
	Value      string            `json:"value"`
	Partition  int32             `json:"partition"`
	Offset     int64             `json:"offset"`
	Count      int               `json:"count"`
	Timestamp  int64             `json:"timestamp"`
	Acks       string            `json:"acks"`
	Codec      string            `json:"codec"`
	Idempotent bool              `json:"idempotent"`
	Records    []record          `json:"records"`
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

var seeds []string

func answer(ctx context.Context, admin *kadm.Client, c call) (any, error) {
	switch c.Call {
	case "partitions":
		found, err := admin.ListTopics(ctx, c.Topic)
		if err != nil {
			return nil, err
		}
		topic := found[c.Topic]
		return len(topic.Partitions), topic.Err
	case "create_topic":
		configs := map[string]*string{}
		for name, value := range c.Configs {
			configs[name] = kadm.StringPtr(value)
		}
		_, err := admin.CreateTopic(ctx, int32(c.Partitions), c.Replicas, configs, c.Topic)
		return nil, err
	case "grow":
		grown, err := admin.UpdatePartitions(ctx, c.Partitions, c.Topic)
		if err != nil {
			return nil, err
		}
		return nil, grown.Error()
	case "delete_topic":
		_, err := admin.DeleteTopic(ctx, c.Topic)
		return nil, err
	case "configs":
		found, err := admin.DescribeTopicConfigs(ctx, c.Topic)
		if err != nil {
			return nil, err
		}
		values := map[string]*string{}
		for _, config := range found[0].Configs {
			values[config.Key] = config.Value
		}
		return values, found[0].Err
	case "set_config":
		change := kadm.AlterConfig{Op: kadm.SetConfig, Name: c.Name, Value: &c.Value}
		done, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, c.Topic)
		if err != nil {
			return nil, err
		}
		return nil, done[0].Err
	case "delete_records":
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: c.Topic, Partition: c.Partition, At: c.Offset})
		done, err := admin.DeleteRecords(ctx, offsets)
		if err != nil {
			return nil, err
		}
		return nil, done.Error()
	case "produce":
		return nil, produce(ctx, c)
	case "consume":
		return consume(ctx, c)
	case "offsets":
		first, err := admin.ListStartOffsets(ctx, c.Topic)
		if err != nil {
			return nil, err
		}
		next, err := admin.ListEndOffsets(ctx, c.Topic)
		if err != nil {
			return nil, err
		}
		return []int64{first[c.Topic][c.Partition].Offset, next[c.Topic][c.Partition].Offset}, nil
	case "offset_at":
		found, err := admin.ListOffsetsAfterMilli(ctx, c.Timestamp, c.Topic)
		if err != nil {
			return nil, err
		}
		return found[c.Topic][c.Partition].Offset, nil
	}
	return nil, errors.New("no such call: " + c.Call)
}

func produce(ctx context.Context, c call) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.DefaultProduceTopic(c.Topic),
		kgo.RequiredAcks(acks[c.Acks]),
		kgo.ProducerBatchCompression(codecs[c.Codec]),
		kgo.ProducerBatchMaxBytes(50_000_000),
		kgo.AllowAutoTopicCreation(),
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	if c.Partition >= 0 {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, each := range c.Records {
		sent := &kgo.Record{Key: each.Key, Value: each.Value, Timestamp: time.UnixMilli(each.Timestamp)}
		if c.Partition >= 0 {
			sent.Partition = c.Partition
		}
		for _, header := range each.Headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: *header[0], Value: unpacked(header[1])})
		}
		records = append(records, sent)
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func consume(ctx context.Context, c call) (any, error) {
	from := map[string]map[int32]kgo.Offset{c.Topic: {c.Partition: kgo.NewOffset().At(c.Offset)}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(seeds...), kgo.ConsumePartitions(from), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	reads := []record{}
	for len(reads) < c.Count {
		fetches := client.PollRecords(ctx, c.Count-len(reads))
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, each := range fetches.Records() {
			read := record{Offset: each.Offset, Key: each.Key, Value: each.Value, Headers: [][2]*string{}}
			read.Timestamp = each.Timestamp.UnixMilli()
			for _, header := range each.Headers {
				name := header.Key
				read.Headers = append(read.Headers, [2]*string{&name, packed(header.Value)})
			}
			reads = append(reads, read)
		}
	}
	return reads, nil
}

// encoding/json writes []byte as base64 and nil as null; a header's value needs the same by hand.
func unpacked(text *string) []byte {
	if text == nil {
		return nil
	}
	var data []byte
	quoted, _ := json.Marshal(*text)
	_ = json.Unmarshal(quoted, &data)
	return data
}

func packed(data []byte) *string {
	if data == nil {
		return nil
	}
	quoted, _ := json.Marshal(data)
	text := strings.Trim(string(quoted), `"`)
	return &text
}

func main() {
	seeds = strings.Split(os.Args[1], ",")
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<26)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var c call
		if err := json.Unmarshal(input.Bytes(), &c); err != nil {
			panic(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		result, err := answer(ctx, admin, c)
		cancel()
		if err != nil {
			refused := "UNKNOWN"
			var known *kerr.Error
			if errors.As(err, &known) {
				refused = known.Message
			}
			_ = output.Encode(map[string]any{"refused": refused, "detail": err.Error()})
			continue
		}
		_ = output.Encode(map[string]any{"ok": result})
	}
}
