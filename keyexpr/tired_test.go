package keyexpr

import (
	"strings"
	"testing"
	"time"
)

// tiredRequest is what the declarations below are about.
type tiredRequest struct {
	OrderID string `json:"order_id"`
	Tenant  *string
	Total   float64
	Count   int
	Level   level
	Lines   []line
	Tags    []string
	Address *customer
	Meta    map[string]string
	At      time.Time
	Urgent  bool
	Any     any
	Next    *tiredRequest
}

func (r *tiredRequest) GetOrderID() string { return r.OrderID }
func (r *tiredRequest) Charge(int) error   { return nil }

// tiredTemplates are what somebody writes who is tired, or who has written another language all day.
var tiredTemplates = []struct{ text, reason string }{
	// Holes of other languages.
	{"order:${req.OrderID}", "write #{req.OrderID}"},
	{"order:{{ .OrderID }}", "write #{req.OrderID}"},
	{"order:{{.Order.ID}}", "{{…}} is not filled in"},
	{"order:{req.OrderID}", "write #{req.OrderID}"},
	{"order:{id}", "write #{path.id}"},
	{"order:{order_id}", "write #{req.order_id}"},
	{"order:@{req.OrderID}", "write #{req.OrderID}"},
	{"order:%{req.OrderID}", "write #{req.OrderID}"},
	{"order:#req.OrderID}", "a hole is written #{…}"},
	{"order:#{req.OrderID", "the hole is not closed by }"},
	{"order:#{req.OrderID}}", "a } without a {"},
	{"order:#(req.OrderID)", "req.OrderID is not filled in: write #{req.OrderID}"},
	{"order:$(req.OrderID)", "req.OrderID is not filled in: write #{req.OrderID}"},
	{"order:<%= req.OrderID %>", "req.OrderID is not filled in: write #{req.OrderID}"},
	{"order:%s", "%s is not filled in"},
	{"order/:id", ":name is not filled in"},
	{"req.OrderID", "req.OrderID is not filled in: write #{req.OrderID}"},
	{`"order:" + req.OrderID`, "this looks like Java"},
	{"order:##{req.OrderID}", "##{ is a literal #{, and req.OrderID could be read"},
	{"order:#{'req.OrderID'}", "req.OrderID is not filled in, as it is in quotes: write #{req.OrderID}"},
	{"order:#{#req.OrderID}", "names have no # here: write req"},
	// Blanks that nobody sees.
	{"order:#{req.OrderID}\n", "ends with a blank or a line end, which would be in the key: remove it"},
	{"order:#{req.OrderID} ", "ends with a blank or a line end"},
	{"order:#{req.OrderID}\u00a0", "ends with a blank or a line end"},
	{" order:#{req.OrderID}", "begins with a blank, which would be in the key: remove it"},
	{"order:\t#{req.OrderID}", "a line end or another control character would be in the key"},
	{"order\r\n:#{req.OrderID}", "a line end or another control character would be in the key"},
	{"order:\u200b#{req.OrderID}", `U+200B can't be seen, and would be in the key: remove it, or write #{"\u200b"} if it is meant`},
	{"\ufefforder:#{req.OrderID}", "U+FEFF can't be seen"},
	{"order:\u00a0#{req.OrderID}", "U+00A0 looks like a blank and is another character: write a blank"},
	// The name alone, or another one.
	{"order:#{OrderID}", "unknown name OrderID: write req.OrderID"},
	{"order:#{order_id}", "unknown name order_id: write req.order_id"},
	{"order:#{id}", "unknown name id: write path.id"},
	{"order:#{request.OrderID}", "unknown name request: there is header, path, query, req"},
	{"order:#{Req.OrderID}", "did you mean req?"},
	{"order:#{GetOrderID()}", "unknown function GetOrderID: write req.GetOrderID()"},
	{"order:#{req.GetOrderID}", "is a function: call it"},
	{"order:#{req.getOrderID()}", "did you mean GetOrderID?"},
	{"order:#{req.Charge(100)}", "only methods without arguments and with a result can be called"},
	{"order:#{path.ID}", "did you mean id?"},
	{"order:#{headers.Tenant}", "did you mean header?"},
	{"order:#{header.X-Tenant}", `written header["X-Tenant"]`},
	{"order:#{header}", "header is looked up by name"},
	{"order:#{header('Tenant')}", "header is not a function: it is looked up by name"},
	{"order:#{header.get('Tenant')}", "header is looked up by name, as in header.name"},
	{"order:#{header[0]}", "what is looked up has names and no numbers"},
	// Functions of other languages.
	{"order:#{toLower(req.OrderID)}", "unknown function toLower: write lower(x)"},
	{"order:#{req.OrderID.toLowerCase()}", "req.OrderID has no toLowerCase: write lower(x)"},
	{"order:#{req.OrderID.lower()}", "write lower(req.OrderID)"},
	{"order:#{sha256(req.OrderID)}", "unknown function sha256: write hash(x)"},
	{"order:#{md5(req.OrderID)}", "unknown function md5: write hash(x)"},
	{"order:#{substr(req.OrderID, 0, 4)}", "unknown function substr: write x[0:4]"},
	{"order:#{coalesce(req.Tenant, 'x')}", `unknown function coalesce: write or(x, "none")`},
	{"order:#{uuid()}", "a key must be the same for the same request"},
	{"order:#{now()}", "a key with the time in it is never the same twice"},
	{"order:#{env('STAGE')}", "what does not come from the request is literal text"},
	{"order:#{fooBar(req.OrderID)}", "unknown function fooBar: there is all, any"},
	// Operators of other languages, and of texts.
	{"order:#{req.OrderID || 'none'}", "or(a, b) is the first that is not empty"},
	{"order:#{req.OrderID ?: 'none'}", "use or(a, b), or a ?? b"},
	{"order:#{req.OrderID + ':' + req.Count}", "string(x) is the text of a number"},
	{"order:#{req.OrderID + req.Tenant}", `put text there, as in a + ":" + b`},
	{"order:#{req.OrderID}#{req.Tenant}", "two holes without a literal between them"},
	{"order:#{req.OrderID % 16}", "shard(x, 16) makes one of a text"},
	{"order:#{req.Count / 2}", "/ makes a float: use div(a, b)"},
	{"order:#{req.Level == 'high'}", "string(x) is the text of a number"},
	{"order:#{req.OrderID[0]}", "a text has no elements: [0:1] is the first byte of one"},
	{"order:#{req.Urgent ? 'a'}", "the expression ends too early"},
	{"order:#{req.OrderID = 'x'}", "nothing is assigned here, and == compares"},
	{"order:#{req.OrderID, req.Tenant}", `unexpected ","`},
	// Numbers that can't be meant.
	{"order:#{shard(req.OrderID)}", "1 argument where 2 are wanted"},
	{"order:#{shard(req.OrderID, 0)}", "there are no shards: write how many, as in shard(x, 16)"},
	{"order:#{shard(req.OrderID, 1)}", "nothing that is read of the request makes a difference"},
	{"order:#{req.Count % 0}", "nothing can be divided by 0"},
	{"order:#{req.Count % 1}", "nothing that is read of the request makes a difference"},
	// Times.
	{"order:#{req.At}", `use fmtTime(x, "2006-01-02")`},
	{"order:#{fmtTime(req.At, 'YYYY-MM-DD')}", "YYYY is no part of a layout of Go, which is made of 2006-01-02 15:04:05"},
	{"order:#{fmtTime(req.At, '2006-MM-dd')}", "MM is no part of a layout of Go"},
	{"order:#{fmtTime(req.At, '%Y%m%d')}", "%Y is no part of a layout of Go"},
	{"order:#{fmtTime(req.At, 'today')}", "this layout is the same for all times"},
	{"order:#{req.At.Format('2006')}", "only methods without arguments"},
	// Values that make no key.
	{"order:#{req}", "name one of its fields"},
	{"order:#{req.Address}", "name one of its fields"},
	{"order:#{req.Meta}", "name one of its entries"},
	{"order:#{req.Total}", "is a float"},
	{"order:#{nil}", "nil makes no key"},
	// Lists.
	{"order:#{req.Lines}", "each element is a struct, keyexpr.line: name one of its fields"},
	{"order:#{req.Lines.SKU}", "req.Lines is a list: write map(req.Lines, .SKU), or req.Lines[0].SKU for one element"},
	{"order:#{req.Tags.id}", "req.Tags is a list of string: it has no fields"},
	{"order:#{map(req.Lines, SKU)}", "unknown name SKU: write .SKU for that of the element"},
	{"order:#{map(req.Lines, req.SKU)}", "unknown field SKU of tiredRequest"},
	{"order:#{join(req.Tags)}", "join needs a text to put between the values"},
	{"order:#{join(',', req.Tags)}", "can't join string"},
	{"order:#{keys(req.Meta)}", "a map has no order"},
	// These are what they look like.
	{"order:#{req.orderId}", ""},
	{"order:#{ req . OrderID }", ""},
	{"order:#{req['OrderID']}", ""},
	{"order:#{req.Lines | map(.SKU)}", ""},
	{"order 7 of #{req.OrderID}", ""},
	{"order:#{req.OrderID + ' '}", ""},
	{"order:#{\n  req.OrderID\n}", ""},
	{"order:#{fmtTime(req.At, '2006')}", ""},
	{"order:#{fmtTime(req.At, 'in summer 2006')}", ""},
	{"order:#{fmtTime(req.At, '15h04m')}", ""},
	{"order:#{req.Next?.OrderID ?? 'root'}", ""},
}

