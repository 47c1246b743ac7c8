package guard

import (
	"cmp"
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// spans starts the spans of one guard. A span that goes nowhere costs three allocations, so none is started where it is
// certain that there is nobody to see it: a provider that is known to do nothing, or OpenTelemetry's global one as long as
// the program has not set any.
type spans struct {
	tracer trace.Tracer
	// unset is the global provider that stands in until the program sets one. It is nil where spans always start.
	unset trace.TracerProvider
	never bool // the provider does nothing, and never will
	// quiet is set for a while after the stand-in has started a span that nobody recorded. Instrumentation from outside
	// of the program (eBPF) attaches to the stand-in's spans, and to be noticed it must find one from time to time.
	quiet *atomic.Bool
}

// askEvery is how often the stand-in starts a span that nobody records.
const askEvery = time.Second

func newSpans(p trace.TracerProvider) spans {
	p = cmp.Or(p, otel.GetTracerProvider())
	s := spans{tracer: p.Tracer(scope), unset: standIn(p), quiet: new(atomic.Bool)}
	_, s.never = p.(noop.TracerProvider)
	return s
}

// standIn returns p if it is the global provider of a program that has not set one, and nil otherwise. Its type has no exported
// name. Should it ever get another one, guards ask for nobody, which a test of allocations notices.
func standIn[P any](p P) (none P) {
	t := reflect.TypeOf(p)
	if t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global" {
		return p
	}
	return none
}

// start begins the span of a call. Where there is nobody to see it, ctx stays as it is, and the span is nil.
func (s *spans) start(ctx context.Context, l *labels) (context.Context, trace.Span) {
	// A provider is set behind the stand-in before it takes the stand-in's place.
	unset := s.unset != nil && otel.GetTracerProvider() == s.unset
	if s.never || unset && s.quiet.Load() {
		return ctx, nil
	}
	under, span := s.tracer.Start(ctx, l.spanName, l.span...)
	if unset && !span.IsRecording() && s.quiet.CompareAndSwap(false, true) {
		time.AfterFunc(askEvery, func() { s.quiet.Store(false) })
	}
	return under, span
}
