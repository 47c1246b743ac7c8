package keyexpr

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Nothing is silent: what would lock one key for the whole world, or lets a mistake pass, is an error at start. oneKey says
// whether OneKey lets it through.
var mistaken = []struct {
	text   string
	oneKey bool
	reason string
}{
	// What other languages begin their holes with is never meant.
	{"order:${req.OrderID}", false, "write #{req.OrderID}"},
	{"order:${OrderID}", false, "write #{req.OrderID}"},
	{"order:{{.OrderID}}", false, "write #{req.OrderID}"},
	{"order:{{ req.OrderID }}", false, "write #{req.OrderID}"},
	{"order:#{req.OrderID}:${req.Tenant}", false, "write #{req.Tenant}"},
	// Neither are braces without a partner.
	{"order:#{req.OrderID}}", false, "a } without a {"},
	{"order:{#{req.OrderID}", false, "a { without a }"},
	{"order:{{#{req.OrderID}}}", false, "{{…}} is not filled in"},
	{"}order{", false, "a } without a {"},
	// Beside holes, {…} is a hash tag, unless what is in it could be read.
	{"order:{OrderID}:#{req.Seq}", false, "write #{req.OrderID}"},
	{"order:{order_id}:#{req.Seq}", false, "could be read: write #{req.order_id}"},
	{"order:{req.OrderID}:#{req.Seq}", false, "write #{req.OrderID}"},
	{"order:{id}:#{req.Seq}", false, "write #{path.id}"},
	{"order:{method}:#{req.Seq}", false, "write #{method}"},
	{"order:{orders}:#{req.Seq}", true, ""},
	{"{#{req.OrderID}}:order", true, ""},
	// What could be read is not a text of the key, whatever stands around it, also where another hole reads something.
	{"order:#[req.OrderID]:#{req.Tenant}", false, "req.OrderID is not filled in: write #{req.OrderID}"},
	{"order:#(req.OrderID):#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:$(req.OrderID):#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:#req.OrderID:#{req.Tenant}", false, "a key in Java's language goes through package spel"},
	{"order:$req.OrderID:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:@req.OrderID:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:#｛req.OrderID｝:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:＃{req.OrderID}:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:<req.OrderID>:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:<%= req.OrderID %>:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:{%req.OrderID%}:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:{{req.OrderID}}:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:{lower(req.OrderID)}:#{req.Tenant}", false, "write #{lower(req.OrderID)}"},
	{"order:##{lower(req.OrderID)}:#{req.Tenant}", false, "write #{lower(req.OrderID)}"},
	{"order:#  {lower(req.OrderID)}:#{req.Tenant}", false, "write #{lower(req.OrderID)}"},
	{"order:{req.OrderID + ':'}:#{req.Tenant}", false, "write #{req.OrderID"},
	{"order:{req?.OrderID}:#{req.Tenant}", false, "write #{req?.OrderID}"},
	{`order:{req["OrderID"]}:#{req.Tenant}`, false, `write #{req["OrderID"]}`},
	{"order:req['OrderID']:#{req.Tenant}", false, "write #{req['OrderID']}"},
	{"order:req.OrderID:#{req.Tenant}", false, `write #{req.OrderID}; the text itself is written req#{"."}OrderID`},
	{"#{req.Tenant}:req.order_id", false, "write #{req.order_id}"},
	{"#{req.Tenant}req.OrderID", false, "write #{req.OrderID}"},
	{"req.Customer.Name:#{req.Tenant}", false, "write #{req.Customer.Name}"},
	{"order:req.Kind():#{req.Tenant}", false, "write #{req.Kind()}"},
	{"order:req.Lines[0].SKU:#{req.Tenant}", false, "write #{req.Lines[0].SKU}"},
	{"order/path.id/#{req.Tenant}", false, "write #{path.id}"},
	{"order:header.Tenant:#{req.Tenant}", false, "write #{header.Tenant}"},
	{"order:header['X-T']:#{req.Tenant}", false, "write #{header['X-T']}"},
	{"order:body.order.id:#{req.Tenant}", false, "write #{body.order.id}"},
	{"order//body.id:#{req.Tenant}", false, "write #{body.id}"},
	{"<body.id>:#{req.Tenant}", false, "write #{body.id}"},
	{"body.settle:body.id:#{req.Tenant}", false, "write #{body.id}"},
	{"path.id:#{req.Tenant}", false, "write #{path.id}"},
	{"order:body[0].id:#{req.Tenant}", false, "write #{body[0].id}"},
	// Nor is a text in quotes, in a hole.
	{"order:#{'req.OrderID'}:#{req.Tenant}", false, `req.OrderID is not filled in, as it is in quotes: write #{req.OrderID}; the text itself is written "req" + ".OrderID"`},
	{`order:#{"${req.OrderID}"}:#{req.Tenant}`, false, "write #{req.OrderID}"},
	{"order:#{'{req.OrderID}'}:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:#{'#{req.OrderID}'}:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:#{'{lower(req.OrderID)}'}:#{req.Tenant}", false, "write #{lower(req.OrderID)}"},
	{"order:#{lower('req.OrderID')}:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:#{req.Tenant + ':req.OrderID'}", false, "write #{req.OrderID}"},
	{"order:#{or('req.OrderID', 'x')}:#{req.Tenant}", false, "write #{req.OrderID}"},
	{"order:#{req.Coupon ?? 'req.OrderID'}", false, "write #{req.OrderID}"},
	{"order:#{req.Urgent ? 'req.OrderID' : 'x'}", false, "write #{req.OrderID}"},
	{"order:#{join(['req.OrderID', req.Tenant], ':')}", false, "write #{req.OrderID}"},
	{"order:#{map(req.Tags, # + 'req.OrderID')}", false, "write #{req.OrderID}"},
	// The rest is a text that only looks a little like it.
	{"order:req.Nope:#{req.Tenant}", true, ""},
	{"order:req.:#{req.Tenant}", true, ""},
	{"order.req.OrderID:#{req.Tenant}", true, ""},
	{"my-req.OrderID:#{req.Tenant}", true, ""},
	{"my_req.OrderID:#{req.Tenant}", true, ""},
	{"2req.OrderID:#{req.Tenant}", true, ""},
	{"REQ.OrderID:#{req.Tenant}", true, ""},
	{"order:req.OrderIDs:#{req.Tenant}", true, ""},
	{"order:req.secret:#{req.Tenant}", true, ""},
	{"https://body.example/path.html/method.go:#{req.Tenant}", true, ""},
	{"req-path.id:#{req.Tenant}", true, ""},
	{"body:req:path:#{req.Tenant}", true, ""},
	{"order:req[x]:path[0]:#{req.Tenant}", true, ""},
	{"body.5:body.:#{req.Tenant}", true, ""},
	{"body.settle:#{req.Tenant}", true, ""},
	{"header.settle:#{req.Tenant}", true, ""},
	{`order:req#{"."}OrderID:#{req.Tenant}`, true, ""},
	{`order:#{"req" + ".OrderID"}:#{req.Tenant}`, true, ""},
	{"order:#{req.OrderID == 'req.OrderID' ? 'x' : 'y'}", true, ""},
	{"order:#{header['req.OrderID']}", true, ""},
	{"order:#{any(['req.OrderID', 'x'], # == req.OrderID)}", true, ""},
	{"order:#{indexOf('req.OrderID', req.OrderID)}", true, ""},
	{"order:#{required(req.OrderID, 'req.OrderID is missing')}", true, ""},
	{"order:#{claim('req.OrderID')}", true, ""},
	{"order:#{replace(req.OrderID, 'req.OrderID', 'x')}", true, ""},
	// Formats, and texts with quotes and a +, are of other languages, too.
	{"order:%s:#{req.Tenant}", false, "%s is not filled in: write #{req.OrderID}"},
	{"order-%d-#{req.Tenant}", false, "%d is not filled in: write #{req.OrderID}"},
	{"%v:#{req.Tenant}", false, "%v is not filled in: write #{req.OrderID}"},
	{"'order:' + #{req.OrderID}", false, "this looks like Java: give it to package spel, or write order:#{req.OrderID}"},
	{`"order:" + #{req.OrderID}`, false, "this looks like Java"},
	{"#{req.Tenant} + ':' + #{req.OrderID}", false, "this looks like Java"},
	{"#{req.Tenant}:100%discount:5%d:%%s:%de:#{req.OrderID}", true, ""},
	{"'order':a+b:#{req.OrderID}", true, ""},
	{"it's+#{req.OrderID}", true, ""},
	// The rest reads nothing of the request. The sentence fits what it looks like.
	{"order", true, "write something like order:#{req.OrderID}"},
	{"order:{orders}", true, "{…} is a hash tag, and no hole"},
	{"order/:id", true, ":name is not filled in"},
	{"order::id", true, ":name is not filled in"},
	{"order:%s", false, "%s is not filled in: write #{req.OrderID}"},
	{"order:#order.ID", true, "a hole is written #{req.OrderID}"},
	{"order:# {nope}", true, "without a blank"},
	{"order:# {req.OrderID}", false, "write #{req.OrderID}"},
	{"order:##{req.OrderID}", false, "##{ is a literal #{, and req.OrderID could be read: write #{req.OrderID}"},
	{"order:##{OrderID}:#{req.Seq}", false, "##{ is a literal #{, and req.OrderID could be read"},
	{"order:##{nope}", true, "##{ is a literal #{"},
	{"'order:' + #order.id", false, "this looks like Java: give it to package spel, or write order:#{req.OrderID}"},
	{`"order:" + order.getId()`, false, "this looks like Java"},
	{"order:' + order.getId()", true, "this looks like Java"},
	{"order:#{'x'}", true, "write something like #{req.OrderID}, from body, header, method, path, req"},
	{"order:#{1 + 2}", true, "nothing of the request is read"},
	{"order:#{lower('X')}", true, "nothing of the request is read"},
	{"order:#{fixed(7)}", true, "nothing of the request is read"},
	// Nothing is read either where a fact stands that is never looked at.
	{"#{true ? 'a' : req.OrderID}", true, "nothing of the request is read"},
	{"#{false ? req.OrderID : 'a'}", true, "nothing of the request is read"},
	{"#{if true {'a'} else {req.OrderID}}", true, "nothing of the request is read"},
	{"#{1 < 2 ? 'a' : req.OrderID}", true, "nothing of the request is read"},
	{"#{or('a', req.OrderID)}", true, "nothing of the request is read"},
	{"#{or(lower('A'), req.OrderID)}", true, "nothing of the request is read"},
	{"#{or('', 7, req.OrderID)}", true, "nothing of the request is read"},
	{"#{'a' ?? req.OrderID}", true, "nothing of the request is read"},
	{"#{('a' + 'b') ?? req.OrderID}", true, "nothing of the request is read"},
	{"#{upper('a') ?? req.OrderID}", true, "nothing of the request is read"},
	{"#{let x = 'a'; x ?? req.OrderID}", true, "nothing of the request is read"},
	{"#{let x = true; x ? 'a' : req.OrderID}", true, "nothing of the request is read"},
	{"#{let x = req.OrderID; 'a'}", true, "makes a difference"},
	{"#{req.Urgent || 1 < 2}", true, "makes a difference"},
	{"#{true || req.Urgent}", true, "makes a difference"},
	{"#{req.Urgent and false}", true, "makes a difference"},
	{"#{not (req.Urgent and false)}", true, "makes a difference"},
	{"#{[req.OrderID, 'x'][1]}", true, "makes a difference"},
	{"#{ {a: 'x', b: req.OrderID}.a }", true, "makes a difference"},
	{"#{first(['a', req.OrderID])}", true, "makes a difference"},
	{"#{last(reverse(['a', req.OrderID]))}", true, "makes a difference"},
	{"#{get(['a', req.OrderID], 0)}", true, "makes a difference"},
	// And where an operator makes the same of all operands: of equal ones, or of what leaves nothing of the other.
	{"#{req.OrderID == req.OrderID}", true, "makes a difference"},
	{"#{req.OrderID == req.OrderID ? 'x' : req.Tenant}", true, "makes a difference"},
	{"#{req.OrderID != req.OrderID or true}", true, "makes a difference"},
	{"#{req.Seq < req.Seq}:#{req.Seq - req.Seq}", true, "makes a difference"},
	{"#{req.OrderID in [req.OrderID, 'x']}", true, "makes a difference"},
	{"#{req.OrderID contains req.OrderID}:#{hasPrefix(req.OrderID, req.OrderID)}", true, "makes a difference"},
	{"#{req.OrderID startsWith ''}:#{req.OrderID matches '.*'}", true, "makes a difference"},
	{"#{req.Urgent ? 'a' : 'a'}", true, "makes a difference"},
	{"#{req.Seq * 0}:#{req.Seq % 1}:#{mod(req.Seq, 1)}:#{shard(req.OrderID, 1)}", true, "makes a difference"},
	{"#{map(req.Lines, 'x')}", true, "makes a difference"},
	{"#{uniq(concat(map(req.Lines, 'x'), ['y']))}", true, "makes a difference"},
	{"#{all(req.Lines, true)}:#{any(req.Lines, false)}", true, "makes a difference"},
	{"#{len([req.OrderID, req.Tenant])}:#{len(req.Salt)}:#{len(hash(req.OrderID))}", true, "makes a difference"},
	{"x#{req.OrderID[0:0]}", true, "makes a difference"},
	// What is made of it is the same, too.
	{"#{string(body.qty * 0)}", true, "makes a difference"},
	{"#{lower('x' + string(req.Seq - req.Seq))}", true, "makes a difference"},
	{"#{req.Seq * (2 - 2)}:#{-(req.Seq * 0)}:#{req.Seq % (2 - 1)}", true, "makes a difference"},
	{"#{or(string(req.Seq * 0), req.OrderID)}", true, "makes a difference"},
	{"#{(req.Seq * 0) ?? req.OrderID}", true, "makes a difference"},
	{"#{or(req.OrderID[0:0], 'x')}", true, "makes a difference"},
	{"#{or(body.id[:0], body.id[0:0], 'x')}", true, "makes a difference"},
	{"#{let x = req.Seq * 0; x + 1}", true, "makes a difference"},
	{"#{join(split(req.OrderID, ',')[0:0], ',')}", true, "makes a difference"},
	{"#{join([], ',')}", true, "nothing of the request is read"},
	{"#{hash(lower('A'))}:#{toBase64('a')}:#{'abc'[0:1]}", true, "nothing of the request is read"},
	{"#{replace('a', 'a', 'b')}:#{trim(' a ')}:#{count(1..3, # == 2)}", true, "nothing of the request is read"},
	{"#{fixed(req.Seq * 0)}", true, "makes a difference"},
	// A choice whose results are one, or of which only one makes a key.
	{"#{req.Urgent ? req.Tenant[0:0] : string(body.qty * 0)}:#{or('x9', replace(req.order_id, 'a', 'b'))}", true, "makes a difference"},
	{"#{req.Urgent ? 'a' : ''}", true, "makes a difference"},
	{"#{lower('x' + (req.Urgent ? nil : 'a'))}", true, "makes a difference"},
	{"#{lower(req.Urgent ? 'a' : 'A')}", true, "makes a difference"},
	{"#{let x = req.Urgent ? 'a' : 'A'; upper(x)}", true, "makes a difference"},
	{"#{req.Urgent ? 7 : '7'}", true, "makes a difference"},
	{"#{replace(string(req.Urgent), 'true', 'false')}", true, "makes a difference"},
	{"#{len(req.Urgent ? 'a' : 'b')}", true, "makes a difference"},
	{"#{['x', 'x'][req.Seq % 2]}", true, "makes a difference"},
	{"#{ {a: 'x', b: 'x'}[req.OrderID] }", true, "makes a difference"},
	{"#{[req.OrderID, 'x'][req.Urgent ? 1 : 1]}", true, "makes a difference"},
	{"#{req.Urgent ? filter(req.Tags, false) : ['x']}", true, "makes a difference"},
	// Comparisons with one answer.
	{"#{req.Urgent and not req.Urgent}:#{!req.Urgent or req.Urgent}", true, "makes a difference"},
	{"#{req.OrderID == nil ? 'a' : 'b'}:#{nil != req.Seq}", true, "makes a difference"},
	{"#{len(req.Tags) >= 0 ? 'a' : 'b'}:#{0 > req.Shard}:#{len(req.OrderID) != -1}", true, "makes a difference"},
	{"#{req.Urgent in [true, false]}:#{req.Tenant in []}", true, "makes a difference"},
	{"#{req.OrderID matches '^(a|b)*'}:#{req.Tenant matches '^.*$'}", true, "makes a difference"},
	{"#{req.Seq > 5 or req.Seq <= 5}:#{req.Tenant == 'a' and req.Tenant != 'a'}", true, "makes a difference"},
	{"#{header.A contains header.A}", true, "makes a difference"},
	// Tests that are written twice come out the same way twice.
	{"#{req.Urgent ? '' : 'x'}:#{req.Urgent ? req.OrderID : 'y'}", true, "makes a difference"},
	{"#{req.Urgent ? (req.Urgent ? 'x' : req.OrderID) : 'x'}", true, "makes a difference"},
	{"#{req.Seq > 5 ? 'x' : req.Seq > 5 ? req.OrderID : 'x'}", true, "makes a difference"},
	{"#{join([req.Urgent ? nil : 'x', req.Urgent ? req.OrderID : 'y'], ',')}", true, "makes a difference"},
	{"#{req.Urgent ? map(req.Lines, 'x') : filter(req.Tags, false)}:#{req.Urgent ? 'y' : req.OrderID}", true, "makes a difference"},
	{"#{[required(req.Urgent ? nil : 'y'), req.Urgent ? req.OrderID : 'x'][1]}", true, "makes a difference"},
	// Functions of two that are one.
	{"#{replace(req.OrderID, req.OrderID, 'x')}:#{div(req.Seq, req.Seq)}:#{mod(0, req.Seq)}", true, "makes a difference"},
	{"x#{or(trimPrefix(req.OrderID, req.OrderID), 'y')}:#{indexOf(req.OrderID, req.OrderID)}", true, "makes a difference"},
	// Elements that are all the same.
	{"#{first(map(req.Lines, 'x'))}:#{map(req.Lines, 'x')[0]}:#{find(map(req.Lines, 7), true)}", true, "makes a difference"},
	{"#{filter(map(req.Lines, 'x'), # != '')}", true, "makes a difference"},
	{"#{map(map(req.Lines, 'x'), # + 'y')}", true, "makes a difference"},
	{"#{map(req.Lines, # == # ? 'a' : 'b')}", true, "makes a difference"},
	{"#{map(req.Lines, #index < 0 ? 'a' : 'b')}", true, "makes a difference"},
	{"#{join(uniq(map(req.Lines, 'x')), ',')}", true, "makes a difference"},
	{"#{find([req.OrderID, 'x'], false) ?? 'y'}:#{findLast([req.OrderID, 'x'], true)}", true, "makes a difference"},
	{"#{count(req.Tags, false)}:#{count([req.OrderID, 'x'], true)}:#{len(map([1, 2], # + req.Seq))}", true, "makes a difference"},
	{"#{take(req.Tags, 0)}", true, "makes a difference"},
	{"#{concat(map(req.Lines, 'x'), map(req.Tags, 'x'))}", true, "makes a difference"},
	{"#{concat(map(req.Lines, 'x'), map(req.Tags, 'y'), ['z'])}", true, "makes a difference"},
	{"#{ {a: req.OrderID}.b ?? 'x' }", true, "makes a difference"},
	{"#{[]}:#{req.OrderID}", false, "an empty list makes no key"},
	// These read something, and are useful.
	{"#{req.OrderID}", true, ""},
	{"#{req.OrderID == req.OrderID ? req.Tenant : 'x'}", true, ""},
	{"#{req.Urgent ? req.OrderID : req.OrderID}", true, ""},
	{"#{req.Tenant == 'acme' ? 'own' : 'shared'}", true, ""},
	{"#{req.Seq > 100 ? 'large' : 'small'}", true, ""},
	{"#{req.Coupon == nil ? 'full' : 'reduced'}", true, ""},
	{"#{any(req.Tags, # == 'vip')}", true, ""},
	{"#{any(req.Lines, true) ? 'some' : 'none'}", true, ""},
	{"#{len(req.Lines)}:#{len(req.OrderID)}", true, ""},
	{"#{shard(req.OrderID, 2)}", true, ""},
	{"#{req.Seq % 2}", true, ""},
	{"#{req.Seq - req.Counts.n}", true, ""},
	{"#{map(req.Lines, 'x' + string(#index))}", true, ""},
	{"#{join(map(req.Lines, 'x'), ',')}", true, ""},
	{"#{['all', req.OrderID]}", true, ""},
	{"#{['eu', 'us'][req.Seq % 2]}", true, ""},
	{"#{ {a: 'x', b: 'y'}[req.OrderID] }", true, ""},
	{"#{header.Tenant ?? 'none'}", true, ""},
	{"#{req.OrderID[0:2]}", true, ""},
	{"#{req.Kind()}", true, ""},
	{"#{let x = req.OrderID; x}", true, ""},
	{"#{contextual()}", true, ""},
	{"#{fixed(req.Seq)}", true, ""},
	{"#{req.Urgent ? 'a' : 'b'}", true, ""},
	// As do those that are nearly one of the above.
	{"#{concat(map(req.Lines, 'x'), map(req.Tags, 'y'))}", true, ""},
	{"#{concat(take(req.Tags, 0), [req.OrderID])}", true, ""},
	{"#{req.Urgent ? '' : 'x'}:#{req.Urgent ? 'y' : req.OrderID}", true, ""},
	{"#{req.Urgent ? 'x' : req.Tenant == 'a' ? req.OrderID : 'x'}", true, ""},
	{"#{req.Seq > 5 or req.Seq < 5}", true, ""},
	{"#{(let v = req.Seq; v == 1) and (let v = req.Shard; v != 1)}", true, ""},
	{"#{map(1..2, # == len(req.Tags) and # != len(req.Lines) ? 'x' : 'y')}", true, ""},
	{"#{(req.Urgent ? nil : 'y') matches '^(a|b)*' ? 'x' : 'y'}", true, ""},
	{"#{(req.Urgent ? nil : 'y') contains '' ? 'x' : 'y'}", true, ""},
	{"#{ {'a': 'x', (req.OrderID): 'y'}.b ?? 'z' }", true, ""},
	{"#{lower(req.Urgent ? 'a' : 'B')}", true, ""},
	{"#{req.Urgent ? '' : req.OrderID}", true, ""},
	{"#{req.Urgent ? 'a' : body.id}", true, ""},
	{"#{or(req.OrderID[0:0], req.Tenant)}", true, ""},
	{"#{or(req.Coupon, 'none')}", true, ""},
	{"#{req.Coupon ?? 'none'}", true, ""},
	{"#{string(req.Seq * 0 + req.Seq)}", true, ""},
	{"#{req.Seq * (2 - 1)}", true, ""},
	{"#{req.OrderID[1:0 - 1]}", true, ""},
	{"#{req.OrderID[-3:]}", true, ""},
	{"#{['x', 'y'][req.Seq % 2]}", true, ""},
	{"#{ {a: 'x', b: 'x'}[req.OrderID] ?? 'y' }", true, ""},
	{"#{header.Tenant == nil ? 'a' : 'b'}:#{req.Labels.zone == nil}:#{req.Customer?.Name == nil}", true, ""},
	{"#{len(req.Tags) > 0 ? 'a' : 'b'}", true, ""},
	{"#{req.OrderID matches '^a*$'}", true, ""},
	{"#{replace(req.OrderID, '-', '-')}", true, ""},
	{"#{first(map(req.Lines, .SKU))}", true, ""},
	{"#{first(map(req.Lines, 'x')) ?? 'none'}", true, ""},
	{"#{join(map(req.Lines, 'x'), ',')}", true, ""},
	{"#{map(req.Lines, let i = #index; string(count([0], # == i)))}", true, ""},
	{"#{map(req.Lines, let i = #index; string(i))}", true, ""},
	{"#{map(1..2, let v = #; string(count(1..3, # == v + len(req.Tags))))}", true, ""},
	{"#{map(['a', 'b'], # + ':' + (req.Urgent ? 'x' : 'y'))}", true, ""},
	{"#{map(1..3, # == len(req.Tags) ? 'x' : 'y')}", true, ""},
	{"#{map(req.Tags, map([#], # + '!')[0])}", true, ""},
	{"#{filter(['a', 'b'], # in req.Tags)}", true, ""},
	{"#{let v = req.Urgent ? 1 : 2; string(v)}", true, ""},
	{"#{string(now7())}", true, ""},
}

