package sqllock

import (
	_ "embed"
	"strings"
)

var (
	//go:embed schema/postgres.sql
	postgresSchema string
	//go:embed schema/postgres_notify.sql
	postgresNotify string
)

// takeText takes a row that is free or ours, and answers what there is otherwise. It never waits for a transaction that has locked the
// row: that one is the lock's holder, who checks it, or somebody who takes it at this moment.
const takeText = `WITH free AS (
	SELECT {name} FROM {table} WHERE {name} = @name AND ({by} = @id OR {until} <= {now} AND COALESCE({by}, '') <> @freed)
	FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
	UPDATE {table} AS t SET {bumpOnce}{until} = CASE WHEN t.{by} = @id THEN GREATEST(t.{until}, {lease}) ELSE {lease} END,
		{at} = CASE WHEN t.{by} = @id THEN t.{at} ELSE {now} END, {by} = @id
	FROM free WHERE t.{name} = free.{name} RETURNING {takenToken} AS token
)
SELECT true, CAST(NULL AS text), CAST(NULL AS bigint), token FROM taken
UNION ALL
SELECT false, CAST({by} AS text), {rest}, {token} FROM {table} WHERE {name} = @name AND NOT EXISTS (SELECT 1 FROM taken)`

// lockText locks the row, so that nobody can take it before the transaction ends.
const lockText = `SELECT 1 FROM {table} WHERE {name} = @name AND {by} = @id AND {until} > {now} `

func postgres(s *settings) *dialect {
	const now = "(clock_timestamp() AT TIME ZONE 'UTC')"
	compile := compiler(s, expressions{
		now:   now,
		until: now + " + @lease * interval '1 microsecond'",
		gone:  now + " - @slack * interval '1 microsecond'",
		rest: "CASE WHEN {until} IS NOT NULL THEN " + // LEAST would leave out a NULL
			"CAST(EXTRACT(EPOCH FROM LEAST({until}, " + now + " + interval '100 years') - " + now + ") * 1000000 AS bigint) END",
		old:   now + " - @age * interval '1 microsecond'",
		most:  "GREATEST",
		fixed: "false", // take finds out
	}, false, numbered)
	bumpOnce, takenToken := "", "0"
	if s.fencing {
		bumpOnce = "token = COALESCE(t.token, 0) + CASE WHEN t.{by} = @id THEN 0 ELSE 1 END, "
		takenToken = "t.token"
	}
	schema := paragraphs(s.table, postgresSchema)
	if s.listen != nil {
		schema = append(schema, paragraphs(s.table, postgresNotify)...)
	}
	d := assemble(PostgreSQL, compile, schema, postgresColumns, lockText+"FOR SHARE")
	d.take = compile(strings.NewReplacer("{bumpOnce}", bumpOnce, "{takenToken}", takenToken).Replace(takeText))
	return d
}

// channel is the channel on which the trigger on the table announces releases.
func (s *settings) channel() string {
	_, name, found := strings.Cut(s.table, ".")
	if !found {
		name = s.table
	}
	return channelPrefix + strings.ToLower(name)
}

// channelPrefix stands in schema/postgres_notify.sql, too.
const channelPrefix = "latchkey_"
