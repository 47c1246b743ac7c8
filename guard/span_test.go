package guard

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/latchkey-go/latchkey/internal/clock"
)

// TestSpansForNobodyAreFree holds that a span which nobody can see costs nothing, and that the global stand-in is asked
// for one now and then.
func TestSpansForNobodyAreFree(t *testing.T) {
	l := newLabels(Spec{Name: "a", Key: "b"})
	for _, p := range []trace.TracerProvider{nil, otel.GetTracerProvider(), noop.NewTracerProvider()} {
		s := newSpans(p)
		at := clock.Now()
		_, first := s.start(t.Context(), at, &l)
		if asked := first != noSpan; asked == s.never {
			t.Errorf("%T: first call asked for a span: %v", p, asked)
		}
		if got := testing.AllocsPerRun(100, func() {
			ctx, span := s.start(t.Context(), at, &l)
			if span != noSpan || ctx != t.Context() {
				t.Errorf("%T: a span for nobody", p)
			}
		}); got != 0 {
			t.Errorf("%T: %v allocations", p, got)
		}
		if _, later := s.start(t.Context(), at+askEvery, &l); (later != noSpan) == s.never {
			t.Errorf("%T: asked again: %v", p, later != noSpan)
		}
	}
}

// TestSpansAlwaysStartWithAProvider holds that no span is lost of a provider that is set at the guard, or later in the
// program. OpenTelemetry's global provider can be set once in a process, so this needs one of its own.
func TestSpansAlwaysStartWithAProvider(t *testing.T) {
	if os.Getenv("LATCHKEY_GLOBAL_PROVIDER") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "LATCHKEY_GLOBAL_PROVIDER=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	exporter := tracetest.NewInMemoryExporter()
	l, at := newLabels(Spec{Name: "a", Key: "b"}), clock.Now()
	early, given := newSpans(nil), newSpans(otel.GetTracerProvider())
	early.start(context.Background(), at, &l)
	given.start(context.Background(), at, &l)
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	late := newSpans(nil)
	for i, s := range []spans{early, given, late} {
		for n := range 5 {
			ctx, span := s.start(t.Context(), at, &l)
			span.End()
			if want := 5*i + n + 1; len(exporter.GetSpans()) != want || trace.SpanFromContext(ctx) != span {
				t.Fatalf("provider %d, call %d: %d spans, want %d", i, n, len(exporter.GetSpans()), want)
			}
		}
	}
}
