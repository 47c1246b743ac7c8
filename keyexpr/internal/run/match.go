package run

import (
	"strings"
	"unicode/utf8"
)

// Match reads a key back into the values that its holes had.
func (p *Program) Match(key string) (values []string, ok bool) {
	if strings.Contains(key, DigestMark) {
		return nil, false
	}
	if len(p.Items) == 0 {
		m := matcher{rest: key}
		if m.parts(p.Parts) && m.end(&values) {
			return values, true
		}
		return nil, false
	}
	for i := range p.Items {
		m := matcher{rest: key}
		if m.parts(p.Parts[:p.At]) && m.parts(p.Items[i].Item) && m.parts(p.Parts[p.At:]) && m.end(&values) {
			return values, true
		}
	}
	return nil, false
}

// matcher reads a key from left to right. What ends a value never occurs in it unescaped, so that there is one way to go.
type matcher struct {
	rest   string
	values []string
}

func (m *matcher) end(values *[]string) bool {
	*values = m.values
	return m.rest == ""
}

func (m *matcher) parts(parts []Part) bool {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Literal():
			rest, ok := strings.CutPrefix(m.rest, p.Text)
			if !ok {
				return false
			}
			m.rest = rest
		case p.Join != nil:
			if !m.join(p) {
				return false
			}
		case p.Escape == nil || !m.value(p.Escape):
			return false
		}
	}
	return true
}

// join needs no look ahead: compiling has refused a list whose values and whose end begin alike.
func (m *matcher) join(p *Part) bool {
	for m.parts(p.Join.Item) {
		rest, more := strings.CutPrefix(m.rest, p.Text)
		if !more {
			return true
		}
		m.rest = rest
	}
	return false
}

// value reads up to the first rune that e would have escaped.
func (m *matcher) value(e *Escape) bool {
	s, n := m.rest, 0
	for n < len(s) {
		if s[n] == '%' {
			n += 3
			continue
		}
		size := 1
		if s[n] < utf8.RuneSelf && !e.plain[s[n]] {
			break
		}
		if s[n] >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[n:]); !e.leaves(r, size) {
				break
			}
		}
		n += size
	}
	if n == 0 || n > len(s) {
		return false
	}
	value, ok := Unescape(s[:n])
	m.rest, m.values = s[n:], append(m.values, value)
	return ok && string(e.Append(nil, value)) == s[:n]
}
