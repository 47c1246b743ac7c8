package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// A Registry knows the guards of a program: those that were made with the option In. It lists them, gives all of them the
// same observers, changes their declarations, switches them while they run, and lets them end in peace. It is safe for
// concurrent use.
//
//	reg := guard.Must(guard.NewRegistry(guard.Log(logger)))
//	err := reg.Override(specs) // from a file
//	pay, err := guard.New(locker, guard.In(reg), guard.Name("order.pay"), …)
//	… // all other guards
//	err = reg.Check() // is every name in the file that of a guard?
//	…
//	report, err := reg.Drain(ctx) // when the program ends
//
// A Registry watches which guards are taken under each other's locks, in a Stack or by nested calls. Two that it has
// seen in both orders, A under B and B under A, can have two calls wait for each other. It says so once for each pair,
// as a line of Log at WARN: take them in one order, or declare both keys in one guard.
type Registry struct {
	shared config // what all guards get
	gate   gate
	drain  context.Context // ends when Drain begins
	begin  context.CancelFunc

	mu        sync.Mutex
	entries   map[string]*entry
	overrides map[string]Spec
	made      map[string]bool // the names of guards, also of those that are not listed yet
}

// NewRegistry returns a Registry without guards. The options are for all guards in it: Observe, Log, LogKeys,
// TemplateFunc, TracerProvider, MeterProvider, ReleaseTimeout and MaxRetryAfter. An option of a guard's own overrides
// them. Observers add up: first those of the registry, then the guard's.
func NewRegistry(opts ...Option) (*Registry, error) {
	r := &Registry{entries: make(map[string]*entry), overrides: make(map[string]Spec), made: make(map[string]bool)}
	r.drain, r.begin = context.WithCancel(context.Background())
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("guard: NewRegistry: option %d of %d is nil", i+1, len(opts))
		}
		opt.apply(&r.shared)
	}
	c := &r.shared
	if c.spec.given() != 0 || c.source != nil || c.keyFunc != nil || c.fallback != nil || c.registry != nil {
		return nil, errors.New("guard: NewRegistry takes options that are for all guards: Observe, Log, LogKeys, TemplateFunc, TracerProvider, MeterProvider, ReleaseTimeout, MaxRetryAfter")
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("guard: NewRegistry: %w", err)
	}
	return r, nil
}

// In makes a guard one of r's. The guard is listed there once it stands before a function or in an adapter, under its
// name, which no other guard of r may have.
func In(r *Registry) Option {
	return optionFunc(func(c *config) {
		switch {
		case r == nil:
			c.fault("In without a registry")
		case r.entries == nil:
			c.fault("In with a registry that NewRegistry did not make")
		case c.registry != nil:
			c.fault("In is given twice")
		default:
			c.registry, c.place = r, caller()
		}
	})
}

// equip gives c what r has for all guards.
func (r *Registry) equip(c *config) {
	s := &r.shared
	c.observers = append(slices.Clone(s.observers), c.observers...)
	c.functions = append(slices.Clone(s.functions), c.functions...)
	c.wantKeys = c.wantKeys || s.wantKeys
	c.tracers = cmp.Or(c.tracers, s.tracers)
	c.meters = cmp.Or(c.meters, s.meters)
	c.releaseTimeout = cmp.Or(c.releaseTimeout, s.releaseTimeout)
	c.maxRetryAfter = cmp.Or(c.maxRetryAfter, s.maxRetryAfter)
}

// declared records that there is a guard of a name.
func (r *Registry) declared(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made[name] = true
}

// entry is one guard in a Registry.
type entry struct {
	registry *Registry
	origin   *Guard // that New returned
	owner    any    // Guard.owner
	place    string
	runner   *runner // of the site where it was first listed
	sites    []*site // of registry.mu

	mode          atomic.Int32 // a Mode
	inside        atomic.Int64
	waiting, held atomic.Int64
	outcomes      map[string]*atomic.Int64
	waits, holds  recentTimes
	roots         keyexpr.Roots
	outer         sync.Map // entries of guards under whose locks this one was taken; at most one for each guard
}

// register lists run, which is at a site, under its name. A guard that stands in several places is listed once, if it was given its name by an
// option, or if its places are the same field of several structs of a type. A name that is taken by another declaration is
// an error.
func (r *Registry) register(run *runner, at *site) error {
	g := run.guard
	r.mu.Lock()
	defer r.mu.Unlock()
	e, stale := r.entries[run.spec.Name], g.said != r.overrides[run.spec.Name] // as Override has come meanwhile
	switch {
	case e == nil:
		e = &entry{registry: r, origin: g.origin, owner: g.owner, place: g.place, outcomes: make(map[string]*atomic.Int64, len(outcomes)), roots: at.roots, runner: run}
		for _, outcome := range outcomes {
			e.outcomes[outcome] = new(atomic.Int64)
		}
		r.entries[run.spec.Name] = e
	case !e.declares(g) || !stale && *e.spec() != run.spec:
		return run.spec.errorf("the name is taken by the guard declared at %s%s", e.place, e.rename(g))
	}
	run.entry = e
	if i := slices.IndexFunc(e.sites, at.like); i >= 0 {
		at.runner = e.sites[i].runner
		return nil
	}
	e.sites = append(e.sites, at)
	if stale {
		return r.refitLocked(r.overrides, nil, at)
	}
	return nil
}

