-- The work graph. Hot columns (what a transition changes) and texts live in separate tables: bytes
-- written, not syncs, limit grouped commits. Times are UTC milliseconds; ids are 16-byte UUIDs;
-- roles are the ranks of the dependency gate: -1 blocked, 0 queue, 1 work, 2 review, 3 terminal.
-- `n` is ours and explicit, so VACUUM never renumbers what FTS and references point at.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE principal (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  kind INTEGER NOT NULL,             -- enum principal_kind
  parent TEXT
) STRICT;

CREATE TABLE item (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
  parent_n INTEGER REFERENCES item (n),
  root_n INTEGER NOT NULL,           -- own n for a root
  depth INTEGER NOT NULL,
  role INTEGER NOT NULL CHECK (role BETWEEN -1 AND 3),
  prev_role INTEGER,                 -- exactly while role = -1
  priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 2),       -- 0 high, 1 medium, 2 low
  complexity INTEGER NOT NULL CHECK (complexity BETWEEN 1 AND 11),  -- 11: not given, sorts last
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  modified_at INTEGER NOT NULL,
  role_changed_at INTEGER NOT NULL,
  moved_seq INTEGER,                 -- event.seq of its newest transition, which leads to the one before
  label TEXT,
  prev_label TEXT,
  claim_by INTEGER,                  -- principal.n; live while claim_until > now
  claim_at INTEGER,
  claim_first_at INTEGER,
  claim_until INTEGER,
  claim_ttl INTEGER,                 -- seconds asked for
  claim_gen INTEGER NOT NULL DEFAULT 0,
  claim_lapse_seen INTEGER NOT NULL DEFAULT 0,  -- claim.expired is on record
  CHECK ((role = -1) = (prev_role IS NOT NULL)),
  CHECK (parent_n IS NULL OR parent_n <> n)
) STRICT;
CREATE INDEX item_children ON item (parent_n, n);
CREATE INDEX item_created ON item (created_at, id);
CREATE INDEX item_root_created ON item (root_n, created_at, id);
-- What is next inside a project, among items that are projects themselves, and anywhere. Ended items are in none:
-- ending is one page of the log less. "root_n <> n" says "below a root" in columns that the index has, so a walk
-- along it does not look at the items; what begins with "role <> 3" is no bound that a planner could prefer.
CREATE INDEX item_ready ON item (root_n, role, priority, complexity, created_at, id) WHERE root_n <> n AND role <> 3;
CREATE INDEX item_root_ready ON item (role, priority, complexity, created_at, id) WHERE parent_n IS NULL AND role <> 3;
CREATE INDEX item_queue ON item (priority, complexity, created_at, id) WHERE role = 0;
-- Orders of a listing of everything; a change of a role touches neither.
CREATE INDEX item_priority ON item (priority, id);
CREATE INDEX item_complexity ON item (complexity, id);
CREATE INDEX item_claimed ON item (claim_until) WHERE claim_by IS NOT NULL;
CREATE INDEX item_claim_by ON item (claim_by) WHERE claim_by IS NOT NULL;

CREATE TABLE item_text (
  n INTEGER PRIMARY KEY REFERENCES item (n) ON DELETE CASCADE,
  title TEXT NOT NULL,
  type TEXT,
  tags TEXT NOT NULL DEFAULT '[]',   -- JSON array in the order given
  traits TEXT NOT NULL DEFAULT '[]',
  summary TEXT NOT NULL DEFAULT '',
  requires_verification INTEGER NOT NULL DEFAULT 0,
  created_by INTEGER NOT NULL REFERENCES principal (n),
  properties TEXT,
  metadata TEXT,
  description TEXT
) STRICT;
CREATE INDEX item_text_title ON item_text (title);
CREATE INDEX item_text_type ON item_text (type, n) WHERE type IS NOT NULL;

