package main

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// Payment is a request of which keys are made.
type Payment struct {
	Tenant  string
	OrderID string
}

var payment = &Payment{"acme-industries", "018f6b1e-7d5a-7cc0-b1a2-1234567890ab"}

const paymentKey = "order:acme-industries:018f6b1e-7d5a-7cc0-b1a2-1234567890ab"

// keyMaker makes the key of a request in one way.
type keyMaker struct {
	name string
	make func(*Payment) (string, error)
}

// keyMakers are Latchkey's template of two paths, and what others would use: Sprintf, which does not escape, two expression engines,
// which do not either, and code that does and can make no other key.
func keyMakers() ([]keyMaker, error) {
	template, err := keyexpr.Parse("order:#{req.Tenant}:#{req.OrderID}", keyexpr.Roots{"req": keyexpr.TypeFor[*Payment]()})
	if err != nil {
		return nil, err
	}
	engine, err := exprKeys()
	if err != nil {
		return nil, err
	}
	common, err := celKeys()
	if err != nil {
		return nil, err
	}
	return []keyMaker{
		{we, func(p *Payment) (string, error) {
			keys, err := template.Expand(context.Background(), func(string) (any, error) { return p, nil })
			if err != nil {
				return "", err
			}
			return keys[0], nil
		}},
		{byHand, func(p *Payment) (string, error) { return handmade(p), nil }},
		{"fmt.Sprintf", func(p *Payment) (string, error) { return fmt.Sprintf("order:%s:%s", p.Tenant, p.OrderID), nil }},
		{"expr", engine},
		{"cel-go", common},
	}, nil
}

// handmade makes the key of p, in which a colon or what can't be seen is escaped, so that no other payment has it.
func handmade(p *Payment) string {
	key := make([]byte, 0, 128)
	key = append(key, "order:"...)
	key = appendEscaped(key, p.Tenant)
	key = append(key, ':')
	return string(appendEscaped(key, p.OrderID))
}

func appendEscaped(key []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == ':' || c == '%' || c >= 0x7f {
			key = append(key, '%', hex[c>>4], hex[c&15])
		} else {
			key = append(key, c)
		}
	}
	return key
}

func exprKeys() (func(*Payment) (string, error), error) {
	type env struct {
		Req *Payment `expr:"req"`
	}
	program, err := expr.Compile(`"order:" + req.Tenant + ":" + req.OrderID`, expr.Env(env{}))
	var machine vm.VM
	return func(p *Payment) (string, error) {
		key, err := machine.Run(program, env{p})
		if err != nil {
			return "", err
		}
		return key.(string), nil
	}, err
}

func celKeys() (func(*Payment) (string, error), error) {
	name := path.Base(reflect.TypeFor[Payment]().PkgPath()) + ".Payment"
	env, err := cel.NewEnv(ext.NativeTypes(reflect.TypeFor[*Payment]()), cel.Variable("req", cel.ObjectType(name)))
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(`"order:" + req.Tenant + ":" + req.OrderID`)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast)
	return func(p *Payment) (string, error) {
		key, _, err := program.Eval(map[string]any{"req": p})
		if err != nil {
			return "", err
		}
		return key.Value().(string), nil
	}, err
}

// keys measures what a key takes in each of the ways.
func (w *worker) keys(_ context.Context, j job) (r result, err error) {
	makers, err := keyMakers()
	if err != nil {
		return r, err
	}
	for _, m := range makers {
		ns, err := timed(j, func() error {
			key, err := m.make(payment)
			if err == nil && key != paymentKey {
				err = fmt.Errorf("%s makes the key %q", m.name, key)
			}
			return err
		})
		if err != nil {
			return r, err
		}
		r.Named = append(r.Named, measure{m.name, ns})
	}
	return r, nil
}

// timed runs f for the time of the job, after a warm-up, and returns the ns that one run took.
func timed(j job, f func() error) (float64, error) {
	if _, err := repeat(warmUp, f); err != nil {
		return 0, err
	}
	return repeat(time.Duration(j.Millis)*time.Millisecond, f)
}

func repeat(d time.Duration, f func() error) (float64, error) {
	start, n := time.Now(), 0
	for batch := 1; ; batch = min(2*batch, 1000) {
		for range batch {
			if err := f(); err != nil {
				return 0, err
			}
		}
		n += batch
		if took := time.Since(start); took >= d {
			return float64(took.Nanoseconds()) / float64(n), nil
		}
	}
}

// reentry runs a guarded function so many times; with j.OneKey it runs another one inside, under the same key.
func (w *worker) reentry(ctx context.Context, j job) (r result, err error) {
	p, err := w.peer(j.Addr)
	if err != nil {
		return r, err
	}
	inner, err := guarded(p.(latchkey).Client, "inner", func(context.Context, *Payment) (int, error) { return 1, nil })
	if err != nil {
		return r, err
	}
	outer, err := guarded(p.(latchkey).Client, "outer", func(ctx context.Context, q *Payment) (int, error) {
		if !j.OneKey {
			return 1, nil
		}
		return inner(ctx, q)
	})
	for range j.Count {
		if err == nil {
			_, err = outer(ctx, payment)
		}
	}
	r.Done = int64(j.Count)
	return r, err
}
