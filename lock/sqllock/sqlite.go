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
	}, true, question)
	d := &dialect{on: SQLite, schema: paragraphs(s.table, sqliteSchema)}
	d.common(compile)
	// There is one writer at a time, and from this statement on it is the transaction.
	d.check = compile(`UPDATE {table} SET {by} = @id WHERE {name} = @name AND {by} = @id AND {until} > {now} RETURNING 1`)
	return d
}