func TestMistakesAreNotSilent(t *testing.T) {
	for _, tt := range mistaken {
		funcs := []Option{
			Func("claim", func(context.Context, string) string { return "x" }),
			Func("fixed", func(n int64) int64 { return n }),
			Func("contextual", func(context.Context) string { return "x" }),
			Func("now7", func(context.Context) int { t.Error("a function ran at start"); return 7 }),
		}
		_, err := Parse(tt.text, testRoots(), funcs...)
		if tt.reason == "" && err != nil || tt.reason != "" && (err == nil || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("Parse(%q) = %v, want %q", tt.text, err, tt.reason)
		}
		if err != nil {
			checkError(t, tt.text, err)
		}
		if _, err := Parse(tt.text, testRoots(), append(funcs, OneKey())...); (err == nil) != tt.oneKey {
			t.Errorf("Parse(%q, OneKey()) = %v, want an error: %v", tt.text, err, !tt.oneKey)
		}
	}
}

// The place is that of the first hole which reads something, or else of the first hole.
func TestOneKeyForAllSaysWhere(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
	}{
		{"order", 0},
		{"order:#{'x'}", 8},
		{"order:#{'x'}:#{1 + 2}", 8},
		{"order:#{'x'}:#{req.Seq * 0}", 15},
		{"order:#{'x'}:#{true ? 'y' : req.OrderID}:#{map(req.Lines, 'x')}:#{len(req.Salt)}", 43},
	} {
		_, err := Parse(tt.text, testRoots())
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Offset != tt.at || !strings.Contains(e.Reason, "all requests would share one key") {
			t.Errorf("Parse(%q) = %v, want offset %d", tt.text, err, tt.at)
		}
	}
}

