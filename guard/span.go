package guard

import (
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
	// asked is when the stand-in was last asked for a span, by the clock. Instrumentation from outside of the
	// program (eBPF) attaches to the stand-in's spans, and to be noticed it must find one from time to time.
	asked *atomic.Int64
}

// askEvery is how often the stand-in is asked for a span.
const askEvery = time.Second

var noSpan = trace.SpanFromContext(context.Background())

func newSpans(p trace.TracerProvider) spans {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	s := spans{tracer: p.Tracer(scope), asked: new(atomic.Int64)}
	s.asked.Store(-int64(askEvery))
	if standIn(p) {
		s.unset = p
	}
	_, s.never = p.(noop.TracerProvider)
	return s
}

// standIn reports whether p is the global provider of a program that has not set one. Its type has no exported name.
// Should it ever get another one, spans are started for nobody, which a test of allocations notices.
func standIn(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

// start begins the span of a call that begins now. Where there is nobody to see it, ctx stays as it is.
func (s *spans) start(ctx context.Context, at time.Duration, l *labels) (context.Context, trace.Span) {
	if s.never || s.unset != nil && s.silent(at) {
		return ctx, noSpan
	}
	return s.tracer.Start(ctx, l.spanName, l.span...)
}

// silent reports whether the stand-in still has no provider behind it, and was asked for a span not long ago. A provider
// is set behind the stand-in before it takes the stand-in's place.
func (s *spans) silent(at time.Duration) bool {
	if otel.GetTracerProvider() != s.unset {
		return false
	}
	last := s.asked.Load()
	return int64(at)-last < int64(askEvery) || !s.asked.CompareAndSwap(last, int64(at))
}
