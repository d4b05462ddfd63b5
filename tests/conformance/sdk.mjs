// An official MCP client against the product. Nothing here speaks the protocol by itself.
//
//   node sdk.mjs MODE TRANSPORT     MODE: sdk-1.32.2, client-legacy, client-auto, client-pinned; TRANSPORT: http, stdio
//
// The caller (run_product) keeps the server: URL, TOKEN, PROGRAM, STATE are in the environment. When this program
// prints RESTART, the caller kills the server with -9, starts it again and answers with a line.
// The last line is "OK MODE TRANSPORT tools=N"; anything that is not as it should be ends the program with its story.
import assert from 'node:assert/strict'
import readline from 'node:readline'

import * as v2 from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator as AjvV1 } from '@modelcontextprotocol/sdk/validation/ajv'
import { AjvJsonSchemaValidator as AjvV2 } from '@modelcontextprotocol/client/validators/ajv'

const [mode, transport] = process.argv.slice(2)
const { URL: url, TOKEN: token, PROGRAM: program, STATE: state } = process.env
const isV1 = mode === 'sdk-1.32.2'
const isModern = mode === 'client-auto' || mode === 'client-pinned'
const negotiation = { 'client-legacy': 'legacy', 'client-auto': 'auto', 'client-pinned': { pin: '2026-07-28' } }[mode]
const seconds = 15

assert.ok(isV1 || negotiation, `no such mode: ${mode}`)
assert.ok(transport === 'http' || transport === 'stdio', `no such transport: ${transport}`)

function wire() {
  if (transport === 'http') {
    const options = { requestInit: { headers: { Authorization: `Bearer ${token}` } } }
    return isV1 ? new HttpV1(new URL(url), options) : new v2.StreamableHTTPClientTransport(new URL(url), options)
  }
  // --no-spawn: the server that run_product keeps, and no other.
  const command = { command: program, args: ['mcp-stdio', '--state', state, '--no-spawn'], stderr: 'inherit' }
  return isV1 ? new StdioV1(command) : new StdioV2(command)
}

// A connected client; `updates` collects the URIs that the server says have changed.
async function connect() {
  const about = { name: 'dais-conformance', version: '1' }
  const client = isV1 ? new ClientV1(about) : new v2.Client(about, { versionNegotiation: { mode: negotiation } })
  const updates = []
  const onUpdate = notification => updates.push(notification.params.uri)
  client.setNotificationHandler(isV1 ? ResourceUpdatedNotificationSchema : 'notifications/resources/updated', onUpdate)
  const channel = wire()
  await client.connect(channel)
  return { client, channel, updates }
}

// A call must give the same twice: as text and as structure.
async function envelope({ client }, name, args) {
  const result = await client.callTool({ name, arguments: args })
  assert.equal(result.content[0].type, 'text')
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, `${name}: text is not the structure`)
  assert.equal(typeof result.structuredContent.ok, 'boolean')
  return result
}

async function ok(session, name, args) {
  const { structuredContent, isError } = await envelope(session, name, args)
  assert.ok(structuredContent.ok && !isError, `${name} ${JSON.stringify(args)}: ${JSON.stringify(structuredContent)}`)
  return structuredContent.data ?? structuredContent.results[0]
}

// A client checks a refusal against the schema too: it has to resolve, not to throw (mcp 6.4 error-validates).
async function refused(session, name, args, code) {
  const { structuredContent, isError } = await envelope(session, name, args)
  assert.equal(isError, true, `${name} ${JSON.stringify(args)} was not refused`)
  assert.equal(structuredContent.error.code, code)
  return structuredContent.error
}

const op = (session, name, args) => ok(session, name, { ops: [args] })

async function until(condition, what) {
  const end = Date.now() + seconds * 1000
  while (!condition()) {
    assert.ok(Date.now() < end, `${what}: not within ${seconds} s`)
    await new Promise(wake => setTimeout(wake, 20))
  }
}

// ---- the steps ----

async function listAll({ client }) {
  const { tools } = await client.listTools()
  const { resources } = await client.listResources()
  const { resourceTemplates } = await client.listResourceTemplates()
  const { prompts } = await client.listPrompts()
  assert.ok(tools.length > 0 && resources.length > 0 && resourceTemplates.length > 0 && prompts.length > 0)
  assert.equal(new Set(tools.map(tool => tool.name)).size, tools.length)
  for (const resource of resources) {
    const { contents } = await client.readResource({ uri: resource.uri })
    assert.equal(contents[0].uri, resource.uri)
    assert.ok(contents[0].text.length > 0)
  }
  const { messages } = await client.getPrompt({ name: 'plan_tree', arguments: { goal: 'a harbour' } })
  assert.ok(messages.length > 0 && messages[0].content.text.includes('a harbour'))
  return tools
}

