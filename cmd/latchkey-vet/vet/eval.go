package vet

import (
	"context"
	"go/ast"
	"go/constant"
	"go/types"
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// functions are called with the arguments that the source has, where all of them are written out.
var functions = map[string]any{
	"guard.Args": guard.Args, "guard.Busy": guard.Busy, "guard.Fair": guard.Fair, "guard.Fenced": guard.Fenced,
	"guard.HoldAtLeast": guard.HoldAtLeast, "guard.FromSpec": guard.FromSpec, "guard.In": guard.In, "guard.Key": guard.Key, "guard.KeyFrom": guard.KeyFrom,
	"guard.Kind": guard.Kind, "guard.Lease": guard.Lease, "guard.Limit": guard.Limit, "guard.Log": guard.Log, "guard.LogKeys": guard.LogKeys,
	"guard.MaxHold": guard.MaxHold, "guard.MaxRetryAfter": guard.MaxRetryAfter, "guard.MeterProvider": guard.MeterProvider, "guard.Methods": guard.Methods,
	"guard.Name": guard.Name, "guard.Observe": guard.Observe, "guard.OneKey": guard.OneKey, "guard.Outage": guard.Outage, "guard.Read": guard.Read,
	"guard.ReleaseTimeout": guard.ReleaseTimeout, "guard.Spin": guard.Spin, "guard.Switchable": guard.Switchable, "guard.TracerProvider": guard.TracerProvider,
	"guard.Wait": guard.Wait, "guard.Waiters": guard.Waiters, "guard.When": guard.When, "guard.Write": guard.Write, "guard.Fallback": guard.Fallback[func()],
	"guard.KeyFunc": guard.KeyFunc[any], "guard.KeysFunc": guard.KeysFunc[any], "guard.LeaseFrom": guard.LeaseFrom, "guard.LimitFrom": guard.LimitFrom,
	"guard.Level": guard.Level, "guard.LevelFrom": guard.LevelFrom, "guard.Rate": guard.Rate, "guard.Burst": guard.Burst,

	"middleware.BodyLimit": middleware.BodyLimit, "middleware.Pattern": middleware.Pattern, "middleware.Status": middleware.Status,
	"middleware.Respond": middleware.Respond, "middleware.Fallback": middleware.Fallback, "middleware.WithFacts": middleware.WithFacts[any],
	"middleware.PathValues": middleware.PathValues, "middleware.Value": func(root string) middleware.Option { return middleware.WithFacts[any](root, someFact) },

	"keyexpr/spel.Expression": spel.Expression, "keyexpr/spel.Lock4j": spel.Lock4j, "keyexpr/spel.Klock": spel.Klock,
	"keyexpr/spel.Redisson": spel.Redisson, "keyexpr/spel.Alturkovic": spel.Alturkovic, "keyexpr/spel.Params": spel.Params,
	"keyexpr/spel.Var": spel.Var, "keyexpr/spel.Method": spel.Method, "keyexpr/spel.Prefix": spel.Prefix,
}

func someFact(*http.Request) (any, error) { return nil, nil }

// failures are those that an adapter can give a status to.
var failures = map[string]error{
	"context.Canceled": context.Canceled, "context.DeadlineExceeded": context.DeadlineExceeded, "guard.ErrKey": guard.ErrKey,
	"guard.ErrBusy": guard.ErrBusy, "guard.ErrOutage": guard.ErrOutage, "guard.ErrLost": guard.ErrLost,
	"guard.ErrUnsupported": guard.ErrUnsupported, "guard.ErrFault": guard.ErrFault, "guard.ErrReplaced": guard.ErrReplaced,
}

// anyLocker stands in for the locker of a program: it has all kinds of locks.
type anyLocker struct{}

func (anyLocker) Acquire(context.Context, lock.Request) (lock.Hold, error) {
	return nil, lock.ErrUnsupported
}

func (anyLocker) ServesLevels(...string) error { return nil }

// Replace is there for busy=replace.
func (anyLocker) Replace(ctx context.Context, _ lock.Request) (context.Context, func(), error) {
	return ctx, nil, lock.ErrUnsupported
}

// anyKey stands in for a key that is not written as a template.
type anyKey struct{}

func (anyKey) String() string { return "?" }
func (anyKey) Check() error   { return nil }
func (anyKey) Parse(keyexpr.Roots, ...keyexpr.Option) (*keyexpr.Template, error) {
	return keyexpr.Parse("?", nil, keyexpr.OneKey())
}

// someone returns a value for what a check only looks at to see whether there is one.
func someone(t reflect.Type) (reflect.Value, bool) {
	if t.Kind() == reflect.Func {
		return reflect.MakeFunc(t, nil), true
	}
	reg, _ := guard.NewRegistry()
	for _, v := range []any{slog.Default(), reg, anyLocker{}, anyKey{}, metricnoop.NewMeterProvider(), tracenoop.NewTracerProvider()} {
		if reflect.TypeOf(v).AssignableTo(t) && (t.Kind() != reflect.Interface || t.NumMethod() > 0) {
			return reflect.ValueOf(v), true
		}
	}
	return reflect.Value{}, false
}

// value returns the value of e in every run of the program, as a value of type t. ok is false if that is not written
// out.
func (p *pass) value(e ast.Expr, t reflect.Type) (v reflect.Value, ok bool) {
	e = ast.Unparen(e)
	if c := p.TypesInfo.Types[e].Value; c != nil {
		return constantOf(c, t)
	}
	if p.isNil(e) {
		return reflect.Zero(t), true
	}
	if c := p.callOf(e); c != nil {
		v, ok := p.called(c)
		return v, ok && v.IsValid() && v.Type().AssignableTo(t)
	}
	if obj := p.object(e); obj != nil && obj.Pkg() != nil && t == reflect.TypeFor[error]() {
		failure, ok := failures[strings.TrimPrefix(obj.Pkg().Path(), module+"/")+"."+obj.Name()]
		return reflect.ValueOf(failure), ok
	}
	switch e := e.(type) {
	case *ast.CompositeLit:
		if t.Kind() == reflect.Slice {
			return p.list(e, t)
		}
		return p.fieldsOf(e, t)
	case *ast.CallExpr: // a conversion, to bytes say
		if p.TypesInfo.Types[e.Fun].IsType() && len(e.Args) == 1 {
			return p.value(e.Args[0], t)
		}
	case *ast.Ident:
		if from := p.follow(e); from != e {
			return p.value(from, t)
		}
	}
	return reflect.Value{}, false
}

// constantOf is a constant of the source, which fits there, as a value of type t.
func constantOf(c constant.Value, t reflect.Type) (v reflect.Value, ok bool) {
	if number := constant.ToInt(c); number.Kind() == constant.Int {
		c = number
	}
	v = reflect.ValueOf(constant.Val(c))
	switch zero := reflect.Zero(t); {
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return v, true
	case v.Kind() == t.Kind(), v.CanInt() && (zero.CanInt() || zero.CanUint()):
		return v.Convert(t), true
	}
	return v, false
}

// list is a slice whose elements are all written out.
func (p *pass) list(e *ast.CompositeLit, t reflect.Type) (reflect.Value, bool) {
	list := reflect.MakeSlice(t, 0, len(e.Elts))
	for _, elt := range e.Elts {
		v, ok := p.value(elt, t.Elem())
		if !ok {
			return list, false
		}
		list = reflect.Append(list, v)
	}
	return list, true
}

// fieldsOf is a struct of those fields that are written out. complete is false if there are others.
func (p *pass) fieldsOf(e *ast.CompositeLit, t reflect.Type) (v reflect.Value, complete bool) {
	if t.Kind() != reflect.Struct || !p.same(p.TypesInfo.TypeOf(e), t) {
		return reflect.Value{}, false
	}
	v, complete = reflect.New(t).Elem(), true
	for _, elt := range e.Elts {
		pair, ok := elt.(*ast.KeyValueExpr)
		if !ok {
			return v, false
		}
		field := v.FieldByName(pair.Key.(*ast.Ident).Name)
		if !field.CanSet() {
			return v, false
		}
		x, ok := p.value(pair.Value, field.Type())
		if complete = complete && ok; ok {
			field.Set(x)
		}
	}
	return v, complete
}

// same reports whether a named type of the source is one of the analyser.
func (p *pass) same(t types.Type, own reflect.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == own.Name() && ours(n.Obj().Pkg()) != "" && module+"/"+ours(n.Obj().Pkg()) == own.PkgPath()
}

// called calls what c calls, if all that it does is make a value, and its arguments are written out. Arguments of which a
// check only wants to know whether there are any are made up.
func (p *pass) called(c *call) (v reflect.Value, ok bool) {
	f, known := functions[c.pkg+"."+c.name]
	if !known || c.recv != "" {
		return reflect.Value{}, false
	}
	fn := reflect.ValueOf(f)
	t := fn.Type()
	var args []reflect.Value
	for i, arg := range c.Args {
		want := t.In(min(i, t.NumIn()-1))
		spread := c.Ellipsis.IsValid() && i == len(c.Args)-1
		if t.IsVariadic() && i >= t.NumIn()-1 && !spread {
			want = want.Elem()
		}
		x, ok := p.value(arg, want)
		if !ok {
			x, ok = someone(want)
		}
		if !ok {
			return reflect.Value{}, false
		}
		args = append(args, x)
	}
	switch {
	case !t.IsVariadic() && len(args) != t.NumIn(): // of a call of several results
		return reflect.Value{}, false
	case c.Ellipsis.IsValid():
		return fn.CallSlice(args)[0], true
	}
	return fn.Call(args)[0], true
}
