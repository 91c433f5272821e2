// Runs one of the public clients against a server and checks what comes back.
//
//   node clients.mjs eventstore|kurrent CONNECTION-STRING
//
// Every check prints a line; the last line counts them.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

// One a process: they register the same messages of the protocol, and the
// second would take those of the first.
const [which, address] = process.argv.slice(2);
const api = await import({ eventstore: "@eventstore/db-client", kurrent: "@kurrent/kurrentdb-client" }[which]);
const Client = api.EventStoreDBClient ?? api.KurrentDBClient;
const connect = (text = address) => Client.connectionString(text);
// The newer client calls the expectation of an append by another name, and what a wrong one tells.
const expect = (x) => (which === "kurrent" ? { streamState: x } : { expectedRevision: x });
const actual = (e) => (which === "kurrent" ? e.actualState : e.actualVersion);
const expected = (e) => (which === "kurrent" ? e.expectedState : e.expectedVersion);
const client = connect();

const stream = (name) => `${name}-${randomUUID()}`;
const events = (n, type = "made") =>
  Array.from({ length: n }, (_, i) => api.jsonEvent({ type, data: { i }, metadata: { m: i } }));
const collect = async (read) => {
  const got = [];
  for await (const e of read) got.push(e);
  return got;
};
const fails = async (promise, kind, check = () => {}) => {
  let error;
  try {
    await promise;
  } catch (e) {
    error = e;
  }
  assert.ok(error instanceof kind, `expected ${kind.name}, got ${error?.stack ?? "success"}`);
  check(error);
};
const soon = (promise, what) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited too long for ${what}`)), 30_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

const checks = {
  async "append, and the answer tells revision and position"() {
    const s = stream("append");
    const first = await client.appendToStream(s, events(3), expect(api.NO_STREAM));
    assert.equal(first.success, true);
    assert.equal(first.nextExpectedRevision, 2n);
    assert.ok(first.position.commit > 0n);
    const second = await client.appendToStream(s, events(1), expect(2n));
    assert.equal(second.nextExpectedRevision, 3n);
    assert.ok(second.position.commit > first.position.commit);
    const exists = await client.appendToStream(s, events(1), expect(api.STREAM_EXISTS));
    assert.equal(exists.nextExpectedRevision, 4n);
  },

  async "batch append is what the client uses, and keeps order"() {
    const batchAppend = { path: "/event_store.client.streams.Streams/BatchAppend" };
    assert.ok((await client.capabilities).supports(batchAppend), "batch append is not advertised");
    const s = stream("batch");
    const many = await Promise.all(events(50).map((e) => client.appendToStream(s, e)));
    assert.deepEqual(many.map((r) => r.nextExpectedRevision), many.map((_, i) => BigInt(i)));
    const got = await collect(client.readStream(s));
    assert.deepEqual(got.map((e) => e.event.data.i), many.map((_, i) => i));
    // In several messages of one batch.
    const parts = await client.appendToStream(s, events(20), { ...expect(49n), batchAppendSize: 200 });
    assert.equal(parts.nextExpectedRevision, 69n);
    await fails(
      client.appendToStream(s, api.binaryEvent({ type: "big", data: new Uint8Array(1 << 20) })),
      api.MaxAppendSizeExceededError,
      (e) => assert.equal(e.maxAppendSize, 1 << 20),
    );
  },

  async "append without batches, which credentials of its own ask for"() {
    const s = stream("single");
    const own = { credentials: { username: "admin", password: "changeit" } };
    const r = await client.appendToStream(s, events(2), { ...expect(api.NO_STREAM), ...own });
    assert.equal(r.nextExpectedRevision, 1n);
    await fails(client.appendToStream(s, events(1), { ...expect(7n), ...own }), api.WrongExpectedVersionError, (e) => {
      assert.equal(actual(e), 1n);
      assert.equal(expected(e), 7n);
    });
  },

  async "a wrong version"() {
    const s = stream("wrong");
    await client.appendToStream(s, events(1));
    await fails(client.appendToStream(s, events(1), expect(9n)), api.WrongExpectedVersionError, (e) => {
      assert.equal(e.streamName, s);
      assert.equal(actual(e), 0n);
      assert.equal(expected(e), 9n);
    });
    await fails(client.appendToStream(stream("none"), events(1), expect(api.STREAM_EXISTS)), api.WrongExpectedVersionError, (e) =>
      assert.equal(actual(e), "no_stream"),
    );
    const quiet = connect(address + "&throwOnAppendFailure=false");
    const r = await quiet.appendToStream(s, events(1), expect(9n));
    assert.equal(r.success, false);
    await quiet.dispose();
  },

  async "read a stream both ways"() {
    const s = stream("read");
    const written = events(5);
    await client.appendToStream(s, written);
    await client.appendToStream(s, api.binaryEvent({ type: "raw", data: new Uint8Array([0, 1, 255]) }));
    const forward = await collect(client.readStream(s, { fromRevision: api.START }));
    assert.deepEqual(forward.map((e) => e.event.revision), [0n, 1n, 2n, 3n, 4n, 5n]);
    assert.deepEqual(forward.slice(0, 5).map((e) => e.event.id), written.map((e) => e.id));
    const { event } = forward[1];
    assert.equal(event.type, "made");
    assert.equal(event.streamId, s);
    assert.deepEqual(event.data, { i: 1 });
    assert.deepEqual(event.metadata, { m: 1 });
    assert.ok(Math.abs(new Date(event.created).getTime() - Date.now()) < 60_000);
    assert.deepEqual([...forward[5].event.data], [0, 1, 255]);
    const backward = await collect(
      client.readStream(s, { fromRevision: api.END, direction: api.BACKWARDS, maxCount: 2 }),
    );
    assert.deepEqual(backward.map((e) => e.event.revision), [5n, 4n]);
    const middle = await collect(client.readStream(s, { fromRevision: 3n, maxCount: 2 }));
    assert.deepEqual(middle.map((e) => e.event.revision), [3n, 4n]);
    await fails(collect(client.readStream(stream("missing"))), api.StreamNotFoundError);
  },

  async "read $all both ways"() {
    const s = stream("all");
    const { position } = await client.appendToStream(s, events(3));
    const last = await collect(client.readAll({ fromPosition: api.END, direction: api.BACKWARDS, maxCount: 3 }));
    assert.deepEqual(last.map((e) => [e.event.streamId, e.event.revision]), [[s, 2n], [s, 1n], [s, 0n]]);
    const from = await collect(client.readAll({ fromPosition: position }));
    assert.equal(from[0].event.revision, 2n); // forward is inclusive
    const back = await collect(client.readAll({ fromPosition: position, direction: api.BACKWARDS, maxCount: 1 }));
    assert.equal(back[0].event.revision, 1n); // backward is not
  },

  async "a filtered $all by stream name"() {
    const prefix = stream("filtered");
    const checkpoints = [];
    const got = new Promise((resolve, reject) => {
      const found = [];
      const sub = client
        .subscribeToAll({
          fromPosition: api.START,
          filter: api.streamNameFilter({
            prefixes: [prefix],
            checkpointInterval: 1,
            maxSearchWindow: 5,
            checkpointReached: async (_, position) => checkpoints.push(position.commit),
          }),
        })
        .on("data", (e) => {
          found.push(e.event.streamId);
          if (found.length === 2) sub.unsubscribe().then(() => resolve(found), reject);
        })
        .on("error", reject);
    });
    await client.appendToStream(stream("other"), events(30));
    await client.appendToStream(prefix + "-a", events(1));
    await client.appendToStream(prefix + "-b", events(1));
    assert.deepEqual(await soon(got, "filtered events"), [prefix + "-a", prefix + "-b"]);
    assert.ok(checkpoints.length > 0, "no checkpoint");
    assert.deepEqual(checkpoints, [...checkpoints].sort((a, b) => (a < b ? -1 : 1)));
    assert.equal(new Set(checkpoints).size, checkpoints.length, "a checkpoint came twice");
  },

  async "a filtered $all by event type, with a regular expression"() {
    const type = "kind" + randomUUID().replaceAll("-", "");
    const s = stream("types");
    await client.appendToStream(s, [...events(1), ...events(2, type)]);
    const got = new Promise((resolve, reject) => {
      const found = [];
      const sub = client
        .subscribeToAll({ filter: api.eventTypeFilter({ regex: `^${type}$` }) })
        .on("data", (e) => {
          found.push(e.event.revision);
          if (found.length === 2) sub.unsubscribe().then(() => resolve(found), reject);
        })
        .on("error", reject);
    });
    assert.deepEqual(await soon(got, "events of a type"), [1n, 2n]);
  },

  async "subscribe to a stream: what is there, then what comes"() {
    const s = stream("live");
    await client.appendToStream(s, events(2));
    let caughtUp;
    const live = new Promise((resolve) => (caughtUp = resolve));
    const got = new Promise((resolve, reject) => {
      const found = [];
      const sub = client
        .subscribeToStream(s, { fromRevision: 0n }) // exclusive
        .on("caughtUp", () => caughtUp())
        .on("data", (e) => {
          found.push(e.event.revision);
          if (found.length === 2) sub.unsubscribe().then(() => resolve(found), reject);
        })
        .on("error", reject);
    });
    await soon(live, "caughtUp");
    await client.appendToStream(s, events(1));
    assert.deepEqual(await soon(got, "live events"), [1n, 2n]);
  },

  async "metadata"() {
    const s = stream("meta");
    await client.appendToStream(s, events(5));
    assert.equal((await client.getStreamMetadata(s)).metadata, undefined);
    await client.setStreamMetadata(s, { maxCount: 2, acl: { readRoles: ["$admins"] }, own: "yes" });
    const { metadata } = await client.getStreamMetadata(s);
    assert.equal(metadata.maxCount, 2);
    assert.equal(metadata.own, "yes");
    assert.deepEqual(metadata.acl.readRoles, ["$admins"]);
    const got = await collect(client.readStream(s));
    assert.deepEqual(got.map((e) => e.event.revision), [3n, 4n]);
  },

  async "access"() {
    const s = stream("theirs");
    await client.appendToStream(s, events(1));
    await client.setStreamMetadata(s, { acl: { readRoles: ["bob"], writeRoles: ["bob"] } });
    const ada = connect(address.replace("admin:changeit", "ada:lovelace"));
    await fails(collect(ada.readStream(s)), api.AccessDeniedError);
    await fails(ada.appendToStream(s, events(1)), api.AccessDeniedError);
    const own = { credentials: { username: "ada", password: "lovelace" } };
    await fails(client.appendToStream(s, events(1), own), api.AccessDeniedError);
    await fails(client.deleteStream("$users", own), api.AccessDeniedError);
    const bob = connect(address.replace("admin:changeit", "bob:builder"));
    assert.equal((await collect(bob.readStream(s))).length, 1);
    assert.equal((await bob.appendToStream(s, events(1))).nextExpectedRevision, 1n);
    const eve = connect(address.replace("admin:changeit", "admin:wrong"));
    await fails(eve.appendToStream(s, events(1)), api.AccessDeniedError);
    await Promise.all([ada.dispose(), bob.dispose(), eve.dispose()]);
  },

  async "delete, and write again"() {
    const s = stream("delete");
    await client.appendToStream(s, events(2));
    await fails(client.deleteStream(s, { expectedRevision: 5n }), api.WrongExpectedVersionError);
    const { position } = await client.deleteStream(s, { expectedRevision: 1n });
    assert.ok(position.commit > 0n);
    await fails(collect(client.readStream(s)), api.StreamNotFoundError);
    const again = await client.appendToStream(s, events(1), expect(api.NO_STREAM));
    assert.equal(again.nextExpectedRevision, 2n);
    assert.deepEqual((await collect(client.readStream(s))).map((e) => e.event.revision), [2n]);
  },

  async "tombstone, and no more"() {
    const s = stream("tombstone");
    await client.appendToStream(s, events(1));
    assert.ok((await client.tombstoneStream(s)).position.commit > 0n);
    await fails(collect(client.readStream(s)), api.StreamDeletedError);
    await fails(client.appendToStream(s, events(1)), api.StreamDeletedError);
  },

  async "a persistent subscription to a stream"() {
    const s = stream("group");
    const settings = api.persistentSubscriptionToStreamSettingsFromDefaults({ startFrom: api.START });
    await client.createPersistentSubscriptionToStream(s, "g", settings);
    await fails(client.createPersistentSubscriptionToStream(s, "g", settings), api.PersistentSubscriptionExistsError);
    await client.appendToStream(s, events(3));
    const got = new Promise((resolve, reject) => {
      const found = [];
      const sub = client
        .subscribeToPersistentSubscriptionToStream(s, "g")
        .on("data", async (e) => {
          try {
            found.push([e.event.revision, e.retryCount]);
            if (found.length === 1) await sub.nack("retry", "once more", e);
            else await sub.ack(e);
            if (found.length === 4) sub.unsubscribe().then(() => resolve(found), reject);
          } catch (error) {
            reject(error);
          }
        })
        .on("error", reject);
    });
    const found = await soon(got, "events of a group");
    assert.deepEqual(found.map(([r]) => r).sort(), [0n, 0n, 1n, 2n]);
    assert.ok(found.some(([r, retry]) => r === 0n && retry === 1), "not sent again");
    const info = await client.getPersistentSubscriptionToStreamInfo(s, "g");
    assert.equal(info.groupName, "g");
    assert.equal(info.eventSource, s);
    const list = await client.listPersistentSubscriptionsToStream(s);
    assert.deepEqual(list.map((i) => i.groupName), ["g"]);
    await client.updatePersistentSubscriptionToStream(s, "g", { ...settings, maxRetryCount: 3 });
    assert.equal((await client.getPersistentSubscriptionToStreamInfo(s, "g")).settings.maxRetryCount, 3);
    await client.deletePersistentSubscriptionToStream(s, "g");
    await fails(client.deletePersistentSubscriptionToStream(s, "g"), api.PersistentSubscriptionDoesNotExistError);
  },

  async "a persistent subscription to $all, parked and replayed"() {
    const prefix = stream("parked");
    const group = stream("g");
    const settings = api.persistentSubscriptionToAllSettingsFromDefaults({ startFrom: api.START });
    await client.createPersistentSubscriptionToAll(group, settings, {
      filter: api.streamNameFilter({ prefixes: [prefix] }),
    });
    await client.appendToStream(prefix, events(1));
    let parked;
    const first = new Promise((resolve) => (parked = resolve));
    let subscription;
    const got = new Promise((resolve, reject) => {
      const found = [];
      subscription = client
        .subscribeToPersistentSubscriptionToAll(group)
        .on("data", async (e) => {
          try {
            found.push(e.event.streamId);
            if (found.length === 1) {
              await subscription.nack("park", "later", e);
              parked();
            } else {
              await subscription.ack(e);
              resolve(found);
            }
          } catch (error) {
            reject(error);
          }
        })
        .on("error", reject);
    });
    await soon(first, "the first delivery");
    for (let i = 0; ; i++) {
      const info = await client.getPersistentSubscriptionToAllInfo(group);
      if (info.stats.parkedMessageCount > 0) break;
      assert.ok(i < 300, "nothing was parked");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await client.replayParkedMessagesToAll(group);
    assert.deepEqual(await soon(got, "the replayed event"), [prefix, prefix]);
    await subscription.unsubscribe();
    await client.deletePersistentSubscriptionToAll(group);
  },
};

let passed = 0;
let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await soon(check(), name);
    passed++;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}\n        ${String(error.stack ?? error).replaceAll("\n", "\n        ")}`);
  }
}
await client.dispose();
console.log(`${which}: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
