-- The same with active rules: events, conditions and actions, all of them in the database.
--
-- A rule of `dependency` fires when the value of its source changes or goes. If it gives a value,
-- that becomes its target's, which is a change as well, so rules fire hop by hop. If it gives none
-- (a rule that asks for review, a source without a value, no date or number to reckon with), the
-- target is marked for review and nothing beyond it moves. A field that the present update has
-- come to is not changed again by it, so cycles end, and the field that was spoken of keeps what
-- was said. SQLite reckons; day_in, number_in, with_day and with_number only read and spell.

-- Where a field's value comes from.
CREATE TABLE citation (
    field INTEGER NOT NULL REFERENCES field ON DELETE CASCADE,
    turn TEXT NOT NULL,
    PRIMARY KEY (field, turn)
) STRICT;

CREATE TABLE fact (
    field INTEGER PRIMARY KEY REFERENCES field ON DELETE CASCADE,
    value TEXT NOT NULL,
    day TEXT GENERATED ALWAYS AS (day_in(value)) VIRTUAL,
    number INTEGER GENERATED ALWAYS AS (number_in(value)) VIRTUAL,
    follows INTEGER,
    said_by TEXT NOT NULL,
    valid_from TEXT NOT NULL,
    until TEXT,
    importance TEXT NOT NULL CHECK (importance IN ('vital', 'normal', 'trivial')),
    written_at TEXT NOT NULL
) STRICT;

CREATE TABLE review (
    field INTEGER PRIMARY KEY REFERENCES fact ON DELETE CASCADE
) STRICT;

-- The fields that the present update has come to; emptied before each.
CREATE TABLE reached (
    field INTEGER PRIMARY KEY
) STRICT;

-- What each rule gives now; a value of NULL: somebody has to look.
CREATE VIEW derived AS
SELECT rule.source, rule.target, source.said_by, source.valid_from, source.written_at,
    CASE rule.kind
        WHEN 'same' THEN source.value
        WHEN 'offset' THEN with_day(source.value, date(source.day, rule.days || ' days'))
        WHEN 'scaled' THEN with_number(
            source.value, (2 * source.number * rule.times + rule.over) / (2 * rule.over))
    END AS value
FROM dependency AS rule LEFT JOIN fact AS source ON source.field = rule.source;

CREATE VIEW changed AS SELECT field FROM fact;

CREATE TRIGGER rules INSTEAD OF INSERT ON changed BEGIN
    INSERT INTO reached VALUES (NEW.field) ON CONFLICT DO NOTHING;
    INSERT INTO review
        SELECT target FROM derived
        WHERE source = NEW.field AND value IS NULL
            AND target IN (SELECT field FROM fact) AND target NOT IN (SELECT field FROM reached)
        ON CONFLICT DO NOTHING;
    INSERT INTO fact (field, value, follows, said_by, valid_from, importance, written_at)
        SELECT target, value, source, said_by, valid_from, 'normal', written_at FROM derived
        WHERE source = NEW.field AND value IS NOT NULL
        ON CONFLICT (field) DO UPDATE SET
            value = excluded.value, follows = excluded.follows, said_by = excluded.said_by,
            valid_from = max(valid_from, excluded.valid_from), until = NULL,
            written_at = excluded.written_at
        WHERE field NOT IN (SELECT field FROM reached)
            AND (value <> excluded.value OR field IN (SELECT field FROM review));
END;

CREATE TRIGGER fact_told AFTER INSERT ON fact BEGIN
    DELETE FROM citation WHERE field = NEW.field AND NEW.follows IS NOT NULL;
    INSERT INTO citation
        SELECT NEW.field, turn FROM citation WHERE field = NEW.follows
        UNION SELECT target, turn FROM dependency
        WHERE source = NEW.follows AND target = NEW.field
        ON CONFLICT DO NOTHING;
    INSERT INTO changed VALUES (NEW.field);
END;

CREATE TRIGGER fact_changed AFTER UPDATE OF value ON fact
WHEN NEW.value <> OLD.value OR NEW.field IN (SELECT field FROM review) BEGIN
    DELETE FROM review WHERE field = NEW.field;
    DELETE FROM citation WHERE field = NEW.field AND NEW.follows IS NOT NULL;
    INSERT INTO citation
        SELECT NEW.field, turn FROM citation WHERE field = NEW.follows
        UNION SELECT target, turn FROM dependency
        WHERE source = NEW.follows AND target = NEW.field
        ON CONFLICT DO NOTHING;
    INSERT INTO changed VALUES (NEW.field);
END;

CREATE TRIGGER fact_gone AFTER DELETE ON fact BEGIN
    INSERT INTO changed VALUES (OLD.field);
END;