// A suggestion is something that can stand there.
func TestSuggestions(t *testing.T) {
	for _, tt := range []struct{ text, reason string }{
		// Roots for roots, functions for functions, methods for methods.
		{"#{lowr(method)}", "unknown function lowr, did you mean lower?"},
		{"#{methd(req.OrderID)}", "unknown function methd"},
		{"#{methd}", "unknown name methd, did you mean method?"},
		{"#{lower}", "is a function: call it"},
		{"#{order.id}", "unknown name order: there is body, header, method, path, req"},
		{"#{req.Kindd()}", "unknown method Kindd of payRequest, did you mean Kind?"},
		{"#{path.idno}", "unknown name idno of path, did you mean id? There is id, org"}, // a far guess, with the list
		{"#{path.customer}", "unknown name customer of path: there is id, org"},
		// What was meant is often clear from how it is written.
		{"#{header.X-Tenant-Id}", `unknown name Tenant: a name with a dash is written header["X-Tenant-Id"]`},
		{"#{lower(header.X-Tenant)}", `written header["X-Tenant"]`},
		{"#{req.OrderID.lower()}", "lower is a function, no method: write lower(req.OrderID)"},
		{"#{req.OrderID.len()}", "write len(req.OrderID)"},
		{"#{#order.id}", "names have no # here: write order; a key in Java's language goes through package spel"},
		{"#{'a' + #order.id}", "names have no # here: write order"},
		{"#{req.secret}", "field secret of payRequest is not exported"},
		{"#{req.Labels.nope()}", "string is not callable"},
		{"#{req.Notify()}", "Notify of *keyexpr.payRequest is no method"},
	} {
		_, err := Parse(tt.text, testRoots())
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("Parse(%q) = %v, want %q", tt.text, err, tt.reason)
		}
	}
	_, err := ParseCondition("#{req.Urgent}", testRoots())
	if err == nil || !strings.Contains(err.Error(), "a condition has no holes") {
		t.Errorf("ParseCondition = %v", err)
	}
}

