// A member of a group with franz-go.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type place struct {
	topic     string
	partition int32
}

var (
	mutex  sync.Mutex
	owned  = map[place]bool{}
	output = json.NewEncoder(os.Stdout)
)

func change(places map[string][]int32, own bool) {
	mutex.Lock()
	defer mutex.Unlock()
	for topic, partitions := range places {
		for _, partition := range partitions {
			if own {
				owned[place{topic, partition}] = true
			} else {
				delete(owned, place{topic, partition})
			}
		}
	}
	said := [][]any{}
	for each := range owned {
		said = append(said, []any{each.topic, each.partition})
	}
	_ = output.Encode(map[string]any{"owned": said})
}

// The claims' program and this one share go.mod, so both have to use the admin package.
var _ = kadm.NewClient

func main() {
	servers, group, topics, strategy, instance := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	balancer := kgo.RangeBalancer()
	if strategy == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(strings.Split(topics, ",")...),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.RebalanceTimeout(20 * time.Second),
		kgo.AutoCommitInterval(200 * time.Millisecond),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.MetadataMaxAge(500 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, places map[string][]int32) { change(places, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, places map[string][]int32) { change(places, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, places map[string][]int32) { change(places, false) }),
	}
	if strings.HasPrefix(topics, "^") {
		options = append(options, kgo.ConsumeRegex())
	}
	if instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		for _, each := range fetches.Records() {
			mutex.Lock()
			_ = output.Encode(map[string]any{"read": []any{each.Topic, each.Partition, each.Offset, string(each.Value)}})
			mutex.Unlock()
		}
	}
	leaving, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	_ = client.CommitUncommittedOffsets(leaving)
	client.Close()
}