// Each output schema compiles, and takes what a client checks against it: answers and refusals.
function compile(tools) {
  const ajv = isV1 ? new AjvV1() : new AjvV2()
  for (const tool of tools) {
    assert.ok(tool.outputSchema, `${tool.name} has no outputSchema`)
    assert.deepEqual(Object.keys(tool.annotations).sort(),
      ['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint', 'title'])
    const check = ajv.getValidator(tool.outputSchema)
    assert.ok(check({ ok: true }).valid, tool.name)
    assert.ok(check({ ok: false, error: { code: 'x' } }).valid, tool.name)
    // Tools without an envelope promise no member: a refusal has others than an answer.
    if (tool.outputSchema.required === undefined)
      assert.ok(check({ _tag: 'OrchestratorMcpFailure', code: 'x', message: 'x' }).valid, tool.name)
    else
      assert.ok(!check({}).valid, `${tool.name}: ok is not required`)
  }
}

// The story: an item without its note cannot start; with it, it goes on, unblocks what waited, and closes its parent.
async function story(session) {
  const root = (await op(session, 'items_write', { op: 'create', title: `Harbour ${mode}`, type: 'project' })).id
  await op(session, 'config', { op: 'push', rootId: root,
    yaml: 'work_item_schemas:\n  task:\n    notes:\n      - {key: plan, role: queue, required: true}\n' })
  const create = (title, type, parentId) => op(session, 'items_write', { op: 'create', title, type, parentId })
  const feature = (await create('Berth booking', 'feature', root)).id
  const first = (await create('Tide tables', 'task', feature)).id
  const second = (await create('Booking API', 'task', feature)).id
  await op(session, 'deps_write', { op: 'create', from: first, to: second })
  const start = item => ({ ops: [{ op: 'transition', itemId: item, trigger: 'start' }] })
  const complete = item => op(session, 'advance', { op: 'transition', itemId: item, trigger: 'complete' })

  const gate = await refused(session, 'advance', start(first), 'gate_blocked')
  assert.deepEqual(gate.detail.missing.map(note => note.key), ['plan'])
  const note = await op(session, 'notes_write', { op: 'upsert', itemId: first, key: 'plan', body: 'Read the yearly file.' })
  await ok(session, 'advance', start(first))
  await op(session, 'notes_write', { op: 'upsert', itemId: second, key: 'plan', body: 'Serve them.' })
  await refused(session, 'advance', start(second), 'dependency_unmet')
  const done = await complete(first)
  assert.deepEqual(done.unblockedItems.map(item => item.itemId), [second])

  const newcomer = await connect()
  const overview = await ok(newcomer, 'items_read', { select: 'context', rootId: root })
  assert.ok(JSON.stringify(overview).includes(feature))
  await newcomer.client.close()

  await ok(session, 'advance', start(second))
  const closed = await complete(second)
  assert.ok(closed.cascadeEvents.some(event => event.itemId === feature && event.to === 'terminal'))
  const { item } = await ok(session, 'items_read', { select: 'get', itemId: feature })
  assert.equal(item.role, 'terminal')
  return { root, first, second, feature, note: note.id }
}

// Every select of every tool that reads.
async function readAll(session, tools, { root, first, note }) {
  const { docId } = await op(session, 'docs_write',
    { op: 'put', rootId: root, slug: 'pages/tides', kind: 'page', title: 'Tides', body: '# Tides\n\nTwice a day.\n' })
  assert.ok(docId)
  const { runId } = await op(session, 'report', { op: 'open_run', rootId: root, title: 'A run' })
  const needs = {
    items_read: { get: { itemId: first }, search: { query: 'tide' }, gate: { itemId: first }, schema: { itemId: first },
      history: { itemId: first } },
    notes_read: { list: { itemId: first }, get: { itemId: first, key: 'plan' }, revisions: { noteId: note } },
    deps_read: { edges: { itemId: first }, graph: { itemId: first }, backlinks: { itemId: first } },
    docs_read: { list: { rootId: root }, get: { rootId: root, slug: 'pages/tides' },
      section: { rootId: root, slug: 'pages/tides', anchor: 'tides' }, versions: { rootId: root, slug: 'pages/tides' } },
    config: { current: { rootId: root }, effective: { rootId: root }, versions: { rootId: root },
      relation: { rootId: root, fingerprint: '0'.repeat(64) }, rules: { rootId: root } },
    report: { board: { rootId: root }, run: { runId }, decisions: { rootId: root }, rollup: { rootId: root } },
  }
  let calls = 0
  // Tools without an envelope explain themselves by their schema alone.
  for (const tool of tools.filter(tool => tool.inputSchema.properties.describe)) {
    await ok(session, tool.name, { describe: true })
    for (const select of tool.inputSchema.properties.select?.enum ?? []) {
      // A rule needs a seat's key in the rules; that it is missing is an answer as well.
      if (select === 'rule')
        await refused(session, tool.name, { select, rootId: root, key: 'none' }, 'not_found')
      else
        await ok(session, tool.name, { select, ...needs[tool.name]?.[select] })
      calls++
    }
  }
  assert.ok(calls > 20, 'the selects were not found in the schemas')
}

