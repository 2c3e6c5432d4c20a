// A member of a group with kafkajs.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [servers, groupId, topics] = process.argv.slice(2)
const kafka = new Kafka({
  brokers: servers.split(','),
  clientId: 'member',
  logLevel: logLevel.NOTHING,
  retry: { retries: 50, initialRetryTime: 100, maxRetryTime: 500 },
})
const consumer = kafka.consumer({
  groupId,
  sessionTimeout: 6000,
  rebalanceTimeout: 20000,
  heartbeatInterval: 500,
  metadataMaxAge: 500,
})
const say = (event) => process.stdout.write(JSON.stringify(event) + '\n')

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  const owned = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) =>
    partitions.map((partition) => [topic, partition])
  )
  say({ owned })
})

async function main() {
  await consumer.connect()
  await consumer.subscribe({ topics: topics.split(','), fromBeginning: true })
  await consumer.run({
    autoCommitInterval: 200,
    eachMessage: async ({ topic, partition, message }) =>
      say({ read: [topic, partition, Number(message.offset), message.value.toString()] }),
  })
  process.stdin.resume()
  process.stdin.on('end', async () => {
    await consumer.disconnect()
    process.exit(0)
  })
}

main()
