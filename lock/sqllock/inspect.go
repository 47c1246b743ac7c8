package sqllock

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
)

// Each of these queries answers one row for a column, and none for a table that is not there: its name in small letters, its type, its
// length, the digits of its fraction, whether it is unique by itself, its character set, a collation if that holds different texts
// for equal, and whether it may be left out.
const (
	postgresColumns = `SELECT lower(a.attname), t.typname,
	CASE WHEN t.typname IN ('varchar', 'bpchar') AND a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 0 END,
	CASE WHEN t.typname = 'timestamp' AND a.atttypmod >= 0 THEN a.atttypmod ELSE 6 END,
	EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
		AND i.indimmediate AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum),
	'', CASE WHEN c.collisdeterministic THEN '' ELSE COALESCE(c.collname, '') END, NOT a.attnotnull OR a.atthasdef OR a.attidentity <> ''
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = to_regclass('{table}') AND a.attnum > 0 AND NOT a.attisdropped`

	mysqlColumns = `SELECT LOWER(c.column_name), c.data_type, COALESCE(c.character_maximum_length, 0), COALESCE(c.datetime_precision, 0),
	EXISTS (SELECT 1 FROM information_schema.statistics s WHERE s.table_schema = c.table_schema AND s.table_name = c.table_name
		AND s.non_unique = 0 AND s.sub_part IS NULL GROUP BY s.index_name
		HAVING COUNT(*) = 1 AND LOWER(MAX(s.column_name)) = LOWER(c.column_name)),
	COALESCE(c.character_set_name, ''), CASE WHEN c.collation_name LIKE '%\_bin' THEN '' ELSE COALESCE(c.collation_name, '') END,
	c.is_nullable = 'YES' OR c.column_default IS NOT NULL OR c.extra <> ''
FROM information_schema.columns c WHERE (c.table_schema, c.table_name) = ` + mysqlTable

	mysqlTable = `(IF(LOCATE('.', '{table}'), SUBSTRING_INDEX('{table}', '.', 1), DATABASE()), SUBSTRING_INDEX('{table}', '.', -1))`

	sqliteColumns = `SELECT lower(c.name), lower(c.type), 0, 3,
	EXISTS (SELECT 1 FROM pragma_index_list('{table}') l WHERE l."unique" AND NOT l.partial AND 1 = (SELECT COUNT(*) FROM pragma_index_info(l.name))
		AND c.name = (SELECT i.name FROM pragma_index_info(l.name) i)),
	'', COALESCE((SELECT MAX(x.coll) FROM pragma_index_list('{table}') l, pragma_index_xinfo(l.name) x
		WHERE l."unique" AND x."key" AND x.name = c.name AND x.coll <> 'BINARY'), ''), NOT c."notnull" OR c.dflt_value IS NOT NULL
FROM pragma_table_info('{table}') c`
)

// found returns the columns of the table by name.
func (s *store) found(ctx context.Context, c *sql.Conn) (map[string]found, error) {
	rows, err := c.QueryContext(ctx, s.describe.text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]found{}
	for rows.Next() {
		var name string
		var f found
		if err := rows.Scan(&name, &f.kind, &f.length, &f.digits, &f.unique, &f.charset, &f.equal, &f.optional); err != nil {
			return nil, err
		}
		all[name] = f
	}
	return all, rows.Err()
}

func (s *store) inspectPostgres(ctx context.Context, c *sql.Conn, name, until found) (*facts, error) {
	switch {
	case until.kind != "timestamp":
		return nil, s.unfit("its column %s is a %s, and must be a timestamp (without time zone): ALTER TABLE %s ALTER COLUMN %s "+
			"TYPE timestamp USING %s AT TIME ZONE 'UTC'; else each session reads another time", s.columns.until, until.kind, s.table,
			s.columns.until, s.columns.until)
	case name.kind != "varchar" && name.kind != "text":
		return nil, s.unfit("its column %s is a %s, and must be a varchar or text: others hold different names for equal", s.columns.name, name.kind)
	}
	return &facts{unit: unitOf(until.digits)}, s.permitted(ctx, c)
}

// permitted asks PostgreSQL whether we may use the table.
func (s *store) permitted(ctx context.Context, c *sql.Conn) error {
	var ok bool
	err := c.QueryRowContext(ctx, `SELECT bool_and(has_table_privilege(to_regclass($1), p))
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS p`, s.table).Scan(&ok)
	if err == nil && !ok {
		err = s.unfit("no permission: GRANT SELECT, INSERT, UPDATE ON %s", s.table)
	}
	return err
}

