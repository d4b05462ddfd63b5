-- Threads: durable conversations with agents, and the work that they delegate to one another. Rows are what the events
-- of the log say (store/event.def, 40 and up, carry the whole new row), kept in the same transaction; what changes with
-- every line of an agent stands in narrow tables of its own without events. Enumerations are the numbers of
-- threads/status.def. Ids that can be derived (runs, attempts, root nodes) are not stored.

ALTER TABLE event ADD COLUMN thread_n INTEGER;
CREATE INDEX event_thread ON event (thread_n, seq) WHERE thread_n IS NOT NULL;

CREATE TABLE project (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  root_n INTEGER,                      -- item.n of the project's root in the work graph
  workspace_root TEXT NOT NULL,        -- absolute, real path
  kind INTEGER NOT NULL,               -- 0 normal, 1 scratch
  selection TEXT,                      -- {"instanceId","model","options"?}
  setup_script TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;
CREATE UNIQUE INDEX project_workspace ON project (workspace_root) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX project_root ON project (root_n) WHERE root_n IS NOT NULL;

CREATE TABLE thread (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  project_n INTEGER NOT NULL REFERENCES project (n),
  kind INTEGER NOT NULL,               -- 0 agent, 1 external: its agent was not started by us
  title TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  model TEXT,
  options TEXT,
  runtime_mode INTEGER NOT NULL,
  interaction_mode INTEGER NOT NULL,
  branch TEXT,
  worktree_path TEXT,
  workspace INTEGER NOT NULL,          -- 0 root, 1 worktree of its own, 2 existing_worktree, 3 scratch; but for 0 a path is needed
  pull_request TEXT,
  parent_n INTEGER REFERENCES thread (n),
  relationship INTEGER NOT NULL,       -- 0 none, 1 fork, 2 subagent, 3 review
  root_n INTEGER NOT NULL,             -- own n without a parent
  depth INTEGER NOT NULL,
  forked_from TEXT,
  created_by INTEGER NOT NULL,
  creation_source INTEGER NOT NULL,
  namespace TEXT NOT NULL,             -- of the request keys of its agent
  external_key TEXT,                   -- external: principal and workspace, to be found again
  title_request TEXT,
  provider_thread_n INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  archived_at INTEGER,
  deleted_at INTEGER
) STRICT;
CREATE INDEX thread_updated ON thread (project_n, updated_at, id) WHERE deleted_at IS NULL;
CREATE INDEX thread_parent ON thread (parent_n) WHERE parent_n IS NOT NULL;
CREATE UNIQUE INDEX thread_external ON thread (external_key) WHERE external_key IS NOT NULL;

CREATE TABLE message (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  run_n INTEGER,
  role INTEGER NOT NULL,               -- 0 user, 1 assistant, 2 system
  text TEXT NOT NULL,
  attachments TEXT,
  created_by INTEGER NOT NULL,
  creation_source INTEGER NOT NULL,
  sender_n INTEGER,                    -- thread whose agent wrote it
  completion TEXT,                     -- {"parentRunN","generation","taskNs"}: a wake
  notification TEXT,
  is_monitor INTEGER NOT NULL,         -- a report of something watched: no work of the thread's own
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX message_thread ON message (thread_n, n);

CREATE TABLE thread_run (
  n INTEGER PRIMARY KEY,
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  ordinal INTEGER NOT NULL,
  instance_id TEXT NOT NULL,
  model TEXT,
  options TEXT,
  provider_thread_n INTEGER,
  message_n INTEGER NOT NULL,
  root_node_n INTEGER,
  attempt_n INTEGER,                   -- the active one
  status INTEGER NOT NULL,
  queue_position INTEGER,
  is_held INTEGER NOT NULL,
  is_wake INTEGER NOT NULL,
  requested_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  interrupt_at INTEGER,                -- asked for
  failure TEXT,
  usage TEXT,
  cohort INTEGER NOT NULL,             -- 0 none, 1 open, 2 stopped, 3 disposed
  cohort_generation INTEGER NOT NULL,  -- of the next delivery
  cohort_message_n INTEGER,            -- the delivery that is out
  checkpoint_n INTEGER,                -- what it left in its folder
  UNIQUE (thread_n, ordinal)
) STRICT;
CREATE INDEX thread_run_cohort ON thread_run (thread_n) WHERE cohort_message_n IS NOT NULL;
CREATE INDEX thread_run_live ON thread_run (status, thread_n) WHERE status < 5;

CREATE TABLE run_attempt (
  n INTEGER PRIMARY KEY,
  run_n INTEGER NOT NULL REFERENCES thread_run (n),
  thread_n INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  root_node_n INTEGER NOT NULL,
  instance_id TEXT NOT NULL,
  turn_n INTEGER,                      -- provider_turn.n
  reason INTEGER NOT NULL,
  status INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  UNIQUE (run_n, ordinal)
) STRICT;

CREATE TABLE node (
  n INTEGER PRIMARY KEY,
  id TEXT,                             -- absent: derived from its run and attempt
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  run_n INTEGER,
  parent_n INTEGER,
  root_n INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  status INTEGER NOT NULL,
  counts_for_run INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX node_id ON node (id) WHERE id IS NOT NULL;
CREATE INDEX node_run ON node (run_n);

CREATE TABLE subagent (
  n INTEGER PRIMARY KEY,               -- node.n
  id TEXT NOT NULL UNIQUE,             -- the public taskId
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  run_n INTEGER,
  parent_node_n INTEGER NOT NULL,
  item_n INTEGER NOT NULL,             -- turn_item.n of its row in the parent's timeline
  origin INTEGER NOT NULL,             -- 0 provider_native, 1 app_owned
  created_by INTEGER NOT NULL,
  driver TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  child_n INTEGER,                     -- thread.n
  child_run_n INTEGER,
  native_key TEXT,
  prompt TEXT NOT NULL,
  title TEXT,
  model TEXT,
  options TEXT,
  completion_wake INTEGER NOT NULL,    -- 0 settled_only, 1 always
  delivery INTEGER NOT NULL,           -- 0 none, 1 pending, 2 claimed, 3 acknowledged, 4 delivered, 5 disposed
  observed_by_run_n INTEGER,
  status INTEGER NOT NULL,
  progress TEXT,
  result TEXT,
  result_run_n INTEGER,
  result_item_n INTEGER,
  result_transfer_n INTEGER,
  started_at INTEGER,
  completed_at INTEGER,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX subagent_thread ON subagent (thread_n, n);
CREATE UNIQUE INDEX subagent_child ON subagent (child_n) WHERE child_n IS NOT NULL;
CREATE INDEX subagent_open ON subagent (thread_n, n) WHERE origin = 1 AND delivery < 3; -- unfinished, or not told of

CREATE TABLE context_transfer (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  type INTEGER NOT NULL,               -- 0 fork, 1 provider_handoff, 2 merge_back, 3 subagent_spawn, 4 subagent_result
  source_n INTEGER NOT NULL REFERENCES thread (n),
  target_n INTEGER NOT NULL REFERENCES thread (n),
  source_point TEXT NOT NULL,
  target_run_n INTEGER,
  status INTEGER NOT NULL,
  resolution TEXT,
  created_by INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  consumed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX context_transfer_result ON context_transfer (source_n, target_n) WHERE type = 4;
CREATE INDEX context_transfer_target ON context_transfer (target_n, type);

CREATE TABLE turn_item (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  run_n INTEGER,
  attempt_n INTEGER,
  native_key TEXT,
  parent_n INTEGER,
  ordinal INTEGER NOT NULL,            -- also its position in the thread's own timeline
  type INTEGER NOT NULL,
  status INTEGER NOT NULL,
  title TEXT,
  message_n INTEGER,
  body TEXT,                           -- JSON object, as of its type
  text TEXT,                           -- messages, reasoning: once it is whole
  started_at INTEGER,
  completed_at INTEGER,
  updated_at INTEGER NOT NULL,
  UNIQUE (thread_n, ordinal)
) STRICT;
CREATE INDEX turn_item_native ON turn_item (thread_n, native_key) WHERE native_key IS NOT NULL;
CREATE INDEX turn_item_open ON turn_item (run_n) WHERE status < 3;
-- A reading of messages alone passes over all the activity between them.
CREATE INDEX turn_item_message ON turn_item (thread_n, ordinal) WHERE type IN (0, 1, 3);
CREATE INDEX turn_item_answer ON turn_item (run_n, attempt_n, updated_at, ordinal) WHERE type = 1;
-- What was streamed of an item that is not whole yet: appended, never rewritten.
CREATE TABLE item_chunk (
  item_n INTEGER NOT NULL REFERENCES turn_item (n),
  at INTEGER NOT NULL,                 -- bytes before it
  bytes INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (item_n, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE runtime_request (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  run_n INTEGER,
  item_n INTEGER,
  session_n INTEGER NOT NULL,
  native_key TEXT NOT NULL,
  kind INTEGER NOT NULL,
  status INTEGER NOT NULL,             -- 0 pending, 1 resolved, 2 expired, 3 cancelled
  is_live INTEGER NOT NULL,
  reason TEXT,                         -- why it cannot be answered any more
  prompt TEXT,
  decision INTEGER,                    -- 1 + enum agent_decision
  answers TEXT,
  answered_by INTEGER,                 -- principal.n
  created_at INTEGER NOT NULL,
  resolved_at INTEGER
) STRICT;
CREATE INDEX runtime_request_key ON runtime_request (session_n, native_key);
CREATE INDEX runtime_request_pending ON runtime_request (thread_n) WHERE status = 0;

CREATE TABLE provider_session (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  driver TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  status INTEGER NOT NULL,             -- 0 starting, 1 ready, 2 running, 3 waiting, 4 stopped, 5 error
  cwd TEXT NOT NULL,
  model TEXT,
  options TEXT,
  runtime_mode INTEGER NOT NULL,
  interaction_mode INTEGER NOT NULL,
  program_version TEXT,
  capabilities TEXT NOT NULL,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX provider_session_live ON provider_session (thread_n) WHERE status < 4;
-- How far the session was heard, and what its driver knows by then: one row, rewritten with every batch of lines.
CREATE TABLE session_state (
  session_n INTEGER PRIMARY KEY REFERENCES provider_session (n),
  spool_offset INTEGER NOT NULL,
  line_seq INTEGER NOT NULL,           -- newest line to the program
  driver_state TEXT NOT NULL
) STRICT;
-- Lines to the program that its host has not confirmed. No secret stands in one: the host puts it in.
CREATE TABLE session_line (
  session_n INTEGER NOT NULL REFERENCES provider_session (n),
  seq INTEGER NOT NULL,
  has_secret INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (session_n, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE provider_thread (
  n INTEGER PRIMARY KEY,
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  driver TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  session_n INTEGER,
  native_id TEXT,
  strength INTEGER NOT NULL,           -- enum agent_quality
  status INTEGER NOT NULL,             -- 0 not_loaded, 1 idle, 2 active, 3 archived, 4 closed, 5 error
  cwd TEXT NOT NULL,
  first_run INTEGER,                   -- ordinals
  last_run INTEGER,
  background TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX provider_thread_thread ON provider_thread (thread_n);
CREATE INDEX provider_thread_session ON provider_thread (session_n) WHERE session_n IS NOT NULL;

CREATE TABLE provider_turn (
  n INTEGER PRIMARY KEY,
  provider_thread_n INTEGER NOT NULL REFERENCES provider_thread (n),
  thread_n INTEGER NOT NULL,
  attempt_n INTEGER NOT NULL,
  native_id TEXT,
  ordinal INTEGER NOT NULL,
  status INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER,
  UNIQUE (provider_thread_n, ordinal)
) STRICT;

-- What the folder of a run held before it and after it: hidden refs in its repository.
CREATE TABLE checkpoint_scope (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,             -- names the refs
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  run_n INTEGER NOT NULL REFERENCES thread_run (n),
  cwd TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX checkpoint_scope_thread ON checkpoint_scope (thread_n);
CREATE TABLE checkpoint (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  thread_n INTEGER NOT NULL REFERENCES thread (n),
  scope_n INTEGER NOT NULL REFERENCES checkpoint_scope (n),
  run_n INTEGER NOT NULL REFERENCES thread_run (n),
  ordinal INTEGER NOT NULL,            -- 0 before the run, 1 after it
  status INTEGER NOT NULL,             -- 0 ready, 1 missing: no repository, 2 error
  ref TEXT NOT NULL,
  digest TEXT,                         -- equal ones: equal content; absent when it could not be taken
  files TEXT,                          -- [{"path","kind","additions","deletions"}], against the one before
  file_count INTEGER NOT NULL,         -- of all; files is cut
  problem TEXT,
  captured_at INTEGER NOT NULL,
  UNIQUE (scope_n, ordinal)
) STRICT;

CREATE TABLE command_receipt (
  id TEXT PRIMARY KEY,
  thread_n INTEGER NOT NULL,
  fingerprint TEXT NOT NULL,           -- of the canonical arguments
  accepted_at INTEGER NOT NULL,
  result TEXT NOT NULL                 -- what its answer is made of
) STRICT;
CREATE INDEX command_receipt_thread ON command_receipt (thread_n);

-- What is to be done outside the database.
CREATE TABLE effect (
  n INTEGER PRIMARY KEY,
  thread_n INTEGER NOT NULL,
  run_n INTEGER,
  type INTEGER NOT NULL,
  status INTEGER NOT NULL,             -- 0 pending, 1 running; ended ones are deleted
  attempts INTEGER NOT NULL,
  available_at INTEGER NOT NULL,
  payload TEXT
) STRICT;
CREATE INDEX effect_thread ON effect (thread_n, n);
CREATE INDEX effect_run ON effect (run_n) WHERE run_n IS NOT NULL;
