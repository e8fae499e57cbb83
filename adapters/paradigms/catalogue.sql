-- What every SQLite paradigm keeps beside its facts. A tenant has a file of its own.

CREATE TABLE topic (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE alias (
    name TEXT PRIMARY KEY,
    topic INTEGER NOT NULL REFERENCES topic ON DELETE CASCADE
) STRICT;

CREATE TABLE field (
    id INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL REFERENCES topic ON DELETE CASCADE,
    name TEXT NOT NULL,
    about TEXT NOT NULL DEFAULT '',
    UNIQUE (topic, name)
) STRICT;

-- What was said of how fields follow each other, and topics hang together.
CREATE TABLE dependency (
    source INTEGER NOT NULL REFERENCES field ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES field ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('offset', 'same', 'scaled', 'review')),
    days INTEGER NOT NULL,
    times INTEGER NOT NULL,
    over INTEGER NOT NULL CHECK (over > 0),
    turn TEXT NOT NULL,
    PRIMARY KEY (source, target),
    CHECK (source <> target)
) STRICT;
CREATE INDEX dependency_target ON dependency (target);

CREATE TABLE relation (
    topic INTEGER NOT NULL REFERENCES topic ON DELETE CASCADE,
    other INTEGER NOT NULL REFERENCES topic ON DELETE CASCADE,
    turn TEXT NOT NULL,
    PRIMARY KEY (topic, other),
    CHECK (topic <> other)
) STRICT;

-- The sentences of the present, by words; kept up to date by the triggers of each paradigm.
CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'porter unicode61');