-- tag and trait membership for filters; tags are stored in lower case by their grammar
CREATE TABLE item_tag (
  tag TEXT NOT NULL,
  item_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  PRIMARY KEY (tag, item_n)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_tag_item ON item_tag (item_n);
CREATE TABLE item_trait (
  trait TEXT NOT NULL,
  item_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  PRIMARY KEY (trait, item_n)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_trait_item ON item_trait (item_n);

-- Counts by role, kept by every change of a role or a parent, never recounted.
CREATE TABLE child_tally (             -- direct children of an item
  item_n INTEGER PRIMARY KEY REFERENCES item (n) ON DELETE CASCADE,
  queue INTEGER NOT NULL DEFAULT 0,
  work INTEGER NOT NULL DEFAULT 0,
  review INTEGER NOT NULL DEFAULT 0,
  blocked INTEGER NOT NULL DEFAULT 0,
  terminal INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE root_tally (              -- every item of a project, its root included
  root_n INTEGER PRIMARY KEY REFERENCES item (n) ON DELETE CASCADE,
  queue INTEGER NOT NULL DEFAULT 0,
  work INTEGER NOT NULL DEFAULT 0,
  review INTEGER NOT NULL DEFAULT 0,
  blocked INTEGER NOT NULL DEFAULT 0,
  terminal INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE note (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  item_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  key TEXT NOT NULL,
  role INTEGER NOT NULL,
  version INTEGER NOT NULL,
  chars INTEGER NOT NULL,
  is_filled INTEGER NOT NULL,          -- holds a character that is not white space
  is_temporal INTEGER NOT NULL DEFAULT 0,  -- first line waives independence
  created_at INTEGER NOT NULL,
  modified_at INTEGER NOT NULL,
  actor_n INTEGER NOT NULL REFERENCES principal (n),
  verification INTEGER NOT NULL,       -- enum verification
  verifier TEXT,
  verification_reason TEXT,
  subject TEXT,                        -- verified subject, when verification = verified
  proof_sha256 TEXT,
  proof_claims TEXT,
  run_n INTEGER,
  seat TEXT,
  UNIQUE (item_n, key)
) STRICT;
CREATE TABLE note_body (
  n INTEGER PRIMARY KEY REFERENCES note (n) ON DELETE CASCADE,
  body TEXT NOT NULL
) STRICT;
CREATE TABLE note_revision (
  note_n INTEGER NOT NULL REFERENCES note (n) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  role INTEGER NOT NULL,
  body TEXT NOT NULL,
  is_filled INTEGER NOT NULL,
  actor_n INTEGER NOT NULL,
  verification INTEGER NOT NULL,
  subject TEXT,
  run_n INTEGER,
  seat TEXT,
  written_at INTEGER NOT NULL,
  PRIMARY KEY (note_n, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE dep (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  from_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  to_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  type INTEGER NOT NULL,               -- 0 BLOCKS, 1 RELATES_TO
  unblock_at INTEGER,                  -- as given; NULL means terminal
  threshold INTEGER NOT NULL,          -- rank that satisfies: unblock_at or 3
  created_at INTEGER NOT NULL,
  created_by INTEGER NOT NULL REFERENCES principal (n),
  UNIQUE (from_n, to_n, type),
  CHECK (from_n <> to_n)
) STRICT;
CREATE INDEX dep_to ON dep (to_n, type, n, threshold, from_n);  -- all that the gate asks, in its order

-- The one event log of all halves, which is also the history of transitions. seq is handed out by the
-- writer in commit order, from 10^12 + 1.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  at INTEGER NOT NULL,
  type INTEGER NOT NULL,               -- store/event.def
  root_n INTEGER NOT NULL,             -- 0: none
  item_n INTEGER,
  entity_id BLOB,
  actor_n INTEGER NOT NULL,
  verification INTEGER NOT NULL,
  run_n INTEGER,
  seat TEXT,
  req_id TEXT,
  prev_seq INTEGER,                    -- of a transition: the one before it of the same item
  data TEXT NOT NULL                   -- JSON object
) STRICT;
-- Why a claim ended. The transitions of an item are a chain from item.moved_seq, which writes nothing but rows that
-- are written anyway: an index of all events by item cost every transition one more page of the log.
CREATE INDEX event_claim_end ON event (item_n, seq) WHERE type = 12;

CREATE TABLE lease (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  resource_key TEXT NOT NULL,
  holder_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  acquired_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ttl INTEGER NOT NULL,
  acquired_by INTEGER NOT NULL,
  version INTEGER NOT NULL DEFAULT 1,
  UNIQUE (resource_key, holder_n)
) STRICT;
CREATE INDEX lease_holder ON lease (holder_n);
CREATE TABLE lease_history (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  resource_key TEXT NOT NULL,
  holder_id BLOB NOT NULL,
  holder_title TEXT NOT NULL,
  acquired_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  released_at INTEGER NOT NULL,
  reason INTEGER NOT NULL,             -- 0 released, 1 expired, 2 forced, 3 item_deleted
  released_by INTEGER NOT NULL
) STRICT;
CREATE INDEX lease_history_key ON lease_history (resource_key, released_at);

CREATE TABLE document (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  root_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  kind INTEGER NOT NULL,               -- 0 plan, 1 rule, 2 page
  slug TEXT NOT NULL,
  title TEXT,
  status INTEGER,                      -- plans: 0 pending, 1 adopted
  adopted_by_n INTEGER REFERENCES item (n) ON DELETE SET NULL,
  version INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  content_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  modified_at INTEGER NOT NULL,
  actor_n INTEGER NOT NULL REFERENCES principal (n),
  UNIQUE (root_n, slug)
) STRICT;
CREATE INDEX document_adopted ON document (adopted_by_n) WHERE adopted_by_n IS NOT NULL;
CREATE TABLE document_version (        -- the newest 50, the current one included
  document_n INTEGER NOT NULL REFERENCES document (n) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  title TEXT,
  body TEXT NOT NULL,
  content_hash TEXT NOT NULL,
  actor_n INTEGER NOT NULL,
  written_at INTEGER NOT NULL,
  PRIMARY KEY (document_n, version)
) STRICT;

-- Rules. root_n 0 is the global document, imported at start.
CREATE TABLE config (
  root_n INTEGER PRIMARY KEY,
  yaml TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  actor_n INTEGER NOT NULL,
  imported_from TEXT
) STRICT;
CREATE TABLE config_version (
  root_n INTEGER NOT NULL,
  version INTEGER NOT NULL,
  yaml TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  pushed_at INTEGER NOT NULL,
  actor_n INTEGER NOT NULL,
  source INTEGER NOT NULL,             -- 0 push, 1 rollback, 2 import, 3 force
  PRIMARY KEY (root_n, version)
) STRICT;

CREATE TABLE run (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  root_n INTEGER NOT NULL REFERENCES item (n) ON DELETE CASCADE,
  scope_n INTEGER REFERENCES item (n) ON DELETE SET NULL,
  kind INTEGER NOT NULL,               -- 0 wave, 1 loop, 2 manual
  title TEXT NOT NULL,
  is_open INTEGER NOT NULL,
  pinned_version INTEGER,
  opened_at INTEGER NOT NULL,
  opened_by INTEGER NOT NULL,
  closed_at INTEGER,
  closed_by INTEGER,
  outcome INTEGER,                     -- 0 done, 1 abandoned, 2 failed
  retrospective TEXT,
  last_activity_at INTEGER NOT NULL
) STRICT;
CREATE INDEX run_root ON run (root_n, is_open);
CREATE TABLE run_seat (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  run_n INTEGER NOT NULL REFERENCES run (n) ON DELETE CASCADE,
  seat TEXT NOT NULL,
  label TEXT,
  token_sha256 BLOB NOT NULL UNIQUE,
  principal_n INTEGER NOT NULL,
  issued_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;
CREATE INDEX run_seat_run ON run_seat (run_n);
CREATE TABLE run_report (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  run_n INTEGER NOT NULL REFERENCES run (n) ON DELETE CASCADE,
  kind INTEGER NOT NULL,               -- 0 note, 1 decision, 2 risk, 3 retrospective
  body TEXT NOT NULL,
  needs_decision INTEGER NOT NULL,
  decided_at INTEGER,
  decided_by INTEGER,
  decision TEXT,
  created_at INTEGER NOT NULL,
  actor_n INTEGER NOT NULL,
  seat TEXT
) STRICT;
CREATE INDEX run_report_run ON run_report (run_n, n);

CREATE TABLE idempotency (
  principal_n INTEGER NOT NULL,
  operation TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  result TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (principal_n, operation, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created_at);

CREATE TABLE call_log (                -- appended only: an index on random ids would cost a page per call
  n INTEGER PRIMARY KEY,
  req_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  principal TEXT NOT NULL,
  surface TEXT NOT NULL,
  tool TEXT NOT NULL,
  operation TEXT NOT NULL,
  outcome TEXT NOT NULL,
  error_code TEXT,
  latency_us INTEGER NOT NULL,
  bytes_in INTEGER NOT NULL,
  bytes_out INTEGER NOT NULL,
  batch_size INTEGER NOT NULL,
  failed_count INTEGER NOT NULL,
  replayed INTEGER NOT NULL
) STRICT;

CREATE TABLE token (
  id TEXT PRIMARY KEY,                 -- the principal is api:<id>
  sha256 BLOB NOT NULL UNIQUE,
  description TEXT NOT NULL,
  capabilities TEXT NOT NULL,          -- words separated by one blank
  roots TEXT,                          -- JSON array of item ids, NULL: every project
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE TABLE sign_in (                 -- one-time links of the status page, and the sessions they open
  sha256 BLOB PRIMARY KEY,
  is_session INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;

CREATE TABLE mcp_session (
  id_sha256 BLOB PRIMARY KEY,
  principal TEXT NOT NULL,
  state TEXT NOT NULL,                 -- JSON, the MCP room's own
  created_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mcp_session_seen ON mcp_session (last_seen_at);

-- Search: two analysers per source, fed by triggers on the indexed columns only, so that a change of
-- role writes nothing here. Words are ranked by the index, so it keeps places and lengths; parts of words are
-- looked up in their text afterwards, so the index says no more than which rows may hold them.
CREATE VIRTUAL TABLE item_fts_text USING fts5 (title, summary, content = 'item_text', content_rowid = 'n',
  tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE item_fts_grams USING fts5 (title, summary, content = 'item_text', content_rowid = 'n',
  tokenize = 'grams', prefix = '3', detail = none, columnsize = 0);
CREATE VIRTUAL TABLE note_fts_text USING fts5 (body, content = 'note_body', content_rowid = 'n',
  tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE note_fts_grams USING fts5 (body, content = 'note_body', content_rowid = 'n',
  tokenize = 'grams', prefix = '3', detail = none, columnsize = 0);

CREATE TRIGGER item_fts_insert AFTER INSERT ON item_text BEGIN
  INSERT INTO item_fts_text (rowid, title, summary) VALUES (new.n, new.title, new.summary);
  INSERT INTO item_fts_grams (rowid, title, summary) VALUES (new.n, new.title, new.summary);
END;
CREATE TRIGGER item_fts_delete AFTER DELETE ON item_text BEGIN
  INSERT INTO item_fts_text (item_fts_text, rowid, title, summary) VALUES ('delete', old.n, old.title, old.summary);
  INSERT INTO item_fts_grams (item_fts_grams, rowid, title, summary) VALUES ('delete', old.n, old.title, old.summary);
END;
CREATE TRIGGER item_fts_update AFTER UPDATE OF title, summary ON item_text BEGIN
  INSERT INTO item_fts_text (item_fts_text, rowid, title, summary) VALUES ('delete', old.n, old.title, old.summary);
  INSERT INTO item_fts_grams (item_fts_grams, rowid, title, summary) VALUES ('delete', old.n, old.title, old.summary);
  INSERT INTO item_fts_text (rowid, title, summary) VALUES (new.n, new.title, new.summary);
  INSERT INTO item_fts_grams (rowid, title, summary) VALUES (new.n, new.title, new.summary);
END;
CREATE TRIGGER note_fts_insert AFTER INSERT ON note_body BEGIN
  INSERT INTO note_fts_text (rowid, body) VALUES (new.n, new.body);
  INSERT INTO note_fts_grams (rowid, body) VALUES (new.n, new.body);
END;
CREATE TRIGGER note_fts_delete AFTER DELETE ON note_body BEGIN
  INSERT INTO note_fts_text (note_fts_text, rowid, body) VALUES ('delete', old.n, old.body);
  INSERT INTO note_fts_grams (note_fts_grams, rowid, body) VALUES ('delete', old.n, old.body);
END;
CREATE TRIGGER note_fts_update AFTER UPDATE OF body ON note_body BEGIN
  INSERT INTO note_fts_text (note_fts_text, rowid, body) VALUES ('delete', old.n, old.body);
  INSERT INTO note_fts_grams (note_fts_grams, rowid, body) VALUES ('delete', old.n, old.body);
  INSERT INTO note_fts_text (rowid, body) VALUES (new.n, new.body);
  INSERT INTO note_fts_grams (rowid, body) VALUES (new.n, new.body);
END;
