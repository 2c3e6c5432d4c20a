// Copies a topic exactly once with sarama: a consumer group, and for each partition a transactional producer.
//
//	sarama_copier <servers> <group> <input topic> <output topic> <protocol version, e.g. 2.8.0>
//
// It prints the JSON lines of tests/clients/members: what it owns, and what it has copied and committed.
// It leaves its group when stdin is closed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var voice sync.Mutex

func say(event map[string]any) {
	voice.Lock()
	defer voice.Unlock()
	line, _ := json.Marshal(event)
	fmt.Println(string(line))
}

type copier struct {
	servers       []string
	group, output string
	version       sarama.KafkaVersion
}

func (c *copier) Setup(session sarama.ConsumerGroupSession) error {
	owned := [][]any{}
	for topic, partitions := range session.Claims() {
		for _, partition := range partitions {
			owned = append(owned, []any{topic, partition})
		}
	}
	say(map[string]any{"owned": owned})
	return nil
}

func (c *copier) Cleanup(sarama.ConsumerGroupSession) error {
	say(map[string]any{"owned": [][]any{}})
	return nil
}

// One producer for each input partition: whoever owns the partition next fences the one before.
func (c *copier) producer(topic string, partition int32) (sarama.SyncProducer, error) {
	settings := sarama.NewConfig()
	settings.Version = c.version
	settings.Producer.Idempotent = true
	settings.Producer.RequiredAcks = sarama.WaitForAll
	settings.Producer.Return.Successes = true
	settings.Producer.Transaction.ID = fmt.Sprintf("%s-%s-%d", c.group, topic, partition)
	settings.Producer.Transaction.Timeout = 20 * time.Second
	settings.Net.MaxOpenRequests = 1
	return sarama.NewSyncProducer(c.servers, settings)
}

func (c *copier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	producer, err := c.producer(claim.Topic(), claim.Partition())
	if err != nil {
		return err
	}
	defer producer.Close()
	for {
		select {
		case <-session.Context().Done():
			return nil
		case first, open := <-claim.Messages():
			if !open {
				return nil
			}
			batch := []*sarama.ConsumerMessage{first}
			for more := true; more && len(batch) < 20; {
				select {
				case message, open := <-claim.Messages():
					if more = open; open {
						batch = append(batch, message)
					}
				default:
					more = false
				}
			}
			if err := c.copy(producer, batch); err != nil {
				// The next session reads again from what was committed.
				return err
			}
			for _, message := range batch {
				read := []any{message.Topic, message.Partition, message.Offset, string(message.Value)}
				say(map[string]any{"read": read})
			}
		}
	}
}

func (c *copier) copy(producer sarama.SyncProducer, batch []*sarama.ConsumerMessage) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	var copies []*sarama.ProducerMessage
	for _, message := range batch {
		copies = append(copies, &sarama.ProducerMessage{Topic: c.output, Value: sarama.ByteEncoder(message.Value)})
	}
	err := producer.SendMessages(copies)
	if err == nil {
		err = producer.AddMessageToTxn(batch[len(batch)-1], c.group, nil)
	}
	if err == nil {
		err = producer.CommitTxn()
	}
	if err != nil {
		log.Println("aborting:", err)
		_ = producer.AbortTxn()
	}
	return err
}

func main() {
	servers, group, input, output := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3], os.Args[4]
	version, err := sarama.ParseKafkaVersion(os.Args[5])
	if err != nil {
		log.Fatal(err)
	}
	settings := sarama.NewConfig()
	settings.Version = version
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.Offsets.AutoCommit.Enable = false
	settings.Consumer.IsolationLevel = sarama.ReadCommitted
	settings.Consumer.Group.Session.Timeout = 6 * time.Second
	settings.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	settings.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}

	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	consumers, err := sarama.NewConsumerGroup(servers, group, settings)
	if err != nil {
		log.Fatal(err)
	}
	defer consumers.Close()
	handler := &copier{servers: servers, group: group, output: output, version: version}
	for ctx.Err() == nil {
		if err := consumers.Consume(ctx, []string{input}, handler); err != nil && ctx.Err() == nil {
			log.Println("consuming:", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}