// Each of them is an error at start, and its sentence says what to write. Those that start are what they look like.
func TestATiredDeveloper(t *testing.T) {
	roots := Roots{"req": TypeFor[*tiredRequest](), "header": AnyName(), "path": Names("id", "tenant"), "query": AnyName()}
	for _, tt := range tiredTemplates {
		_, err := Parse(tt.text, roots)
		if tt.reason == "" && err != nil || tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("Parse(%q) = %v, want %q", tt.text, err, tt.reason)
		}
		if err != nil {
			checkError(t, tt.text, err)
		}
	}
}

// The same in conditions, which are held to the same names, operators and functions.
func TestATiredCondition(t *testing.T) {
	roots := Roots{"req": TypeFor[*tiredRequest](), "header": AnyName()}
	for _, tt := range []struct{ text, reason string }{
		{"#{req.Urgent}", "a condition has no holes"},
		{"req.OrderID", "a condition is true or false, and this is of type string"},
		{"req.Any", "compare it, as in (…) == true"},
		{"Urgent", "unknown name Urgent: write req.Urgent"},
		{"req.Urgent = true", "nothing is assigned here, and == compares"},
		{"req.Count > '5'", "> does not compare int and string"},
		{"req.OrderID == 7", "== does not compare string and int"},
		{"req.OrderID != null", "unknown name null"},
		{"req.OrderID.startsWith('x')", "write req.OrderID startsWith \"…\""},
		{"req.Tags.contains('vip')", "write \"…\" in req.Tags"},
		{"req.Tags.length > 0", "req.Tags has no length: write len(x)"},
		{"len(req.Tags > 0)", "> is not for"},
		{"any(req.Lines, Qty > 5)", "unknown name Qty: write .Qty for that of the element"},
		{"fmtTime(req.At, 'HH:mm') > '12:00'", "HH is no part of a layout of Go"},
		{"req.Urgent and", "the expression ends too early"},
		{"req.Urgent & req.Count > 5", `unexpected "&"`},
		{"header.Admin", "of type string"},
		{"req.Count > 5 && req.OrderID matches header.Pattern", "a pattern must be written out"},
		{"req.Urgent && len(req.Tags) > 0", ""},
		{"req.At.Hour() > 12", ""},
		{"fmtTime(req.At, '15:04') > '12:00'", ""},
	} {
		_, err := ParseCondition(tt.text, roots)
		if tt.reason == "" && err != nil || tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("ParseCondition(%q) = %v, want %q", tt.text, err, tt.reason)
		}
	}
}
