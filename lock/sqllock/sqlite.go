package sqllock

import _ "embed"

//go:embed schema/sqlite.sql
var sqliteSchema string

func sqlite(s *settings) *dialect {
	const now = "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)"
	compile := compiler(s, expressions{
		now:   now,
		until: now + " + @lease / 1000",
		gone:  now + " - @slack / 1000",
		rest:  "CASE typeof({until}) WHEN 'integer' THEN ({until} - " + now + ") * 1000 END",
		old:   now + " - @age / 1000",
		most:  "MAX",
		fixed: "false",
	}, true, question)
	// There is one writer at a time, and from this statement on it is the transaction.
	const check = `UPDATE {table} SET {by} = @id WHERE {name} = @name AND {by} = @id AND {until} > {now} RETURNING 1`
	return assemble(SQLite, compile, paragraphs(s.table, sqliteSchema), sqliteColumns, check)
}
