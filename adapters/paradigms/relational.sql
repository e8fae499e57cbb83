-- The present of every field, one row each. A changed value replaces the one before.

-- Where a field's value comes from.
CREATE TABLE citation (
    field INTEGER NOT NULL REFERENCES field ON DELETE CASCADE,
    turn TEXT NOT NULL,
    PRIMARY KEY (field, turn)
) STRICT;

CREATE TABLE fact (
    field INTEGER PRIMARY KEY REFERENCES field ON DELETE CASCADE,
    value TEXT NOT NULL,
    follows INTEGER,
    said_by TEXT NOT NULL,
    valid_from TEXT NOT NULL,
    until TEXT,
    importance TEXT NOT NULL CHECK (importance IN ('vital', 'normal', 'trivial')),
    written_at TEXT NOT NULL,
    UNIQUE (field, value),
    -- a field that is always the same as another one refers to that one's value
    FOREIGN KEY (follows, value) REFERENCES fact (field, value) ON UPDATE CASCADE ON DELETE CASCADE
) STRICT;
CREATE INDEX fact_follows ON fact (follows, value);
