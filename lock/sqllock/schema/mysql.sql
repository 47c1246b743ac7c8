-- The table of ShedLock, which is also that of Latchkey's sqllock. All times are UTC. With DATETIME they mean the same in each
-- session; ShedLock's own proposal, TIMESTAMP, depends on the time zone of the session and ends in 2038.
-- With a binary collation, A and a are two locks.
-- The token is Latchkey's alone: ShedLock leaves it as it is.
CREATE TABLE IF NOT EXISTS shedlock (
    name       VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
    lock_until DATETIME(3)  NOT NULL,
    locked_at  DATETIME(3)  NOT NULL,
    locked_by  VARCHAR(255) NOT NULL,
    token      BIGINT       NOT NULL DEFAULT 0
) ENGINE = InnoDB;
