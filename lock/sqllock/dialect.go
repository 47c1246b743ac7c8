package sqllock

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// dialect is all that differs from one database to the next. Its statements are texts with {…} for names and expressions and @… for
// arguments, made into the database's own by compile.
type dialect struct {
	on Database
	// first asks for the row of a name; take also takes it, where a statement can do both, and is nil otherwise.
	look, take *statement
	claim      *statement // take a row that was seen to be free
	regrant    *statement // give a row of ours a new lease
	insert     *statement // take a name that had no row
	extend     *statement
	free       *statement
	keep       *statement // free, but not before a lease is over
	check      *statement // in a transaction: a row of ours that stays so until its end, or nothing
	prune      *statement
	describe   *statement // what there is of the table; see postgresColumns
	schema     []string
}

// statement is a text for the driver, and the names of its arguments in their order.
type statement struct {
	text string
	args []string
}

// arguments are the values of a statement's arguments, by name.
type arguments map[string]any

func (s *statement) values(a arguments) []any {
	list := make([]any, len(s.args))
	for i, name := range s.args {
		list[i] = a[name]
	}
	return list
}

// expressions are how a database says what all of them can say. Times are in microseconds.
type expressions struct {
	now   string // this moment, whenever the transaction began
	until string // @lease from now on
	gone  string // surely over: @slack before now
	rest  string // how long the row's lease goes on, or NULL if it says nothing
	old   string // @age ago
	most  string // the function that returns the greatest of its arguments
	fixed string // whether the server is read-only
}

const (
	lookText  = `SELECT {by}, {rest}, {token}, {fixed} FROM {table} WHERE {name} = @name`
	claimText = `UPDATE {table} SET {bump}{until} = {lease}, {at} = {now}, {by} = @id ` +
		`WHERE {name} = @name AND {until} <= {now} AND COALESCE({by}, '') <> @freed{unchanged}`
	// No late copy of a question shortens a lease, but for those that end a stay.
	regrantText = `UPDATE {table} SET {until} = {greatest}({until}, {lease}) WHERE {name} = @name AND {by} = @id`
	insertText  = `INSERT INTO {table} ({name}, {until}, {at}, {by}{tokenColumn}) VALUES (@name, {lease}, {now}, @id{firstToken})`
	extendText  = regrantText + ` AND {until} > {now}`
	freeText    = `UPDATE {table} SET {until} = {gone}, {by} = @freed ` + whereOurs
	keepText    = `UPDATE {table} SET {until} = {lease}, {by} = @freed ` + whereOurs
	whereOurs   = `WHERE {name} = @name AND ({by} = @id OR {by} = @freed AND {until} > {now})`
	pruneText   = `DELETE FROM {table} WHERE {until} < {old}`
)

func newDialect(on Database, s *settings) (*dialect, error) {
	switch on {
	case PostgreSQL:
		return postgres(s), nil
	case MySQL:
		return mysql(s), nil
	case SQLite:
		return sqlite(s), nil
	}
	return nil, fmt.Errorf("sqllock: %v: want PostgreSQL, MySQL (for MariaDB, too) or SQLite", on)
}

// assemble makes a dialect of the statements that are the same in all databases, and of the texts that are not.
func assemble(on Database, compile func(string) *statement, schema []string, describe, check string) *dialect {
	return &dialect{on: on, schema: schema, describe: compile(describe), check: compile(check),
		look: compile(lookText), claim: compile(claimText), regrant: compile(regrantText), insert: compile(insertText),
		extend: compile(extendText), free: compile(freeText), keep: compile(keepText), prune: compile(pruneText)}
}

var argument = regexp.MustCompile(`@[a-z]+`)

// compiler returns how a text becomes a statement. Placeholder is what stands for the n-th argument, which is in the list once for each
// place if again is true.
func compiler(s *settings, e expressions, again bool, placeholder func(n int, name string) string) func(string) *statement {
	bump, unchanged, token, tokenColumn, firstToken := "", "", "0", "", ""
	if s.fencing {
		bump, unchanged = "token = COALESCE(token, 0) + 1, ", " AND COALESCE(token, 0) = @token"
		token, tokenColumn, firstToken = "COALESCE(token, 0)", ", token", ", 1"
	}
	names := strings.NewReplacer("{table}", s.table, "{name}", s.columns.name, "{until}", s.columns.until, "{at}", s.columns.at,
		"{by}", s.columns.by)
	parts := strings.NewReplacer("{now}", e.now, "{lease}", e.until, "{gone}", e.gone, "{rest}", e.rest, "{old}", e.old, "{greatest}", e.most,
		"{fixed}", e.fixed, "{bump}", bump, "{unchanged}", unchanged, "{token}", token, "{tokenColumn}", tokenColumn, "{firstToken}", firstToken)
	return func(text string) *statement {
		st := &statement{}
		text = names.Replace(parts.Replace(text))
		st.text = argument.ReplaceAllStringFunc(text, func(a string) string {
			name := a[1:]
			for i, known := range st.args {
				if known == name && !again {
					return placeholder(i+1, name)
				}
			}
			st.args = append(st.args, name)
			return placeholder(len(st.args), name)
		})
		return st
	}
}

// question is the placeholder of MySQL and SQLite.
func question(int, string) string { return "?" }

// numbered is that of PostgreSQL, with the type that it would have to guess otherwise.
func numbered(n int, name string) string {
	kind := "text"
	switch name {
	case "lease", "slack", "age", "token":
		kind = "bigint"
	}
	return "CAST($" + strconv.Itoa(n) + " AS " + kind + ")"
}
