package sqllock

import _ "embed"

//go:embed schema/mysql.sql
var mysqlSchema string

func mysql(s *settings) *dialect {
	compile := compiler(s, expressions{
		now:   "UTC_TIMESTAMP(6)",
		until: "TIMESTAMPADD(MICROSECOND, @lease, UTC_TIMESTAMP(6))",
		gone:  "TIMESTAMPADD(MICROSECOND, -@slack, UTC_TIMESTAMP(6))",
		rest:  "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {until})",
		old:   "TIMESTAMPADD(MICROSECOND, -@age, UTC_TIMESTAMP(6))",
		most:  "GREATEST",
		fixed: "CONCAT(@@GLOBAL.read_only) NOT IN ('0', 'OFF')",
	}, true, question)
	return assemble(MySQL, compile, paragraphs(s.table, mysqlSchema), mysqlColumns, lockText+"LOCK IN SHARE MODE")
}