// A struct that embeds a time has become one: it would be spelt as the time, without its other fields.
func TestEmbeddedTime(t *testing.T) {
	type stamped struct {
		time.Time
		ID string
	}
	type request struct {
		At  stamped
		Any any
	}
	roots := Roots{"req": TypeFor[request]()}
	for _, text := range []string{"#{req.At}", "#{string(req.At)}", "#{hash(req.At)}", "#{req.At.ID + ':' + string(req.At)}"} {
		if _, err := Parse(text, roots); err == nil || !strings.Contains(err.Error(), "is a time") {
			t.Errorf("Parse(%q) = %v, want a time to be refused", text, err)
		}
	}
	for _, text := range []string{"#{req.Any}", "#{hash(req.Any)}"} {
		tmpl, err := Parse(text, roots)
		if err != nil {
			t.Fatal(err)
		}
		_, err = expandOf(t, tmpl, request{Any: stamped{ID: "7"}})
		if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "is a time") {
			t.Errorf("Expand(%q) = %v, want a time to be refused", text, err)
		}
	}
}

// A number is never empty, so that only required tells that it was not set.
func TestRequired(t *testing.T) {
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{"#{required(req.OrderID)}", true},
		{"#{required(req.Seq)}", true},
		{"#{required(req.Ref)}", true},
		{"#{required(req.Urgent)}:#{req.OrderID}", true},
		{"#{required(req.Shard)}", false},
		{"#{required(req.Salt)}", false},
		{"#{required(req.Coupon)}", false},
		{"#{required(req.Tenant, 'tenant')}", false},
		{"#{required(req.Level)}", false},
	} {
		_, err := expand(t, tt.text, &payRequest{OrderID: "7", Seq: 7, Ref: uuid{7}})
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %v, want it to work: %v", tt.text, err, tt.ok)
		}
	}
}

