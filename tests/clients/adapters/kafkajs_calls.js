// The calls of json_lines_client.py, in the words of kafkajs: one JSON call a line on stdin, one JSON answer a line.
//
// kafkajs reads only in groups. Until the broker has them, `consume` sends kafkajs's own Fetch requests through its
// cluster object, so that its encoders, decoders and codecs meet the broker all the same.
'use strict'

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const readline = require('node:readline')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const socketFactory = require('kafkajs/src/network/socketFactory')
const { createLogger } = require('kafkajs/src/loggers')
const console = require('kafkajs/src/loggers/console')
const snappy = require('kafkajs-snappy')

CompressionCodecs[CompressionTypes.Snappy] = snappy

const brokers = process.argv[2].split(',')
const retry = { retries: 3, initialRetryTime: 50 }
const kafka = new Kafka({ brokers, clientId: 'claims', logLevel: logLevel.NOTHING, retry })
const admin = kafka.admin()
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }
const packed = (data) => (data == null ? null : Buffer.from(data).toString('base64'))
const unpacked = (text) => (text == null ? null : Buffer.from(text, 'base64'))

const calls = {
  async partitions({ topic }) {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions.length
  },

  async create_topic({ topic, partitions, replicas, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const wanted = { topic, numPartitions: partitions, replicationFactor: replicas, configEntries }
    const created = await admin.createTopics({ topics: [wanted], waitForLeaders: false })
    if (!created) throw Object.assign(new Error('not created'), { type: 'TOPIC_ALREADY_EXISTS' })
  },

  async grow({ topic, partitions }) {
    await admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] })
  },

  async delete_topic({ topic }) {
    await admin.deleteTopics({ topics: [topic] })
  },

  async configs({ topic }) {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    const { resources } = await admin.describeConfigs({ resources: [resource], includeSynonyms: true })
    return resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue])
  },

  async set_config({ topic, name, value }) {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name, value }] }
    await admin.alterConfigs({ resources: [resource], validateOnly: false })
  },

  async delete_records({ topic, partition, offset }) {
    // It looks for leaders in metadata that it has not asked for; this makes it ask.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
  },

  async produce({ topic, records, partition, acks, codec, idempotent }) {
    const producer = kafka.producer({ idempotent, allowAutoTopicCreation: true })
    await producer.connect()
    try {
      const messages = records.map((record) => {
        // A name that occurs twice is an array in kafkajs.
        const headers = {}
        for (const [name, value] of record.headers) (headers[name] ??= []).push(unpacked(value))
        return {
          key: unpacked(record.key),
          value: unpacked(record.value),
          headers,
          timestamp: String(record.timestamp),
          ...(partition < 0 ? {} : { partition }),
        }
      })
      await producer.send({ topic, messages, acks: acks === 'all' ? -1 : Number(acks), compression: codecs[codec] })
    } finally {
      await producer.disconnect()
    }
  },

  async consume({ topic, partition, offset, count }) {
    const cluster = new Cluster({
      brokers,
      logger: createLogger({ level: logLevel.NOTHING, logCreator: console }),
      socketFactory: socketFactory(),
      connectionTimeout: 5000,
      requestTimeout: 30000,
      metadataMaxAge: 300000,
      clientId: 'claims',
      retry,
      allowAutoTopicCreation: false,
      offsets: new Map(),
    })
    await cluster.connect()
    try {
      await cluster.addTargetTopic(topic)
      const [{ leader }] = cluster
        .findTopicPartitionMetadata(topic)
        .filter(({ partitionId }) => partitionId === partition)
      const broker = await cluster.findBroker({ nodeId: String(leader) })
      const reads = []
      const deadline = Date.now() + 20000
      while (reads.length < count && Date.now() < deadline) {
        const wanted = { partition, fetchOffset: String(offset), maxBytes: 1048576 }
        const { responses } = await broker.fetch({
          maxWaitTime: 1000,
          minBytes: 1,
          maxBytes: 10485760,
          topics: [{ topic, partitions: [wanted] }],
        })
        for (const message of responses[0].partitions[0].messages) {
          // A fetch inside a batch returns the whole batch: the client skips, as kafkajs's consumer does.
          if (Number(message.offset) < offset || reads.length === count) continue
          const headers = Object.entries(message.headers).flatMap(([name, value]) =>
            (Array.isArray(value) ? value : [value]).map((each) => [name, packed(each)])
          )
          const { key, value, timestamp } = message
          reads.push({ offset: message.offset, key: packed(key), value: packed(value), headers, timestamp })
          offset = Number(message.offset) + 1
        }
      }
      return reads
    } finally {
      await cluster.disconnect()
    }
  },

  async offsets({ topic, partition }) {
    const found = await admin.fetchTopicOffsets(topic)
    const { low, high } = found.find((each) => each.partition === partition)
    return [low, high]
  },

  async offset_at({ topic, partition, timestamp }) {
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
    return found.find((each) => each.partition === partition).offset
  },
}

// kafkajs wraps the broker's refusal in retries, and those of several topics or partitions in an aggregate.
function refusal(error) {
  if (error.errors?.length) return refusal(error.errors[0])
  if (error.partitions?.length && error.partitions[0].error) return refusal(error.partitions[0].error)
  if (error.type) return error.type
  return error.cause ? refusal(error.cause) : error.name
}

async function main() {
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { call, ...args } = JSON.parse(line)
    let answer
    try {
      answer = { ok: (await calls[call](args)) ?? null }
    } catch (error) {
      answer = { refused: refusal(error), detail: String(error.stack) }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  await admin.disconnect()
}

main()
