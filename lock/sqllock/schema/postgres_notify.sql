-- Tells those who listen that a lock may have become free, whoever released it.
CREATE OR REPLACE FUNCTION shedlock_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('latchkey_' || TG_TABLE_NAME, left(NEW.name, 1000));
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS latchkey_notify ON shedlock;

CREATE TRIGGER latchkey_notify AFTER UPDATE OF lock_until ON shedlock
    FOR EACH ROW WHEN (NEW.lock_until < OLD.lock_until) EXECUTE FUNCTION shedlock_notify();