// A user's function that sorts what it gets does not sort the request.
func TestFunctionsGetCopies(t *testing.T) {
	head := Func("head", func(list []string) string { slices.Sort(list); return list[0] })
	least := Func("least", func(list any) string { l := list.([]string); slices.Sort(l); return l[0] })
	deep := Func("deep", func(lists [][]string) string { slices.Sort(lists[0]); return lists[0][0] })
	req := &payRequest{Tags: []string{"b", "a"}}
	lists := [][]string{{"d", "c"}}
	roots := Roots{"req": TypeFor[*payRequest](), "lists": TypeFor[[][]string]()}
	tmpl, err := Parse("#{head(req.Tags)}:#{least(req.Tags)}:#{deep(lists)}", roots, head, least, deep)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := tmpl.Expand(t.Context(), func(root string) (any, error) {
		if root == "lists" {
			return lists, nil
		}
		return req, nil
	})
	if err != nil || keys[0] != "a:a:c" {
		t.Errorf("Expand = %q, %v", keys, err)
	}
	if req.Tags[0] != "b" || lists[0][0] != "d" {
		t.Errorf("the request became %q, %q", req.Tags, lists)
	}
}

// The value and the place of a panic reach the error, whose text is for the log.
func TestPanicsSayWhere(t *testing.T) {
	boom := Func("boom", func(string) string { panic("secret") })
	for _, text := range []string{"#{req.Panics()}", "#{boom(req.OrderID)}"} {
		tmpl, err := Parse(text, testRoots(), boom)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tmpl.Expand(t.Context(), testFacts(nil))
		if err == nil || !strings.Contains(err.Error(), "panicked: secret (at ") || !strings.Contains(err.Error(), "_test.go:") {
			t.Errorf("Expand(%q) = %v, want the value and the place", text, err)
		}
	}
}

// An error of a Lookup is the caller's, also where a default stands ready.
func TestErrorOfALookup(t *testing.T) {
	twice := errors.New("there twice")
	facts := func(string) (any, error) {
		return Lookup(func(string) (string, bool, error) { return "", false, twice }), nil
	}
	for _, text := range []string{"#{header.A}", "#{header.A ?? 'none'}", "#{or(header.A, 'none')}", "#{lower(header.A)}", "#{header[lower('A')]}"} {
		_, err := mustParse(t, text).Expand(t.Context(), facts)
		if !errors.Is(err, twice) || errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %v, want the error of the lookup alone", text, err)
		}
	}
	c, err := ParseCondition("header.A == nil", testRoots())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Eval(t.Context(), facts); !errors.Is(err, twice) {
		t.Errorf("Eval = %v, want the error of the lookup", err)
	}
}
