package keyexpr

import (
	"fmt"
	"strings"
)

// SpEL translates a key in SpringEL, as annotation locks in Java have it, into the text of a template:
//
//	key, err := keyexpr.SpEL("'order:' + #order.id", keyexpr.Params("order")) // order:#{raw(req.id)}
//
// Both forms are understood: an expression, and a text with expressions in #{…}. The template makes just the text that
// Java makes, so that both languages lock the same key; therefore nothing in it is escaped, and a key that is too long
// is refused instead of digested. What would become "null" in Java is refused too.
//
// #p0 and #a0 are req. Other variables are roots, if no [Params] or [Var] says what they stand for. Types, beans,
// constructors and assignments have no counterpart; the error says what to write instead. It is an *Error with the
// offset in text.
func SpEL(text string, opts ...JavaOption) (string, error) {
	k, err := newJava(opts).key(text, strings.Contains(text, "#{"))
	if err != nil {
		return "", err
	}
	return k.template(text, "")
}

// JavaOption tells [SpEL] and the presets what a template can't know about the annotated Java method.
type JavaOption interface{ applyJava(*java) }

type javaOption func(*java)

func (o javaOption) applyJava(j *java) { o(j) }

// java is what is known about the annotated method.
type java struct {
	class, method string
	params        []string
	vars          map[string]string
	plain         bool // Java itself rather than SpringEL: names are written without #
}

func newJava(opts []JavaOption) *java {
	j := &java{vars: map[string]string{}}
	for _, o := range opts {
		o.applyJava(j)
	}
	return j
}

// Params names the parameters of the Java method in their order. A single one is req; of several, each is the field of
// req that has its name.
func Params(names ...string) JavaOption {
	return javaOption(func(j *java) { j.params = names })
}

// Var says what the variable #name stands for: an expression such as path.id.
func Var(name, expression string) JavaOption {
	return javaOption(func(j *java) { j.vars[name] = expression })
}

// Method gives the full name of the Java class, as Class.getName has it, and the name of the method, for keys that are
// made of them.
func Method(class, name string) JavaOption {
	return javaOption(func(j *java) { j.class, j.method = class, name })
}

// variable returns the expression that #name stands for.
func (j *java) variable(name string) (string, bool) {
	if expression, ok := j.vars[name]; ok {
		return expression, true
	}
	for i, param := range j.params {
		if name == param || isPosition(name, i) {
			if len(j.params) == 1 {
				return "req", true
			}
			return "req." + param, true
		}
	}
	if isPosition(name, 0) && len(j.params) == 0 {
		return "req", true
	}
	positional := len(name) > 1 && (name[0] == 'p' || name[0] == 'a') && strings.Trim(name[1:], "0123456789") == ""
	return name, !positional && (len(j.params) == 0 || isRoot(name))
}

func isPosition(name string, i int) bool {
	return name == fmt.Sprintf("p%d", i) || name == fmt.Sprintf("a%d", i)
}

// isRoot reports whether an adapter has a root of this name, which Params leaves alone.
func isRoot(name string) bool {
	return strings.Contains(" req path query header host body method md ", " "+name+" ")
}

// executionPath is the name of class and method.
func (j *java) executionPath() string { return j.class + "." + j.method }

// javaKey is a key that is put together from texts and expressions.
type javaKey []javaPart

// javaPart is text if expr is empty.
type javaPart struct{ text, expr string }

// key translates one text. In the template form, text is literal except for #{…}.
func (j *java) key(text string, template bool) (javaKey, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	if !template {
		n, err := parseSpEL(text, text, 0, j.plain)
		if err != nil {
			return nil, err
		}
		return j.parts(text, n)
	}
	var key javaKey
	for at := 0; at < len(text); {
		open := strings.Index(text[at:], "#{")
		if open < 0 {
			return append(key, javaPart{text: text[at:]}), nil
		}
		if open > 0 {
			key = append(key, javaPart{text: text[at : at+open]})
		}
		end, err := holeEnd(text, at+open+1)
		if err != nil {
			return nil, err
		}
		from := at + open + 2
		n, err := parseSpEL(text, text[from:end], from, j.plain)
		if err != nil {
			return nil, err
		}
		parts, err := j.parts(text, n)
		if err != nil {
			return nil, err
		}
		key, at = append(key, parts...), end+1
	}
	return key, nil
}

// template writes a key behind a text. A key that is a single expression may be a list of keys.
func (k javaKey) template(text, prefix string) (string, error) {
	whole := k.merged("")
	if len(whole) == 1 && whole[0].expr != "" && prefix != "" {
		return "#{prefixed(" + quote(prefix) + ", " + whole[0].expr + ")}", nil
	}
	return k.merged(prefix).write(text)
}

// merged puts a text in front, and joins neighbouring texts, and neighbouring expressions, which would need a text between
// them in a template. Texts that no literal can say become expressions.
func (k javaKey) merged(prefix string) javaKey {
	texts := javaKey{}
	for _, p := range append(javaKey{{text: prefix}}, k...) {
		n := len(texts)
		switch {
		case p == javaPart{}:
		case n > 0 && p.expr == "" && texts[n-1].expr == "":
			texts[n-1].text += p.text
		default:
			texts = append(texts, p)
		}
	}
	out := javaKey{}
	for _, p := range texts {
		if strings.Contains(p.text, "{#") {
			p = javaPart{expr: quote(p.text)}
		}
		if n := len(out); n > 0 && p.expr != "" && out[n-1].expr != "" {
			out[n-1].expr = "string(" + out[n-1].expr + ") + string(" + p.expr + ")"
			continue
		}
		out = append(out, p)
	}
	return out
}

// write writes a key as a template; text is what it was made from.
func (k javaKey) write(text string) (string, error) {
	var b strings.Builder
	for i, p := range k {
		if p.expr != "" {
			b.WriteString("#{raw(" + p.expr + ")}")
			continue
		}
		b.WriteString(literal(p.text, i+1 < len(k)))
	}
	switch {
	case strings.TrimSpace(b.String()) == "":
		return "", errAt(text, 0, "makes an empty key")
	case b.Len() > maxText:
		return "", errAt(text, 0, "makes a template of more than %d bytes", maxText)
	}
	return b.String(), nil
}

// literal writes a text so that a template says it: hashes in front of a brace count twice.
func literal(s string, holeFollows bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := countHashes(s[i:])
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(s[i : i+n])
		if i += n; i < len(s) && s[i] == '{' || i == len(s) && holeFollows {
			b.WriteString(s[i-n : i])
		}
	}
	return b.String()
}