// unitOf is the unit of a column with so many digits behind the second, if that is more than a microsecond.
func unitOf(digits int) time.Duration {
	if digits >= 6 {
		return 0
	}
	unit := time.Second
	for range digits {
		unit /= 10
	}
	return unit
}

// lastTimestamp is before the end of MySQL's TIMESTAMP in each time zone.
var lastTimestamp = time.Date(2038, 1, 18, 0, 0, 0, 0, time.UTC)

func (s *store) inspectMySQL(ctx context.Context, c *sql.Conn, name, until, by found) (*facts, error) {
	f := &facts{unit: unitOf(until.digits)}
	if name.charset != "utf8mb4" {
		f.charset = name.charset
	}
	switch {
	case !isText(name.kind):
		return nil, s.unfit("its column %s is of the type %s, and must be a VARCHAR%s: others change the names, so that they are not found "+
			"again, or are taken for one", s.columns.name, name.kind, s.binary())
	case !isText(by.kind):
		return nil, s.unfit("its column %s is of the type %s, and must be a VARCHAR: others change what a holder writes, so that it does not know "+
			"its own lock", s.columns.by, by.kind)
	}
	switch until.kind {
	case "datetime":
	case "timestamp":
		f.last = lastTimestamp
		if err := s.sameZone(ctx, c); err != nil {
			return nil, err
		}
	default:
		return nil, s.unfit("its column %s is a %s, and must be a DATETIME(3) or TIMESTAMP(3)", s.columns.until, until.kind)
	}
	return f, s.transactional(ctx, c)
}

// isText reports whether a column of MySQL of that type has what was written to it.
func isText(kind string) bool {
	return strings.HasSuffix(kind, "char") || strings.HasSuffix(kind, "text") || kind == "varbinary" || strings.HasSuffix(kind, "blob")
}

// sameZone makes sure that this session reads a TIMESTAMP as those of ShedLock do, who have the server's time zone.
func (s *store) sameZone(ctx context.Context, c *sql.Conn) error {
	var session, global string
	var differ sql.NullBool
	err := c.QueryRowContext(ctx, `SELECT @@session.time_zone, @@global.time_zone,
	ABS(TIMESTAMPDIFF(SECOND, NOW(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', @@global.time_zone))) > 60`).Scan(&session, &global, &differ)
	if err == nil && session != global && (!differ.Valid || differ.Bool) {
		err = s.unfit("its column %s is a TIMESTAMP, which the time zone of this session (%s) reads otherwise than that of the server (%s): "+
			"leave time_zone out of the data source's name, or ALTER TABLE %s MODIFY %s DATETIME(3) NOT NULL", s.columns.until, session, global,
			s.table, s.columns.until)
	}
	return err
}

// transactional makes sure that a row stays locked as long as a transaction, and that each statement is one.
func (s *store) transactional(ctx context.Context, c *sql.Conn) error {
	var engine string
	var ok, autocommit bool
	err := c.QueryRowContext(ctx, `SELECT e.engine, e.transactions = 'YES', @@session.autocommit FROM information_schema.tables t
JOIN information_schema.engines e ON e.engine = t.engine
WHERE (t.table_schema, t.table_name) = `+strings.ReplaceAll(mysqlTable, "{table}", s.table)).Scan(&engine, &ok, &autocommit)
	switch {
	case err != nil:
		return err
	case !ok:
		return s.unfit("its engine %s has no transactions: ALTER TABLE %s ENGINE = InnoDB", engine, s.table)
	case !autocommit:
		return s.unfit("the session does not commit by itself: leave autocommit out of the data source's name")
	}
	return nil
}

func (s *store) inspectSQLite(name, until found) (*facts, error) {
	switch affinity(name.kind) {
	case numeric, floating, integer:
		return nil, s.unfit("its column %s is of the type %q, which makes numbers of names, so that 7 and 007 are one: it must be TEXT",
			s.columns.name, name.kind)
	}
	switch affinity(until.kind) {
	case textual, floating:
		return nil, s.unfit("its column %s is of the type %q, in which a whole number does not stay one: it must be INTEGER", s.columns.until, until.kind)
	}
	return &facts{unit: 2*time.Millisecond - time.Microsecond}, nil
}

// The affinities of SQLite's columns: what it makes of the values that are put into them.
const (
	integer = iota
	textual
	asItIs
	floating
	numeric
)

// affinity is what SQLite reads in the type of a column, which may be any text; see "Determination Of Column Affinity" in its
// documentation.
func affinity(kind string) int {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(kind, p) })
	}
	switch {
	case has("int"):
		return integer
	case has("char", "clob", "text"):
		return textual
	case kind == "", has("blob"):
		return asItIs
	case has("real", "floa", "doub"): //nolint:misspell // the rule has these letters
		return floating
	}
	return numeric
}
