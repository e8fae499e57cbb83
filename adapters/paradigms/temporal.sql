-- Facts with two periods, as SQL:2011 has them. The valid period says when a value holds in the
-- world; periods of one field do not overlap. The system period says when the database held a row
-- to be so: whatever is changed or deleted goes to the history table, with the time at which it was.

-- The time of the transaction, which is that of the script.
CREATE TABLE clock (
    at TEXT NOT NULL
) STRICT;
INSERT INTO clock VALUES ('1970-01-01T00:00');

CREATE TABLE fact (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    field INTEGER NOT NULL REFERENCES field ON DELETE CASCADE,
    value TEXT NOT NULL,
    said_by TEXT NOT NULL,
    importance TEXT NOT NULL CHECK (importance IN ('vital', 'normal', 'trivial')),
    valid_from TEXT NOT NULL,
    valid_to TEXT,
    sys_from TEXT NOT NULL,
    -- times are to the minute, so a value that was replaced at once held for none
    CHECK (valid_to IS NULL OR valid_from <= valid_to)
) STRICT;
CREATE INDEX fact_period ON fact (field, valid_from, valid_to);

CREATE TABLE fact_history (
    id INTEGER NOT NULL,
    field INTEGER NOT NULL REFERENCES field ON DELETE CASCADE,
    value TEXT NOT NULL,
    said_by TEXT NOT NULL,
    importance TEXT NOT NULL,
    valid_from TEXT NOT NULL,
    valid_to TEXT,
    sys_from TEXT NOT NULL,
    sys_to TEXT NOT NULL
) STRICT;
CREATE INDEX history_field ON fact_history (field, id);

CREATE TABLE citation (
    fact INTEGER NOT NULL,
    field INTEGER NOT NULL REFERENCES field ON DELETE CASCADE,
    turn TEXT NOT NULL,
    PRIMARY KEY (fact, turn)
) STRICT;

CREATE TRIGGER fact_versioned AFTER UPDATE OF value, said_by, importance, valid_from, valid_to ON fact
BEGIN
    INSERT INTO fact_history
        SELECT OLD.id, OLD.field, OLD.value, OLD.said_by, OLD.importance, OLD.valid_from,
            OLD.valid_to, OLD.sys_from, at FROM clock;
    UPDATE fact SET sys_from = (SELECT at FROM clock) WHERE id = NEW.id;
END;

CREATE TRIGGER fact_deleted AFTER DELETE ON fact BEGIN
    INSERT INTO fact_history
        SELECT OLD.id, OLD.field, OLD.value, OLD.said_by, OLD.importance, OLD.valid_from,
            OLD.valid_to, OLD.sys_from, at FROM clock;
END;

-- FOR SYSTEM_TIME ALL
CREATE VIEW fact_ever AS
SELECT *, NULL AS sys_to FROM fact UNION ALL SELECT * FROM fact_history;

CREATE TRIGGER words_of_latest AFTER INSERT ON fact
WHEN NEW.valid_from = (SELECT max(valid_from) FROM fact WHERE field = NEW.field) BEGIN
    DELETE FROM words WHERE rowid = NEW.field;
    INSERT INTO words (rowid, text)
        SELECT NEW.field, name || ' of ' || title || ' is ' || NEW.value
        FROM field JOIN topic ON topic.id = field.topic WHERE field.id = NEW.field;
END;
