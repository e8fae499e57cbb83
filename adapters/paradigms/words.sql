-- The index of words follows the table of facts.

CREATE TRIGGER words_of_new AFTER INSERT ON fact BEGIN
    INSERT INTO words (rowid, text)
    SELECT NEW.field, name || ' of ' || title || ' is ' || NEW.value
    FROM field JOIN topic ON topic.id = field.topic WHERE field.id = NEW.field;
END;

CREATE TRIGGER words_of_changed AFTER UPDATE OF value ON fact WHEN NEW.value IS NOT OLD.value BEGIN
    UPDATE words SET text = (
        SELECT name || ' of ' || title || ' is ' || NEW.value
        FROM field JOIN topic ON topic.id = field.topic WHERE field.id = NEW.field
    ) WHERE rowid = NEW.field;
END;

CREATE TRIGGER words_of_gone AFTER DELETE ON fact BEGIN
    DELETE FROM words WHERE rowid = OLD.field;
END;
