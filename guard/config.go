package guard

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// config is filled in by options.
type config struct {
	spec      Spec
	single    fields    // of spec, those that an option of their own has given
	source    keySource // of spec.Key, if that is no template
	keyFunc   *keyFunc
	fallback  any // a function like the guarded one, with an error as its last argument
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	observers []func(context.Context, Event)
	log       *slog.Logger // of option Log
	wantKeys  bool         // by an observer
	functions []keyexpr.Option
	registry  *Registry
	place     string // in the program; only in a registry
	faults    faults // of options

	releaseTimeout time.Duration // 0 is the default
	maxRetryAfter  time.Duration // 0 is none
}

func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// give sets the fields in set from s, for an option that is about these only.
func (c *config) give(set fields, s Spec) {
	for _, a := range attributes {
		c.faults.check(c.single&set&a.field != 0, "%s is given twice, as %q and as %q", a.name, a.format(&c.spec), a.format(&s))
	}
	c.single |= set
	c.spec.merge(s, set)
}

// fromSpec sets the fields that s gives, over earlier ones.
func (c *config) fromSpec(s Spec) {
	if s.Key != "" {
		c.source = nil
	}
	c.spec.merge(s, s.given())
}

// defaults reports whether c is meant for many functions, whose tags have the last word.
func (c *config) defaults() bool {
	return c.spec.Name == "" && c.spec.Key == "" && c.keyFunc == nil
}

// fill merges the fields of a tag into c: into the gaps, or, where c has defaults, over them.
func (c *config) fill(s Spec, defaults bool) {
	set := s.given()
	if c.keyFunc != nil {
		set &^= fieldKey
	}
	if !defaults {
		set &^= c.spec.given()
	}
	c.spec.merge(s, set)
}

// imply fills in the fields that the given ones imply, once no tag can set them anymore.
func (c *config) imply() {
	c.spec.imply()
	if c.fallback == nil {
		return
	}
	c.spec.implyFallback()
}

// validate reports the faults of c that show without knowing the facts. A field that a tag may still fill in is no
// fault.
func (c *config) validate() error {
	s := c.spec
	faults := c.mistakes(false)
	if c.source != nil {
		if err := c.source.Check(); err != nil {
			faults = append(faults, fmt.Errorf("key: %w", err))
		}
		s.Key = ""
	}
	return c.spec.errors(append(faults, s.checkTemplates()...))
}

// mistakes are the faults of c but for those of syntax. In a struct that is bound, the tag of a field may do without the
// fallback of all.
func (c *config) mistakes(tagged bool) []error {
	s := c.spec
	f := append(slices.Clip(c.faults), s.faults()...)
	if c.keyFunc != nil {
		f.check(c.keyFunc.option == "KeysFunc" && s.bounded(), "KeysFunc: levels and a rate are for one key, that of a KeyFunc")
		f.check(s.Key != "", "two sources of keys, Key and %s: give one", c.keyFunc.option)
	}
	const policies = fieldBusy | fieldOutage
	f.check(!tagged && c.fallback != nil && s.given()&policies == policies && s.Busy != RunFallback && s.Outage != RunFallback,
		"%w", s.idleFallback())
	for _, observe := range c.observers {
		f.check(observe == nil, "Observe without a function")
	}
	return f
}
