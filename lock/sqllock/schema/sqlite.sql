-- The columns of ShedLock's table. Times are milliseconds since 1970.
CREATE TABLE IF NOT EXISTS shedlock (
    name       TEXT    NOT NULL PRIMARY KEY,
    lock_until INTEGER NOT NULL,
    locked_at  INTEGER NOT NULL,
    locked_by  TEXT    NOT NULL,
    token      INTEGER NOT NULL DEFAULT 0
);