async function failures(session, { first }) {
  const { client } = session
  const missing = await refused(session, 'items_read',
    { select: 'get', itemId: 'ffffffff-ffff-4fff-bfff-ffffffffffff' }, 'not_found')
  assert.ok(missing.message.length > 0)
  await refused(session, 'items_read', { select: 'get', itemId: first, colour: 'blue' }, 'unknown_parameter')
  await assert.rejects(client.callTool({ name: 'no_such_tool', arguments: {} }), { code: -32602 })
  // The newer client shows the code of the newer era whatever came.
  await assert.rejects(client.readResource({ uri: 'dais://item/ffffffff-ffff-4fff-bfff-ffffffffffff' }),
    { code: isV1 ? -32002 : -32602, data: { uri: 'dais://item/ffffffff-ffff-4fff-bfff-ffffffffffff' } })
  await assert.rejects(client.getPrompt({ name: 'no_such_prompt' }), { code: -32602 })
}

async function subscribe({ client }, uris) {
  if (isModern) {
    const subscription = await client.listen({ resourceSubscriptions: uris })
    assert.deepEqual([...subscription.honoredFilter.resourceSubscriptions].sort(), [...uris].sort())
    return subscription
  }
  for (const uri of uris)
    await client.subscribeResource({ uri })
  return undefined
}

const noteUri = item => `dais://item/${item}/note/a%2Fb`

async function write(session, item, body) {
  await op(session, 'notes_write', { op: 'upsert', itemId: item, key: 'a/b', role: 'queue', body })
}

async function heard(session, uris, what) {
  await until(() => uris.every(uri => session.updates.includes(uri)), `${what}: heard ${JSON.stringify(session.updates)}`)
}

// What is subscribed to is told, what is not is not.
async function follow(session, { root, first, second, feature }) {
  const ofNote = [`dais://item/${first}`, `dais://item/${first}/notes`, noteUri(first)]
  const ofRest = [`dais://item/${feature}/tree`, `dais://config/${root}`, `dais://doc/${root}/pages%2Ftides`]
  const uris = [...ofNote, ...ofRest]
  const subscription = await subscribe(session, uris)
  session.updates.length = 0
  await write(session, second, 'not subscribed to')
  await write(session, first, 'one')
  await heard(session, ofNote, 'updates after a note')
  assert.ok(session.updates.every(uri => ofNote.includes(uri)), JSON.stringify(session.updates))
  await op(session, 'items_write', { op: 'update', itemId: second, title: 'Booking interface' })
  await op(session, 'config', { op: 'push', rootId: root, yaml: 'work_item_schemas: {}\n' })
  await op(session, 'docs_write', { op: 'put', rootId: root, slug: 'pages/tides', kind: 'page', body: '# Tides\n' })
  await heard(session, ofRest, 'updates of a child, rules and a document')
  return { uris, subscription }
}

const answers = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()

// kill -9 and start: an old session goes on as if nothing had happened, with its subscriptions.
async function restart(session, { first }, followed) {
  const sessionId = session.channel.sessionId
  console.log('RESTART')
  await answers.next()
  const { item } = await ok(session, 'items_read', { select: 'get', itemId: first })
  assert.equal(item.id, first)
  assert.equal(session.channel.sessionId, sessionId, 'the session is another one')
  session.updates.length = 0
  // A request that stays open ends with its connection over HTTP; over stdio the relay asks it again.
  if (isModern && transport === 'http')
    await subscribe(session, followed.uris)
  // The notification stream of an old HTTP session comes back by itself, after a pause that the client chooses; what
  // changed meanwhile was for nobody, so one writes until it is heard.
  const end = Date.now() + seconds * 1000
  for (let n = 0; !session.updates.includes(noteUri(first)); n++) {
    assert.ok(Date.now() < end, 'no update after the restart')
    await write(session, first, `after the restart ${n}`)
    await new Promise(wake => setTimeout(wake, 300))
  }
}

const session = await connect()
const version = isV1 ? session.channel.protocolVersion : session.client.getNegotiatedProtocolVersion()
if (version !== undefined)
  assert.equal(version, isModern ? '2026-07-28' : '2025-11-25')
const tools = await listAll(session)
compile(tools)
const items = await story(session)
await readAll(session, tools, items)
await failures(session, items)
const followed = await follow(session, items)
await restart(session, items, followed)
await session.client.close()
console.log(`OK ${mode} ${transport} tools=${tools.length}`)
process.exit(0)
