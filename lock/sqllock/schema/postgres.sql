-- The table of ShedLock, which is also that of Latchkey's sqllock. All times are UTC.
-- The token is Latchkey's alone: ShedLock leaves it as it is.
CREATE TABLE IF NOT EXISTS shedlock (
    name       varchar(64)  NOT NULL PRIMARY KEY,
    lock_until timestamp    NOT NULL,
    locked_at  timestamp    NOT NULL,
    locked_by  varchar(255) NOT NULL,
    token      bigint       NOT NULL DEFAULT 0
);