// spec is the declaration, as the next call has it.
func (e *entry) spec() *Spec { return &e.runner.current().spec }

// declares reports whether e and g come from the same words in the program.
func (e *entry) declares(g *Guard) bool {
	return g.owner != nil && e.owner == g.owner || e.origin == g.origin && g.origin.spec.Name != ""
}

// rename says how g gets a name of its own beside e.
func (e *entry) rename(g *Guard) string {
	t, _ := g.owner.(reflect.Type)
	switch directed := t == nil || t.Kind() == reflect.Interface; {
	case g.owner == nil:
		return ": guard.Name gives this one another"
	case directed && g.owner == e.owner:
		return fmt.Sprintf(" for another %v, with other options: guard.Name among them gives this one another", g.owner)
	case directed:
		return ": name=... in the directive, or guard.Name among the options, gives this one another"
	case g.owner != e.owner:
		return ": name=... in the tag gives this one another"
	}
	return fmt.Sprintf(" for another %v, with another Spec: where the tags give no names, those of fields tell them apart, as in Bind of struct{ Second *%v }", g.owner, g.owner)
}

// Info describes a guard of a Registry.
type Info struct {
	// Spec is the declaration, with tags and overrides applied.
	Spec Spec
	// Shape is what the keys look like: order:<string>. It is empty for a KeyFunc.
	Shape string
	// Place is where the guard was declared, as folder/file.go:line.
	Place string
	// Mode is how the guard is switched.
	Mode Mode
	// Waiting is how many calls wait for their locks now, and Held how many have them.
	Waiting, Held int64
	// Outcomes counts how calls ended, by the Outcome constants. Those that never happened are missing.
	Outcomes map[string]int64
	// Waits is how long calls took lately to get their locks, or to fail to. Holds is how long they held them.
	Waits, Holds Times
	// Roots are the facts that the guard's adapter offers, by name and in order: body, path and others for HTTP, req for
	// most functions.
	Roots []string
}

// All returns the guards in the order of their names, as they are at this moment.
func (r *Registry) All() iter.Seq[Info] {
	return func(yield func(Info) bool) {
		for _, e := range r.list() {
			if !yield(e.info()) {
				return
			}
		}
	}
}

// String returns the Specs of the guards as the texts of tags, with bars between them.
func (r *Registry) String() string {
	var specs []Spec
	for _, e := range r.list() {
		specs = append(specs, *e.spec())
	}
	return specsText(specs)
}

func (r *Registry) list() []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.entries), func(a, b *entry) int { return strings.Compare(a.runner.spec.Name, b.runner.spec.Name) })
}

// count counts the end of a call.
func (e *entry) count(ev *Event, locked bool) {
	e.outcomes[ev.Outcome].Add(1)
	at := clock.Now()
	if ev.Keys > 0 {
		e.waits.add(ev.Wait, at)
	}
	if locked {
		e.held.Add(-1)
		e.holds.add(ev.Held, at)
	}
}

func (e *entry) info() Info {
	run := e.runner.current()
	i := Info{
		Spec: run.guard.Spec(), Place: e.place, Mode: Mode(e.mode.Load()),
		Waiting: e.waiting.Load(), Held: e.held.Load(), Outcomes: make(map[string]int64),
		Waits: e.waits.sum(clock.Now()), Holds: e.holds.sum(clock.Now()), Roots: slices.Sorted(maps.Keys(e.roots)),
	}
	if run.key != nil {
		i.Shape = run.key.Shape()
	}
	for outcome, count := range e.outcomes {
		if n := count.Load(); n > 0 {
			i.Outcomes[outcome] = n
		}
	}
	return i
}

// find returns the entry called name, or an error that suggests the nearest.
func (r *Registry) find(name string) (*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	if e == nil {
		return nil, fmt.Errorf("guard: no guard is called %q%s", name, suggest.Ending(name, slices.Sorted(maps.Keys(r.entries))))
	}
	return e, nil
}

// caller is the place in the program, or in its tests, that called us, as folder/file.go:line.
func caller() string {
	_, here, _, _ := runtime.Caller(0)
	root := path.Dir(path.Dir(here))
	var counters [32]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters[:])])
	for {
		f, more := frames.Next()
		if !ownFile(root, f.File) || !more {
			return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(f.File)), path.Base(f.File), f.Line)
		}
	}
}

// ownFile reports whether file is one of those that make guards for others. It does not go by functions, because one
// that is inlined has the caller's name.
func ownFile(root, file string) bool {
	dir, ours := strings.CutPrefix(path.Dir(file), root+"/")
	return ours && !strings.HasSuffix(file, "_test.go") &&
		slices.Contains([]string{"guard", "guard/adapter", "middleware", "middleware/ginguard", "interceptor", "interceptor/guardpb"}, dir)
}
