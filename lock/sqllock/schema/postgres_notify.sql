-- Tells those who listen that a lock may have become free, whoever released it.
CREATE OR REPLACE FUNCTION shedlock_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('latchkey_' || TG_TABLE_NAME, left(NEW.name, 1000));
    RETURN NULL;
END $$;

-- To make a trigger locks the table, and waits for all who use it, with everybody else in line behind. So that is done only once.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass('shedlock') AND tgname = 'latchkey_notify') THEN
        CREATE TRIGGER latchkey_notify AFTER UPDATE OF lock_until ON shedlock
            FOR EACH ROW WHEN (NEW.lock_until < OLD.lock_until) EXECUTE FUNCTION shedlock_notify();
    END IF;
END $$;
