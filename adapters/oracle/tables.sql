-- What the package's managed schema holds, in one file of SQLite.
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
PRAGMA journal_mode = MEMORY;
PRAGMA synchronous = OFF;

CREATE TABLE record (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,        -- message, memory, fact, guideline, preference, thread_summary, ...
    id TEXT NOT NULL,
    thread_id TEXT,
    user_id TEXT,
    agent_id TEXT,
    role TEXT,
    content TEXT,              -- JSON
    timestamp TEXT,            -- when it was said; NULL: when it was stored
    created_at TEXT NOT NULL,
    expires_at TEXT,
    status TEXT NOT NULL,      -- valid or invalid
    metadata TEXT,             -- JSON
    UNIQUE (kind, id)
);
CREATE INDEX record_of_user ON record (user_id, kind);
CREATE INDEX record_of_thread ON record (thread_id, kind);
CREATE INDEX record_id ON record (id);

CREATE TABLE chunk (
    record INTEGER NOT NULL REFERENCES record (seq) ON DELETE CASCADE,
    vector BLOB NOT NULL       -- float32
);
CREATE INDEX chunk_of_record ON chunk (record);

CREATE TABLE thread (
    id TEXT PRIMARY KEY,
    user_id TEXT,
    agent_id TEXT,
    created_at TEXT NOT NULL,
    metadata TEXT,
    runtime_config TEXT,
    runtime_state TEXT
);

CREATE TABLE link (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    source INTEGER NOT NULL REFERENCES record (seq) ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES record (seq) ON DELETE CASCADE,
    type TEXT NOT NULL,
    opposite TEXT NOT NULL,
    timestamp TEXT,
    metadata TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX link_target ON link (target, type);
CREATE INDEX link_source ON link (source);

-- A memory is invalid as long as another one supersedes, refines or duplicates it.
CREATE TRIGGER link_made AFTER INSERT ON link
WHEN NEW.type IN ('supersedes', 'refines', 'duplicates') BEGIN
    UPDATE record SET status = 'invalid' WHERE seq = NEW.target;
END;
CREATE TRIGGER link_gone AFTER DELETE ON link
WHEN NOT EXISTS (
    SELECT 1 FROM link WHERE target = OLD.target AND type IN ('supersedes', 'refines', 'duplicates')
) BEGIN
    UPDATE record SET status = 'valid' WHERE seq = OLD.target;
END;
CREATE TRIGGER link_changed AFTER UPDATE OF type ON link BEGIN
    UPDATE record SET status = CASE WHEN EXISTS (
        SELECT 1 FROM link
        WHERE target = NEW.target AND type IN ('supersedes', 'refines', 'duplicates')
    ) THEN 'invalid' ELSE 'valid' END WHERE seq = NEW.target;
END;
